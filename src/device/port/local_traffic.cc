#include "device/port/local_traffic.h"

#include "wire/ib/aeth.h"
#include "wire/ib/bth.h"
#include "wire/ib/reth.h"
#include "wire/roce/icrc.h"

namespace verbena {
namespace {

constexpr u64 kPacketBytes = BTH::kSize + kICRCSize;
constexpr u64 kAnswerBytes = kPacketBytes + AETH::kSize;
constexpr u64 kReadRequestBytes = kPacketBytes + RETH::kSize;

u64 written_bytes(const LocalWork& work) {
  return work.write_bytes + work.write_packets * kPacketBytes + work.writes * RETH::kSize;
}
u64 read_bytes(const LocalWork& work) {
  return work.read_bytes + work.read_packets * kPacketBytes + work.reads * AETH::kSize;
}

}  // namespace

LocalWork done_without_packets(const EngineCounters& requester) {
  return {.writes = requester.local_write_requests,
          .write_packets = requester.local_write_packets,
          .write_bytes = requester.local_write_bytes,
          .reads = requester.local_read_requests,
          .read_packets = requester.local_read_packets,
          .read_bytes = requester.local_read_bytes};
}

QPTraffic as_packets(const LocalWork& done, const LocalWork& by_peer) {
  return {
      .sent_packets = done.write_packets + done.reads + by_peer.writes + by_peer.read_packets,
      .sent_bytes = written_bytes(done) + done.reads * kReadRequestBytes +
                    by_peer.writes * kAnswerBytes + read_bytes(by_peer),
      .received_packets = done.writes + done.read_packets + by_peer.write_packets + by_peer.reads,
      .received_bytes = done.writes * kAnswerBytes + read_bytes(done) + written_bytes(by_peer) +
                        by_peer.reads * kReadRequestBytes};
}

QPTraffic as_packets(u64 acknowledgements) {
  return {.sent_packets = acknowledgements, .sent_bytes = acknowledgements * kAnswerBytes};
}

void add(Counters& port, const QPTraffic& more) {
  port.port_xmit_packets += more.sent_packets;
  port.port_xmit_bytes += more.sent_bytes;
  port.port_rcv_packets += more.received_packets;
  port.port_rcv_bytes += more.received_bytes;
}

}  // namespace verbena
