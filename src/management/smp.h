// SMP: a view of a subnet management packet, 256 bytes. IBTA Vol 1, 14.2.1. Network order.
//    0   the common MAD header; of a directed-route SMP, byte 4 begins with D, the direction, and
//        bytes 6 and 7 are Hop Pointer and Hop Count
//    24  M_Key (64)
//    32  DrSLID (16), DrDLID (16)            directed route only
//    64  the attribute, 64 bytes
//    128 Initial Path, 64 bytes; 192 Return Path, 64 bytes: a port number for each hop, from [1]
#pragma once

#include <span>

#include "base/bytes.h"
#include "management/attributes.h"
#include "wire/ib/mad.h"

namespace verbena::management {

class SMP {
 public:
  static constexpr u8 kMostHops = 63;

  explicit SMP(std::span<u8, kMADSize> bytes) : bytes_(bytes) {}

  [[nodiscard]] MgmtClass mgmt_class() const { return MgmtClass{bytes_[1]}; }
  [[nodiscard]] bool is_directed() const { return mgmt_class() == MgmtClass::kSubnDirectedRoute; }
  [[nodiscard]] u8 class_version() const { return bytes_[2]; }
  [[nodiscard]] MADMethod method() const { return MADMethod{bytes_[3]}; }
  [[nodiscard]] u64 transaction_id() const { return load_be64(&bytes_[8]); }
  [[nodiscard]] u16 attribute_id() const { return load_be16(&bytes_[16]); }
  [[nodiscard]] u32 attribute_modifier() const { return load_be32(&bytes_[20]); }
  [[nodiscard]] u64 m_key() const { return load_be64(&bytes_[24]); }
  [[nodiscard]] std::span<u8, kAttributeBytes> attribute() const {
    return bytes_.subspan<64, kAttributeBytes>();
  }

  void set_method(MADMethod method) { bytes_[3] = static_cast<u8>(method); }
  // Keeps the direction bit.
  void set_status(MADStatus status) {
    const u16 direction = load_be16(&bytes_[4]) & kDirectionBit;
    store_be16(&bytes_[4], static_cast<u16>(direction | static_cast<u16>(status)));
  }

  // --- directed route, 14.2.2
  [[nodiscard]] bool is_returning() const { return (bytes_[4] & 0x80) != 0; }
  void begin_return() { bytes_[4] |= 0x80; }
  [[nodiscard]] u8 hop_pointer() const { return bytes_[6]; }
  void set_hop_pointer(u8 hop) { bytes_[6] = hop; }
  [[nodiscard]] u8 hop_count() const { return bytes_[7]; }
  [[nodiscard]] u16 dr_slid() const { return load_be16(&bytes_[32]); }
  [[nodiscard]] u16 dr_dlid() const { return load_be16(&bytes_[34]); }
  // Precondition: hop <= kMostHops.
  [[nodiscard]] u8 initial_path(u8 hop) const { return bytes_[128u + hop]; }
  [[nodiscard]] u8 return_path(u8 hop) const { return bytes_[192u + hop]; }
  void set_return_path(u8 hop, u8 port) { bytes_[192u + hop] = port; }

 private:
  static constexpr u16 kDirectionBit = 0x8000;
  std::span<u8, kMADSize> bytes_;
};

}  // namespace verbena::management
