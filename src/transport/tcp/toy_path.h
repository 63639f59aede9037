// For tests: TCP connections over one bottleneck: a queue of so many bytes, a rate, a delay each
// way, and faults from a seed. No headers: a segment takes its bytes alone.
#pragma once

#include <functional>
#include <memory>
#include <queue>
#include <vector>

#include "base/prng.h"
#include "base/rate.h"
#include "transport/tcp/receiver.h"
#include "transport/tcp/sender.h"

namespace verbena::tcp {

inline constexpr u32 kMSS = 1000;

inline Config config_of(ControlKind control) {
  Config config;
  config.mss = kMSS;
  config.control = control;
  config.ecn = control == ControlKind::kDCTCP;
  config.receive_buffer = 32u << 20;
  return config;
}

struct ToyPathConfig {
  Rate rate = gbps(10);
  Duration delay = us(50);  // each way
  u64 queue_bytes = u64{1} << 40;
  u64 mark_above = u64{1} << 40;  // bytes in the queue
  double loss = 0, acknowledgement_loss = 0, duplication = 0;
  double reordering = 0;  // of segments, which arrive so much later:
  Duration later = us(100);
  u64 seed = 1;
};

class ToyPath {
 public:
  struct End {
    End(const Config& config) : sender(config), receiver(config) {}
    Sender sender;
    Receiver receiver;
    std::vector<u32> words;  // of messages that have come
    u64 segments_received = 0;
    Time sender_timer = Time::never(), receiver_timer = Time::never();  // set already
  };

  ToyPath(const Config& config, const ToyPathConfig& path, u32 connections = 1)
      : config_(config), path_(path), prng_(path.seed) {
    for (u32 i = 0; i < connections; ++i) ends_.push_back(std::make_unique<End>(config_));
  }
  End& operator[](u32 i) { return *ends_[i]; }
  [[nodiscard]] Time now() const { return now_; }
  [[nodiscard]] u64 longest_queue() const { return longest_queue_; }
  // Called for every segment with bytes: returns whether it is lost.
  std::function<bool(u32 connection, const Segment&)> loses = [](u32, const Segment&) {
    return false;
  };

  void write(u32 connection, u64 bytes, u32 word = 0) {
    ends_[connection]->sender.on_write(bytes, word, now_);
    settle(connection);
  }
  // Returns false if nothing is left to happen.
  bool run(Time end) {
    while (!events_.empty() && events_.top().at <= end) {
      const Event event = events_.top();
      events_.pop();
      now_ = event.at;
      handle(event);
    }
    const bool goes_on = !events_.empty();
    if (goes_on) now_ = end;
    return goes_on;
  }
  bool run_for(Duration time) { return run(now_ + time); }

 private:
  enum class Kind : u8 { kData, kAcknowledgement, kSenderTimer, kReceiverTimer };
  struct Event {
    Time at;
    u64 order = 0;
    Kind kind{};
    u32 connection = 0;
    Segment segment{};
    bool operator<(const Event& other) const {
      return at != other.at ? at > other.at : order > other.order;
    }
  };

  void add(Time at, Kind kind, u32 connection, const Segment& segment = {}) {
    events_.push({at, order_++, kind, connection, segment});
  }
  void handle(const Event& event) {
    End& end = *ends_[event.connection];
    switch (event.kind) {
      case Kind::kData:
        ++end.segments_received;
        end.receiver.on_segment(event.segment, now_);
        break;
      case Kind::kAcknowledgement: end.sender.on_acknowledgement(event.segment, now_); break;
      case Kind::kSenderTimer:
        end.sender_timer = Time::never();
        end.sender.on_timer(now_);
        break;
      case Kind::kReceiverTimer:
        end.receiver_timer = Time::never();
        end.receiver.on_timer(now_);
        break;
    }
    settle(event.connection);
  }
  void settle(u32 connection) {
    End& end = *ends_[connection];
    Segment segment;
    while (end.receiver.poll_acknowledgement(segment))
      if (!prng_.chance(path_.acknowledgement_loss))
        add(now_ + path_.delay, Kind::kAcknowledgement, connection, segment);
    while (const auto word = end.receiver.poll_message()) end.words.push_back(*word);
    while (end.sender.poll_segment(now_, segment)) transmit(connection, segment);
    set(end.sender_timer, end.sender.next_timer(), Kind::kSenderTimer, connection);
    set(end.receiver_timer, end.receiver.next_timer(), Kind::kReceiverTimer, connection);
  }
  void set(Time& timer, Time at, Kind kind, u32 connection) {
    if (at >= timer) return;
    timer = at;
    add(std::max(at, now_), kind, connection);
  }
  void transmit(u32 connection, Segment segment) {
    const double waits_s = free_at_ <= now_ ? 0 : (free_at_ - now_).seconds();
    const u64 queued = static_cast<u64>(waits_s * static_cast<double>(path_.rate.bps()) / 8);
    if (queued + segment.bytes > path_.queue_bytes) return;
    longest_queue_ = std::max(longest_queue_, queued);
    if (queued > path_.mark_above && segment.ecn == ECN::kECT0) segment.ecn = ECN::kCE;
    free_at_ = std::max(free_at_, now_) + path_.rate.time_of(segment.bytes);
    if (loses(connection, segment) || (segment.bytes != 0 && prng_.chance(path_.loss))) return;
    Time at = free_at_ + path_.delay;
    if (prng_.chance(path_.reordering)) at = at + path_.later;
    add(at, Kind::kData, connection, segment);
    if (prng_.chance(path_.duplication)) add(at + us(1), Kind::kData, connection, segment);
  }

  const Config config_;
  const ToyPathConfig path_;
  PRNG prng_;
  std::vector<std::unique_ptr<End>> ends_;
  std::priority_queue<Event> events_;
  u64 order_ = 0;
  Time now_, free_at_;
  u64 longest_queue_ = 0;
};

}  // namespace verbena::tcp
