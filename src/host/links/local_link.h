// LocalLink: a Link whose frames to a process of this host go through memory that both share
// (local/outgoing_rings.h, which the device uses without us, too), all others through the link
// below. A packet that comes through memory has no ICRC, and its source is the one that the memory
// names. It may have been no frame at all: then there is a packet (decoded()), and bytes that mean
// nothing. All else is as on the wire.
// A process that sleeps is woken through its ProcessChannel, which the link below receives from.
// While the program polls, the link looks directly at the ring that frames came through last, so
// that its writer need not ring the doorbell.
#pragma once

#include <array>
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
  [[nodiscard]] Trains takes() const override { return below_->takes(); }
  void flush() override;
  // A request costs no call here, so it waits for none; a reply may bring an acknowledgement.
  [[nodiscard]] bool may_wait() const override {
    return !path_.outgoing().is_urgent() && below_->may_wait();
  }
  [[nodiscard]] bool receive(Look look) override;
  [[nodiscard]] bool poll_frame(IngressFrame& out, Time now) override;
  [[nodiscard]] const PacketView* decoded() const override { return decoded_; }
  [[nodiscard]] QPN upcoming(u32 frames) const override {
    return decoded_ == nullptr ? below_->upcoming(frames) : QPN{};
  }
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

  struct Incoming {
    u32 number = 0;
    Mapping memory;
    std::optional<FrameRingReader> ring;
  };

  // The ring that is looked at without a bell.
  struct Watch {
    u32 slot = 0;                     // 0: none
    bool has_more = false;            // when last looked at
    bool found_last = false;          // by the last look,
    bool streams = false;             // and the one before: more may come than the record knows of
    u32 candidate = 0, in_a_row = 0;  // batches that came from one slot
  };
  static constexpr u32 kWatched = 16;  // batches in a row, and then its ring is watched

  [[nodiscard]] bool takes_all(const EgressFrame& frame);
  [[nodiscard]] FrameRingReader* ring_from(u32 slot);
  void on_ring_empty(u32 slot);
  [[nodiscard]] bool take_record(FrameRingReader& ring, IngressFrame& out);
  [[nodiscard]] const PacketView* decode(const FrameRingReader::Record& record, IngressFrame& out);
  [[nodiscard]] bool poll_watched(IngressFrame& out);
  [[nodiscard]] bool poll_rung(IngressFrame& out);
  [[nodiscard]] bool look_at_rings();
  void note_served(u32 slot);
  void watch(u32 slot);
  void unwatch();
  void on_found(u32 slot);
  void note_rung(u32 slot);
  [[nodiscard]] bool looks_below(Look look, bool found);

  std::unique_ptr<Link> below_;
  LocalPath& path_;
  std::array<Incoming, kLastSlot + 1> from_;  // by slot
  Doorbells::Rung rung_{};
  bool any_rung_ = false;  // unless `rung_` is all zeros
  u32 word_ = 0;           // of `rung_`, that receive()'s frames have come to
  Watch watch_;
  bool asks_below_ = true;           // for a frame; not in a batch for which it was left alone
  u32 batch_left_ = 0, served_ = 0;  // packets of a receive(); the slot of the last one
  u32 quiet_looks_ = kQuiet, looks_since_below_ = 0, looks_without_below_ = 1;
  u64 received_ = 0;
  FrameRingReader::Record record_;              // of the frame polled last,
  PacketView packet_;                           // and its packet
  const PacketView* decoded_ = nullptr;         // if it came through memory
  Acknowledgement brought_{};                   // by it
  std::array<u8, FrameRing::kMaxBody> copy_{};  // of its bytes
  bool has_left_ = false;
  bool has_appended_below_ = false, called_ = false;
  mutable LinkCounters counters_;
};

}  // namespace verbena::host
