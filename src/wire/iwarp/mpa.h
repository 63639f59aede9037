// MPA: keeps the boundaries of DDP's messages in a TCP stream. RFC 5044; RFC 6581 (revision 2).
// Here without markers (markers.h).
//
// An FPDU (4.1):
//   | ULPDU_Length (16) | ULPDU ... | pad to 4 bytes, the length included | CRC (32) |
// The CRC is CRC-32C over all before it, sent as iSCSI's (its bytes from the lowest). If neither
// side uses CRCs, the field exists and its value is ignored.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "base/types.h"
#include "wire/iwarp/framing.h"

namespace verbena::iwarp {

[[nodiscard]] u32 crc32c(std::span<const u8> bytes);

enum class CRCUse : u8 { kUsed, kNotUsed };

// One FPDU at the beginning of a stream's bytes.
struct FPDUView {
  enum class Status : u8 {
    kWhole,
    kIncomplete,  // more bytes are needed
    kBad,         // wrong CRC: the connection ends. RFC 5044, 5.3
  };
  Status status = Status::kIncomplete;
  std::span<const u8> ulpdu{};
  std::size_t size = 0;  // of the FPDU, in bytes; kWhole

  [[nodiscard]] static FPDUView decode(std::span<const u8> stream, CRCUse crc);
};

// Appends an FPDU. Precondition: at most 65535 bytes.
void append_fpdu(std::span<const u8> ulpdu, CRCUse crc, std::vector<u8>& stream);

// The request and the reply that begin a connection. RFC 5044, 7.1. Network order.
//   | key (16 bytes): "MPA ID Req Frame" or "MPA ID Rep Frame" |
//   |M|C|R|S| rsvd|Y|X|  Rev (8)   |   PD_Length (16)  |  private data ...
// X and Y are reserved bits that are ours: X in a request and Y in a reply say that the sender has
// RFC 7306's operations. Two bits, because Linux's siw replies with the reserved bits of the
// request. Both ends must say it before either uses them; a peer that does not know the bits
// ignores them.
struct MPAFrame {
  static constexpr std::size_t kSize = 20;  // bytes, without private data
  static constexpr u16 kMostPrivateData = 512;

  bool is_reply = false;
  bool markers = false;  // M: the sender of this frame wants markers in what it receives
  bool crc = false, rejected = false;
  bool enhanced = false;  // S: private data begins with MPAEnhancement. RFC 6581, 4
  bool rfc7306 = false;   // X or Y
  u8 revision = 1;        // 1 or 2
  u16 private_data_length = 0;

  // Whether bytes that come may be the beginning of one, of either kind.
  [[nodiscard]] static bool may_begin(std::span<const u8> in, bool reply);
  // Returns nullopt if it is short, or has another key, another revision or longer private data.
  [[nodiscard]] static std::optional<MPAFrame> decode(std::span<const u8> in);
  void encode(std::span<u8, kSize> out) const;
  friend bool operator==(const MPAFrame&, const MPAFrame&) = default;
};

// The header that revision 2 puts before private data. RFC 6581, 9.
//   |A|B|  IRD (14) |C|D|  ORD (14) |
struct MPAEnhancement {
  static constexpr std::size_t kSize = 4;  // bytes
  bool peer_to_peer = false;               // A
  bool rtr_send = false;                   // B: ready-to-receive by an empty FPDU,
  bool rtr_write = false;                  // C: by an RDMA WRITE,
  bool rtr_read = false;                   // D: by an RDMA READ request
  u16 ird = 0, ord = 0;                    // 14 bits
  [[nodiscard]] static std::optional<MPAEnhancement> decode(std::span<const u8> in);
  void encode(std::span<u8, kSize> out) const;
  friend bool operator==(const MPAEnhancement&, const MPAEnhancement&) = default;
};

}  // namespace verbena::iwarp
