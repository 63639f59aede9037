#include "host/encryption/psp_sender.h"

#include <algorithm>

#include "wire/roce/icrc.h"

namespace verbena::host {

void PSPSender::seal(std::span<u8> packet, u16 udp_source_port) {
  const std::size_t header_size = head_bytes() - UDPHeader::kSize;
  const std::size_t inner = packet.size() - header_size - PSPHeader::kICVSize;
  const std::size_t cookie_units = (header_size - PSPHeader::kSize) / 4;
  // A packet that is shorter than the offset has no encrypted part, and says so.
  const PSPHeader header{.crypt_offset = static_cast<u8>(std::min<std::size_t>(
                             cookie_units + std::min<std::size_t>(crypt_offset_, inner / 4),
                             PSPHeader::kMaxCryptOffset)),
                         .version = version_,
                         .spi = spi_,
                         .iv = first_iv_ | ++packets_,
                         .cookie = vni_};
  header.encode(packet.first(header_size));
  UDPHeader{.source_port = udp_source_port,
            .destination_port = kRoCEv2Port,
            .length = static_cast<u16>(inner)}
      .encode(packet.subspan(header_size).first<UDPHeader::kSize>());
  cipher_.seal(packet, PSPHeader::kSize + header.crypt_offset_bytes());
  if (capture_ != nullptr)
    capture_->add(ends_, udp_source_port, packet, pcapng::PacketDirection::kOutbound);
}

}  // namespace verbena::host
