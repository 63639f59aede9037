#include "cli/command_line.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include "base/check.h"
#include "check/settings.h"
#include "cli/fault_options.h"
#include "cli/help.h"
#include "cli/option_values.h"
#include "cli/plan.h"
#include "cli/tool.h"
#include "cli/virtual_hosts.h"
#include "coll/plan.h"
#include "fabric/scenario/units.h"
#include "faults/values.h"
#include "host/congestion_settings.h"
#include "host/link_kind.h"
#include "host/retransmission_settings.h"
#include "live/fabric_server.h"
#include "perf/options.h"

namespace verbena::cli {
namespace {

constexpr std::string_view kAddress = "--address";
constexpr u64 kMostBenchOctets = u64{1} << 30;
constexpr u32 kMostBenchMessages = 1'000'000;
// Options with a value, of `run`, of `test`, and of both: where they end, the program begins.
constexpr std::array<std::string_view, 6> kRunOptionsWithValue = {kAddress, "--capture", "--fabric",
                                                                  "--nic",  "--as",      "--scale"};
constexpr std::array<std::string_view, 9> kTestOptionsWithValue = {
    "-n", "--hosts", "--timeout", "--grace", "--delay", "-o", "--output", "--junit", "--name"};
constexpr std::array<std::string_view, 8> kDeviceOptionsWithValue = {
    "--fault", "--fault-file", "--capture-limit",  "--check-exit-code",
    "--seed",  "--cc",         "--retransmission", "--link"};

struct PlanPrint {
  const char* option;
  PlanRequest::Print print;
};
constexpr std::array kPlanPrints = {PlanPrint{"--sonic", PlanRequest::Print::kSONiC},
                                    PlanPrint{"--nvue", PlanRequest::Print::kNVUE},
                                    PlanPrint{"--eos", PlanRequest::Print::kEOS},
                                    PlanPrint{"--nic", PlanRequest::Print::kNIC},
                                    PlanPrint{"--catalogue", PlanRequest::Print::kCatalogue},
                                    PlanPrint{"--host-path", PlanRequest::Print::kHostPath}};

// Options of coll, and what a rank calls them (perf/options.h).
struct CollOption {
  const char *names, *type, *name;
};
constexpr std::array kCollOptions = {CollOption{"-b,--min", "SIZE", "min"},
                                     CollOption{"-e,--max", "SIZE", "max"},
                                     CollOption{"-f,--factor", "N", "factor"},
                                     CollOption{"-i,--step", "SIZE", "step"},
                                     CollOption{"-d,--type", "TYPE", "type"},
                                     CollOption{"-o,--op", "OP", "op"},
                                     CollOption{"-r,--root", "RANK", "root"},
                                     CollOption{"-w,--warmup", "N", "warmups"},
                                     CollOption{"--iters", "N", "iterations"},
                                     CollOption{"--rendezvous", "ADDRESS", "rendezvous"},
                                     CollOption{"--algorithm", "NAME", "algorithm"},
                                     CollOption{"--table", "FILE", "table"},
                                     CollOption{"--tune", "FILE", "tune"},
                                     CollOption{"--timeout", "SECONDS", "timeout"}};

bool is_one_of(std::span<const std::string_view> options, const std::string& option) {
  return std::ranges::find(options, option) != options.end();
}

bool takes_value(const std::string& command, const std::string& option) {
  return is_one_of(kDeviceOptionsWithValue, option) ||
         (command == "run" ? is_one_of(kRunOptionsWithValue, option)
                           : is_one_of(kTestOptionsWithValue, option));
}

bool is_congestion_name(const std::string& name) {
  return std::ranges::find(host::kCongestionNames, name) != host::kCongestionNames.end();
}

bool is_option(const std::string& argument) { return argument.size() > 1 && argument[0] == '-'; }

// What follows the options of `run` and `test` is the program's, and is not ours to read.
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

// Commands with ":" between them, as mpirun(1) has them. None, or an empty one: they are wrong.
std::vector<std::vector<std::string>> split_at_colons(const std::vector<std::string>& words) {
  std::vector<std::vector<std::string>> commands(1);
  for (const std::string& word : words) {
    if (word == ":")
      commands.emplace_back();
    else
      commands.back().push_back(word);
  }
  const bool is_any_empty = std::ranges::any_of(commands, &std::vector<std::string>::empty);
  return is_any_empty ? std::vector<std::vector<std::string>>() : commands;
}

// "key=value"
std::optional<fabric::Setting> setting_of(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) return std::nullopt;
  return fabric::Setting{text.substr(0, equals), text.substr(equals + 1)};
}

std::vector<std::string> split_at_commas(const std::string& text) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == ',')
      parts.emplace_back();
    else
      parts.back() += c;
  }
  std::erase(parts, "");
  return parts;
}

// The commands and options, and where CLI11 puts their values.
class Parser {
 public:
  Parser() {
    app_.set_version_flag("--version", "verbena " VERBENA_VERSION);
    run_->add_option(std::string(kAddress), address_)->type_name("ADDRESS");
    run_->add_option("--capture", capture_)->type_name("FILE");
    add_test_options();
    run_->add_flag("--share{on}", share_);  // --share=off
    run_->add_option("--fabric", fabric_file_)->type_name("SCENARIO");
    run_->add_option("--nic", nic_socket_)->type_name("PATH");
    run_->add_option("--as", as_)->type_name("HOST");
    run_->add_option("--scale", scale_)->type_name("N");
    nic_->add_option("FILE", nic_words_)->type_name("FILE");
    default_->add_option("STATE", default_word_);
    default_->add_option("--root", default_root_);
    fabric_->add_option("SCENARIO", scenario_)->type_name("SCENARIO");
    fabric_->add_option("--set", settings_)->type_name("KEY=VALUE")->expected(1)->take_all();
    fabric_->add_option("--scale", scale_)->type_name("N");
    fabric_->add_flag("--background", background_);
    fabric_->add_option("--unplug", unplugged_)->type_name("CABLE")->expected(1)->take_all();
    fabric_->add_option("--plug", plugged_)->type_name("CABLE")->expected(1)->take_all();
    devices_->add_option(std::string(kAddress), address_)->type_name("ADDRESS");
    devices_->add_flag("--json", json_);
    add_stats_options();
    add_doctor_options();
    sim_->add_option("SCENARIO", scenario_)->type_name("SCENARIO");
    sim_->add_option("--set", settings_)->type_name("KEY=VALUE")->expected(1)->take_all();
    sim_->add_option("--sweep", sweeps_)->type_name("KEY=VALUES")->expected(1)->take_all();
    sim_->add_option("--compare", compared_)->type_name("SCENARIO")->expected(2, 1000);
    sim_->add_option("--capture", links_)->type_name("LINK")->expected(1)->take_all();
    sim_->add_option("-o,--output", output_)->type_name("FOLDER");
    sim_->add_option("--expect", expectations_)->type_name("EXPECTATION")->expected(1)->take_all();
    sim_->add_option("--junit", junit_)->type_name("FILE");
    sim_->add_flag("--json", json_);
    sim_->add_option("--seed", seed_)->type_name("N");
    sim_->add_option("--threads", threads_)->type_name("N");
    add_plan_options();
    add_coll_options();
    add_bench_options();
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
  void add_test_options() {
    for (CLI::App* const command : {run_, test_}) {
      command->add_option("--link", link_)->type_name("NAME");
      command->add_option("--fault", faults_)->type_name("RULES")->take_all();
      command->add_option("--fault-file", fault_files_)->type_name("FILE")->take_all();
      command->add_option("--seed", seed_)->type_name("N");
      command->add_option("--cc", congestion_)->type_name("NAME");
      command->add_option("--retransmission", retransmission_)->type_name("NAME");
      command->add_option("--capture-limit", capture_limit_)
          ->transform(CLI::AsSizeValue(false))
          ->type_name("SIZE");
      command->add_flag("--check{1}", check_);  // --check=WORDS
      command->add_option("--check-exit-code", check_exit_code_)->type_name("N");
    }
    test_->add_option("-n,--hosts", hosts_)->type_name("N");
    test_->add_option("--timeout", timeout_)->type_name("SECONDS");
    test_->add_option("--grace", grace_)->type_name("SECONDS");
    test_->add_option("--delay", delay_)->type_name("SECONDS");
    test_->add_option("-o,--output", output_)->type_name("FOLDER");
    test_->add_option("--junit", junit_)->type_name("FILE");
    test_->add_option("--name", name_)->type_name("NAME");
    test_->add_flag("--loopback", loopback_);
    test_->add_flag("--capture", captures_);
    test_->add_flag("--no-rerun", no_rerun_);
  }
  void add_stats_options() {
    stats_->add_option("--watch", interval_)->type_name("SECONDS")->expected(0, 1);
    stats_->add_flag("--json", json_);
    stats_->add_option("--prometheus", listen_)->type_name("PORT");
    top_->add_option("--interval", interval_)->type_name("SECONDS");
    for (CLI::App* const command : {stats_, top_})
      command->add_option("--pid", pid_)->type_name("PID");
  }
  void add_doctor_options() {
    doctor_->add_option(std::string(kAddress), address_)->type_name("ADDRESS");
    doctor_->add_option("PEER", peer_)->type_name("PEER");
    doctor_->add_flag("--listen", doctor_listens_);
    doctor_->add_flag("--json", json_);
  }
  void add_plan_options() {
    plan_->add_option("--rate", rate_)->type_name("RATE");
    plan_->add_option("--cable", cable_)->type_name("METRES");
    plan_->add_option("--mtu", mtu_)->type_name("OCTETS");
    plan_->add_option("--buffer", buffer_)->type_name("SIZE");
    plan_->add_option("--ports", ports_)->type_name("N");
    plan_->add_option("--interfaces", interfaces_)->type_name("NAMES");
    plan_->add_option("JOB", scenario_)->type_name("JOB");
    plan_->add_option("--technologies", technologies_)->type_name("NAMES");
    plan_->add_option("--topologies", topologies_)->type_name("NAMES");
    plan_->add_option("--set", settings_)->type_name("KEY=VALUE")->expected(1)->take_all();
    plan_->add_option("-o,--output", output_)->type_name("FOLDER");
    plan_->add_flag("--json", json_);
    plan_->add_option("--seed", seed_)->type_name("N");
    plan_->add_option("--threads", threads_)->type_name("N");
    for (const auto& [name, print] : kPlanPrints) plan_->add_flag(name);
  }
  void add_coll_options() {
    coll_->add_option("OPERATION", operation_)->type_name("OPERATION");
    coll_->add_option("-n,--ranks", ranks_)->type_name("N");
    for (std::size_t i = 0; i < kCollOptions.size(); ++i)
      coll_->add_option(kCollOptions[i].names, coll_values_[i])->type_name(kCollOptions[i].type);
    coll_->add_option("--predict", predict_)->type_name("FILE");
    coll_->add_flag("--check", check_flag_);
    coll_->add_flag("--no-check", no_check_);
    coll_->add_flag("--register", registers_);
    coll_->add_option(std::string(kAddress), address_)->type_name("ADDRESS");
    coll_->add_option("--fault", faults_)->type_name("RULES")->take_all();
    coll_->add_option("--seed", seed_)->type_name("N");
  }
  void add_bench_options() {
    bench_->add_option("BENCHMARK", benchmark_)->type_name("BENCHMARK");
    bench_->add_option("--driver", driver_)->type_name("FILE");
    bench_->add_option("--size", size_)->transform(CLI::AsSizeValue(false))->type_name("SIZE");
    bench_->add_option("--count", count_)->type_name("N");
    bench_->add_option("--rate", rate_)->type_name("RATE");
    bench_->add_flag("--predict", only_predicts_);
    bench_->add_option(std::string(kAddress), address_)->type_name("ADDRESS");
  }
  OutputFormat format() const { return json_ ? OutputFormat::kJSON : OutputFormat::kText; }

  Expected<Request> request(std::vector<std::string> program) const {
    if (address_given() && address_.empty()) return wrong_usage("--address is empty");
    if (run_->parsed()) {
      if (program.empty()) return wrong_usage("run needs a program: verbena run -- PROGRAM ...");
      return run_request(std::move(program));
    }
    if (test_->parsed()) return test_request(program);
    if (model_->parsed() || nvmf_->parsed() || (bench_->parsed() && !program.empty()))
      return tool_request(program);
    if (bench_->parsed()) return bench_request();
    if (devices_->parsed()) return DevicesRequest{address_, format()};
    if (stats_->parsed()) return stats_request();
    if (top_->parsed()) return top_request();
    if (doctor_->parsed()) return doctor_request();
    if (sim_->parsed()) return sim_request();
    if (plan_->parsed()) return plan_request();
    if (fabric_->parsed()) return fabric_request();
    if (coll_->parsed()) return coll_request();
    if (nic_->parsed()) return nic_request();
    if (default_->parsed()) return default_request();
    return wrong_usage(
        "a command is needed: run, test, devices, stats, top, doctor, sim, fabric, nic, plan, "
        "coll, model, bench or nvmf");
  }
  Expected<Request> tool_request(const std::vector<std::string>& words) const {
    auto request = read_tool_request(words);
    if (!request) return tl::unexpected(request.error());
    return *request;
  }
  Expected<Request> bench_request() const {
    BenchRequest request;
    if (benchmark_ != "gpu-paths") return wrong_usage("bench needs a benchmark: kv or gpu-paths");
    request.address = address_;
    request.only_predicts = only_predicts_;
    if (!driver_.empty()) request.driver = driver_;
    if (bench_->count("--size") != 0) {
      const std::optional<u64> octets = faults::parse_number(size_);
      if (!octets || *octets == 0 || *octets > kMostBenchOctets)
        return wrong_usage(fmt::format("--size {}: it is 1 to 1G", size_));
      request.octets = *octets;
    }
    if (bench_->count("--count") != 0) {
      const std::optional<u64> count = faults::parse_number(count_);
      if (!count || *count == 0 || *count > kMostBenchMessages)
        return wrong_usage(fmt::format("--count {}: it is 1 to {}", count_, kMostBenchMessages));
      request.count = static_cast<u32>(*count);
    }
    if (bench_->count("--rate") != 0) {
      const std::optional<Rate> line = fabric::rate_of(rate_);
      if (!line || line->bps() == 0) return wrong_usage(fmt::format("--rate {} is none", rate_));
      request.line = *line;
    }
    return request;
  }
  Expected<Request> coll_request() const {
    CollRequest request;
    perf::Options options;
    const auto take = [&](const std::string& said, const char* name,
                          const std::string& value) -> std::string {
      const std::string wrong = perf::read_option(options, name, value);
      if (!wrong.empty()) return fmt::format("{} {}: {}", said, value, wrong);
      request.options.push_back(fmt::format("{}={}", name, value));
      return "";
    };
    if (coll_->count("OPERATION") != 0)
      if (const auto wrong = take("coll", "test", operation_); !wrong.empty())
        return wrong_usage(wrong);
    for (std::size_t i = 0; i < kCollOptions.size(); ++i) {
      const std::string names = kCollOptions[i].names;
      const std::string said = names.substr(names.rfind(',') + 1);
      if (coll_->count(said) == 0) continue;
      if (const auto wrong = take(said, kCollOptions[i].name, coll_values_[i]); !wrong.empty())
        return wrong_usage(wrong);
    }
    if (options.min_octets > options.max_octets) return wrong_usage("--min is more than --max");
    if (!options.algorithm.empty() && !coll::algorithm_number(options.algorithm))
      return wrong_usage(
          fmt::format("--algorithm {}: there is no such algorithm", options.algorithm));
    if (no_check_ && check_flag_) return wrong_usage("--check or --no-check");
    if (no_check_) request.options.emplace_back("check=0");
    if (registers_) request.options.emplace_back("register=1");
    if (coll_->count("--ranks") != 0) {
      const std::optional<u64> ranks = faults::parse_number(ranks_);
      if (!ranks || *ranks == 0 || *ranks > CollRequest::kMaxRanks)
        return wrong_usage(
            fmt::format("--ranks {}: it is 1 to {}", ranks_, CollRequest::kMaxRanks));
      request.ranks = static_cast<u32>(*ranks);
      request.ranks_are_given = true;
    }
    auto faults = read_faults(faults_, {});
    if (!faults) return tl::unexpected(faults.error());
    if (!seed_.empty() && !faults::parse_number(seed_))
      return wrong_usage(fmt::format("--seed {} is no number", seed_));
    if (coll_->count("--predict") != 0 && predict_.empty())
      return wrong_usage("--predict is empty");
    if (!options.tune.empty() && !predict_.empty())
      return wrong_usage("--tune writes what --predict reads: one of them");
    request.predict = predict_;
    request.measured = options;
    request.run.address = address_;
    request.run.faults = std::move(*faults);
    request.run.seed = seed_;
    return request;
  }
  // `time` remains where the option is not given.
  bool read_interval(const char* name, const std::string& text, Duration& time) const {
    if (test_->count(name) == 0) return true;
    const std::optional<Duration> read = parse_interval(text);
    time = read.value_or(time);
    return read.has_value();
  }
  Expected<Request> test_request(const std::vector<std::string>& program) const {
    TestRequest request;
    request.commands = split_at_colons(program);
    if (request.commands.empty())
      return wrong_usage("test needs commands: verbena test -- COMMAND ... [: COMMAND ...]");
    const std::size_t commands = request.commands.size();
    if (commands > 1) {
      request.hosts = static_cast<u32>(commands);
      request.delay = sec(1);
    }
    if (test_->count("--hosts") != 0) {
      const std::optional<u64> hosts = faults::parse_number(hosts_);
      if (!hosts || *hosts == 0 || *hosts > VirtualHosts::kMost)
        return wrong_usage(fmt::format("--hosts {}: it is 1 to {}", hosts_, VirtualHosts::kMost));
      if (commands > 1 && *hosts != commands)
        return wrong_usage(fmt::format("--hosts {}, and {} commands", hosts_, commands));
      request.hosts = static_cast<u32>(*hosts);
    }
    if (commands > VirtualHosts::kMost)
      return wrong_usage(fmt::format("there are {} hosts at most", VirtualHosts::kMost));
    if (!read_interval("--timeout", timeout_, request.timeout) ||
        !read_interval("--grace", grace_, request.grace) ||
        !read_interval("--delay", delay_, request.delay))
      return wrong_usage("--timeout, --grace and --delay are 0.01 seconds to a day");
    for (const auto& [option, value] :
         {std::pair("--output", output_), {"--junit", junit_}, {"--name", name_}})
      if (test_->count(option) != 0 && value.empty())
        return wrong_usage(fmt::format("{} is empty", option));
    auto run = run_request(program);
    if (!run) return run;
    request.run = std::get<RunRequest>(*std::move(run));
    request.run.command.clear();
    request.loopback = loopback_;
    request.captures = captures_;
    if (captures_ && output_.empty()) return wrong_usage("--capture needs --output FOLDER");
    request.reruns = !no_rerun_;
    request.output = output_;
    request.junit = junit_;
    if (test_->count("--name") != 0) request.name = name_;
    return request;
  }
  Expected<Request> run_request(std::vector<std::string> program) const {
    auto faults = read_faults(faults_, fault_files_);
    if (!faults) return tl::unexpected(faults.error());
    if (!seed_.empty() && !faults::parse_number(seed_))
      return wrong_usage(fmt::format("--seed {} is no number", seed_));
    const auto count = [this](const char* name) { return run_->count(name) + test_->count(name); };
    if (count("--cc") != 0 && !is_congestion_name(congestion_))
      return wrong_usage(fmt::format("--cc {} is none of {}", congestion_,
                                     fmt::join(host::kCongestionNames, ", ")));
    if (count("--retransmission") != 0 && !host::retransmission_named(retransmission_))
      return wrong_usage(fmt::format("--retransmission {} is none of {}", retransmission_,
                                     fmt::join(host::kRetransmissionNames, ", ")));
    if (count("--link") != 0 && !host::link_kind_named(link_))
      return wrong_usage(
          fmt::format("--link {} is none of {}", link_, fmt::join(host::kLinkNames, ", ")));
    if (run_->count("--capture") != 0 && capture_.empty()) return wrong_usage("--capture is empty");
    if (!check::parse_settings(check_))
      return wrong_usage(fmt::format("--check={} is not one of fatal, leaks, overlaps", check_));
    if (!check_exit_code_.empty() && !check::parse_exit_code(check_exit_code_))
      return wrong_usage(fmt::format("--check-exit-code {} is not 0 to 255", check_exit_code_));
    if (!share_.empty() && share_ != "on" && share_ != "off")
      return wrong_usage(fmt::format("--share={} is neither on nor off", share_));
    if (const auto wrong = wrong_fabric_options()) return wrong_usage(*wrong);
    return RunRequest{
        .address = address_,
        .faults = std::move(*faults),
        .capture = capture_.empty() ? "" : std::filesystem::absolute(capture_).string(),
        .capture_limit = capture_limit_,
        .check = check_,
        .check_exit_code = check_exit_code_,
        .seed = seed_,
        .congestion = congestion_,
        .retransmission = retransmission_,
        .link = link_,
        .share = share_,
        .fabric = fabric_file_,
        .nic = nic_socket_,
        .as = as_,
        .scale = scale(),
        .command = std::move(program)};
  }
  std::optional<std::string> wrong_fabric_options() const {
    if (run_->count("--fabric") == 0)
      return run_->count("--as") + run_->count("--scale") == 0
                 ? std::nullopt
                 : std::optional<std::string>("--as and --scale go with --fabric");
    if (fabric_file_.empty()) return "--fabric is empty";
    if (address_given() || run_->count("--link") != 0)
      return "--fabric goes with neither --address nor --link: the host has its own";
    return wrong_scale();
  }
  std::optional<std::string> wrong_scale() const {
    if (scale_.empty() || scale()) return std::nullopt;
    return fmt::format("--scale {}: it is 1 to {}", scale_, live::FabricServerConfig::kMostScale);
  }
  // nullopt: not given, or wrong.
  std::optional<u32> scale() const {
    const std::optional<u64> number = faults::parse_number(scale_);
    if (!number || *number == 0 || *number > live::FabricServerConfig::kMostScale)
      return std::nullopt;
    return static_cast<u32>(*number);
  }
  Expected<Request> nic_request() const {
    const bool is_status = !nic_words_.empty() && nic_words_.front() == "status";
    if (nic_words_.size() != (is_status ? 2u : 1u))
      return wrong_usage(is_status ? "nic status needs a file or a socket"
                                   : "nic needs one file: verbena nic nic.yaml");
    return NICRequest{.action = is_status ? NICRequest::Action::kStatus : NICRequest::Action::kRun,
                      .path = nic_words_.back()};
  }
  Expected<Request> default_request() const {
    DefaultRequest request;
    if (default_word_ == "on")
      request.action = DefaultRequest::Action::kOn;
    else if (default_word_ == "off")
      request.action = DefaultRequest::Action::kOff;
    else if (!default_word_.empty() && default_word_ != "status")
      return wrong_usage(fmt::format("default takes on, off or status, not '{}'", default_word_));
    if (!default_root_.empty()) request.root = default_root_;
    if (!request.root.is_absolute()) return wrong_usage("--root needs an absolute path");
    return request;
  }
  Expected<Request> fabric_request() const {
    if (scenario_.empty()) return wrong_usage("fabric needs a scenario: a file in YAML");
    if (const auto wrong = wrong_scale()) return wrong_usage(*wrong);
    FabricRequest request{
        .scenario = scenario_,
        .settings = {},
        .scale = scale().value_or(live::FabricServerConfig::kDefaultScale),
        .run = background_ ? FabricRequest::Run::kInBackground : FabricRequest::Run::kInForeground};
    for (const std::string& text : settings_) {
      const std::optional<fabric::Setting> setting = setting_of(text);
      if (!setting) return wrong_usage(fmt::format("--set {}: write it as kmin=100k", text));
      request.settings.push_back(*setting);
    }
    for (const std::string& name : unplugged_)
      request.changes.push_back({FabricRequest::Cable::kUnplug, name});
    for (const std::string& name : plugged_)
      request.changes.push_back({FabricRequest::Cable::kPlug, name});
    return request;
  }
  Expected<Request> stats_request() const {
    StatsRequest request{.watch = {}, .listen = {}, .pid = {}, .format = format()};
    if (stats_->count("--watch") != 0) {
      request.watch = interval_.empty() ? sec(1) : parse_interval(interval_);
      if (!request.watch) return wrong_usage(fmt::format("--watch {} is no time", interval_));
    }
    if (stats_->count("--prometheus") != 0) {
      request.listen = parse_listen_address(listen_);
      if (!request.listen)
        return wrong_usage(
            fmt::format("--prometheus {} is no port and no address with one", listen_));
      if (request.watch || json_)
        return wrong_usage("--prometheus goes with neither --watch nor --json");
    }
    if (!take_pid(*stats_, request.pid)) return wrong_usage(fmt::format("--pid {} is none", pid_));
    return request;
  }
  Expected<Request> top_request() const {
    TopRequest request;
    if (top_->count("--interval") != 0) {
      const std::optional<Duration> interval = parse_interval(interval_);
      if (!interval) return wrong_usage(fmt::format("--interval {} is no time", interval_));
      request.interval = *interval;
    }
    if (!take_pid(*top_, request.pid)) return wrong_usage(fmt::format("--pid {} is none", pid_));
    return request;
  }
  Expected<Request> doctor_request() const {
    if (doctor_->count("PEER") != 0 && peer_.empty()) return wrong_usage("PEER is empty");
    if (doctor_listens_ && !peer_.empty())
      return wrong_usage("--listen waits for other doctors: it takes no PEER");
    return DoctorRequest{address_, peer_, doctor_listens_, format()};
  }
  Expected<Request> sim_request() const {
    if (sim_->count("SCENARIO") != 0 && scenario_.empty()) return wrong_usage("SCENARIO is empty");
    if (sim_->count("--output") != 0 && output_.empty()) return wrong_usage("--output is empty");
    SimRequest request;
    request.output = output_;
    request.captures = links_;
    request.expectations = expectations_;
    request.junit = junit_;
    request.format = format();
    if (sim_->count("--junit") != 0 && junit_.empty()) return wrong_usage("--junit is empty");
    if (!links_.empty() && output_.empty())
      return wrong_usage("--capture needs --output, for the file");
    if (!scenario_.empty()) request.scenarios.push_back(scenario_);
    request.scenarios.insert(request.scenarios.end(), compared_.begin(), compared_.end());
    for (const std::string& text : settings_) {
      const std::optional<fabric::Setting> setting = setting_of(text);
      if (!setting) return wrong_usage(fmt::format("--set {}: write it as kmin=100k", text));
      request.settings.push_back(*setting);
    }
    for (const std::string& text : sweeps_) {
      const std::optional<fabric::Setting> setting = setting_of(text);
      Sweep sweep;
      if (setting) sweep = {setting->key, split_at_commas(setting->value)};
      if (sweep.values.empty())
        return wrong_usage(fmt::format("--sweep {}: write it as kmin=50k,100k,200k", text));
      request.sweeps.push_back(std::move(sweep));
    }
    if (sim_->count("--threads") != 0) {
      const std::optional<u64> threads = faults::parse_number(threads_);
      if (!threads || *threads == 0 || *threads > SimRequest::kMaxThreads)
        return wrong_usage(
            fmt::format("--threads {}: it is 1 to {}", threads_, SimRequest::kMaxThreads));
      request.threads = static_cast<u32>(*threads);
    }
    if (seed_.empty()) return request;
    const std::optional<u64> seed = faults::parse_number(seed_);
    if (!seed) return wrong_usage(fmt::format("--seed {} is no number", seed_));
    request.seed = *seed;
    return request;
  }
  Expected<std::vector<fabric::Technology>> technologies() const {
    std::vector<fabric::Technology> named;
    for (const std::string& name : split_at_commas(technologies_)) {
      const auto known = std::ranges::find(fabric::kTechnologies, name, [](fabric::Technology one) {
        return std::string(name_of(one));
      });
      if (known == fabric::kTechnologies.end())
        return wrong_usage(
            fmt::format("--technologies: '{}' is none of rocev2, infiniband, iwarp "
                        "and tcp",
                        name));
      if (std::ranges::find(named, *known) == named.end()) named.push_back(*known);
    }
    if (plan_->count("--technologies") == 0)
      named.assign(fabric::kTechnologies.begin(), fabric::kTechnologies.end());
    if (named.empty()) return wrong_usage("--technologies is empty");
    return named;
  }
  Expected<Request> plan_job_request(const PlanRequest& tuning) const {
    for (const char* const option : {"--rate", "--mtu", "--buffer", "--ports", "--interfaces"})
      if (plan_->count(option) != 0)
        return wrong_usage(fmt::format("{}: the job says it, or it goes without a JOB", option));
    if (tuning.print != PlanRequest::Print::kTuning)
      return wrong_usage("--sonic and its like go without a JOB; -o FOLDER writes all of them");
    PlanRequest request = tuning;
    PlanJobRequest& job = request.job.emplace();
    job.job = scenario_;
    job.output = output_;
    job.format = format();
    const auto named = technologies();
    if (!named) return tl::unexpected(named.error());
    job.technologies = *named;
    job.topologies = split_at_commas(topologies_);
    if (plan_->count("--topologies") != 0 && job.topologies.empty())
      return wrong_usage("--topologies is empty");
    for (const std::string& text : settings_) {
      const std::optional<fabric::Setting> setting = setting_of(text);
      if (!setting) return wrong_usage(fmt::format("--set {}: write it as size=64MiB", text));
      if (setting->key == "technology")
        return wrong_usage("--set technology: here it is --technologies");
      job.settings.push_back(*setting);
    }
    if (!seed_.empty()) {
      if (!faults::parse_number(seed_))
        return wrong_usage(fmt::format("--seed {} is no number", seed_));
      job.settings.push_back({"seed", seed_});
    }
    if (plan_->count("--cable") != 0) job.cable_metres = tuning.tuning.cable_metres;
    if (plan_->count("--threads") == 0) return request;
    const std::optional<u64> threads = faults::parse_number(threads_);
    if (!threads || *threads == 0 || *threads > SimRequest::kMaxThreads)
      return wrong_usage(
          fmt::format("--threads {}: it is 1 to {}", threads_, SimRequest::kMaxThreads));
    job.threads = static_cast<u32>(*threads);
    return request;
  }
  Expected<Request> plan_request() const {
    PlanRequest request;
    if (plan_->count("JOB") != 0 && scenario_.empty()) return wrong_usage("JOB is empty");
    if (plan_->count("--output") != 0 && output_.empty()) return wrong_usage("--output is empty");
    for (const auto& [name, print] : kPlanPrints) {
      if (plan_->count(name) == 0) continue;
      if (request.print != PlanRequest::Print::kTuning)
        return wrong_usage(
            "only one of --sonic, --nvue, --eos, --nic, --catalogue and --host-path");
      request.print = print;
    }
    const auto read = parse_tuning(
        {.rate = rate_, .cable = cable_, .mtu = mtu_, .buffer = buffer_, .ports = ports_});
    if (!read) return wrong_usage(read.error());
    request.tuning = *read;
    if (!scenario_.empty()) return plan_job_request(request);
    for (const char* const option :
         {"--technologies", "--topologies", "--set", "--output", "--seed", "--threads", "--json"})
      if (plan_->count(option) != 0)
        return wrong_usage(fmt::format("{} goes with a JOB: verbena plan job.yaml", option));
    if (plan_->count("--interfaces") == 0) return request;
    if (request.print != PlanRequest::Print::kSONiC && request.print != PlanRequest::Print::kEOS)
      return wrong_usage("--interfaces goes with --sonic and --eos");
    const auto interfaces = parse_interfaces(interfaces_);
    if (!interfaces) return wrong_usage(interfaces.error());
    request.interfaces = *interfaces;
    return request;
  }
  // False: given, and no process's number.
  bool take_pid(const CLI::App& command, std::optional<pid_t>& out) const {
    if (command.count("--pid") == 0) return true;
    const std::optional<u64> pid = faults::parse_number(pid_);
    if (!pid || *pid == 0 || *pid > static_cast<u64>(std::numeric_limits<pid_t>::max()))
      return false;
    out = static_cast<pid_t>(*pid);
    return true;
  }
  tl::unexpected<Failure> wrong_usage(std::string_view what) const {
    return failure(kExitCannot, fmt::format("{}; {} explains", what, help_command()));
  }
  std::string first_unexpected() const {
    const std::vector<std::string> unexpected = app_.remaining(true);
    return unexpected.empty() ? "" : unexpected.front();
  }
  bool address_given() const {
    const std::string name(kAddress);
    return run_->count(name) + devices_->count(name) + doctor_->count(name) + coll_->count(name) >
           0;
  }
  HelpTopic topic() const {
    if (run_->parsed()) return HelpTopic::kRun;
    if (test_->parsed()) return HelpTopic::kTest;
    if (nic_->parsed()) return HelpTopic::kNIC;
    if (default_->parsed()) return HelpTopic::kDefault;
    if (devices_->parsed()) return HelpTopic::kDevices;
    if (stats_->parsed()) return HelpTopic::kStats;
    if (top_->parsed()) return HelpTopic::kTop;
    if (doctor_->parsed()) return HelpTopic::kDoctor;
    if (sim_->parsed()) return HelpTopic::kSim;
    if (plan_->parsed()) return HelpTopic::kPlan;
    if (fabric_->parsed()) return HelpTopic::kFabric;
    if (coll_->parsed()) return HelpTopic::kColl;
    if (model_->parsed()) return HelpTopic::kModel;
    if (bench_->parsed()) return HelpTopic::kBench;
    if (nvmf_->parsed()) return HelpTopic::kNVMf;
    return HelpTopic::kVerbena;
  }
  std::string_view help_command() const {
    switch (topic()) {
      case HelpTopic::kVerbena: return "verbena --help";
      case HelpTopic::kRun: return "verbena run --help";
      case HelpTopic::kTest: return "verbena test --help";
      case HelpTopic::kNIC: return "verbena nic --help";
      case HelpTopic::kDefault: return "verbena default --help";
      case HelpTopic::kDevices: return "verbena devices --help";
      case HelpTopic::kStats: return "verbena stats --help";
      case HelpTopic::kTop: return "verbena top --help";
      case HelpTopic::kDoctor: return "verbena doctor --help";
      case HelpTopic::kSim: return "verbena sim --help";
      case HelpTopic::kPlan: return "verbena plan --help";
      case HelpTopic::kFabric: return "verbena fabric --help";
      case HelpTopic::kColl: return "verbena coll --help";
      case HelpTopic::kModel: return "verbena model --help";
      case HelpTopic::kBench: return "verbena bench --help";
      case HelpTopic::kNVMf: return "verbena nvmf --help";
    }
    CHECK_UNREACHABLE();
  }

  CLI::App app_;
  CLI::App* const run_ = app_.add_subcommand("run");
  CLI::App* const test_ = app_.add_subcommand("test");
  CLI::App* const nic_ = app_.add_subcommand("nic");
  CLI::App* const default_ = app_.add_subcommand("default");
  CLI::App* const devices_ = app_.add_subcommand("devices");
  CLI::App* const stats_ = app_.add_subcommand("stats");
  CLI::App* const top_ = app_.add_subcommand("top");
  CLI::App* const doctor_ = app_.add_subcommand("doctor");
  CLI::App* const sim_ = app_.add_subcommand("sim");
  CLI::App* const plan_ = app_.add_subcommand("plan");
  CLI::App* const fabric_ = app_.add_subcommand("fabric");
  CLI::App* const coll_ = app_.add_subcommand("coll");
  CLI::App* const model_ = app_.add_subcommand("model");
  CLI::App* const bench_ = app_.add_subcommand("bench");
  CLI::App* const nvmf_ = app_.add_subcommand("nvmf");
  std::string address_, seed_, congestion_, retransmission_, link_, capture_, capture_limit_,
      share_;
  std::string check_, check_exit_code_;
  std::vector<std::string> faults_, fault_files_;
  std::string interval_, listen_, pid_, peer_, scenario_, output_, threads_;
  std::vector<std::string> settings_, sweeps_, compared_, links_;
  std::string rate_, cable_, mtu_, buffer_, ports_, interfaces_, technologies_, topologies_;
  std::vector<std::string> expectations_;
  std::string junit_, hosts_, timeout_, grace_, delay_, name_;
  bool loopback_ = false, captures_ = false, no_rerun_ = false;
  std::string fabric_file_, as_, scale_, nic_socket_;
  std::vector<std::string> nic_words_;
  std::string default_word_, default_root_;
  std::string operation_, ranks_, predict_;
  std::array<std::string, kCollOptions.size()> coll_values_;
  std::string benchmark_, driver_, size_, count_;
  bool only_predicts_ = false;
  bool check_flag_ = false, no_check_ = false, registers_ = false;
  std::vector<std::string> unplugged_, plugged_;
  bool json_ = false, doctor_listens_ = false, background_ = false;
};

}  // namespace

Expected<Request> parse_command_line(std::span<const std::string> arguments) {
  return Parser().parse(split_at_program(arguments));
}

}  // namespace verbena::cli
