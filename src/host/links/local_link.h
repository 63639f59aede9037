// LocalLink: a Link whose frames to a process of this host go through memory that both share
// (local/frame_ring.h), all others through the link below. Frames of RC only: of a connection both
// ends know each other's process before the first frame. They have no ICRC, and who sends them is
// what the memory says; all else is as on the wire, and what finds no room is lost.
// A process that sleeps is woken through its ProcessChannel, which the link below receives from.
// The ring that frames came through last is looked at directly while the program polls, so that its
// writer rings no bell.
#pragma once

#include <memory>
#include <utility>

#include "host/links/link.h"
#include "host/local/doorbells.h"
#include "host/local/frame_ring.h"
#include "host/local/local_path.h"

namespace verbena::host {

class LocalLink final : public Link {
 public:
  // The path outlives it.
  LocalLink(std::unique_ptr<Link> below, LocalPath& path) : below_(std::move(below)), path_(path) {}

  void append(const EgressFrame& frame) override;
  void flush() override;
  // A request costs no call here, so it waits for none; a reply may bring an acknowledgement.
  [[nodiscard]] bool may_wait() const override { return !is_urgent_ && below_->may_wait(); }
  [[nodiscard]] bool receive(Look look) override;
  [[nodiscard]] bool poll_frame(IngressFrame& out, Time now) override;
  [[nodiscard]] bool vouches() const override { return came_through_memory_; }
  [[nodiscard]] bool on_listening(Listening listening) override;
  [[nodiscard]] bool take_called() override { return std::exchange(called_, false); }
  [[nodiscard]] Time next_timer() const override { return below_->next_timer(); }
  [[nodiscard]] std::span<const int> descriptors() const override { return below_->descriptors(); }
  [[nodiscard]] Expected<void> join_multicast(const GID& group) override {
    return below_->join_multicast(group);
  }
  void leave_multicast(const GID& group) override { below_->leave_multicast(group); }
  void leave() override;
  void abandon() override;
  [[nodiscard]] const LinkCounters& counters() const override;

 private:
  static constexpr u32 kQuiet = 4096;  // looks that found nothing: then peers here are not expected

  struct Outgoing {
    std::shared_ptr<ProcessMemory> peer;  // nullptr: none on this host
    Mapping memory;
    std::optional<FrameRingWriter> ring;
    GID known{};                // one that the peer has
    u32 frames_until_look = 0;  // for a peer, or for a ring
  };
  struct Incoming {
    u32 number = 0;
    Mapping memory;
    std::optional<FrameRingReader> ring;
  };

  // The ring that is looked at without a bell.
  struct Watch {
    u32 slot = 0;                     // 0: none
    u32 candidate = 0, in_a_row = 0;  // batches that came from one slot
  };
  static constexpr u32 kWatched = 16;  // batches in a row, and then its ring is watched

  [[nodiscard]] Outgoing* route_of(const EgressFrame& frame);
  [[nodiscard]] bool has_peer(u32 slot, Outgoing& to);
  [[nodiscard]] static bool is_at(const GID& gid, Outgoing& to);
  [[nodiscard]] bool has_ring(Outgoing& to);
  [[nodiscard]] FrameRingReader* ring_from(u32 slot);
  void on_ring_empty(u32 slot);
  [[nodiscard]] bool look_at_rings();
  void note_served(u32 slot);
  void watch(u32 slot);
  void unwatch();
  void on_found(u32 slot);
  [[nodiscard]] bool looks_below(Look look, bool found);

  std::unique_ptr<Link> below_;
  LocalPath& path_;
  std::array<Outgoing, kLastSlot + 1> to_;    // by slot
  std::array<Incoming, kLastSlot + 1> from_;  // by slot
  std::vector<u32> unflushed_;                // slots
  Doorbells::Rung rung_{};
  bool any_rung_ = false;  // unless `rung_` is all zeros
  u32 word_ = 0;           // of `rung_`, that receive()'s frames have come to
  Watch watch_;
  u32 batch_left_ = 0, served_ = 0;  // frames of a receive(); the slot of the last one
  u32 quiet_looks_ = kQuiet, looks_since_below_ = 0;
  u64 sent_ = 0, send_dropped_ = 0, received_ = 0;
  bool is_urgent_ = false;  // what is not flushed yet
  bool has_left_ = false, came_through_memory_ = false;
  bool has_appended_below_ = false, called_ = false;
  mutable LinkCounters counters_;
};

}  // namespace verbena::host
