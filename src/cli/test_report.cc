#include "cli/test_report.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/exit_status.h"
#include "cli/text_file.h"

namespace verbena::cli {
namespace {

constexpr int kTimeIsOver = 124;              // as timeout(1) has it
constexpr std::size_t kMostOutput = 100'000;  // bytes of it in a test case, its end

std::string status_text(const TestProgram& program) {
  return program.signal == 0 ? fmt::format("exit status {}", program.status)
                             : fmt::format("signal {}", program.signal);
}

// XML 1.0 has no control characters but tab and the ends of lines.
std::string xml(std::string_view text) {
  std::string out;
  for (const char c : text) switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: {
        const auto code = static_cast<unsigned char>(c);
        out += code >= 0x20 && code < 0x7f ? std::string(1, c)
               : c == '\n' || c == '\t'    ? std::string(1, c)
                                           : "?";
      }
    }
  return out;
}

std::string why(const TestOutcome& outcome, const TestProgram& program) {
  if (!program.is_good()) return status_text(program);
  if (outcome.timed_out && program.was_told) return "the time was over";
  if (outcome.was_interrupted && program.was_told) return "interrupted";
  return "";
}

std::string case_of(const std::string& name, const TestOutcome& outcome,
                    const TestProgram& program) {
  const std::size_t size = program.output.size();
  const std::string_view end =
      std::string_view(program.output).substr(size - std::min(size, kMostOutput));
  const std::string failed = why(outcome, program);
  return fmt::format(
      "  <testcase classname=\"{}\" name=\"host {}: {}\" time=\"{:.3f}\">\n{}"
      "    <system-out>{}</system-out>\n  </testcase>\n",
      xml(name), program.host, xml(fmt::format("{}", fmt::join(program.command, " "))),
      program.seconds, failed.empty() ? "" : fmt::format("    <failure message=\"{}\"/>\n", failed),
      xml(end));
}

}  // namespace

int TestOutcome::exit_status() const {
  if (was_interrupted) return kExitInterrupted;
  const auto failed = std::ranges::min_element(programs, {}, [](const TestProgram& program) {
    return program.is_good() ? 1e18 : program.seconds;  // the first to fail
  });
  if (failed != programs.end() && !failed->is_good()) return failed->status;
  return timed_out ? kTimeIsOver : kExitOk;
}

std::string text_of(const TestOutcome& outcome) {
  std::string text;
  for (const TestProgram& program : outcome.programs)
    if (const std::string failed = why(outcome, program); !failed.empty())
      text += fmt::format("verbena test: host {}: {}: {}\n", program.host, failed,
                          printable(fmt::format("{}", fmt::join(program.command, " "))));
  return text + fmt::format("verbena test: {} on {} host{}\n",
                            outcome.is_good() ? "passed" : "failed", outcome.programs.size(),
                            outcome.programs.size() == 1 ? "" : "s");
}

std::string junit_of(const std::string& name, const TestOutcome& outcome) {
  std::string cases;
  std::size_t failures = 0;
  for (const TestProgram& program : outcome.programs) {
    cases += case_of(name, outcome, program);
    failures += why(outcome, program).empty() ? 0 : 1;
  }
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<testsuite name=\"{}\" tests=\"{}\" failures=\"{}\">\n{}</testsuite>\n",
      xml(name), outcome.programs.size(), failures, cases);
}

}  // namespace verbena::cli
