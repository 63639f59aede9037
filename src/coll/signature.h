// Signature: the parameters of a call that must be the same on all ranks, in 64 bits and a count.
// Every message carries that of its sender.
#pragma once

#include <string>

#include "coll/plan.h"

namespace verbena::coll {

struct Signature {
  u64 words = 0, count = 0;
  friend bool operator==(const Signature&, const Signature&) = default;
};
// `algorithm`: the number of an Algorithm, which must be the same on all ranks, too.
[[nodiscard]] Signature signature_of(const Call& call, u32 algorithm);
// Returns "AllReduce of 1024 float (sum) by ring". Takes any words: they may be a peer's.
[[nodiscard]] std::string text_of(const Signature& signature);

}  // namespace verbena::coll
