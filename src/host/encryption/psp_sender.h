// PSPSender: encrypts the packets of one association from this process to a process of a peer, in
// clear but authenticated with the VNI of its virtual network as the Virtualization Cookie. An
// IV is the sending process's slot and a count, so that each is used once and a receiver that does
// not know the association can tell the sender (psp_notice.h).
#pragma once

#include "host/encryption/host_keys.h"
#include "host/encryption/psp_capture.h"
#include "host/encryption/psp_cipher.h"
#include "host/links/encapsulation.h"
#include "wire/eth/udp.h"

namespace verbena::host {

inline constexpr u32 kIVCountBits = 54;
constexpr u32 slot_of_iv(u64 iv) { return static_cast<u32>(iv >> kIVCountBits); }

class PSPSender final : public Encapsulation {
 public:
  // Before the transport packet: the PSP header, without a cookie, and the packet's own UDP header.
  static constexpr std::size_t kHeadersSize = PSPHeader::kSize + UDPHeader::kSize;
  static constexpr std::size_t kOverhead = kHeadersSize + PSPHeader::kICVSize;

  PSPSender(const OpenSSL& ssl, const IssuedAssociation& issued, u32 slot, u8 crypt_offset,
            std::optional<u32> vni = std::nullopt)
      : Encapsulation(kHeadersSize + (vni ? PSPHeader::kCookieSize : 0), PSPHeader::kICVSize),
        cipher_(ssl, issued.key, PSPCipher::Direction::kSeal),
        version_(issued.key.version),
        spi_(issued.spi),
        first_iv_(u64{slot} << kIVCountBits),
        crypt_offset_(crypt_offset),
        vni_(vni) {}

  void finish(const EgressFrame& /*frame*/, u16 udp_source_port, std::span<u8> packet) override {
    seal(packet, udp_source_port);
  }
  // `packet`: head_bytes() bytes, the transport packet with its ICRC, and room for the ICV.
  void seal(std::span<u8> packet, u16 udp_source_port);

  // All that it encrypts from now on; `capture` outlives it.
  void capture_to(PSPCapture& capture, const AssociationEnds& ends) {
    capture_ = &capture;
    ends_ = ends;
  }
  [[nodiscard]] u32 spi() const { return spi_; }
  [[nodiscard]] u64 packets() const { return packets_; }

 private:
  PSPCipher cipher_;
  PSPVersion version_;
  u32 spi_;
  u64 first_iv_;
  u64 packets_ = 0;
  u8 crypt_offset_;  // of what is behind the header
  std::optional<u32> vni_;
  PSPCapture* capture_ = nullptr;
  AssociationEnds ends_{};
};

}  // namespace verbena::host
