// Frames between a device and its driver: one RoCE transport packet with its addressing.
// GIDs are the IP addresses (IPv4-mapped or IPv6); the link adds and removes IP and UDP, or the GRH
// of RoCEv1, and the ICRC.
#pragma once

#include <array>
#include <optional>
#include <span>

#include "base/bytes.h"
#include "congestion/signals.h"
#include "memory/payload.h"
#include "transport/acknowledgement.h"
#include "transport/train.h"
#include "transport/urgency.h"
#include "wire/ib/gid.h"
#include "wire/ib/packet.h"
#include "wire/roce/gid_type.h"

namespace verbena {

// Or a train of frames (transport/train.h), which follow each other.
struct EgressFrame {
  GID source, destination;
  GIDType type = GIDType::kRoCEv2;
  u16 udp_source_port = 0;  // 49152..65535, from the QP, so that ECMP spreads QPs
  u8 traffic_class = 0;     // DSCP and ECN
  u8 hop_limit = 64;
  QPN source_qp{};      // for observers; only UD packets carry it
  u8 headers_size = 0;  // bytes used of `headers`
  u8 pad_count = 0;     // zero bytes that follow the payload
  u32 packets = 1;      // of a train: how many
  u32 icrc_flip = 0;    // bits of the ICRC to send wrong: 0 but for injected faults
  // If false, other agents may write the payload's memory while it is sent (READ responses), so a
  // link must copy the payload before it computes the ICRC.
  bool payload_is_stable = true;
  Urgency urgency = Urgency::kNow;
  std::array<u8, kMaxHeadersSize> headers;  // of a train: the first's
  PayloadList payload;  // good until the next call into the device. Of a train: one piece

  EgressFrame() {}  // leaves `headers` uninitialized on purpose
  // Bytes of one packet from BTH to the end of pad, without the ICRC.
  [[nodiscard]] std::size_t transport_size() const {
    return headers_size + payload_bytes() + pad_count;
  }
  // Returns the payload size of one packet.
  [[nodiscard]] u32 payload_bytes() const {
    return packets == 1 ? payload.size_bytes : payload.size_bytes / packets;
  }
  // The payload of a packet of a train, which counts from 0.
  [[nodiscard]] Bytes payload_of(u32 packet) const {
    return payload.parts[0].subspan(std::size_t{packet} * payload_bytes(), payload_bytes());
  }
  // Calls use(part) with each piece of a packet's payload, in order.
  template <typename Use>
  void for_each_part(u32 packet, const Use& use) const {
    if (packets != 1) return use(payload_of(packet));
    for (const Bytes part : payload.list()) use(part);
  }
  // Its headers, in place of the first's.
  static void make_headers_of(u32 packet, u8* headers) {
    u8* const at = headers + BTH::kPSNAt;
    store_be24(at, (load_be24(at) + packet) & kMask24);
  }
  // It alone.
  [[nodiscard]] EgressFrame frame_of(u32 packet) const {
    EgressFrame one = *this;
    if (packets == 1) return one;
    one.packets = 1;
    one.payload.clear();
    one.payload.add(payload_of(packet));
    make_headers_of(packet, one.headers.data());
    return one;
  }
};

struct IngressFrame {
  GID source, destination;
  GIDType type = GIDType::kRoCEv2;
  u16 udp_source_port = 0;
  u8 traffic_class = 0;
  u8 hop_limit = 0;
  u16 dlid = 0;  // kInfiniBand
  // The IPv4 Identification where it is known (raw links, captures). Where not (UDP sockets), how
  // many packets came before in the same datagram, as theirs count up.
  bool identification_known = false;
  u16 identification = 0;
  // Where it is known: the other one that it may be, as the kernel does not say whether the packets
  // that it has joined counted theirs up or all had the same.
  std::optional<u16> other_identification{};
  std::span<const u8> transport;  // BTH .. ICRC, both included. Of a train: as large as one packet
  u32 packets = 1;  // of a train (transport/train.h), which only on_packet() accepts: how many
  // The link has decrypted and authenticated it: its ICRC tells nothing more.
  bool authenticated = false;
  // For an acknowledgement: the telemetry (INT) of the path of the packet that it acknowledges,
  // where a simulated network collects it. nullptr if there is none.
  const PathTelemetry* path = nullptr;
  // The acknowledgement that the QP's peer has sent with it; nullptr if there is none.
  const Acknowledgement* acknowledgement = nullptr;
};

}  // namespace verbena
