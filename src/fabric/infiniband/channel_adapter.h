// ChannelAdapter: a host's port on an InfiniBand link: credits instead of pauses, lanes instead of
// priorities; counters of its packets, and of the time that it has waited for credits. IBTA Vol 1,
// 7.9 and 16.1.3 (PortXmitWait).
#pragma once

#include <array>
#include <utility>

#include "fabric/frame.h"
#include "fabric/host_port.h"
#include "fabric/infiniband/link_credits.h"
#include "fabric/infiniband/packets.h"

namespace verbena::fabric {

struct ChannelAdapterConfig {
  CreditConfig credits{};
  std::array<u8, kPriorities> sl_to_vl{};
};

class ChannelAdapter {
 public:
  // The host's only port; it outlives this.
  ChannelAdapter(const ChannelAdapterConfig& config, HostPort& port)
      : config_(config), credits_(config.credits), port_(port) {}

  [[nodiscard]] u8 lane_of(u8 service_level) const { return config_.sl_to_vl[service_level]; }
  [[nodiscard]] const PacketCount& sent_packets() const { return sent_packets_; }
  // The sum of all times in which packets, but no credits, were there.
  [[nodiscard]] Duration waited(Time now) const {
    return waits_since_ == Time::never() ? waited_ : waited_ + (now - waits_since_);
  }

  // --- sending
  void on_limit(const Frame& frame) {  // a flow control packet has come
    credits_.on_limit(frame.priority, credit_limit_of(frame));
    if ((port_.paused & bit(frame.priority)) != 0 && credits_.may_send(frame.priority))
      port_.resume(frame.priority);
  }
  void on_sent(const Frame& frame, Time now) {
    if (frame.is_for_a_neighbour()) return;
    sent_packets_.add(frame.size_bytes, cast_of(frame));
    credits_.on_sent(frame.priority, frame.size_bytes);
    if (!credits_.may_send(frame.priority)) port_.pause(frame.priority);
    if (waits_since_ == Time::never()) return;
    waited_ = waited_ + (now - std::exchange(waits_since_, Time::never()));
  }
  // Precondition: no packet may be sent. Whether one waits is certain when credits have arrived:
  // then it is sent, or there was none.
  void note_wait(bool waits, Time now) {
    if (!waits)
      waits_since_ = Time::never();
    else if (waits_since_ == Time::never())
      waits_since_ = now;
  }

  // --- receiving
  void on_received(const Frame& frame) { credits_.on_received(frame.priority, frame.size_bytes); }
  // The frame's place in the buffer is free. Returns whether the neighbour is to be told now.
  [[nodiscard]] bool on_freed(const Frame& frame) {
    credits_.on_freed(frame.priority, frame.size_bytes);
    return credits_.update_is_due(frame.priority);
  }
  [[nodiscard]] FrameIndex make_update(FramePool& frames, u32 lane) {
    return make_flow_control(frames, lane, credits_);
  }

 private:
  const ChannelAdapterConfig config_;
  LinkCredits credits_;
  HostPort& port_;
  PacketCount sent_packets_;
  Time waits_since_ = Time::never();  // with packets, and credits for none
  Duration waited_{};
};

}  // namespace verbena::fabric
