#include "cli/command_line.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "cli/commands/commands.h"
#include "cli/commands/device_options.h"
#include "cli/help.h"
#include "cli/tool.h"

namespace verbena::cli {
namespace {

// Options with a value, of `run` and of `test` besides the device's: where they end, the program
// begins.
constexpr std::array<std::string_view, 6> kRunOptionsWithValue = {
    "--address", "--capture", "--fabric", "--nic", "--as", "--scale"};
constexpr std::array<std::string_view, 9> kTestOptionsWithValue = {
    "-n", "--hosts", "--timeout", "--grace", "--delay", "-o", "--output", "--junit", "--name"};

bool is_one_of(std::span<const std::string_view> options, const std::string& option) {
  return std::ranges::find(options, option) != options.end();
}

bool takes_value(const std::string& command, const std::string& option) {
  return is_one_of(DeviceOptions::kWithValue, option) ||
         (command == "run" ? is_one_of(kRunOptionsWithValue, option)
                           : is_one_of(kTestOptionsWithValue, option));
}

bool is_option(const std::string& argument) { return argument.size() > 1 && argument[0] == '-'; }

// Split: the arguments of `verbena`, and the words after the options of `run` and `test`. Those
// words belong to the program, and Verbena does not parse them.
struct Split {
  std::vector<std::string> own, program;
};

Split split_at_program(std::span<const std::string> arguments) {
  const auto run = std::find_if_not(arguments.begin(), arguments.end(), is_option);
  if (is_tool({run, arguments.end()})) {
    const auto help = std::find_if(run, arguments.end(), [](const std::string& word) {
      return word == "--help" || word == "-h";
    });
    Split split{{arguments.begin(), run + 1}, {run, arguments.end()}};
    if (help != arguments.end()) split.own.push_back(*help);
    return split;
  }
  if (run == arguments.end() || (*run != "run" && *run != "test"))
    return {{arguments.begin(), arguments.end()}, {}};
  auto program = run + 1;
  while (program != arguments.end() && is_option(*program) && *program != "--") {
    const bool has_value =
        takes_value(*run, *program) && program + 1 != arguments.end() && program[1] != "--";
    program += has_value ? 2 : 1;
  }
  Split split{{arguments.begin(), program}, {}};
  if (program != arguments.end() && *program == "--") ++program;
  split.program.assign(program, arguments.end());
  return split;
}

// The commands, in the order in which an error message lists them.
constexpr std::array kCommands = {make_run_command,   make_test_command,   make_devices_command,
                                  make_stats_command, make_top_command,    make_doctor_command,
                                  make_sim_command,   make_fabric_command, make_nic_command,
                                  make_plan_command,  make_coll_command,   make_model_command,
                                  make_bench_command, make_nvmf_command,   make_default_command};

class Parser {
 public:
  Parser() {
    app_.set_version_flag("--version", "verbena " VERBENA_VERSION);
    app_.require_subcommand(0, 1);  // a later word that names a command is an argument
    for (const auto make : kCommands) commands_.push_back(make());
    for (const auto& command : commands_) command->add_to(app_);
    app_.require_subcommand(0, 1);  // a later word is no command: `nic top`
  }

  Expected<Request> parse(Split split) {
    try {
      std::reverse(split.own.begin(), split.own.end());  // the order CLI11 takes
      app_.parse(split.own);
    } catch (const CLI::CallForHelp&) {
      const Command* const command = parsed();
      return PrintRequest{
          std::string(help_text(command != nullptr ? command->help() : HelpTopic::kVerbena))};
    } catch (const CLI::CallForVersion& version) {
      return PrintRequest{std::string(version.what()) + "\n"};
    } catch (const CLI::ExtrasError&) {
      return wrong_usage(fmt::format("unexpected argument '{}'", first_unexpected()));
    } catch (const CLI::ParseError& error) {
      return wrong_usage(error.what());
    }
    const Command* const command = parsed();
    if (command == nullptr) return wrong_usage("a command is needed: " + command_names());
    return command->request(std::move(split.program));
  }

 private:
  // Returns nullptr if the words name no command.
  const Command* parsed() const {
    const auto found =
        std::ranges::find_if(commands_, &Command::is_parsed,
                             [](const auto& command) -> const Command& { return *command; });
    return found == commands_.end() ? nullptr : found->get();
  }
  tl::unexpected<Failure> wrong_usage(std::string_view what) const {
    if (const Command* const command = parsed()) return command->wrong_usage(what);
    return failure(kExitCannot, fmt::format("{}; verbena --help explains", what));
  }
  std::string command_names() const {
    std::string names;
    for (const auto& command : commands_) {
      if (!names.empty()) names += command == commands_.back() ? " or " : ", ";
      names += command->name();
    }
    return names;
  }
  std::string first_unexpected() const {
    const std::vector<std::string> unexpected = app_.remaining(true);
    return unexpected.empty() ? "" : unexpected.front();
  }

  CLI::App app_;
  std::vector<std::unique_ptr<Command>> commands_;
};

}  // namespace

Expected<Request> parse_command_line(std::span<const std::string> arguments) {
  return Parser().parse(split_at_program(arguments));
}

}  // namespace verbena::cli
