// TestOutcome: the programs that `verbena test` ran and their results, as text and as JUnit XML.
#pragma once

#include <string>
#include <vector>

namespace verbena::cli {

struct TestProgram {
  unsigned host = 0;
  std::vector<std::string> command;
  int status = 0;         // its exit status
  int signal = 0;         // that ended it, and `status` is 128 more; 0: none
  bool was_told = false;  // to end, since the others had ended or the time was over
  double seconds = 0;     // until it ended
  std::string output{};   // standard output and error

  // A program that was told to end is a server, and its status says nothing.
  [[nodiscard]] bool is_good() const { return status == 0 || was_told; }
};

struct TestOutcome {
  std::vector<TestProgram> programs;  // by host
  bool was_interrupted = false, timed_out = false;

  [[nodiscard]] bool is_good() const { return exit_status() == 0; }
  [[nodiscard]] int exit_status() const;
};

// Returns a line that says whether the test passed, and a line for each program that failed.
[[nodiscard]] std::string text_of(const TestOutcome& outcome);
// Returns JUnit XML with a test case for each program.
[[nodiscard]] std::string junit_of(const std::string& name, const TestOutcome& outcome);

}  // namespace verbena::cli
