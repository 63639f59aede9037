#include "host/capture/stream_capture.h"

#include <algorithm>
#include <array>

#include "host/os/clock.h"
#include "wire/eth/ethernet.h"
#include "wire/eth/ipv4.h"
#include "wire/eth/ipv6.h"
#include "wire/eth/tcp.h"

namespace verbena::host {
namespace {

constexpr u8 kProtocolTCP = 6;
constexpr u16 kWindow = 0xffff;

struct SegmentHeaders {
  std::array<u8, EthernetHeader::kSize + IPv6Header::kSize + TCPHeader::kSize> bytes{};
  std::size_t size = 0;
};

std::size_t write_ip(const GID& source, const GID& destination, std::size_t tcp_bytes,
                     std::span<u8> out) {
  if (source.is_ipv4()) {
    IPv4Header{.total_length = static_cast<u16>(IPv4Header::kSize + tcp_bytes),
               .dont_fragment = true,
               .protocol = kProtocolTCP,
               .source = source.ipv4(),
               .destination = destination.ipv4()}
        .encode(out.first<IPv4Header::kSize>());
    return IPv4Header::kSize;
  }
  IPv6Header{.payload_length = static_cast<u16>(tcp_bytes),
             .next_header = kProtocolTCP,
             .source = source,
             .destination = destination}
      .encode(out.first<IPv6Header::kSize>());
  return IPv6Header::kSize;
}

}  // namespace

StreamCapture::StreamCapture(CaptureFile& file, u32 interface, const TCPEndpoint& local,
                             const TCPEndpoint& remote, Opener opener)
    : file_(file),
      interface_(interface),
      ours_{local, pcapng::PacketDirection::kOutbound},
      theirs_{remote, pcapng::PacketDirection::kInbound} {
  Side& first = opener == Opener::kUs ? ours_ : theirs_;
  Side& second = opener == Opener::kUs ? theirs_ : ours_;
  add_segment(first, second, TCPHeader::kSYN, {});
  first.sequence = 1;
  add_segment(second, first, TCPHeader::kSYN | TCPHeader::kACK, {});
  second.sequence = 1;
  add_segment(first, second, TCPHeader::kACK, {});
}

StreamCapture::~StreamCapture() {
  add_segment(ours_, theirs_, TCPHeader::kFIN | TCPHeader::kACK, {});
}

void StreamCapture::add(Side& from, const Side& to, Bytes bytes) {
  while (!bytes.empty()) {
    const Bytes segment = bytes.first(std::min(bytes.size(), kSegment));
    bytes = bytes.subspan(segment.size());
    add_segment(from, to, TCPHeader::kPSH | TCPHeader::kACK, segment);
  }
}

void StreamCapture::add_segment(Side& from, const Side& to, u8 flags, Bytes bytes) {
  SegmentHeaders headers;
  const std::span<u8> out(headers.bytes);
  EthernetHeader{.destination = CaptureFile::mac_of(to.at.address),
                 .source = CaptureFile::mac_of(from.at.address),
                 .ether_type = from.at.address.is_ipv4() ? EtherType::kIPv4 : EtherType::kIPv6}
      .encode(out.first<EthernetHeader::kSize>());
  headers.size = EthernetHeader::kSize;
  headers.size += write_ip(from.at.address, to.at.address, TCPHeader::kSize + bytes.size(),
                           out.subspan(headers.size));
  TCPHeader{.source_port = from.at.port,
            .destination_port = to.at.port,
            .sequence = from.sequence,
            .acknowledgement = (flags & TCPHeader::kACK) != 0 ? to.sequence : 0,
            .flags = flags,
            .window = kWindow}
      .encode(std::span<u8, TCPHeader::kSize>(out.subspan(headers.size).data(), TCPHeader::kSize));
  headers.size += TCPHeader::kSize;
  from.sequence += static_cast<u32>(bytes.size());
  const std::array<std::span<const u8>, 2> parts{Bytes(headers.bytes).first(headers.size), bytes};
  file_.add_packet(interface_, parts, from.direction, monotonic_now());
}

}  // namespace verbena::host
