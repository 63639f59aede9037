// Authentication messages of NVMe: AUTH_Negotiate, the messages of DH-HMAC-CHAP, and the failures.
// The Authentication Send and Authentication Receive commands carry them. NVM Express Base 2.0,
// 8.13.3 to 8.13.5; the commands: NVMe over Fabrics 1.1a, 3.3.
//
//    0                8               16                              31
//   |   AUTH_TYPE   |    AUTH_ID    |            reserved             |   every message
//   |             T_ID              |    depends on the message       |
// Little endian. Reserved bytes: sent as 0, ignored on receipt. decode() returns nullopt if the
// message is of another kind, is too short, or has lengths that do not fit into it.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "wire/nvme/fabrics.h"

namespace verbena::nvme {

enum class AuthHash : u8 { kSHA256 = 1, kSHA384 = 2, kSHA512 = 3 };
enum class DHGroup : u8 {
  kNull = 0,
  kFFDHE2048 = 1,
  kFFDHE3072 = 2,
  kFFDHE4096 = 3,
  kFFDHE6144 = 4,
  kFFDHE8192 = 5,
};

inline constexpr std::array kAuthHashes{AuthHash::kSHA256, AuthHash::kSHA384, AuthHash::kSHA512};
inline constexpr std::array kDHGroups{DHGroup::kNull,      DHGroup::kFFDHE2048,
                                      DHGroup::kFFDHE3072, DHGroup::kFFDHE4096,
                                      DHGroup::kFFDHE6144, DHGroup::kFFDHE8192};
inline constexpr std::size_t kMaxHashBytes = 64, kMaxDHBytes = 1024;
// The longest message that is accepted: a reply has 16 + 2 * 64 + 1024 bytes.
inline constexpr u32 kMaxAuthMessage = 4096;

// Returns 0 if `hash` is none of them.
[[nodiscard]] constexpr std::size_t hash_bytes(AuthHash hash) {
  switch (hash) {
    case AuthHash::kSHA256: return 32;
    case AuthHash::kSHA384: return 48;
    case AuthHash::kSHA512: return 64;
  }
  return 0;
}
// Returns the bytes of a group's prime, and of its public values. RFC 7919.
[[nodiscard]] constexpr std::size_t dh_bytes(DHGroup group) {
  switch (group) {
    case DHGroup::kNull: return 0;
    case DHGroup::kFFDHE2048: return 256;
    case DHGroup::kFFDHE3072: return 384;
    case DHGroup::kFFDHE4096: return 512;
    case DHGroup::kFFDHE6144: return 768;
    case DHGroup::kFFDHE8192: return 1024;
  }
  return 0;
}

enum class AuthType : u8 { kCommon = 0, kDHHMACCHAP = 1 };
enum class AuthId : u8 {
  kNegotiate = 0x00,
  kChallenge = 0x01,
  kReply = 0x02,
  kSuccess1 = 0x03,
  kSuccess2 = 0x04,
  kFailure2 = 0xf0,  // from the host
  kFailure1 = 0xf1,  // from the controller
};
// Reason Code Explanation of a failure; the Reason Code is always 1.
enum class AuthFailure : u8 {
  kAuthenticationFailed = 0x01,
  kProtocolNotUsable = 0x02,
  kConcatenationMismatch = 0x03,
  kHashNotUsable = 0x04,
  kDHGroupNotUsable = 0x05,
  kIncorrectPayload = 0x06,
  kIncorrectMessage = 0x07,
};

// The command-specific bytes 40 to 47 of Authentication Send and Authentication Receive.
struct AuthCommand {
  static constexpr u8 kProtocol = 0xe9;            // SECP: NVMe
  static constexpr u16 kProtocolSpecific = 0x101;  // SPSP1, SPSP0

  u16 protocol_specific = kProtocolSpecific;
  u8 protocol = kProtocol;
  u32 length = 0;  // TL of Send, AL of Receive

  [[nodiscard]] static AuthCommand from(const Command& c) {
    return {static_cast<u16>(c.cdw[0] >> 8), static_cast<u8>(c.cdw[0] >> 24), c.cdw[1]};
  }
  void put_into(Command& c, FabricsType type) const {
    c.opcode = kFabricsOpcode;
    c.nsid = static_cast<u32>(type);
    c.cdw[0] = u32{protocol_specific} << 8 | u32{protocol} << 24;
    c.cdw[1] = length;
  }
  [[nodiscard]] bool is_nvme() const {
    return protocol == kProtocol && protocol_specific == kProtocolSpecific;
  }
};

// Connect's response, AUTHREQ of DW0: authentication is required.
inline constexpr u32 kAuthenticationIsRequired = 1u << 17;  // ATR

struct AuthNegotiate {
  static constexpr std::size_t kHeader = 8, kDescriptor = 64, kMaxIds = 30;

  u16 t_id = 0;
  u8 sc_c = 0;  // secure channel concatenation
  std::vector<AuthHash> hashes{};
  std::vector<DHGroup> groups{};

  [[nodiscard]] std::vector<u8> encode() const;
  // Takes the first descriptor of DH-HMAC-CHAP; `hashes` is empty if there is none.
  [[nodiscard]] static std::optional<AuthNegotiate> decode(std::span<const u8> in);
};

struct AuthChallenge {
  static constexpr std::size_t kHeader = 16;

  u16 t_id = 0;
  AuthHash hash = AuthHash::kSHA256;
  DHGroup group = DHGroup::kNull;
  u32 seqnum = 0;               // S1
  std::vector<u8> challenge{};  // C1
  std::vector<u8> dh_value{};   // g^x mod p

  [[nodiscard]] std::vector<u8> encode() const;
  [[nodiscard]] static std::optional<AuthChallenge> decode(std::span<const u8> in);
};

struct AuthReply {
  static constexpr std::size_t kHeader = 16;

  u16 t_id = 0;
  bool has_challenge = false;   // CVALID: the host authenticates the controller
  u32 seqnum = 0;               // S2
  std::vector<u8> response{};   // R1
  std::vector<u8> challenge{};  // C2, as long as the response
  std::vector<u8> dh_value{};   // g^y mod p

  [[nodiscard]] std::vector<u8> encode() const;
  [[nodiscard]] static std::optional<AuthReply> decode(std::span<const u8> in);
};

struct AuthSuccess1 {
  static constexpr std::size_t kHeader = 16;

  u16 t_id = 0;
  std::vector<u8> response{};  // R2; empty: RVALID is 0
  u8 hash_bytes = 32;          // HL

  [[nodiscard]] std::vector<u8> encode() const;
  [[nodiscard]] static std::optional<AuthSuccess1> decode(std::span<const u8> in);
};

struct AuthSuccess2 {
  static constexpr std::size_t kSize = 16;

  u16 t_id = 0;

  [[nodiscard]] std::vector<u8> encode() const;
  [[nodiscard]] static std::optional<AuthSuccess2> decode(std::span<const u8> in);
};

// AUTH_Failure1 and AUTH_Failure2.
struct AuthFailureMessage {
  static constexpr std::size_t kSize = 8;

  AuthId id = AuthId::kFailure1;
  u16 t_id = 0;
  AuthFailure explanation = AuthFailure::kAuthenticationFailed;

  [[nodiscard]] std::vector<u8> encode() const;
  [[nodiscard]] static std::optional<AuthFailureMessage> decode(std::span<const u8> in);
};

}  // namespace verbena::nvme
