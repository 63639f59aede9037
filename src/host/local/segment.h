// Segment: the memory that an adapter shares with other processes of its user on this host: what
// its device publishes (transport/local/published_device.h), and what tells them that it lives. A
// memfd that cannot shrink, so that no process can make another fault. Peers map it for reading,
// but for what they write.
#pragma once

#include "device/device_config.h"
#include "host/local/doorbells.h"
#include "host/local/frame_ring.h"
#include "host/local/life_sign.h"
#include "host/local/ring_claims.h"
#include "host/local/slot_set.h"
#include "host/os/mapping.h"
#include "transport/local/access_gates.h"
#include "transport/local/published_device.h"

namespace verbena::host {

inline constexpr std::size_t kSegmentAlignment = 4096;

// Zeroed memory, but for what the owner writes. A change of layout is a change of kMagic.
struct alignas(kSegmentAlignment) SegmentHeader {
  static constexpr u64 kMagic = 0x44434f4c42525656;
  static constexpr u32 kMaxGIDs = 64;
  u64 magic;
  u64 nonce;
  u32 slot, gid_count;
  std::atomic<u32> open;  // 1: peers may use what is published
  LifeSign life;
  std::array<GID, kMaxGIDs> gids;  // of the device
};

struct SegmentLayout {
  SegmentHeader header;
  PublishedDevice device;
  struct Shared {  // what peers write
    AccessGates gates;
    AccessGates late_gates;  // for copies that end late
    LocalCounts counts;
    Doorbells doorbells;
    RingClaims rings;
    SlotSet mappers;  // who may have mapped memory of the owner
  };
  alignas(kSegmentAlignment) Shared shared;
};

// Behind the layout, rings of frames for the owner, from one peer each. Mapped when they are used.
struct alignas(kSegmentAlignment) SegmentRing {
  FrameRing frames;
};
inline constexpr u64 kSegmentBytes =
    sizeof(SegmentLayout) + RingClaims::kRings * sizeof(SegmentRing);
[[nodiscard]] Expected<Mapping> map_ring(int segment, u32 ring);

class OwnSegment {
 public:
  // Not open yet. GIDs that find no place have no peers on this host.
  [[nodiscard]] static Expected<OwnSegment> create(u32 slot, std::span<const GIDEntry> gids);

  [[nodiscard]] SegmentLayout& layout() const {
    return *reinterpret_cast<SegmentLayout*>(mapping_.data());
  }
  [[nodiscard]] int fd() const { return file_.get(); }
  // Makes the segment a private copy, which others no longer map. In a child of fork().
  void keep_copy();

 private:
  Descriptor file_;
  Mapping mapping_;
};

// SegmentPlace: the place of a segment: a descriptor of a process. Untrusted: its sender may lie.
struct SegmentPlace {
  u32 pid = 0;
  u32 fd = 0;
  u64 nonce = 0;
};

// ExportPlace: the same, for a process that gets it by other means and may be anywhere.
struct ExportPlace {
  SegmentPlace segment;
  u32 slot = 0;
  u64 network = 0;  // the namespace that slots are of
};

class PeerSegment {
 public:
  // ESTALE: that is not the segment of `slot`.
  [[nodiscard]] static Expected<PeerSegment> open(const SegmentPlace& place, u32 slot);

  [[nodiscard]] const SegmentHeader& header() const { return layout().header; }
  [[nodiscard]] const PublishedDevice& device() const { return layout().device; }
  [[nodiscard]] SegmentLayout::Shared& shared() const {
    return *reinterpret_cast<SegmentLayout::Shared*>(shared_.data());
  }
  [[nodiscard]] int fd() const { return file_.get(); }

 private:
  [[nodiscard]] const SegmentLayout& layout() const {
    return *reinterpret_cast<const SegmentLayout*>(mapping_.data());
  }
  Descriptor file_;
  Mapping mapping_, shared_;
};

}  // namespace verbena::host
