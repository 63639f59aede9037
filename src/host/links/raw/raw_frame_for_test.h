// Frames for the tests of raw links: a SEND of `payload` bytes between two addresses.
#pragma once

#include <numeric>
#include <vector>

#include "host/links/frame_codec.h"
#include "host/links/raw/frame_writer.h"
#include "wire/ib/bth.h"

namespace verbena::test {

inline constexpr MAC kMACOfA{{2, 0, 0, 0, 0, 0xa}}, kMACOfB{{2, 0, 0, 0, 0, 0xb}};
inline const GID kIPv4OfA = GID::from_ipv4(0x0a4d0001), kIPv4OfB = GID::from_ipv4(0x0a4d0002);

// RawFrame: a frame together with the data that it refers to.
struct RawFrame {
  RawFrame(GIDType type, const GID& from, const GID& to, QPN dest_qp, std::size_t payload_size)
      : payload(payload_size) {
    std::iota(payload.begin(), payload.end(), u8{1});
    frame.type = type;
    frame.source = from;
    frame.destination = to;
    frame.udp_source_port = 0xc123;
    frame.traffic_class = 0x6a;
    frame.hop_limit = 63;
    BTH bth{.opcode = {Service::kRC, Op::kSendOnly}, .dest_qp = dest_qp, .psn = PSN{7}};
    bth.pad_count = static_cast<u8>(-payload_size & 3);
    bth.encode(std::span(frame.headers).first<BTH::kSize>());
    frame.headers_size = BTH::kSize;
    frame.pad_count = bth.pad_count;
    frame.payload.add(payload);
  }
  // As it is on the wire.
  [[nodiscard]] std::vector<u8> bytes() const { return bytes({}); }
  [[nodiscard]] std::vector<u8> bytes(const host::RawSeal& seal) const {
    EnvelopeCRC flow;
    std::vector<u8> out(host::kMaxEnvelopeSize +
                        host::encoded_room(frame.transport_size(), seal.sealer));
    out.resize(
        host::write_frame({.source = kMACOfA, .destination = kMACOfB}, frame, seal, flow, out));
    return out;
  }

  EgressFrame frame;
  std::vector<u8> payload;
};

}  // namespace verbena::test
