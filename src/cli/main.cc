// verbena: the command. Reads the command line, does what it asks, reports in one line what failed.
#include <cstdio>

#include <fmt/format.h>

#include "cli/bench.h"
#include "cli/coll.h"
#include "cli/command_line.h"
#include "cli/devices.h"
#include "cli/doctor.h"
#include "cli/fabric.h"
#include "cli/huge_heap.h"
#include "cli/nic.h"
#include "cli/plan.h"
#include "cli/plan_job.h"
#include "cli/run.h"
#include "cli/sim.h"
#include "cli/stats.h"
#include "cli/system_default.h"
#include "cli/test_command.h"
#include "cli/text_file.h"
#include "cli/tool.h"

namespace verbena::cli {
namespace {

int report(const Failure& failure) {
  if (!failure.message.empty()) fmt::print(stderr, "verbena: {}\n", printable(failure.message));
  return failure.exit_status;
}

// Output that does not arrive (a full disk, a closed pipe) is no success.
bool arrives(std::string_view text) {
  return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() &&
         std::fflush(stdout) == 0;
}
int print(std::string_view text) {
  if (arrives(text)) return kExitOk;
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

int finish(const Expected<void>& outcome) { return outcome ? kExitOk : report(outcome.error()); }
int handle(const StatsRequest& request) { return finish(stats(request, arrives)); }
int handle(const TopRequest& request) { return finish(top(request, arrives)); }
int handle(const DoctorRequest& request) {
  if (request.listen) return finish(listen_for_doctors(request, arrives));
  const Findings findings = examine(request);
  const bool json = request.format == OutputFormat::kJSON;
  const int status = print(json ? to_json(findings) : to_text(findings));
  return worst_of(findings) == Verdict::kProblem ? kExitProblem : status;
}
int finish(const Expected<SimOutcome>& outcome) {
  if (!outcome) return report(outcome.error());
  const int status = print(outcome->output);
  for (const std::string& unmet : outcome->unmet)
    (void)report({kExitUnmet, "not as expected: " + unmet});
  if (outcome->was_interrupted) return kExitInterrupted;
  return status == kExitOk && !outcome->unmet.empty() ? kExitUnmet : status;
}
int handle(const FabricRequest& request) { return finish(fabric(request, arrives)); }
int handle(const DefaultRequest& request) {
  const Expected<std::string> text = system_default(request);
  return text ? print(*text) : report(text.error());
}
int handle(const NICRequest& request) { return finish(nic(request, arrives)); }
int handle(const TestRequest& request) {
  const Expected<int> status = test(request);
  return status ? *status : report(status.error());
}
int handle(const CollRequest& request) {
  const Expected<int> status = coll(request);
  return status ? *status : report(status.error());
}
int handle(const BenchRequest& request) {
  const Expected<std::string> table = bench(request);
  return table ? print(*table) : report(table.error());
}
int handle(const ToolRequest& request) { return report(start_tool(request)); }
int handle(const PlanRequest& request) {
  return request.job ? finish(plan_job(*request.job)) : print(plan(request));
}
int handle(const SimRequest& request) {
  put_heap_on_huge_pages();
  return finish(sim(request));
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
