#include "jobs/report/run_charts.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "jobs/report/queries.h"

namespace verbena::jobs {
namespace {

using JSON = fabric::SQLiteReader::JSON;

constexpr std::size_t kChartedGPUs = 16, kShownMessages = 3000;
constexpr i64 kShownPoints = 500, kShownLanes = 16;

class Charts {
 public:
  Charts(fabric::SQLiteReader& rows, std::string name, i64 end_ps, i64 interval_ps)
      : rows_(rows), name_(std::move(name)), end_ps_(std::max<i64>(1, end_ps)) {
    const i64 interval = std::max<i64>(1, interval_ps);
    width_ps_ = interval * (end_ps_ / interval / kShownPoints + 1);
    points_ = (end_ps_ + width_ps_ - 1) / width_ps_;
  }

  JSON all() {
    JSON data;
    data["end_us"] = static_cast<double>(end_ps_) * 1e-6;
    data["times_us"] = JSON::array();
    for (i64 i = 0; i < points_; ++i) data["times_us"].push_back(us_of(i));
    data["timeline"] = timeline();
    data["path"] = rows_.rows(kPathQuery.text, {name_});
    add_messages(data);
    data["queues"] = series(kLongestQueuesQuery, kQueuesQuery, &Charts::levels);
    data["loads"] = series(kBusiestQuery, kLoadsQuery, &Charts::rates);
    data["utilization"] = utilization();
    return data;
  }

 private:
  [[nodiscard]] double us_of(i64 point) const {
    return static_cast<double>(point * width_ps_) * 1e-6;
  }
  // A sample tells of the time before it.
  [[nodiscard]] i64 point_of(i64 time_ps) const {
    return (std::max<i64>(1, time_ps) - 1) / width_ps_;
  }

  // A row for each lane of the GPUs that ended first and last, with a span for each eighth.
  JSON timeline() {
    JSON result = JSON::array();
    for (const i64 gpu : ends_of(rows_.rows(kEndsQuery.text, {name_}), kChartedGPUs)) {
      i64 lane = -1;
      double begin = 0;
      for (const JSON& row : rows_.rows(kProgressQuery.text, {name_, std::to_string(gpu)})) {
        if (row[0] >= kShownLanes) break;
        if (row[0] != lane) {
          lane = row[0];
          begin = 0;
          result.push_back({{"gpu", gpu}, {"lane", lane}, {"spans", JSON::array()}});
        }
        const int eighths = row[1];
        result.back()["spans"].push_back(
            {begin, row[2], eighths, std::to_string(eighths) + "/8 of its steps"});
        begin = row[2];
      }
    }
    return result;
  }

  void add_messages(JSON& data) {
    const JSON messages = rows_.rows(kMessagesQuery.text, {name_});
    const std::size_t every = messages.size() / kShownMessages + 1;
    data["flows"] = JSON::array();
    for (std::size_t i = 0; i < messages.size(); i += every) data["flows"].push_back(messages[i]);
    data["buckets"] = JSON::array();
    for (std::size_t i = 0; i < messages.size();) i = add_bucket(messages, i, data["buckets"]);
  }
  // Adds the bucket of messages up to the next power of ten of bytes. Returns the index after its
  // last message.
  static std::size_t add_bucket(const JSON& messages, std::size_t first, JSON& buckets) {
    double most = 1000;
    while (messages[first][0] > most) most *= 10;
    std::vector<double> slowdowns;
    std::size_t i = first;
    for (; i < messages.size() && messages[i][0] <= most; ++i) slowdowns.push_back(messages[i][1]);
    std::ranges::sort(slowdowns);
    const auto at = [&](std::size_t percent) {
      return slowdowns[(slowdowns.size() - 1) * percent / 100];
    };
    buckets.push_back({{"most", most},
                       {"middle", most / std::sqrt(10)},
                       {"flows", slowdowns.size()},
                       {"p50", at(50)},
                       {"p95", at(95)},
                       {"p99", at(99)}});
    return i;
  }

  using Fill = std::vector<double> (Charts::*)(const JSON& rows) const;
  JSON series(const NamedQuery& which, const NamedQuery& values, Fill fill) {
    JSON result = JSON::array();
    for (const JSON& port : rows_.rows(which.text, {name_})) {
      const JSON rows = rows_.rows(values.text, {name_, std::to_string(port[0].get<i64>()),
                                                 std::to_string(port[1].get<i64>())});
      result.push_back({{"name", port[2]}, {"values", (this->*fill)(rows)}});
    }
    return result;
  }
  // The greatest of each stretch of time; a value stays until the next row.
  [[nodiscard]] std::vector<double> levels(const JSON& rows) const {
    std::vector<double> values(static_cast<std::size_t>(points_));
    double now = 0;
    std::size_t row = 0;
    for (i64 i = 0; i < points_; ++i) {
      double& most = values[static_cast<std::size_t>(i)];
      most = now;
      for (; row < rows.size() && point_of(rows[row][0]) <= i; ++row)
        most = std::max(most, now = rows[row][1]);
    }
    return values;
  }
  // Bits a second of each stretch.
  [[nodiscard]] std::vector<double> rates(const JSON& rows) const {
    std::vector<double> values(static_cast<std::size_t>(points_));
    const double seconds = static_cast<double>(width_ps_) * 1e-12;
    for (const JSON& row : rows)
      if (const i64 point = point_of(row[0]); point < points_)
        values[static_cast<std::size_t>(point)] += row[1].get<double>() * 8 / seconds;
    return values;
  }

  JSON utilization() {
    std::array<i64, 10> directions{};
    for (const JSON& row : rows_.rows(kUtilizationQuery.text, {name_}))
      directions[row[0].get<std::size_t>()] = row[1];
    return directions;
  }

  fabric::SQLiteReader& rows_;
  const std::string name_;
  const i64 end_ps_;
  i64 width_ps_ = 1, points_ = 1;  // of a stretch of time that is one point: whole samples
};

}  // namespace

std::vector<i64> ends_of(const JSON& gpus, std::size_t shown) {
  std::vector<i64> places;
  for (std::size_t i = 0; i < gpus.size(); ++i)
    if (gpus.size() <= shown || i < shown / 2 || i + shown / 2 >= gpus.size())
      places.push_back(gpus[i][0]);
  return places;
}

JSON run_charts(fabric::SQLiteReader& rows, const std::string& name, i64 end_ps, i64 interval_ps) {
  return Charts(rows, name, end_ps, interval_ps).all();
}

}  // namespace verbena::jobs
