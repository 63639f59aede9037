// FaultyLink: a Link with faults in its way, in both directions. It stands between an adapter and
// its real link only where faults were asked for.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "faults/filter.h"
#include "faults/frame_queue.h"
#include "host/links/link.h"
#include "host/links/object_fault.h"

namespace verbena::host {

// DropListener: receives each frame that the link stopped. `cause` is the rule, as it was written.
using DropListener =
    std::function<void(faults::Direction, const faults::HeldFrame&, std::string_view cause)>;

class FaultyLink final : public Link {
 public:
  // Frames that would have to be held beyond kMaxHeld are lost.
  static constexpr std::size_t kMaxHeld = 65536;
  using PeerOf = std::function<std::optional<QPN>(QPN local)>;

  FaultyLink(std::unique_ptr<Link> below, faults::FaultFilter filter)
      : below_(std::move(below)), filter_(std::move(filter)) {}

  // How the QPN of a local QP's peer is found; without, requests that arrive are not answered by a
  // fault but lost.
  void set_peer_lookup(PeerOf peer_of) { peer_of_ = std::move(peer_of); }
  // The link below, for a life without faults; this one is of no more use.
  [[nodiscard]] std::unique_ptr<Link> release() { return std::move(below_); }
  void set_drop_listener(DropListener listener) { on_drop_ = std::move(listener); }
  // Returns each object fault that is due, once; nullopt if none is.
  [[nodiscard]] std::optional<ObjectFault> poll_object_fault();
  [[nodiscard]] faults::FaultFilter& filter() { return filter_; }

  void append(const EgressFrame& frame) override;
  void flush() override;
  [[nodiscard]] bool receive(Look look) override;
  [[nodiscard]] bool poll_frame(IngressFrame& out, Time now) override;
  [[nodiscard]] Time next_timer() const override;
  [[nodiscard]] std::span<const int> descriptors() const override { return below_->descriptors(); }
  [[nodiscard]] bool on_listening(Listening listening) override {
    return below_->on_listening(listening);
  }
  [[nodiscard]] Expected<void> join_multicast(const GID& group) override {
    return below_->join_multicast(group);
  }
  void leave_multicast(const GID& group) override { below_->leave_multicast(group); }
  void leave() override;  // what still waits to be sent goes out before
  void abandon() override { below_->abandon(); }
  [[nodiscard]] const LinkCounters& counters() const override { return below_->counters(); }

 private:
  void send_until(Time due);
  void note_objects(const faults::Verdict& verdict, QPN qp);
  void drop(const faults::Verdict& verdict, const EgressFrame& frame, Time now);
  void drop(const faults::Verdict& verdict, const IngressFrame& frame, Time now);
  void change(const faults::Verdict& verdict, faults::HeldFrame frame, faults::FrameQueue& queue,
              Time now);
  // Returns true if `frame` goes on unchanged.
  bool admit(const IngressFrame& frame, Time now);

  std::unique_ptr<Link> below_;
  faults::FaultFilter filter_;
  PeerOf peer_of_;
  DropListener on_drop_;
  faults::FrameQueue sending_, arriving_;
  std::deque<faults::HeldFrame> sent_;  // since the last flush: their bytes are still read
  std::optional<faults::HeldFrame> arrived_;
  std::vector<ObjectFault> object_faults_;
};

}  // namespace verbena::host
