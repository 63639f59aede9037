#include "fabric/results/frame_capture.h"

#include <algorithm>
#include <array>

#include "base/bytes.h"
#include "fabric/tcp/segment_codec.h"
#include "wire/capture/pcapng.h"
#include "wire/eth/ethernet.h"
#include "wire/eth/ipv4.h"
#include "wire/eth/tcp.h"
#include "wire/ib/lrh.h"
#include "wire/roce/v2_packet.h"

namespace verbena::fabric {
namespace {

constexpr u32 kNotCaptured = ~u32{0};
constexpr std::size_t kFCSSize = 4, kPFCBytes = 18;  // opcode, vector, eight times
constexpr u16 kPFCOpcode = 0x0101;

// The record header of Endace's Extensible Record Format: a time of 32.32 bits, little-endian,
// then, in network order, type, flags, length of the record, losses, and length on the wire.
// Wireshark knows InfiniBand in no other way.
constexpr std::size_t kERFSize = 16;
constexpr u8 kERFInfiniBand = 21, kERFVaryingLength = 0x04;

MAC mac_of(NodeIndex node) {  // locally administered
  return {{0x02, 0, static_cast<u8>(node >> 24), static_cast<u8>(node >> 16),
           static_cast<u8>(node >> 8), static_cast<u8>(node)}};
}

void put16(std::vector<u8>& out, std::size_t at, u16 value) {
  out[at] = static_cast<u8>(value >> 8);
  out[at + 1] = static_cast<u8>(value);
}

// NOP, NOP, timestamps that nobody reads (RFC 7323, 3.2); NOP, NOP, SACK blocks (RFC 2018, 3), and
// D-SACK as the byte before what is acknowledged (RFC 2883, 4), since which it was is not
// simulated.
std::vector<u8> options_of(const tcp::Segment& segment) {
  std::vector<u8> options(option_bytes(segment));
  options[0] = options[1] = 1;
  options[2] = 8;
  options[3] = 10;
  if (options.size() == kTimestampBytes) return options;
  u8* at = options.data() + kTimestampBytes;
  at[0] = at[1] = 1;
  at[2] = 5;
  at[3] = static_cast<u8>(options.size() - kTimestampBytes - 2);
  at += 4;
  const auto put = [&at](u64 begin, u64 block_end) {
    store_be32(at, static_cast<u32>(begin));
    store_be32(at + 4, static_cast<u32>(block_end));
    at += 8;
  };
  if (segment.duplicate) put(segment.acknowledgement, segment.acknowledgement + 1);
  for (u32 i = 0; i < segment.block_count; ++i)
    put(segment.blocks[i].begin + 1, segment.blocks[i].end + 1);
  return options;
}

constexpr u16 kOpenWindow = 0xffff;  // of an end that nothing is sent to

// Sequence numbers begin with 0, which is the SYN's, for both sides, and wrap.
TCPHeader header_of(const Frame& frame, const tcp::Segment& segment, std::size_t options) {
  const u8 flags =
      static_cast<u8>((segment.syn ? TCPHeader::kSYN : 0) | (segment.push ? TCPHeader::kPSH : 0) |
                      (segment.ece ? TCPHeader::kECE : 0) | (segment.cwr ? TCPHeader::kCWR : 0) |
                      (segment.ack || !segment.syn ? TCPHeader::kACK : 0));
  const u64 sequence = segment.syn ? 0 : segment.sequence + 1;
  const u64 acknowledgement = flags == TCPHeader::kSYN ? 0 : segment.acknowledgement + 1;
  return {.source_port = frame.source_port,
          .destination_port = frame.destination_port,
          .sequence = static_cast<u32>(sequence),
          .acknowledgement = static_cast<u32>(acknowledgement),
          .words = static_cast<u8>((TCPHeader::kSize + options) / 4),
          .flags = flags,
          .window = segment.ack ? static_cast<u16>(segment.window >> kWindowScale) : kOpenWindow};
}

// Ethernet, IPv4, TCP; as on the wire without the FCS.
std::vector<u8> tcp_frame_of(const Frame& frame, const MAC& to, const MAC& from) {
  const tcp::Segment segment = segment_of(frame);
  const std::vector<u8> options = options_of(segment);
  const std::size_t size = TCPHeader::kSize + options.size() + segment.bytes;
  constexpr std::size_t kTransport = EthernetHeader::kSize + IPv4Header::kSize;
  std::vector<u8> bytes(kTransport + size);
  const EthernetHeader ethernet{.destination = to, .source = from};
  ethernet.encode(std::span(bytes).first<EthernetHeader::kSize>());
  const IPv4Header ip{.dscp = dscp_of(frame.traffic_class),
                      .ecn = ecn_of(frame.traffic_class),
                      .total_length = static_cast<u16>(IPv4Header::kSize + size),
                      .dont_fragment = true,
                      .protocol = kProtocolTCP,
                      .source = address_of(frame.source),
                      .destination = address_of(frame.destination)};
  ip.encode(std::span(bytes).subspan<EthernetHeader::kSize, IPv4Header::kSize>());
  const std::span<u8> transport = std::span(bytes).subspan(kTransport);
  TCPHeader header = header_of(frame, segment, options.size());
  std::ranges::copy(options, transport.begin() + TCPHeader::kSize);
  header.encode(transport.first<TCPHeader::kSize>());
  header.checksum = tcp_checksum(ip.source, ip.destination, transport);
  header.encode(transport.first<TCPHeader::kSize>());
  return bytes;
}

void put_erf(std::vector<u8>& out, i64 time_ns) {
  constexpr u64 kSecond = 1'000'000'000;
  const u64 ns = static_cast<u64>(time_ns);
  const u64 time = ns / kSecond << 32 | (ns % kSecond << 32) / kSecond;
  for (std::size_t i = 0; i < sizeof time; ++i) out[i] = static_cast<u8>(time >> 8 * i);
  out[8] = kERFInfiniBand;
  out[9] = kERFVaryingLength;
  put16(out, 10, static_cast<u16>(out.size()));
  put16(out, 14, static_cast<u16>(out.size() - kERFSize));
}

}  // namespace

FrameCapture::FrameCapture(const Plan& plan, const std::vector<u32>& links, Technology technology)
    : technology_(technology), interface_of_(plan.topology.links.size(), kNotCaptured) {
  pcapng::append_section("verbena sim", file_);
  u32 interfaces = 0;
  for (const u32 link : links) {
    if (interface_of_[link] != kNotCaptured) continue;
    interface_of_[link] = interfaces++;
    pcapng::append_interface(plan.link_name(link), file_,
                             technology == Technology::kInfiniBand ? pcapng::LinkType::kERF
                                                                   : pcapng::LinkType::kEthernet);
  }
}

void FrameCapture::add(const SentFrame& sent, const LinkEnd& end) {
  if (file_.size() >= kMostBytes || interface_of_[end.link] == kNotCaptured) return;
  switch (sent.frame.type) {
    case FrameType::kRoCE:
    case FrameType::kLive:
      return technology_ == Technology::kInfiniBand ? add_infiniband(sent, end)
                                                    : add_roce(sent, end);
    case FrameType::kTCP:
      return append(sent, end, tcp_frame_of(sent.frame, mac_of(end.peer), mac_of(end.node)));
    case FrameType::kPause: return add_pause(sent, end);
    case FrameType::kFlowControl: return;
  }
}

// Ethernet, IPv4, UDP, the packet, ICRC; as on the wire without the FCS.
void FrameCapture::add_roce(const SentFrame& sent, const LinkEnd& end) {
  const Frame& frame = sent.frame;
  const std::size_t pad = frame.headers[1] >> 4 & 3;  // PadCnt of the BTH. IBTA 9.2
  const std::size_t transport = frame.header_bytes + frame.payload_bytes + pad;
  const RoCEv2Envelope envelope{.source = GID::from_ipv4(address_of(frame.source)),
                                .destination = GID::from_ipv4(address_of(frame.destination)),
                                .udp_source_port = frame.source_port,
                                .udp_destination_port = frame.destination_port};
  const std::size_t headers = EthernetHeader::kSize + envelope_size(envelope);
  std::vector<u8> bytes(headers + transport + kICRCSize);
  const EthernetHeader ethernet{.destination = mac_of(end.peer), .source = mac_of(end.node)};
  ethernet.encode(std::span(bytes).first<EthernetHeader::kSize>());
  encode_envelope(envelope,
                  {.dscp = dscp_of(frame.traffic_class), .ecn = ecn_of(frame.traffic_class)},
                  transport, std::span(bytes).subspan(EthernetHeader::kSize));
  std::copy_n(frame.headers.begin(), frame.header_bytes,
              bytes.begin() + static_cast<std::ptrdiff_t>(headers));
  const u32 icrc = icrc_of(envelope, std::span(bytes).subspan(headers, transport));
  for (std::size_t i = 0; i < kICRCSize; ++i)
    bytes[headers + transport + i] = static_cast<u8>(icrc >> 8 * i);
  append(sent, end, std::move(bytes));
}

// LRH, the packet, ICRC, VCRC. IBTA 7.7, 7.8.
void FrameCapture::add_infiniband(const SentFrame& sent, const LinkEnd& end) {
  const Frame& frame = sent.frame;
  const std::size_t pad = frame.headers[1] >> 4 & 3;  // PadCnt of the BTH. IBTA 9.2
  const std::size_t transport = frame.header_bytes + frame.payload_bytes + pad;
  const LRH lrh{.virtual_lane = frame.priority,
                .service_level = frame.traffic_class,
                .dlid = lid_of(frame.destination),
                .packet_words = static_cast<u16>((LRH::kSize + transport + kICRCSize) / 4),
                .slid = lid_of(frame.source)};
  std::vector<u8> bytes(kERFSize + LRH::kSize + transport + kICRCSize + kVCRCSize);
  put_erf(bytes, sent.at.ns());
  const std::span<u8> packet = std::span(bytes).subspan(kERFSize);
  lrh.encode(packet.first<LRH::kSize>());
  std::copy_n(frame.headers.begin(), frame.header_bytes, packet.begin() + LRH::kSize);
  const u32 icrc = icrc_of_local(lrh, packet.subspan(LRH::kSize, transport));
  store_icrc(icrc, packet.subspan(LRH::kSize + transport).first<kICRCSize>());
  append(sent, end, std::move(bytes));
}

// IEEE 802.1Q, 36.2: to the MAC control address, for one priority.
void FrameCapture::add_pause(const SentFrame& sent, const LinkEnd& end) {
  const Frame& frame = sent.frame;
  std::vector<u8> bytes(
      std::max<std::size_t>(frame.size_bytes, EthernetHeader::kSize + kPFCBytes + kFCSSize) -
      kFCSSize);
  const EthernetHeader ethernet{.destination = {{0x01, 0x80, 0xc2, 0, 0, 0x01}},
                                .source = mac_of(end.node),
                                .ether_type = EtherType::kMACControl};
  ethernet.encode(std::span(bytes).first<EthernetHeader::kSize>());
  put16(bytes, EthernetHeader::kSize, kPFCOpcode);
  put16(bytes, EthernetHeader::kSize + 2, static_cast<u16>(1u << frame.priority));
  put16(bytes, EthernetHeader::kSize + 4 + 2u * frame.priority, frame.pause_quanta);
  append(sent, end, std::move(bytes));
}

void FrameCapture::append(const SentFrame& sent, const LinkEnd& end, std::vector<u8> bytes) {
  const std::array<std::span<const u8>, 1> parts = {bytes};
  pcapng::append_packet({.interface = interface_of_[end.link],
                         .time_ns = sent.at.ns(),
                         .direction = end.is_b ? pcapng::PacketDirection::kInbound
                                               : pcapng::PacketDirection::kOutbound},
                        parts, file_);
}

}  // namespace verbena::fabric
