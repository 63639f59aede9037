#include "fabric/results/alone_time.h"

namespace verbena::fabric {
namespace {

constexpr unsigned __int128 kBitPicoseconds = 8'000'000'000'000;

Duration time_of(u64 octets, Rate rate) {
  return ps(static_cast<i64>(octets * kBitPicoseconds / rate.bps()));
}

}  // namespace

Duration alone_time(const Flow& flow, const PacketSizes& sizes, const Network& network) {
  const u64 packets = std::max<u64>(1, (flow.octets + sizes.payload - 1) / sizes.payload);
  const u64 all = flow.octets + sizes.first_header + (packets - 1) * sizes.header;
  const u64 one =
      packets == 1 ? all : sizes.payload + (packets == 2 ? sizes.first_header : sizes.header);
  Duration time{};
  Rate slowest = Rate::unlimited();
  for (NodeIndex node = flow.source; node != flow.destination;) {
    const Port& port = network.port(node, network.routes().ports(node, flow.destination)[0]);
    time =
        time + port.delay * 2 + time_of(one, port.rate) + time_of(sizes.acknowledgement, port.rate);
    slowest = std::min(slowest, port.rate);
    node = network.node_of(port.peer);
  }
  return time + time_of(all, slowest) - time_of(one, slowest);
}

}  // namespace verbena::fabric
