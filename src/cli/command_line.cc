#include "cli/command_line.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/check.h"
#include "cli/fault_options.h"
#include "cli/help.h"
#include "faults/values.h"

namespace verbena::cli {
namespace {

constexpr std::string_view kAddress = "--address";
constexpr std::array kRunOptionsWithValue = {kAddress,
                                             std::string_view("--fault"),
                                             std::string_view("--fault-file"),
                                             std::string_view("--capture"),
                                             std::string_view("--capture-limit"),
                                             std::string_view("--seed")};

bool takes_value(const std::string& option) {
  return std::ranges::find(kRunOptionsWithValue, option) != kRunOptionsWithValue.end();
}

bool is_option(const std::string& argument) { return argument.size() > 1 && argument[0] == '-'; }

// What follows the options of `run` is the program's, and is not ours to read.
struct Split {
  std::vector<std::string> own, program;
};

Split split_at_program(std::span<const std::string> arguments) {
  const auto run = std::find_if_not(arguments.begin(), arguments.end(), is_option);
  if (run == arguments.end() || *run != "run") return {{arguments.begin(), arguments.end()}, {}};
  auto program = run + 1;
  while (program != arguments.end() && is_option(*program) && *program != "--") {
    const bool has_value =
        takes_value(*program) && program + 1 != arguments.end() && program[1] != "--";
    program += has_value ? 2 : 1;
  }
  Split split{{arguments.begin(), program}, {}};
  if (program != arguments.end() && *program == "--") ++program;
  split.program.assign(program, arguments.end());
  return split;
}

// The commands and options, and where CLI11 puts their values.
class Parser {
 public:
  Parser() {
    app_.set_version_flag("--version", "verbena " VERBENA_VERSION);
    run_->add_option(std::string(kAddress), address_)->type_name("ADDRESS");
    run_->add_option("--fault", faults_)->type_name("RULES")->take_all();
    run_->add_option("--fault-file", fault_files_)->type_name("FILE")->take_all();
    run_->add_option("--seed", seed_)->type_name("N");
    run_->add_option("--capture", capture_)->type_name("FILE");
    run_->add_option("--capture-limit", capture_limit_)
        ->transform(CLI::AsSizeValue(false))
        ->type_name("SIZE");
    devices_->add_option(std::string(kAddress), address_)->type_name("ADDRESS");
    devices_->add_flag("--json", json_);
  }

  Expected<Request> parse(Split split) {
    try {
      std::reverse(split.own.begin(), split.own.end());  // the order CLI11 takes
      app_.parse(split.own);
    } catch (const CLI::CallForHelp&) {
      return PrintRequest{std::string(help_text(topic()))};
    } catch (const CLI::CallForVersion& version) {
      return PrintRequest{std::string(version.what()) + "\n"};
    } catch (const CLI::ExtrasError&) {
      return wrong_usage(fmt::format("unexpected argument '{}'", first_unexpected()));
    } catch (const CLI::ParseError& error) {
      return wrong_usage(error.what());
    }
    return request(std::move(split.program));
  }

 private:
  Expected<Request> request(std::vector<std::string> program) const {
    if (address_given() && address_.empty()) return wrong_usage("--address is empty");
    if (run_->parsed()) {
      if (program.empty()) return wrong_usage("run needs a program: verbena run -- PROGRAM ...");
      return run_request(std::move(program));
    }
    if (devices_->parsed())
      return DevicesRequest{address_, json_ ? OutputFormat::kJSON : OutputFormat::kText};
    return wrong_usage("a command is needed: run or devices");
  }
  Expected<Request> run_request(std::vector<std::string> program) const {
    auto faults = read_faults(faults_, fault_files_);
    if (!faults) return tl::unexpected(faults.error());
    if (!seed_.empty() && !faults::parse_number(seed_))
      return wrong_usage(fmt::format("--seed {} is no number", seed_));
    if (run_->count("--capture") != 0 && capture_.empty()) return wrong_usage("--capture is empty");
    return RunRequest{
        .address = address_,
        .faults = std::move(*faults),
        .capture = capture_.empty() ? "" : std::filesystem::absolute(capture_).string(),
        .capture_limit = capture_limit_,
        .seed = seed_,
        .command = std::move(program)};
  }
  tl::unexpected<Failure> wrong_usage(std::string_view what) const {
    return failure(kExitCannot, fmt::format("{}; {} explains", what, help_command()));
  }
  std::string first_unexpected() const {
    const std::vector<std::string> unexpected = app_.remaining(true);
    return unexpected.empty() ? "" : unexpected.front();
  }
  bool address_given() const {
    return run_->count(std::string(kAddress)) + devices_->count(std::string(kAddress)) > 0;
  }
  HelpTopic topic() const {
    if (run_->parsed()) return HelpTopic::kRun;
    if (devices_->parsed()) return HelpTopic::kDevices;
    return HelpTopic::kVerbena;
  }
  std::string_view help_command() const {
    switch (topic()) {
      case HelpTopic::kVerbena: return "verbena --help";
      case HelpTopic::kRun: return "verbena run --help";
      case HelpTopic::kDevices: return "verbena devices --help";
    }
    CHECK_UNREACHABLE();
  }

  CLI::App app_;
  CLI::App* const run_ = app_.add_subcommand("run");
  CLI::App* const devices_ = app_.add_subcommand("devices");
  std::string address_, seed_, capture_, capture_limit_;
  std::vector<std::string> faults_, fault_files_;
  bool json_ = false;
};

}  // namespace

Expected<Request> parse_command_line(std::span<const std::string> arguments) {
  return Parser().parse(split_at_program(arguments));
}

}  // namespace verbena::cli
