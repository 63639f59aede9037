#include "cli/test_command.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>

#include <fmt/format.h>

#include "cli/run.h"
#include "cli/stop_signal.h"
#include "cli/test_report.h"
#include "cli/text_file.h"
#include "cli/virtual_hosts.h"

namespace verbena::cli {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr Duration kBetweenLooks = ms(20);
constexpr Duration kToEnd = sec(2);  // from SIGTERM to SIGKILL

std::chrono::nanoseconds real(Duration duration) {
  return std::chrono::nanoseconds(duration.ps() / 1000);
}

// "{host}" is the host's own number, "{host0}" the address of the first, and so on.
std::string with_addresses(std::string text, const VirtualHosts& hosts, unsigned own) {
  const auto replace = [&text](const std::string& what, const std::string& by) {
    for (std::size_t at = text.find(what); at != std::string::npos;
         at = text.find(what, at + by.size()))
      text.replace(at, what.size(), by);
  };
  replace("{host}", std::to_string(own));
  for (unsigned host = 0; host < hosts.count(); ++host)
    replace(fmt::format("{{host{}}}", host), hosts.address_of(host));
  return text;
}

// One go: a process on each host, until all have ended.
class Trial {
 public:
  Trial(const TestRequest& request, VirtualHosts& hosts, const StopSignal& stop)
      : request_(request), hosts_(hosts), stop_(stop) {}

  // `folder`: where captures go; "": there are none.
  Expected<TestOutcome> run(const RunRequest& options, const fs::path& folder) {
    start_ = Clock::now();
    for (unsigned host = 0; host < hosts_.count(); ++host) {
      if (const auto done = start(host, options, folder); !done) {
        end_all(SIGKILL);
        collect();
        return tl::unexpected(done.error());
      }
      if (host + 1 < hosts_.count() && request_.delay != Duration()) await_listener(host);
    }
    watch();
    TestOutcome outcome{
        .programs = {}, .was_interrupted = was_interrupted_, .timed_out = timed_out_};
    outcome.programs = std::move(programs_);
    return outcome;
  }

 private:
  Expected<void> start(unsigned host, RunRequest options, const fs::path& folder) {
    const std::vector<std::string>& command =
        request_.commands[std::min<std::size_t>(host, request_.commands.size() - 1)];
    for (const std::string& word : command)
      options.command.push_back(with_addresses(word, hosts_, host));
    if (!folder.empty()) options.capture = (folder / fmt::format("host{}.pcapng", host)).string();
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return cannot(fmt::format("pipe: {}", std::strerror(errno)));
    host::Descriptor output(ends[0]);
    const host::Descriptor input(ends[1]);
    fcntl(output.get(), F_SETFL, O_NONBLOCK);
    const auto pid = hosts_.start(host, input.get(), [&] {
      setenv("VERBENA_TEST_HOST", std::to_string(host).c_str(), 1);
      setenv("VERBENA_TEST_HOSTS", std::to_string(hosts_.count()).c_str(), 1);
      for (unsigned other = 0; other < hosts_.count(); ++other)
        setenv(fmt::format("VERBENA_TEST_HOST{}", other).c_str(), hosts_.address_of(other).c_str(),
               1);
      const Failure failure = cli::run(options);
      fmt::print(stderr, "verbena: {}\n", printable(failure.message));
      std::fflush(stderr);
      _exit(failure.exit_status);
    });
    if (!pid) return tl::unexpected(pid.error());
    processes_.push_back({.pid = *pid, .output = std::move(output)});
    programs_.push_back({.host = host, .command = options.command});
    return {};
  }

  // Waits until the program on `host` listens, at most for the request's delay, so that the next
  // program does not connect too early.
  void await_listener(unsigned host) {
    const Clock::time_point until = Clock::now() + real(request_.delay);
    while (Clock::now() < until && processes_[host].pid != 0 && !was_interrupted_ &&
           !hosts_.has_listener(processes_[host].pid))
      look(kBetweenLooks);
  }

  // --- while they run
  void watch() {
    while (is_any_running()) {
      look(kBetweenLooks);
      if (!timed_out_ && Clock::now() - start_ > real(request_.timeout)) {
        timed_out_ = true;
        tell_to_end();
      }
      if (!was_told_ && end_of_grace_ && Clock::now() > *end_of_grace_) tell_to_end();
      if (was_told_ && Clock::now() > told_ + real(kToEnd)) end_all(SIGKILL);
    }
    take_output();  // the output between the last look and the end
    for (std::size_t i = 0; i < processes_.size(); ++i) finish_line(i);
  }
  // Watches the processes for `duration`, or until a signal.
  void look(Duration duration) {
    const Clock::time_point until = Clock::now() + real(duration);
    do {
      if (!was_interrupted_ && stop_.wait(std::min(duration, kBetweenLooks))) {
        was_interrupted_ = true;
        tell_to_end();
      }
      if (was_interrupted_) usleep(1000);
      take_output();
      collect();
    } while (Clock::now() < until && !was_interrupted_);
  }
  void take_output() {
    for (std::size_t i = 0; i < processes_.size(); ++i) {
      char buffer[16384];
      for (ssize_t length = 0;
           (length = ::read(processes_[i].output.get(), buffer, sizeof(buffer))) > 0;)
        take(i, std::string_view(buffer, static_cast<std::size_t>(length)));
    }
  }
  void take(std::size_t i, std::string_view text) {
    programs_[i].output += text;
    std::string& line = processes_[i].line;
    for (const char c : text) {
      if (c != '\n') {
        line += c;
        continue;
      }
      print_line(i);
    }
  }
  void print_line(std::size_t i) {
    fmt::print("{}{}\n", hosts_.count() > 1 ? fmt::format("[{}] ", i) : "", processes_[i].line);
    std::fflush(stdout);
    processes_[i].line.clear();
  }
  void finish_line(std::size_t i) {
    if (!processes_[i].line.empty()) print_line(i);
  }

  // --- their ends
  bool is_any_running() const {
    return std::ranges::any_of(processes_, [](const Process& one) { return one.pid != 0; });
  }
  void collect() {
    for (std::size_t i = 0; i < processes_.size(); ++i) {
      int status = 0;
      if (processes_[i].pid == 0 || waitpid(processes_[i].pid, &status, WNOHANG) <= 0) continue;
      kill(-processes_[i].pid, SIGKILL);  // processes that it left behind
      processes_[i].pid = 0;
      TestProgram& program = programs_[i];
      program.seconds = std::chrono::duration<double>(Clock::now() - start_).count();
      program.was_told = was_told_;
      program.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
      program.status = program.signal == 0 ? WEXITSTATUS(status) : 128 + program.signal;
      if (!program.is_good() || i + 1 == processes_.size()) begin_grace();
    }
  }
  // Starts the grace period: the last host's command has ended, or a command has failed, so the
  // others get only a limited time.
  void begin_grace() {
    if (!end_of_grace_) end_of_grace_ = Clock::now() + real(request_.grace);
  }
  void tell_to_end() {
    was_told_ = true;
    told_ = Clock::now();
    end_all(SIGTERM);
  }
  void end_all(int signal) {
    for (const Process& process : processes_)
      if (process.pid != 0) kill(-process.pid, signal);
  }

  struct Process {
    pid_t pid = 0;  // 0: it has ended
    host::Descriptor output{};
    std::string line{};  // its output since the last newline
  };

  const TestRequest& request_;
  VirtualHosts& hosts_;
  const StopSignal& stop_;
  std::vector<Process> processes_;
  std::vector<TestProgram> programs_;
  Clock::time_point start_, told_;
  std::optional<Clock::time_point> end_of_grace_;
  bool was_told_ = false, timed_out_ = false, was_interrupted_ = false;
};

Expected<fs::path> folder_of(const TestRequest& request) {
  if (!request.output.empty()) {
    if (const auto made = make_writable(request.output); !made) return tl::unexpected(made.error());
    return fs::absolute(request.output);
  }
  std::string name = (fs::temp_directory_path() / "verbena-test-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr)
    return cannot(fmt::format("cannot make a folder in {}: {}", fs::temp_directory_path().string(),
                              std::strerror(errno)));
  return fs::path(name);
}

Expected<void> write_logs(const fs::path& folder, const TestOutcome& outcome) {
  for (const TestProgram& program : outcome.programs)
    if (const auto done =
            write_text(folder / fmt::format("host{}.log", program.host), program.output);
        !done)
      return done;
  return {};
}

// Once more, with what says why.
Expected<void> examine(const TestRequest& request, VirtualHosts& hosts, const StopSignal& stop) {
  const auto folder = folder_of(request);
  if (!folder) return tl::unexpected(folder.error());
  fmt::print("verbena test: failed; once more with --check and a capture, into {}\n",
             folder->string());
  RunRequest checked = request.run;
  if (checked.check.empty()) checked.check = "1";
  const auto again = Trial(request, hosts, stop).run(checked, *folder);
  if (!again) return tl::unexpected(again.error());
  fmt::print("verbena test: {}\n", again->is_good()
                                       ? "it passed this time: its result depends on timing"
                                       : "it failed again");
  return write_logs(*folder, *again);
}

}  // namespace

Expected<int> test(const TestRequest& request) {
  if (!request.output.empty())
    if (const auto made = make_writable(request.output); !made) return tl::unexpected(made.error());
  if (!request.junit.empty())
    if (const auto done = write_text(request.junit, ""); !done) return tl::unexpected(done.error());
  VirtualHosts hosts(request.hosts, request.loopback ? VirtualHosts::Kind::kLoopback
                                                     : VirtualHosts::Kind::kNamespaces);
  if (!hosts.reason().empty())
    fmt::print(stderr, "verbena: hosts are addresses of loopback, since {}\n", hosts.reason());
  const StopSignal stop;
  const auto outcome =
      Trial(request, hosts, stop).run(request.run, request.captures ? request.output : "");
  if (!outcome) return tl::unexpected(outcome.error());
  if (!request.output.empty())
    if (const auto done = write_logs(request.output, *outcome); !done)
      return tl::unexpected(done.error());
  if (!request.junit.empty())
    if (const auto done = write_text(request.junit, junit_of(request.name, *outcome)); !done)
      return tl::unexpected(done.error());
  fmt::print("{}", text_of(*outcome));
  if (!outcome->is_good() && !outcome->was_interrupted && request.reruns)
    if (const auto done = examine(request, hosts, stop); !done) return tl::unexpected(done.error());
  return outcome->exit_status();
}

}  // namespace verbena::cli
