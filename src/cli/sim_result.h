// SimResult: what a run has come to, for people and for programs, and which expectations it has not
// met: of `--expect`, and of `assert` in its file.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/failure.h"
#include "fabric/results/metric.h"

namespace verbena::cli {

struct SimResult {
  std::string title;  // of the run: the scenario's file, or what a sweep has set
  std::vector<fabric::SummaryLine> lines{};
  std::vector<fabric::Metric> metrics{};
  std::vector<std::string> expected{};  // all expectations, as they were given
  std::vector<std::string> unmet{};     // "drops == 0: it is 525"
  std::vector<std::string> notes{};     // what was rounded, and the like
};

// --expect, read.
[[nodiscard]] Expected<std::vector<fabric::Expectation>> expectations_of(
    const std::vector<std::string>& texts);
// Returns an error if an expectation names an unknown metric.
[[nodiscard]] Expected<void> check_names(std::span<const fabric::Expectation> expectations,
                                         std::span<const fabric::Metric> metrics);
void judge(std::span<const fabric::Expectation> expectations, SimResult& result);

// Returns one JSON object for one run; for several, an object with "runs". A number that a result
// lacks is null.
[[nodiscard]] std::string json_of(const SimResult& result);
[[nodiscard]] std::string json_of(const std::vector<SimResult>& results);
// Returns the text escaped for XML and HTML, without control characters except line ends.
[[nodiscard]] std::string escaped(std::string_view text);
// JUnit's XML, as CI systems read it: a suite of the runs, a case for each expectation of each, or
// where it has none, that it ran.
[[nodiscard]] std::string junit_of(const std::string& suite, const std::vector<SimResult>& results);

}  // namespace verbena::cli
