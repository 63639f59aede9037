#include "cli/sim_run.h"

#include <nlohmann/json.hpp>

namespace verbena::cli {
namespace {

nlohmann::json packed(std::size_t place, const SimRun& run) {
  nlohmann::json text = {{"place", place}, {"interrupted", run.was_interrupted}};
  if (!run.column) {
    text["status"] = run.column.error().exit_status;
    text["message"] = run.column.error().message;
    return text;
  }
  text["lines"] = nlohmann::json::array();
  for (const fabric::SummaryLine& line : run.column->lines)
    text["lines"].push_back({line.name, line.value});
  text["metrics"] = nlohmann::json::array();
  for (const fabric::Metric& metric : run.column->metrics)
    text["metrics"].push_back({metric.name, metric.value, metric.word});
  text["expected"] = run.column->expected;
  text["unmet"] = run.column->unmet;
  text["notes"] = run.column->notes;
  return text;
}

}  // namespace

std::string packed(const std::vector<SimRun>& runs) {
  nlohmann::json all = nlohmann::json::array();
  for (std::size_t i = 0; i < runs.size(); ++i)
    if (runs[i].has_run) all.push_back(packed(i, runs[i]));
  return all.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void unpack(const std::string& text, std::vector<SimRun>& runs) {
  for (const nlohmann::json& one : nlohmann::json::parse(text)) {
    SimRun& run = runs.at(one["place"]);
    run.has_run = true;
    run.was_interrupted = one["interrupted"];
    if (one.contains("message")) {
      run.column = failure(one["status"], one["message"]);
      continue;
    }
    SimColumn column;
    column.title = run.title;
    for (const nlohmann::json& line : one["lines"]) column.lines.push_back({line[0], line[1]});
    for (const nlohmann::json& metric : one["metrics"])  // NaN is null
      column.metrics.push_back(
          {metric[0], metric[1].is_null() ? fabric::Metric{}.value : metric[1].get<double>(),
           metric[2]});
    column.expected = one["expected"].get<std::vector<std::string>>();
    column.unmet = one["unmet"].get<std::vector<std::string>>();
    column.notes = one["notes"].get<std::vector<std::string>>();
    run.column = std::move(column);
  }
}

}  // namespace verbena::cli
