// Checker: the ledger of this process, with a lock around it and standard error below it. It is
// there when VERBENA_CHECK is set as the first device is opened; otherwise each of the calls in
// hooks.h costs one test of a pointer.
#pragma once

#include <mutex>
#include <optional>

#include "abi/ibverbs/check/call_stack.h"
#include "check/ledger.h"

namespace verbena::abi {

class Checker {
 public:
  // Reads the environment; once. What VERBENA_CHECK says wrongly is a warning.
  static void start();
  // Returns nullptr if programs are not checked.
  [[nodiscard]] static Checker* active() { return instance_; }

  // Calls note(ledger, call site), and reports what that finds.
  template <typename Note>
  void with(const Note& note) {
    const check::Site at = call_site();
    const std::lock_guard lock(mutex_);
    note(ledger_, at);
    report_all();
  }

 private:
  Checker(const check::Settings& settings, std::optional<int> exit_code)
      : settings_(settings), exit_code_(exit_code), ledger_(settings) {}
  void report_all();
  void report(const check::Finding& finding);
  void report_leaks();
  void on_exit();

  static constinit Checker* instance_;

  const check::Settings settings_;
  const std::optional<int> exit_code_;
  std::mutex mutex_;
  check::Ledger ledger_;
  u64 findings_ = 0;
};

}  // namespace verbena::abi
