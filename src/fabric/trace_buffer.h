// TraceBuffer: what the nodes of a domain have to tell in one window. Then it is told in an order
// that does not depend on the domains: by time, and by flow or node where times are equal.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "fabric/trace.h"

namespace verbena::fabric {

class TraceBuffer final : public Trace {
 public:
  void on_flow_finished(u32 flow, Time now) override {
    told_.push_back({.at = now, .kind = Kind::kFlowFinished, .who = flow});
  }
  void on_flow_failed(u32 flow, Time now) override {
    told_.push_back({.at = now, .kind = Kind::kFlowFailed, .who = flow});
  }
  void on_pause_received(NodeIndex node, u32 port, u32 priority, u32 quanta, Time now) override {
    told_.push_back({now, Kind::kPauseReceived, node, port, priority, quanta});
  }

  [[nodiscard]] bool empty() const { return told_.empty(); }
  // Moves what `other` has here, behind what there is.
  void append(TraceBuffer& other) {
    told_.insert(told_.end(), other.told_.begin(), other.told_.end());
    other.told_.clear();
  }
  // Reports the calls before `end`, in order, and forgets them.
  void tell(Trace& trace, Time end) {
    const auto from_end =
        std::ranges::stable_partition(told_, [end](const Told& told) { return told.at < end; });
    std::vector<Told> later(from_end.begin(), from_end.end());
    told_.erase(from_end.begin(), told_.end());
    std::ranges::stable_sort(told_, comes_before);
    for (const Told& told : told_) {
      switch (told.kind) {
        case Kind::kFlowFinished: trace.on_flow_finished(told.who, told.at); break;
        case Kind::kFlowFailed: trace.on_flow_failed(told.who, told.at); break;
        case Kind::kPauseReceived:
          trace.on_pause_received(told.who, told.port, told.priority, told.quanta, told.at);
          break;
      }
    }
    told_ = std::move(later);
  }

 private:
  enum class Kind : u8 { kFlowFinished, kFlowFailed, kPauseReceived };
  struct Told {
    Time at;
    Kind kind;
    u32 who = 0;  // flow or node
    u32 port = 0, priority = 0, quanta = 0;
  };
  static bool comes_before(const Told& a, const Told& b) {
    if (a.at != b.at) return a.at < b.at;
    return a.kind != b.kind ? a.kind < b.kind : a.who < b.who;
  }
  std::vector<Told> told_;
};

}  // namespace verbena::fabric
