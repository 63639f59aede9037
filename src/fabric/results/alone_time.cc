#include "fabric/results/alone_time.h"

#include <vector>

#include "wire/iwarp/framing.h"

namespace verbena::fabric {
namespace {

constexpr unsigned __int128 kBitPicoseconds = 8'000'000'000'000;

Duration time_of(u64 bytes, Rate rate) {
  return ps(static_cast<i64>(bytes * kBitPicoseconds / rate.bps()));
}

// Returns the bytes that must arrive over `link` before the switch at its end sends over `next`.
u64 awaited(u64 frame, const Port& link, const Port& next, u32 head_bytes) {
  const bool cuts_through = head_bytes != 0 && next.rate <= link.rate;
  return cuts_through ? std::min<u64>(frame, head_bytes) : frame;
}

std::vector<const Port*> way_of(const Flow& flow, const Network& network) {
  std::vector<const Port*> way;
  for (NodeIndex node = flow.source; node != flow.destination;) {
    way.push_back(&network.port(node, network.ways(node, flow.destination)[0]));
    node = network.node_of(way.back()->peer);
  }
  return way;
}

}  // namespace

PacketSizes sizes_for(Technology technology, u32 payload) {
  PacketSizes sizes{.payload = payload};
  if (technology != Technology::kInfiniBand) return sizes;
  constexpr u32 kLess = 50 - kLocalOverheadBytes;
  for (u32* const size : {&sizes.header, &sizes.first_header, &sizes.acknowledgement})
    *size -= kLess;
  return sizes;
}

namespace {

PacketSizes sizes_of_device(const NetworkConfig& network, const HostConfig& host) {
  const FrameSizes& frames = host.sizes;
  const u32 own = host.device.packet_bytes;
  PacketSizes sizes = sizes_for(network.technology, own != 0 ? own : bytes(host.device.active_mtu));
  if (!frames.counts_headers) sizes.header = sizes.first_header = frames.overhead;
  if (frames.acknowledgement != 0) sizes.acknowledgement = frames.acknowledgement;
  return sizes;
}

PacketSizes sizes_of_frames(const NetworkConfig& network, const HostConfig& host) {
  if (!speaks_tcp(network.technology)) return sizes_of_device(network, host);
  const u32 bare = network.tcp.longest_frame() - network.tcp.tcp.mss;
  if (network.technology == Technology::kTCP)
    return {.payload = network.tcp.tcp.mss,
            .header = bare,
            .first_header = bare,
            .acknowledgement = bare};
  const u32 payload = iwarp::longest_ulpdu(network.tcp.tcp.mss) - iwarp::kTaggedHeader;
  const u32 header = bare + iwarp::kMPAOverhead + iwarp::kTaggedHeader;
  return {.payload = payload, .header = header, .first_header = header, .acknowledgement = bare};
}

}  // namespace

PacketSizes packet_sizes(const NetworkConfig& network, const HostConfig& host) {
  PacketSizes sizes = sizes_of_frames(network, host);
  sizes.gap = network.gap_bytes;
  for (u32* const size : {&sizes.header, &sizes.first_header, &sizes.acknowledgement})
    *size += sizes.gap;
  return sizes;
}

Duration alone_time(const Flow& flow, const PacketSizes& sizes, const Network& network) {
  const u64 packets = std::max<u64>(1, (flow.bytes + sizes.payload - 1) / sizes.payload);
  const u64 all = flow.bytes + sizes.first_header + (packets - 1) * sizes.header;
  const u64 one =
      packets == 1 ? all : sizes.payload + (packets == 2 ? sizes.first_header : sizes.header);
  const std::vector<const Port*> way = way_of(flow, network);
  const Port& last = *way.back();
  Duration time =
      last.delay * 2 + time_of(one, last.rate) + time_of(sizes.acknowledgement, way.front()->rate);
  Rate slowest = last.rate;
  for (std::size_t i = 0; i + 1 < way.size(); ++i) {
    const Port& link = *way[i];
    const Port& next = *way[i + 1];
    const u32 head = link.head_bytes == 0 ? 0 : link.head_bytes + sizes.gap;
    time = time + (link.delay + ps(i64{link.latency_ps})) * 2 +
           time_of(awaited(one, link, next, head), link.rate) +
           time_of(awaited(sizes.acknowledgement, next, link, head), next.rate);
    slowest = std::min(slowest, link.rate);
  }
  return time + time_of(all, slowest) - time_of(one, slowest);
}

}  // namespace verbena::fabric
