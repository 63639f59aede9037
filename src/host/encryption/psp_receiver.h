// PSPReceiver: decrypts what arrives, and lets only authentic packets pass: of an association that
// this host has issued, between the addresses that it was issued for, with an IV that has not been
// seen. Keys are derived when an SPI is first seen. Not thread-safe.
#pragma once

#include <memory>
#include <optional>
#include <unordered_map>

#include "device/port/frame.h"
#include "host/encryption/host_keys.h"
#include "host/encryption/psp_cipher.h"
#include "wire/psp/replay_window.h"

namespace verbena::host {

enum class PSPFault : u8 {
  kNone,
  kNotEncrypted,  // no PSP header, or one of a version that does not encrypt
  kUnknownSPI,    // not issued by this host, or not valid any more
  kWrongAddress,  // issued for other addresses
  kNotAuthentic,  // the ICV is wrong
  kReplayed,      // it has been here, or is too old to tell
  kOtherNetwork,  // authentic, and of another virtual network
  kNotRoCE,       // authentic, and no RoCEv2 packet
};

class PSPReceiver {
 public:
  static constexpr std::size_t kMaxAssociations = 16384;

  // `vni`: of the virtual network whose packets it takes; nullopt: those of none.
  PSPReceiver(const OpenSSL& ssl, HostKeys& keys, std::optional<u32> vni)
      : ssl_(ssl), keys_(keys), vni_(vni) {}

  // If it returns kNone, `frame` is the RoCEv2 packet, decrypted in place and authenticated.
  // Otherwise the frame's transport is undefined. Precondition: the transport's bytes are the
  // link's own.
  [[nodiscard]] PSPFault open(IngressFrame& frame);
  [[nodiscard]] std::size_t associations() const { return associations_.size(); }

 private:
  struct Association {
    PSPCipher cipher;
    PSPVersion version;
    AssociationEnds ends;
    u32 generation;
    ReplayWindow window{};
  };
  Association* find(const PSPHeader& header);
  Association* make(const PSPHeader& header);
  bool is_new(const PSPHeader& header, const Association& association) const;
  bool note(const PSPHeader& header, Association& association);
  void forget_invalid();

  const OpenSSL& ssl_;
  HostKeys& keys_;
  std::optional<u64> vni_;
  std::unordered_map<u32, std::unique_ptr<Association>> associations_;  // by SPI
  u32 last_spi_ = 0;
  Association* last_ = nullptr;
};

}  // namespace verbena::host
