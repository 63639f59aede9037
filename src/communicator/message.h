// Messages between ranks on queue pairs: a header, and the bytes of short messages behind it. The
// bytes of long messages stay at the sender, and the receiver reads them (RDMA READ). All ranks of
// a job have the same byte order.
#pragma once

#include <array>
#include <span>
#include <type_traits>

#include "base/types.h"
#include "coll/call.h"
#include "communicator/verbs/rail.h"

namespace verbena::coll {

struct Header {
  enum class Kind : u8 {
    kEager,     // of a collective; the bytes follow
    kOffer,     // of a collective; the bytes are at `address`
    kTagEager,  // of a Send
    kTagOffer,
    kTaken,    // the offer `token` has been read, or is not wanted
    kCredit,   // nothing but credits
    kRefused,  // the sender does not take part in that operation: text follows
    kFailed,   // the communicator failed: text follows; `count` is the status, `lane` the culprit
    kShrink,   // the sender's set of lost ranks: a bit for each rank of the communicator follows
    kLeaves,   // the last message of a rank that ends in order
  };
  Kind kind = Kind::kCredit;
  u8 reserved = 0;
  u16 lane = 0;
  u32 comm = 0;
  u32 credits = 0;  // messages that the sender has taken since it last said so
  u32 token = 0;
  u64 operation = 0;         // its number in the communicator; of a Send: the tag
  u64 words = 0, count = 0;  // the Signature
  u64 length = 0;            // bytes of the message
};
// Offer: the place of a message in the sender's memory. It stands behind the header of a message
// of kind Offer.
struct Offer {
  u64 address = 0;
  std::array<u32, kMaxRails> rkeys{};
};
static_assert(sizeof(Header) == 48 && sizeof(Offer) == 24);
template <typename T>
[[nodiscard]] std::span<const u8> bytes_of(const T& value) {
  return {reinterpret_cast<const u8*>(&value), sizeof value};
}
static_assert(std::is_trivially_copyable_v<Header> && std::is_trivially_copyable_v<Offer>);

inline constexpr u32 kSlotSize = 8192;
// The longest message that the sender stages, and that the receiver reads through a buffer. The
// receiver reads a longer one from the sender's memory, and to its destination if it is not reduced.
inline constexpr u64 kBufferedBytes = 256u << 10;
static_assert(kEagerBytes == kSlotSize - sizeof(Header));

}  // namespace verbena::coll
