// verbena: the command. Reads the command line, does what it asks, reports in one line what failed.
#include <cstdio>

#include <fmt/format.h>

#include "cli/command_line.h"
#include "cli/devices.h"
#include "cli/run.h"

namespace verbena::cli {
namespace {

int report(const Failure& failure) {
  fmt::print(stderr, "verbena: {}\n", failure.message);
  return failure.exit_status;
}

// Output that does not arrive (a full disk, a closed pipe) is no success.
int print(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0)
    return kExitOk;
  return report({kExitCannot, "cannot write to standard output"});
}

int handle(const PrintRequest& request) { return print(request.text); }
int handle(const RunRequest& request) { return report(run(request)); }
int handle(const DevicesRequest& request) {
  const Expected<DevicesOutcome> outcome = devices(request);
  if (!outcome) return report(outcome.error());
  const int status = print(outcome->output);
  return outcome->problem.empty() ? status : report({kExitCannot, outcome->problem});
}

}  // namespace
}  // namespace verbena::cli

int main(int argc, char** argv) {
  namespace cli = verbena::cli;
  const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
  const cli::Expected<cli::Request> request = cli::parse_command_line(arguments);
  if (!request) return cli::report(request.error());
  return std::visit([](const auto& r) { return cli::handle(r); }, *request);
}
