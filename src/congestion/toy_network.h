// For this folder's tests: flows that share one link with a queue, in small steps of time. Each
// step sends what each flow's rate and window allow, and acknowledges what was sent a round trip
// before.
#pragma once

#include <algorithm>
#include <deque>
#include <vector>

#include "congestion/congestion_control.h"

namespace verbena::test {

struct ToyNetwork {
  static constexpr Duration kStep = us(1);

  ToyNetwork(const CongestionParameters& parameters, u32 count, Rate link, Duration round_trip)
      : capacity(link), base_rtt(round_trip) {
    for (u32 i = 0; i < count; ++i) flows.emplace_back(parameters);
  }
  void run(Duration time) {
    for (const Time end = now + time; now < end; now = now + kStep) step();
  }
  // Returns the bytes that each flow has sent since, as shares of the link.
  std::vector<double> shares(Duration time) {
    for (Flow& flow : flows) flow.sent = 0;
    run(time);
    std::vector<double> shares;
    const double all = static_cast<double>(capacity.bps()) / 8 * time.seconds();
    for (const Flow& flow : flows) shares.push_back(flow.sent / all);
    return shares;
  }
  Duration queueing() const {
    return ps(static_cast<i64>(queue * 8e12 / static_cast<double>(capacity.bps())));
  }

  struct Flow {
    explicit Flow(const CongestionParameters& parameters) : control(parameters) {}
    CongestionControl control;
    double sent = 0, in_flight = 0, left_over = 0;
    struct Sent {
      Time sent, acknowledged;
      double bytes;
      PathTelemetry path;
    };
    std::deque<Sent> waiting;
  };
  std::deque<Flow> flows;
  Rate capacity;
  Duration base_rtt;
  Time now = Time::from_ns(1'000'000);
  double queue = 0, passed = 0;  // bytes

 private:
  void step() {
    const double seconds = kStep.seconds();
    double arriving = 0;
    for (Flow& flow : flows) {
      acknowledge(flow);
      double bytes = static_cast<double>(flow.control.rate(now).bps()) / 8 * seconds;
      const u64 window = flow.control.window(now);
      if (window != kNoWindow)
        bytes = std::min(bytes, std::max(0.0, static_cast<double>(window) - flow.in_flight));
      bytes += flow.left_over;
      flow.left_over = bytes < 1 ? bytes : 0;
      if (bytes < 1) continue;
      flow.control.on_sent(static_cast<u64>(bytes), now);
      flow.sent += bytes;
      flow.in_flight += bytes;
      arriving += bytes;
      Flow::Sent sent{now, now + base_rtt + queueing(), bytes, {}};
      sent.path.count = 1;
      flow.waiting.push_back(sent);
    }
    const double most = static_cast<double>(capacity.bps()) / 8 * seconds;
    const double leaving = std::min(queue + arriving, most);
    queue += arriving - leaving;
    passed += leaving;
  }
  void acknowledge(Flow& flow) {
    while (!flow.waiting.empty() && flow.waiting.front().acknowledged <= now) {
      Flow::Sent sent = flow.waiting.front();
      flow.waiting.pop_front();
      flow.in_flight -= sent.bytes;
      sent.path.hops[0] = {.rate = capacity,
                           .at = now,
                           .sent_bytes = static_cast<u64>(passed),
                           .queued_bytes = static_cast<u64>(queue)};
      flow.control.on_ack({.acknowledged_bytes = static_cast<u64>(sent.bytes),
                           .in_flight_bytes = static_cast<u64>(std::max(flow.in_flight, 0.0)),
                           .round_trip = now - sent.sent,
                           .path = &sent.path},
                          now);
    }
  }
};

// Jain's index: 1 when all are equal, 1/n when one has everything.
inline double fairness(const std::vector<double>& shares) {
  double sum = 0, squares = 0;
  for (const double share : shares) sum += share, squares += share * share;
  return sum * sum / (squares * static_cast<double>(shares.size()));
}

inline double sum_of(const std::vector<double>& shares) {
  double sum = 0;
  for (const double share : shares) sum += share;
  return sum;
}

}  // namespace verbena::test
