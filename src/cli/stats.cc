#include "cli/stats.h"

#include <fmt/format.h>

#include "cli/nvmf_targets.h"
#include "cli/prometheus.h"
#include "cli/stats_report.h"
#include "cli/stop_signal.h"
#include "cli/terminal.h"
#include "cli/top_screen.h"
#include "host/http/server.h"
#include "host/stats/stats_reader.h"

namespace verbena::cli {
namespace {

// The devices of all programs, or of one.
class Observer {
 public:
  static Expected<Observer> open(std::optional<pid_t> pid) {
    host::Expected<host::StatsReader> reader = host::StatsReader::open();
    if (!reader) return failure(kExitCannot, reader.error().message);
    return Observer(std::move(*reader), pid);
  }

  Expected<StatsReport> observe() {
    host::Expected<host::Observation> observation = reader_.observe();
    if (!observation) return failure(kExitCannot, observation.error().message);
    StatsReport report;
    for (host::ObservedAdapter& adapter : observation->adapters) {
      if (pid_ && adapter.pid != *pid_) continue;
      std::string command = host::process_name(adapter.pid);
      const pid_t process = adapter.pid;
      const bool is_first = report.empty() || report.back().observed.pid != process;
      report.push_back({std::move(adapter), std::move(command), {}});
      if (is_first) report.back().subsystems = nvmf_stats_of(process);
    }
    warn_of_silent(observation->silent);
    return report;
  }

 private:
  Observer(host::StatsReader reader, std::optional<pid_t> pid)
      : reader_(std::move(reader)), pid_(pid) {}

  void warn_of_silent(const std::vector<host::StatsName>& silent) {
    if (silent.empty() || warned_) return;
    warned_ = true;
    fmt::print(stderr,
               "verbena: warning: {} device{} did not answer: a stopped program, or another "
               "version of Verbena\n",
               silent.size(), silent.size() == 1 ? "" : "s");
  }

  host::StatsReader reader_;
  std::optional<pid_t> pid_;
  bool warned_ = false;
};

tl::unexpected<Failure> cannot_print() {
  return failure(kExitCannot, "cannot write to standard output");
}

tl::unexpected<Failure> shows_nothing(pid_t pid) {
  return failure(
      kExitCannot,
      fmt::format("process {} has no device of Verbena's that this user may look at", pid));
}

Expected<void> print_once(Observer& observer, const StatsRequest& request, const Print& print) {
  const Expected<StatsReport> report = observer.observe();
  if (!report) return tl::unexpected(report.error());
  if (request.pid && report->empty()) return shows_nothing(*request.pid);
  constexpr int kIndent = 2;
  const bool json = request.format == OutputFormat::kJSON;
  if (!print(json ? to_json(*report, kIndent) : to_text(*report, nullptr))) return cannot_print();
  return {};
}

Expected<void> watch(Observer& observer, const StatsRequest& request, const Print& print) {
  const StopSignal stop;
  Expected<StatsReport> before;  // empty
  for (bool first = true;; first = false) {
    Expected<StatsReport> now = observer.observe();
    if (!now) return tl::unexpected(now.error());
    std::string text;
    if (request.format == OutputFormat::kJSON)
      text = to_json(*now, -1);
    else if (first)
      text = to_text(*now, nullptr);
    else
      text = fmt::format("\n{}", to_text(*now, &*before));
    if (!print(text)) return cannot_print();
    before = std::move(now);
    if (stop.wait(*request.watch)) return {};
  }
}

Expected<void> serve(Observer& observer, const StatsRequest& request, const Print& print) {
  const StopSignal stop;
  host::Expected<host::HTTPServer> server =
      host::HTTPServer::listen(request.listen->address, request.listen->port);
  if (!server) return failure(kExitCannot, server.error().message);
  const GID& address = request.listen->address;
  if (!print(fmt::format(
          fmt::runtime(address.is_ipv4() ? "http://{}:{}/metrics\n" : "http://[{}]:{}/metrics\n"),
          address.to_string(), server->port())))
    return cannot_print();
  server->serve(stop.fd(), [&] {
    const Expected<StatsReport> report = observer.observe();
    return host::HTTPAnswer{.content_type = kPrometheusContentType,
                            .body = to_prometheus(report.value_or(StatsReport()))};
  });
  return {};
}

}  // namespace

Expected<void> stats(const StatsRequest& request, const Print& print) {
  Expected<Observer> observer = Observer::open(request.pid);
  if (!observer) return tl::unexpected(observer.error());
  if (request.listen) return serve(*observer, request, print);
  return request.watch ? watch(*observer, request, print) : print_once(*observer, request, print);
}

Expected<void> top(const TopRequest& request, const Print& print) {
  Expected<Observer> observer = Observer::open(request.pid);
  if (!observer) return tl::unexpected(observer.error());
  Expected<StatsReport> before = observer->observe();
  if (!before) return tl::unexpected(before.error());

  const StopSignal stop;
  const bool once = !Terminal::is_one();
  if (once && stop.wait(request.interval)) return {};  // a rate needs two looks
  std::optional<Terminal> terminal;
  if (!once) terminal.emplace();
  while (true) {
    Expected<StatsReport> now = observer->observe();
    if (!now) return tl::unexpected(now.error());
    if (once && request.pid && now->empty()) return shows_nothing(*request.pid);
    const ScreenSize size = terminal ? terminal->size() : ScreenSize();
    const std::string screen = top_screen(*now, &*before, once ? nullptr : &size);
    if (!print(once ? screen : Terminal::frame(screen))) return cannot_print();
    before = std::move(now);
    if (once || terminal->wait_for_end(stop, request.interval)) return {};
  }
}

}  // namespace verbena::cli
