#include "cli/sim_job.h"

#include <filesystem>

#include <fmt/format.h>

#include "cli/stop_signal.h"
#include "cli/text_file.h"
#include "jobs/job_run.h"

namespace verbena::cli {
namespace {

namespace fs = std::filesystem;

tl::unexpected<Failure> wrong(const std::string& what) { return failure(kExitCannot, what); }

Expected<jobs::Job> read(const std::string& path, const std::vector<fabric::Setting>& settings) {
  const Expected<std::string> text = read_text(path);
  if (!text) return tl::unexpected(text.error());
  const fs::path folder = fs::path(path).parent_path();
  auto job = jobs::read_job(path, *text, settings,
                            [&folder](const std::string& name) -> fabric::Parsed<std::string> {
                              Expected<std::string> file = read_text(folder / name);
                              if (!file)
                                return tl::unexpected(fabric::InputError{file.error().message});
                              return *std::move(file);
                            });
  if (!job) return wrong(job.error().message);
  return *std::move(job);
}

Expected<void> write_results(const fs::path& folder, const std::string& table,
                             const std::vector<jobs::CollectiveResult>& results) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return wrong(fmt::format("cannot make {}: {}", folder.string(), error.message()));
  if (const auto done = write_text(folder / "summary.txt", table); !done) return done;
  return write_text(folder / "collectives.csv", jobs::csv_of(results));
}

}  // namespace

Expected<SimOutcome> sim_job(const SimRequest& request,
                             const std::vector<fabric::Setting>& settings) {
  Expected<jobs::Job> job = read(request.scenarios.front(), settings);
  if (!job) return tl::unexpected(job.error());
  job->network.threads = request.threads;
  const StopSignal stop;
  SimOutcome outcome;
  const jobs::Stop stops = [&] { return outcome.was_interrupted |= stop.wait(Duration()); };
  std::vector<jobs::CollectiveResult> results;
  for (const collectives::Shape& shape : job->shapes)
    if (!outcome.was_interrupted) results.push_back(jobs::run_collective(*job, shape, stops));
  outcome.output = jobs::text_of(*job, results);
  if (!request.output.empty())
    if (const auto done = write_results(request.output, outcome.output, results); !done)
      return tl::unexpected(done.error());
  return outcome;
}

}  // namespace verbena::cli
