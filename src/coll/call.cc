#include "coll/call.h"

#include "base/check.h"

namespace verbena::coll {
namespace {

// Bits of Signature::words.
constexpr u32 kTypeShift = 8, kOpShift = 16, kPlanShift = 24, kRootShift = 32;

}  // namespace

std::string_view name_of(Kind kind) {
  switch (kind) {
    case Kind::kAllReduce: return "AllReduce";
    case Kind::kReduceScatter: return "ReduceScatter";
    case Kind::kAllGather: return "AllGather";
    case Kind::kReduce: return "Reduce";
    case Kind::kBroadcast: return "Broadcast";
    case Kind::kGather: return "Gather";
    case Kind::kScatter: return "Scatter";
    case Kind::kAllToAll: return "AllToAll";
    case Kind::kAllToAllV: return "AllToAllv";
    case Kind::kBarrier: return "Barrier";
    case Kind::kShareIds: return "Split";
  }
  CHECK_UNREACHABLE();
}

// Counts of an AllToAllV differ by rank; its messages' lengths are compared instead.
Signature signature_of(const Call& call, u32 plan) {
  const u64 op = reduces(call.kind) ? static_cast<u64>(call.op) : 0;
  return {static_cast<u64>(call.kind) | static_cast<u64>(call.type) << kTypeShift | op << kOpShift |
              u64{plan} << kPlanShift | u64{call.root} << kRootShift,
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
  return text + ", plan " + std::to_string(words >> kPlanShift & 0xff);
}

}  // namespace verbena::coll
