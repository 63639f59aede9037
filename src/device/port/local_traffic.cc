#include "device/port/local_traffic.h"

#include "wire/ib/aeth.h"
#include "wire/ib/bth.h"
#include "wire/ib/reth.h"
#include "wire/roce/icrc.h"

namespace verbena {
namespace {

constexpr u64 kPacketOctets = BTH::kSize + kICRCSize;
constexpr u64 kAnswerOctets = kPacketOctets + AETH::kSize;
constexpr u64 kReadRequestOctets = kPacketOctets + RETH::kSize;

u64 written_octets(const LocalWork& work) {
  return work.write_octets + work.write_packets * kPacketOctets + work.writes * RETH::kSize;
}
u64 read_octets(const LocalWork& work) {
  return work.read_octets + work.read_packets * kPacketOctets + work.reads * AETH::kSize;
}

}  // namespace

LocalWork done_without_packets(const EngineCounters& requester) {
  return {.writes = requester.local_write_requests,
          .write_packets = requester.local_write_packets,
          .write_octets = requester.local_write_octets,
          .reads = requester.local_read_requests,
          .read_packets = requester.local_read_packets,
          .read_octets = requester.local_read_octets};
}

QPTraffic as_packets(const LocalWork& done, const LocalWork& by_peer) {
  return {
      .sent_packets = done.write_packets + done.reads + by_peer.writes + by_peer.read_packets,
      .sent_octets = written_octets(done) + done.reads * kReadRequestOctets +
                     by_peer.writes * kAnswerOctets + read_octets(by_peer),
      .received_packets = done.writes + done.read_packets + by_peer.write_packets + by_peer.reads,
      .received_octets = done.writes * kAnswerOctets + read_octets(done) + written_octets(by_peer) +
                         by_peer.reads * kReadRequestOctets};
}

QPTraffic as_packets(u64 acknowledgements) {
  return {.sent_packets = acknowledgements, .sent_octets = acknowledgements * kAnswerOctets};
}

void add(Counters& port, const QPTraffic& more) {
  port.port_xmit_packets += more.sent_packets;
  port.port_xmit_octets += more.sent_octets;
  port.port_rcv_packets += more.received_packets;
  port.port_rcv_octets += more.received_octets;
}

}  // namespace verbena
