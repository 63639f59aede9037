// `verbena stats` and `verbena top`.
#include <limits>

#include <fmt/format.h>

#include "cli/commands/commands.h"
#include "cli/option_values.h"
#include "faults/values.h"

namespace verbena::cli {
namespace {

std::optional<pid_t> parse_pid(const std::string& text) {
  const std::optional<u64> pid = faults::parse_number(text);
  if (!pid || *pid == 0 || *pid > static_cast<u64>(std::numeric_limits<pid_t>::max()))
    return std::nullopt;
  return static_cast<pid_t>(*pid);
}

class StatsCommand final : public Command {
 public:
  StatsCommand() : Command("stats", HelpTopic::kStats) {}

  Expected<Request> request(std::vector<std::string>) const override {
    StatsRequest request{.watch = {}, .listen = {}, .pid = {}, .format = format_of(json_)};
    if (has("--watch")) {
      request.watch = interval_.empty() ? sec(1) : parse_interval(interval_);
      if (!request.watch) return wrong_usage(fmt::format("--watch {} is no time", interval_));
    }
    if (has("--prometheus")) {
      request.listen = parse_listen_address(listen_);
      if (!request.listen)
        return wrong_usage(
            fmt::format("--prometheus {} is no port and no address with one", listen_));
      if (request.watch || json_)
        return wrong_usage("--prometheus goes with neither --watch nor --json");
    }
    if (has("--pid") && !(request.pid = parse_pid(pid_)))
      return wrong_usage(fmt::format("--pid {} is none", pid_));
    return request;
  }

 protected:
  void add_options(CLI::App& app) override {
    app.add_option("--watch", interval_)->type_name("SECONDS")->expected(0, 1);
    app.add_flag("--json", json_);
    app.add_option("--prometheus", listen_)->type_name("PORT");
    app.add_option("--pid", pid_)->type_name("PID");
  }

 private:
  std::string interval_, listen_, pid_;
  bool json_ = false;
};

class TopCommand final : public Command {
 public:
  TopCommand() : Command("top", HelpTopic::kTop) {}

  Expected<Request> request(std::vector<std::string>) const override {
    TopRequest request;
    if (has("--interval")) {
      const std::optional<Duration> interval = parse_interval(interval_);
      if (!interval) return wrong_usage(fmt::format("--interval {} is no time", interval_));
      request.interval = *interval;
    }
    if (has("--pid") && !(request.pid = parse_pid(pid_)))
      return wrong_usage(fmt::format("--pid {} is none", pid_));
    return request;
  }

 protected:
  void add_options(CLI::App& app) override {
    app.add_option("--interval", interval_)->type_name("SECONDS");
    app.add_option("--pid", pid_)->type_name("PID");
  }

 private:
  std::string interval_, pid_;
};

}  // namespace

std::unique_ptr<Command> make_stats_command() { return std::make_unique<StatsCommand>(); }
std::unique_ptr<Command> make_top_command() { return std::make_unique<TopCommand>(); }

}  // namespace verbena::cli
