#include "host/nic/class_rings.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace verbena::host {
namespace {

constexpr u32 kAllClasses = (1u << kTrafficClasses) - 1;

constexpr u32 bit_of(u32 traffic_class) { return 1u << traffic_class; }

}  // namespace

// --- ClassWriters

FrameRingWriter& ClassWriters::writer_of(u32 traffic_class) {
  std::optional<FrameRingWriter>& writer = writers_[traffic_class];
  if (!writer) {
    writer.emplace(rings_.to_nic[traffic_class]);
    rings_.used.fetch_or(bit_of(traffic_class), std::memory_order_relaxed);
  }
  return *writer;
}

u8* ClassWriters::add(u8 traffic_class, const FrameRing::Addresses& addresses, u32 body_bytes) {
  const u32 wanted = rings_.class_of_dscp[dscp_of(traffic_class)].load(std::memory_order_relaxed) %
                     kTrafficClasses;
  last_ = &writer_of(wanted);
  unpublished_ |= bit_of(wanted);
  return last_->add(addresses, body_bytes);
}

bool ClassWriters::publish() {
  bool must_ring = false;
  for (u32 left = std::exchange(unpublished_, 0); left != 0; left &= left - 1) {
    FrameRingWriter& writer = *writers_[static_cast<u32>(std::countr_zero(left))];
    must_ring = (writer.publish() && !writer.is_watched()) || must_ring;
  }
  return must_ring;
}

// --- ClassReaders

void ClassReaders::set_classes(const ClassOfDSCP& classes) {
  for (std::size_t dscp = 0; dscp < kDSCPs; ++dscp)
    rings_.class_of_dscp[dscp].store(classes[dscp], std::memory_order_relaxed);
}

// A reader that is opened while the NIC polls watches its ring from then on.
void ClassReaders::open_used() {
  const u32 used = rings_.used.load(std::memory_order_relaxed) & kAllClasses;
  for (u32 left = used & ~open_; left != 0; left &= left - 1) {
    const auto traffic_class = static_cast<u32>(std::countr_zero(left));
    readers_[traffic_class].emplace(rings_.to_nic[traffic_class]);
    if (watches_) readers_[traffic_class]->watch();
    open_ |= bit_of(traffic_class);
  }
}

u32 ClassReaders::pending() {
  open_used();
  u32 pending = 0;
  for (u32 left = open_; left != 0; left &= left - 1) {
    const auto traffic_class = static_cast<u32>(std::countr_zero(left));
    if (readers_[traffic_class]->has_more()) pending |= bit_of(traffic_class);
  }
  return pending;
}

bool ClassReaders::poll_and_keep(u32 traffic_class, FrameRingReader::Record& out) {
  std::optional<FrameRingReader>& reader = readers_[traffic_class];
  return reader && reader->poll_and_keep(out);
}

bool ClassReaders::is_broken() const {
  return std::ranges::any_of(readers_,
                             [](const auto& reader) { return reader && reader->is_broken(); });
}

void ClassReaders::watch() {
  watches_ = true;
  for (std::optional<FrameRingReader>& reader : readers_)
    if (reader) reader->watch();
}

void ClassReaders::unwatch() {
  watches_ = false;
  for (std::optional<FrameRingReader>& reader : readers_)
    if (reader) reader->unwatch();
}

}  // namespace verbena::host
