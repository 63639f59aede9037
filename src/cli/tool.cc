#include "cli/tool.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include <fmt/format.h>

#include "cli/fault_options.h"
#include "cli/library_folder.h"
#include "cli/nvmf_address.h"
#include "cli/run.h"
#include "faults/values.h"
#include "host/settings/link_kind.h"

namespace verbena::cli {
namespace {

struct Tool {
  const char *command, *program;
};
constexpr std::array kTools = {Tool{"model", "verbena-transfer"}, Tool{"bench", "verbena-transfer"},
                               Tool{"nvmf", "verbena-nvmf"}};

struct DeviceOption {
  const char* name;
  std::string RunRequest::*member;
};
constexpr std::array kDeviceOptions = {
    DeviceOption{"--address", &RunRequest::address},
    DeviceOption{"--seed", &RunRequest::seed},
    DeviceOption{"--cc", &RunRequest::congestion},
    DeviceOption{"--link", &RunRequest::link},
    DeviceOption{"--retransmission", &RunRequest::retransmission},
    DeviceOption{"--capture", &RunRequest::capture}};

Failure wrong_tool_usage(const std::string& what, const std::string& command) {
  return {kExitCannot, fmt::format("{}; verbena {} --help explains", what, command)};
}

// Takes the option at `words[i]` and its value, and moves `i` to its last word. Returns "" or what
// is wrong; leaves `i` where it is and `is_taken` false if it is another option.
std::string take_device_option(std::span<const std::string> words, std::size_t& i, RunRequest& run,
                               std::vector<std::string>& faults, bool& is_taken) {
  const std::size_t equals = words[i].find('=');
  const std::string name = words[i].substr(0, equals);
  std::string* place = name == "--fault" ? &faults.emplace_back() : nullptr;
  for (const DeviceOption& option : kDeviceOptions)
    if (name == option.name) place = &(run.*option.member);
  is_taken = place != nullptr;
  if (!is_taken) return "";
  if (equals != std::string::npos)
    *place = words[i].substr(equals + 1);
  else if (i + 1 < words.size())
    *place = words[++i];
  return place->empty() ? name + " needs a value" : "";
}

}  // namespace

bool is_tool(std::span<const std::string> words) {
  if (words.empty()) return false;
  if (words[0] == "bench") return words.size() > 1 && words[1] == "kv";
  return std::ranges::find(kTools, words[0], &Tool::command) != kTools.end();
}

Expected<ToolRequest> read_tool_request(std::span<const std::string> words) {
  ToolRequest request;
  std::vector<std::string> faults;
  const std::string& command = words[0];
  for (std::size_t i = 0; i < words.size(); ++i) {
    bool is_taken = false;
    const std::string wrong = take_device_option(words, i, request.run, faults, is_taken);
    if (!wrong.empty()) return tl::unexpected(wrong_tool_usage(wrong, command));
    if (!is_taken) request.words.push_back(words[i]);
  }
  auto rules = read_faults(faults, {});
  if (!rules) return tl::unexpected(rules.error());
  request.run.faults = std::move(*rules);
  if (!request.run.capture.empty())
    request.run.capture = std::filesystem::absolute(request.run.capture).string();
  if (!request.run.seed.empty() && !faults::parse_number(request.run.seed))
    return tl::unexpected(
        wrong_tool_usage(fmt::format("--seed {} is no number", request.run.seed), command));
  if (!request.run.link.empty() && !host::link_kind_named(request.run.link))
    return tl::unexpected(wrong_tool_usage(
        fmt::format("--link {}: there is no such link", request.run.link), command));
  return request;
}

Failure start_tool(const ToolRequest& request) {
  const auto tool = std::ranges::find(kTools, request.words[0], &Tool::command);
  const auto program = program_beside_library(tool->program);
  if (!program) return program.error();
  RunRequest run = request.run;
  if (run.address.empty() && request.words[0] == "nvmf")
    run.address = nvmf_device_address(std::span(request.words).subspan(1));
  run.command = {program->string()};
  // verbena-nvmf has no other command.
  const auto first = request.words.begin() + (request.words[0] == "nvmf" ? 1 : 0);
  run.command.insert(run.command.end(), first, request.words.end());
  return cli::run(run);
}

}  // namespace verbena::cli
