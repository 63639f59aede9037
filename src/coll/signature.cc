#include "coll/signature.h"

namespace verbena::coll {
namespace {

// Bits of Signature::words.
constexpr u32 kTypeShift = 8, kOpShift = 16, kAlgorithmShift = 24, kRootShift = 32;

}  // namespace

// Counts of an AllToAllV differ by rank; its messages' lengths are compared instead.
Signature signature_of(const Call& call, u32 algorithm) {
  const u64 op = reduces(call.kind) ? static_cast<u64>(call.op) : 0;
  return {static_cast<u64>(call.kind) | static_cast<u64>(call.type) << kTypeShift | op << kOpShift |
              u64{algorithm} << kAlgorithmShift | u64{call.root} << kRootShift,
          call.kind == Kind::kAllToAllV ? 0 : call.count};
}

std::string text_of(const Signature& signature) {
  const u64 words = signature.words;
  const u64 number = words & 0xff, type = words >> kTypeShift & 0xff, op = words >> kOpShift & 0xff;
  if (number > static_cast<u64>(Kind::kShareIds) || type >= kDataTypes || op >= kReduceOps)
    return "an unknown operation";
  const Kind kind = static_cast<Kind>(number);
  std::string text(name_of(kind));
  if (kind == Kind::kBarrier || kind == Kind::kShareIds) return text;
  if (kind != Kind::kAllToAllV) text += " of " + std::to_string(signature.count);
  text += " " + std::string(name_of(static_cast<DataType>(type)));
  if (reduces(kind)) text += " (" + std::string(name_of(static_cast<ReduceOp>(op))) + ")";
  if (has_root(kind)) text += " with root " + std::to_string(words >> kRootShift);
  return text + " by " + name_of(Algorithm{static_cast<u32>(words >> kAlgorithmShift & 0xff), 0});
}

}  // namespace verbena::coll
