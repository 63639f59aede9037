#include "cli/sim_run.h"

#include <nlohmann/json.hpp>

namespace verbena::cli {
namespace {

using nlohmann::json;

json packed(std::size_t place, const SimRun& run) {
  json text = {{"place", place}, {"interrupted", run.was_interrupted}};
  if (!run.column) {
    text["status"] = run.column.error().exit_status;
    text["message"] = run.column.error().message;
    return text;
  }
  text["lines"] = json::array();
  for (const fabric::SummaryLine& line : run.column->lines)
    text["lines"].push_back({line.name, line.value});
  return text;
}

}  // namespace

std::string packed(const std::vector<SimRun>& runs) {
  json all = json::array();
  for (std::size_t i = 0; i < runs.size(); ++i)
    if (runs[i].has_run) all.push_back(packed(i, runs[i]));
  return all.dump(-1, ' ', false, json::error_handler_t::replace);
}

void unpack(const std::string& text, std::vector<SimRun>& runs) {
  for (const json& one : json::parse(text)) {
    SimRun& run = runs.at(one["place"]);
    run.has_run = true;
    run.was_interrupted = one["interrupted"];
    if (one.contains("message")) {
      run.column = failure(one["status"], one["message"]);
      continue;
    }
    SimColumn column{.title = run.title, .lines = {}};
    for (const json& line : one["lines"]) column.lines.push_back({line[0], line[1]});
    run.column = std::move(column);
  }
}

}  // namespace verbena::cli
