#include "cli/sim_job.h"

#include <fmt/format.h>

#include "cli/job_progress.h"
#include "cli/progress_line.h"
#include "cli/sim_scenario.h"
#include "cli/stop_signal.h"
#include "cli/text_file.h"
#include "fabric/scenario/other_technologies.h"
#include "fabric/scenario/units.h"
#include "jobs/job_file.h"
#include "jobs/report/job_page.h"

namespace verbena::cli {
namespace fs = std::filesystem;

bool is_job_file(const std::string& path) {
  const Expected<std::string> text = read_text(path);
  return text && jobs::is_job(*text);
}

Expected<jobs::Job> read_job_file(const std::string& path,
                                  const std::vector<fabric::Setting>& settings, Remarks remarks) {
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
  if (!job) return cannot(job.error().message);
  if (remarks == Remarks::kUnsaid) return *std::move(job);
  if (!job->left_out.empty())
    fmt::print(stderr, "{}: {}\n", path,
               fabric::left_out_text(job->network.technology, job->left_out));
  for (const std::string& note : job->plan.notes) fmt::print(stderr, "{}: {}\n", path, note);
  return *std::move(job);
}

Expected<std::vector<fabric::Expectation>> expectations_for(const SimRequest& request,
                                                            const jobs::Job& job) {
  Expected<std::vector<fabric::Expectation>> all = expectations_of(request.expectations);
  if (!all) return all;
  all->insert(all->end(), job.expectations.begin(), job.expectations.end());
  if (const auto done = check_names(*all, metrics_of(job)); !done)
    return tl::unexpected(done.error());
  return all;
}

SimResult result_of(const std::string& title, const jobs::Job& job,
                    const jobs::JobResults& results) {
  return {.title = title,
          .lines = lines_of(job, results),
          .metrics = metrics_of(job, results),
          .expected = {},
          .unmet = {},
          .notes = job.plan.notes};
}

Expected<void> write_job_results(const fs::path& folder, const jobs::Job& job,
                                 const jobs::JobResults& results) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return cannot(fmt::format("cannot make {}: {}", folder.string(), error.message()));
  for (const jobs::ResultFile& file : files_of(job, results))
    if (const auto done = write_text(folder / file.name, file.text); !done) return done;
  if (job.serving || job.loading) return {};  // requests.csv or the summary has all
  const fs::path database = folder / "results.sqlite";
  const std::string failed = write_database(database, job, results);
  if (!failed.empty()) return cannot(failed);
  const fabric::Parsed<std::string> report = jobs::report_html(database);
  if (!report) return cannot(report.error().message);
  return write_text(folder / "report.html", *report);
}

Expected<SimOutcome> sim_job(const SimRequest& request,
                             const std::vector<fabric::Setting>& settings) {
  Expected<jobs::Job> job = read_job_file(request.scenarios.front(), settings);
  if (!job) return tl::unexpected(job.error());
  const auto expectations = expectations_for(request, *job);
  if (!expectations) return tl::unexpected(expectations.error());
  job->network.threads = request.threads;
  if (!request.output.empty()) job->keep = jobs::Keep::kAll;
  const StopSignal stop;
  SimOutcome outcome;
  jobs::JobResults results;
  {
    ProgressLine line;
    results = run_job(*job, [&](const jobs::Progress& progress) {
      if (line.is_due()) line.show(text_of(progress, line.seconds()));
      return outcome.was_interrupted |= stop.wait(Duration());
    });
  }
  SimResult result = result_of(request.scenarios.front(), *job, results);
  judge(*expectations, result);
  outcome.unmet = result.unmet;
  outcome.output = request.format == OutputFormat::kJSON ? json_of(result) : text_of(*job, results);
  if (const auto done = write_junit(request, {result}); !done) return tl::unexpected(done.error());
  if (!request.output.empty())
    if (const auto done = write_job_results(request.output, *job, results); !done)
      return tl::unexpected(done.error());
  return outcome;
}

}  // namespace verbena::cli
