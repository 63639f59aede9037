#include "transport/rc/reorder_buffer.h"

#include <cstring>

#include "base/check.h"
#include "memory/far_memory.h"

namespace verbena {

ReorderBuffer::ReorderBuffer(u32 window, u32 packets, u32 packet_bytes)
    : window_(window), packets_(packets), packet_bytes_(packet_bytes), kept_(window) {}

void ReorderBuffer::make_room(bool has_bytes) {
  if (slots_ == nullptr) {
    slot_of_ = std::make_unique_for_overwrite<u32[]>(kept_.slots());
    slots_ = std::make_unique_for_overwrite<Slot[]>(packets_);
    free_ = std::make_unique_for_overwrite<u32[]>(packets_);
    for (u32 i = 0; i < packets_; ++i) free_[i] = packets_ - 1 - i;
  }
  if (has_bytes && payload_ == nullptr)
    payload_ = std::make_unique_for_overwrite<u8[]>(std::size_t{packets_} * packet_bytes_);
}

SackETH ReorderBuffer::around(PSN psn) const {
  return {.first = PSNSet::first_of_word(psn), .bits = kept_.word(psn)};
}

void ReorderBuffer::keep(const PacketView& packet) {
  const PSN psn = packet.headers.bth.psn;
  const Bytes payload = packet.payload;
  if (kept_.has(psn) || payload.size() > packet_bytes_ || kept_count_ == packets_) return;
  make_room(is_here(payload.data()));
  const u32 place = free_[packets_ - ++kept_count_];
  Slot& slot = slots_[place];
  slot.headers_bytes = static_cast<u32>(packet.headers.size());
  slot.payload_bytes = static_cast<u32>(payload.size());
  slot.has_bytes = is_here(payload.data());
  packet.headers.encode(slot.headers);
  if (slot.has_bytes) std::memcpy(payload_at(place), payload.data(), payload.size());
  slot_of_[kept_.slot(psn)] = place;
  kept_.add(psn);
}

std::optional<PacketView> ReorderBuffer::take(PSN psn) {
  if (!kept_.has(psn)) return std::nullopt;
  kept_.remove(psn);
  const u32 place = slot_of_[kept_.slot(psn)];
  free_[packets_ - kept_count_--] = place;
  const Slot& slot = slots_[place];
  const Bytes headers = Bytes(slot.headers).first(slot.headers_bytes);
  const u8* const data = slot.has_bytes ? payload_at(place) : nullptr;
  std::optional<PacketView> packet = PacketView::decode(headers, {data, slot.payload_bytes});
  CHECK(packet.has_value());  // it decoded before
  return packet;
}

}  // namespace verbena
