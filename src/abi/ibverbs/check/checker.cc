#include "abi/ibverbs/check/checker.h"

#include <pthread.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace verbena::abi {
namespace {

// One write for each paragraph, so that those of several processes do not mix.
void print(const std::string& text) {
  std::size_t written = 0;
  while (written < text.size()) {
    const ssize_t n = ::write(STDERR_FILENO, text.data() + written, text.size() - written);
    if (n <= 0) return;
    written += static_cast<std::size_t>(n);
  }
}

// Returns the stack as text, down to main(). The callers of main() are of no interest.
std::string stack_of(const check::Site& site) {
  std::string text;
  for (const void* const frame : site.stack()) {
    const std::string line = describe_frame(frame);
    text += "    " + line + "\n";
    if (line.starts_with("main+")) break;
  }
  return text;
}

std::string paragraph(const check::Finding& finding) {
  std::string text = "verbena check: " + std::string(title_of(finding.kind)) + "\n";
  if (!finding.details.empty()) text += "  " + finding.details + "\n";
  for (const check::Finding::Call& call : finding.calls) {
    text += "  " + call.what + ":\n";
    text += stack_of(call.site);
  }
  return text + "\n";
}

// librdmacm opens devices for itself, and never closes them.
bool is_of_rdmacm(const check::Ledger::Object& object) {
  return (object.kind == "context" || object.kind == "PD") && is_in_rdmacm(object.created.call());
}

std::optional<int> exit_code_from_environment() {
  const char* const text = std::getenv(check::kExitCodeVariable);
  return text != nullptr ? check::parse_exit_code(text) : std::nullopt;
}

pid_t started_in = 0;

}  // namespace

constinit Checker* Checker::instance_ = nullptr;

void Checker::start() {
  static const bool started = [] {
    const char* const asked = std::getenv(check::kVariable);
    if (asked == nullptr || std::string_view(asked) == "0") return false;
    const auto settings = check::parse_settings(asked);
    if (!settings) {
      print(
          "verbena: warning: VERBENA_CHECK is not a list of 1, fatal, leaks, overlaps: ignored\n");
      return false;
    }
    instance_ = new Checker(*settings, exit_code_from_environment());
    started_in = getpid();
    pthread_atfork([] { instance_->mutex_.lock(); }, [] { instance_->mutex_.unlock(); },
                   [] { instance_->mutex_.unlock(); });
    std::atexit([] { instance_->on_exit(); });
    return true;
  }();
  static_cast<void>(started);
}

void Checker::report_all() {
  while (const auto finding = ledger_.poll_finding()) report(*finding);
}

void Checker::report(const check::Finding& finding) {
  ++findings_;
  print(paragraph(finding));
  if (settings_.fatal) std::abort();
}

// Objects that a program leaves to the kernel do no harm, and most programs leave some: a line says
// how many, and the stacks are there for the asking.
void Checker::report_leaks() {
  struct Group {
    u64 count = 0;
    check::Site created;
  };
  std::map<std::string, u64> left;
  std::map<std::pair<std::string, const void*>, Group> by_place;
  for (const check::Ledger::Object& object : ledger_.left()) {
    if (is_of_rdmacm(object)) continue;
    ++left[object.kind];
    Group& group = by_place[{object.kind, object.created.call()}];
    ++group.count;
    group.created = object.created;
  }
  if (left.empty()) return;
  if (settings_.leaks) {
    for (const auto& [key, group] : by_place)
      report({check::Kind::kLeak,
              std::to_string(group.count).append(" ").append(key.first),
              {{"created here", group.created}}});
    return;
  }
  std::string line = "verbena check: left at exit:";
  for (const auto& [kind, count] : left)
    line.append(" ").append(std::to_string(count)).append(" ").append(kind).append(",");
  line.back() = ' ';
  print(line + "(--check=leaks tells where they were made)\n");
}

// A child of fork() has its parent's ledger, which says nothing about itself.
void Checker::on_exit() {
  if (getpid() != started_in) return;
  const std::lock_guard lock(mutex_);
  std::fflush(stdout);  // what the program has said comes first
  report_leaks();
  if (findings_ == 0) return;
  print("verbena check: " + std::to_string(findings_) +
        (findings_ == 1 ? " finding\n" : " findings\n"));
  if (!exit_code_) return;
  std::fflush(nullptr);
  _exit(*exit_code_);
}

}  // namespace verbena::abi
