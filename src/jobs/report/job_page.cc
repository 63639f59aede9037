#include "jobs/report/job_page.h"

#include <algorithm>
#include <map>

#include "fabric/results/report_page.h"
#include "jobs/report/queries.h"
#include "jobs/report/run_charts.h"
#include "jobs/report/run_links.h"

namespace verbena::jobs {
namespace {

using JSON = fabric::SQLiteReader::JSON;

constexpr std::size_t kShownGPUs = 8;
constexpr double kShortest = 1.0 / 1500;  // of the time, that a span is shown alone

// Spans of one line that are too short to be seen, one after another and for one purpose, become
// one.
class Lane {
 public:
  Lane(std::string name, double shortest_us) : name_(std::move(name)), shortest_(shortest_us) {}

  void add(double begin, double end, const std::string& purpose, const std::string& label) {
    if (!spans_.empty()) {
      Span& last = spans_.back();
      const bool is_short = end - begin < shortest_ || last.end - last.begin < shortest_;
      if (is_short && last.purpose == purpose && begin - last.end < shortest_) {
        last.end = std::max(last.end, end);
        ++last.tasks;
        return;
      }
    }
    spans_.push_back({begin, end, purpose, label, 1});
  }
  [[nodiscard]] JSON data(i64 gpu) const {
    JSON spans = JSON::array();
    for (const Span& span : spans_)
      spans.push_back({span.begin, span.end, span.purpose,
                       span.tasks == 1 ? span.label : std::to_string(span.tasks) + " tasks"});
    return {{"gpu", gpu}, {"lane", name_}, {"spans", std::move(spans)}};
  }

 private:
  struct Span {
    double begin, end;
    std::string purpose, label;
    u32 tasks;
  };
  const std::string name_;
  const double shortest_;
  std::vector<Span> spans_;
};

class JobPage {
 public:
  explicit JobPage(const std::string& database) : rows_(database) {}

  [[nodiscard]] const std::string& error() const { return rows_.error(); }

  JSON data() {
    JSON data;
    data["format"] = fabric::kReportFormat;
    data["kind"] = "job";
    for (const JSON& row : rows_.rows(kRunQuery.text)) data["run"][row[0]] = row[1];
    data["summary"] = rows_.rows(kSummaryQuery.text);
    const bool is_step = data["run"]["kind"] != "collective";
    if (!is_step) data["collectives"] = rows_.rows(kCollectivesQuery.text);
    data["runs"] = JSON::object();
    if (has_table("samples")) add_runs(data);
    if (has_table("operations")) add_step(data);
    data["queries"] = JSON::array();
    for (const NamedQuery& query : kQueries) data["queries"].push_back({query.name, query.text});
    return data;
  }

 private:
  bool has_table(const std::string& name) {
    return !rows_.rows("SELECT name FROM sqlite_master WHERE name = ?1", {name}).empty();
  }

  void add_runs(JSON& data) {
    JSON& nodes = data["nodes"];
    for (const JSON& row : rows_.rows(kNodesQuery.text)) {
      nodes["name"].push_back(row[0]);
      nodes["tier"].push_back(row[2]);
      nodes["is_switch"].push_back(row[1]);
    }
    JSON& links = data["links"];
    std::vector<Rate> rates;  // of each direction
    for (const JSON& row : rows_.rows(kLinksQuery.text)) {
      links["a"].push_back(row[0]);
      links["b"].push_back(row[1]);
      links["bps"].push_back(row[2]);
      rates.insert(rates.end(), 2, Rate::from_bps(row[2].get<u64>()));
    }
    data["faults"] = JSON::array();
    for (const JSON& row : rows_.rows(kFaultsQuery.text))
      data["faults"].push_back(
          {{"link", row[0]}, {"what", row[1]}, {"at_us", row[2]}, {"until_us", row[3]}});
    data["gpus"] = rows_.rows(kGPUsQuery.text);
    for (const JSON& row : rows_.rows(kRunsQuery.text)) {
      JSON& run = data["runs"][row[0]] = run_charts(rows_, row[0], row[1], row[2]);
      add_links(rows_, {.name = row[0], .end_ps = row[1], .interval_ps = row[2]}, rates, run);
    }
  }

  void add_step(JSON& data) {
    data["operations"] = rows_.rows(kOperationsQuery.text);
    std::vector<i64> shown;
    if (has_table("accounts")) {
      const JSON idle = rows_.rows(kIdleQuery.text);
      data["idle"] = {
          {"least", idle.front()}, {"median", idle[idle.size() / 2]}, {"most", idle.back()}};
      shown = ends_of(idle, kShownGPUs);
      add_accounts(shown, data);
    } else {
      for (i64 gpu = 0; gpu < std::min<i64>(kShownGPUs, data["run"]["gpus"]); ++gpu)
        shown.push_back(gpu);
    }
    if (!data["run"].contains("step_ps")) return;
    data["timeline"] = timeline(shown, data["run"]["step_ps"].get<double>() * 1e-6);
  }

  void add_accounts(const std::vector<i64>& shown, JSON& data) {
    JSON mean = rows_.rows(kMeanAccountQuery.text);
    const double gpus = data["run"]["gpus"];
    for (JSON& row : mean)
      for (const std::size_t column : {1, 2}) row[column] = row[column].get<double>() / gpus;
    data["accounts"] = {{{"name", "mean of all"}, {"rows", std::move(mean)}}};
    for (const i64 gpu : shown)
      data["accounts"].push_back({{"name", "GPU " + std::to_string(gpu)},
                                  {"rows", rows_.rows(kAccountQuery.text, {std::to_string(gpu)})}});
  }

  JSON timeline(const std::vector<i64>& gpus, double end_us) {
    JSON result = JSON::array();
    for (const i64 gpu : gpus) {
      std::map<std::string, Lane> lanes;  // "": its computing, the first
      for (const JSON& row : rows_.rows(kTasksQuery.text, {std::to_string(gpu)})) {
        const std::string lane = row[2].is_null() ? "" : row[2].get<std::string>();
        lanes.try_emplace(lane, lane.empty() ? "computing" : lane, end_us * kShortest)
            .first->second.add(row[3], row[4], row[1], row[0]);
      }
      for (const auto& [name, lane] : lanes) result.push_back(lane.data(gpu));
    }
    return result;
  }

  fabric::SQLiteReader rows_;
};

}  // namespace

fabric::Parsed<std::string> report_html(const std::string& database) {
  JobPage page(database);
  const JSON data = page.data();
  if (!page.error().empty())
    return tl::unexpected(fabric::InputError{database + ": " + page.error()});
  return fabric::report_page(data);
}

}  // namespace verbena::jobs
