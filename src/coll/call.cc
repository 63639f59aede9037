#include "coll/call.h"

#include "base/check.h"

namespace verbena::coll {

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

}  // namespace verbena::coll
