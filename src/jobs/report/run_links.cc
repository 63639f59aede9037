#include "jobs/report/run_links.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>

#include "fabric/pause_state.h"
#include "fabric/pfc.h"
#include "fabric/results/link_use.h"
#include "jobs/report/queries.h"

namespace verbena::jobs {
namespace {

using JSON = fabric::SQLiteReader::JSON;

constexpr std::size_t kListedPauses = 10;

class RunLinks {
 public:
  RunLinks(fabric::SQLiteReader& rows, const RunOfReport& run, const std::vector<Rate>& rates)
      : rows_(rows), run_(run), rates_(rates), end_ps_(std::max<i64>(1, run.end_ps)) {}

  void add(JSON& data) {
    add_totals(data);
    data["use"] = use();
    add_transfers(data);
  }

 private:
  using Row = std::span<const i64>;

  static Time at(i64 time_ps) { return Time() + ps(time_ps); }
  static u32 direction_of(Row row) { return static_cast<u32>(row[0]); }

  void add_totals(JSON& data) {
    std::vector<i64> load(rates_.size()), queue(load), marks(load), paused(load);
    std::vector<std::pair<i64, std::string>> held;
    for (const JSON& row : rows_.rows(kTotalsQuery.text, {run_.name})) {
      const std::size_t direction = row[0];
      load[direction] = std::lround(row[1].get<double>() * 1000);
      queue[direction] = row[2];
      marks[direction] = row[3];
      const i64 held_ps = row[4];
      paused[direction] = std::lround(1000 * part_of(held_ps));
      if (held_ps > 0) held.emplace_back(held_ps, row[5].get<std::string>());
    }
    data["totals"] = {{"load", load}, {"queue", queue}, {"marks", marks}, {"paused", paused}};
    std::ranges::stable_sort(held, std::greater(), &std::pair<i64, std::string>::first);
    data["paused"] = JSON::array();
    for (std::size_t i = 0; i < std::min(held.size(), kListedPauses); ++i)
      data["paused"].push_back({{"name", held[i].second},
                                {"us", static_cast<double>(held[i].first) * 1e-6},
                                {"part", part_of(held[i].first)}});
  }
  [[nodiscard]] double part_of(i64 time_ps) const {
    return std::min(1.0, static_cast<double>(time_ps) / static_cast<double>(end_ps_));
  }

  JSON use() {
    fabric::LinkUse use(rates_, ps(end_ps_), ps(run_.interval_ps));
    const std::vector<std::string> name = {run_.name};
    rows_.visit(kQueueUseQuery.text, name, [&](Row row) {
      use.note_queue(direction_of(row), at(row[1]), static_cast<u64>(row[2]));
    });
    rows_.visit(kLoadUseQuery.text, name, [&](Row row) {
      const double seconds = static_cast<double>(row[2]) * 8 / static_cast<double>(row[3]);
      const Duration since = ps(std::min<i64>(row[1], std::llround(seconds * 1e12)));
      use.note_sent(direction_of(row), at(row[1]), since, static_cast<u64>(row[2]));
    });
    rows_.visit(kMarkUseQuery.text, name, [&](Row row) {
      use.note_marks(direction_of(row), at(row[1]), static_cast<u64>(row[2]));
    });
    rows_.visit(kWaitUseQuery.text, name, [&](Row row) {
      const Time from = at(std::max<i64>(0, row[1] - run_.interval_ps));
      use.note_held(direction_of(row), from, at(row[1]), ps(row[2]));
    });
    add_pauses(use);
    return use.data();
  }

  void add_pauses(fabric::LinkUse& use) {
    std::vector<fabric::PauseState> states(rates_.size());
    const auto note = [&use](u32 direction, const std::optional<fabric::TimeSpan>& span) {
      if (span) use.note_held(direction, span->begin, span->end, span->length());
    };
    rows_.visit(kPauseUseQuery.text, {run_.name}, [&](Row row) {
      const u32 direction = direction_of(row);
      const Duration time = fabric::pause_time(static_cast<u16>(row[3]), rates_[direction]);
      note(direction, states[direction].on_frame(static_cast<u32>(row[2]), time, at(row[1])));
    });
    for (u32 direction = 0; direction < states.size(); ++direction)
      note(direction, states[direction].finish(at(end_ps_)));
  }

  using Lane = std::array<i64, 3>;  // source, destination, lane

  void add_transfers(JSON& data) {
    std::map<Lane, std::vector<i64>> ways;
    rows_.visit(kPathsQuery.text, {run_.name}, [&](Row row) {
      ways[{row[0], row[1], row[2]}].push_back(row[3]);
    });
    JSON& transfers = data["transfers"];
    const JSON count = rows_.rows(kMessageCountQuery.text, {run_.name});
    transfers = {{"all", count[0][0].is_null() ? JSON(0) : count[0][0]},
                 {"rows", JSON::array()},
                 {"paths", JSON::array()}};
    std::map<std::vector<i64>, std::size_t> paths;
    for (JSON row : rows_.rows(kSlowestQuery.text, {run_.name})) {
      const i64 lane = row[6];
      const std::vector<i64>& way = ways[{row[0], row[1], lane}];
      const auto [path, is_new] = paths.try_emplace(way, paths.size());
      if (is_new) transfers["paths"].push_back(way);
      row[6] = path->second;
      row.push_back(lane);
      transfers["rows"].push_back(std::move(row));
    }
  }

  fabric::SQLiteReader& rows_;
  const RunOfReport& run_;
  const std::vector<Rate>& rates_;
  const i64 end_ps_;
};

}  // namespace

void add_links(fabric::SQLiteReader& rows, const RunOfReport& run, const std::vector<Rate>& rates,
               JSON& data) {
  RunLinks(rows, run, rates).add(data);
}

}  // namespace verbena::jobs
