// A whole job: its run, and its results as text and as numbers for tables.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fabric/results/metric.h"
#include "fabric/results/summary.h"
#include "jobs/job_report.h"
#include "jobs/serving/serving_run.h"
#include "jobs/step_run.h"
#include "jobs/stop.h"

namespace verbena::jobs {

// JobResults: the results of a step, or of a collective operation by each requested algorithm.
struct JobResults {
  std::optional<StepResult> step;
  std::vector<CollectiveResult> collectives;
  std::optional<ServingResult> serving;
  std::optional<LoadingResult> loading;
};

// Runs the job. If `stop` ends the run, the results lack the algorithms that have not begun.
[[nodiscard]] JobResults run_job(const Job& job, const Stop& stop);
// "complete", "interrupted" or "failed".
[[nodiscard]] std::string_view status_of(const JobResults& results);
[[nodiscard]] std::string text_of(const Job& job, const JobResults& results);
// Returns the lines of the results; all jobs of a kind have the same names.
[[nodiscard]] std::vector<fabric::SummaryLine> lines_of(const Job& job, const JobResults& results);
// Returns the results by name. Names have the algorithm first ("ring.busbw"); those of a step are
// "step.time" and so on.
[[nodiscard]] std::vector<fabric::Metric> metrics_of(const Job& job, const JobResults& results);
// Returns the metrics that the job's results will have, without numbers.
[[nodiscard]] std::vector<fabric::Metric> metrics_of(const Job& job);
// ResultFile: a file of a folder of results beside results.sqlite: summary.txt, and trace.json of a
// step or collectives.csv.
struct ResultFile {
  std::string name, text;
};
[[nodiscard]] std::vector<ResultFile> files_of(const Job& job, const JobResults& results);
// Writes results.sqlite (docs/jobs.md). Returns the error, or "" if there is none.
[[nodiscard]] std::string write_database(const std::string& path, const Job& job,
                                         const JobResults& results);

}  // namespace verbena::jobs
