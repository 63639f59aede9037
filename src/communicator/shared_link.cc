#include "communicator/shared_link.h"

#include <cstring>

#include "base/check.h"

namespace verbena::coll {

bool SharedLink::send(const Header& header, std::span<const u8> more, std::span<const u8> payload) {
  Slot& slot = at(own_, sent_);
  u8* to = reinterpret_cast<u8*>(&slot) + kBodyOffset;
  slot.bytes = static_cast<u32>(sizeof header + more.size() + payload.size());
  CHECK(slot.bytes <= kSlotSize);
  std::memcpy(to, &header, sizeof header);
  to += sizeof header;
  if (!more.empty()) std::memcpy(to, more.data(), more.size());
  if (!payload.empty()) std::memcpy(to + more.size(), payload.data(), payload.size());
  slot.number.store(++sent_, std::memory_order_seq_cst);
  const u32 sleeps = sleep_->count.load(std::memory_order_seq_cst);
  if (sleeps % 2 == 0 || sleeps == woken_) return false;
  woken_ = sleeps;
  return true;
}

const Header& SharedLink::header() const { return *reinterpret_cast<const Header*>(body()); }

std::span<const u8> SharedLink::payload() const {
  const u32 bytes = at(peer_, received_).bytes;
  if (bytes < sizeof(Header) || bytes > kSlotSize) return {};
  return {body() + sizeof(Header), bytes - sizeof(Header)};
}

}  // namespace verbena::coll
