// NetworkRecord: the measurements of a network that runs: pauses, and samples of queues, links,
// marks and rates over time. It keeps no network: the caller, whichever it is, passes the network
// at each sample, and stops it for that at next_sample(). The same network gives the same record,
// bit for bit.
#pragma once

#include <vector>

#include "fabric/network.h"
#include "fabric/pause_state.h"
#include "fabric/results/port_map.h"
#include "fabric/results/series.h"

namespace verbena::fabric {

// PortTotal: the totals of one end of a link in the measured time.
struct PortTotal {
  u64 sent_bytes = 0, marks = 0;
  double utilization = 0;  // the part of the measured time in which it was sending: 0 .. 1
  u32 longest_queue_bytes = 0;
  Duration waited_for_credits{};  // InfiniBand's
};

class NetworkRecord final : public Trace {
 public:
  static constexpr std::size_t kMostSamples = 2000, kMostPoints = 400'000;
  static constexpr u32 kMostPauses = 2'000'000;  // that are kept; all are counted

  // For a network of that topology, and the rates of so many flows. When there are more than about
  // `most_points` values, every second sample is left out.
  NetworkRecord(const Topology& topology, u32 rated_flows, std::size_t most_points);

  [[nodiscard]] Time next_sample() const { return samples_.next(); }
  void sample(const Network& network, Time now);  // at next_sample(), or later
  // Ends the measured time; later events do not count.
  void finish(Time now);

  void on_flow_finished(u32 /*flow*/, Time /*now*/) override {}
  void on_pause_received(NodeIndex node, u32 port, u32 priority, u32 quanta, Time now) override;

  struct Pause {
    Time at;
    u32 link_end;  // that was paused: a place in ports().ends()
    u16 quanta;    // 0: it may go on
    u8 priority;
  };
  [[nodiscard]] const PortMap& ports() const { return ports_; }
  [[nodiscard]] const std::vector<Pause>& pauses() const { return pauses_; }
  [[nodiscard]] const std::vector<Duration>& paused_times() const { return paused_; }  // by end
  [[nodiscard]] const SampleTimes& samples() const { return samples_; }
  // By link end; all but the queues count from the beginning.
  [[nodiscard]] const SeriesSet& queues() const { return queues_; }  // bytes; 0 at hosts
  [[nodiscard]] const SeriesSet& sent() const { return sent_; }      // bytes
  [[nodiscard]] const SeriesSet& marks() const { return marks_; }
  [[nodiscard]] const SeriesSet& waits() const { return waits_; }  // ps without credits
  [[nodiscard]] const SeriesSet& rates() const { return rates_; }  // by flow; bit/s, 0: not running
  // Returns the totals by link end, for the time until `measured_until`, up to which the network
  // has run or a little further.
  [[nodiscard]] std::vector<PortTotal> totals(const Network& network, Time measured_until) const;

 private:
  void thin_out();

  PortMap ports_;
  const std::size_t most_points_;
  std::vector<Rate> port_rates_;  // by link end
  std::vector<Pause> pauses_;
  std::vector<Duration> paused_;
  SampleTimes samples_;
  SeriesSet queues_, sent_, marks_, waits_, rates_;
  std::vector<PauseState> held_;  // by link end
  bool finished_ = false;
};

// Calls write(link end, time, duration since the sample before, amount) with the growth between two
// samples, for a series that counts from the beginning.
template <typename Write>
void for_each_growth(const NetworkRecord& record, const SeriesSet& series, const Write& write) {
  const std::vector<Time>& times = record.samples().times();
  for (u32 end = 0; end < series.size(); ++end) {
    u64 before = 0;
    for (const SeriesSet::Point& point : series.of(end)) {
      if (point.sample >= times.size()) continue;
      const Time from = point.sample == 0 ? Time() : times[point.sample - 1];
      write(end, times[point.sample], times[point.sample] - from, point.value - before);
      before = point.value;
    }
  }
}

}  // namespace verbena::fabric
