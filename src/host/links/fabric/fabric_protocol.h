// The messages between the processes of a live fabric (docs/live_fabric.md) and its server, on a
// Unix socket of whole messages (SOCK_SEQPACKET), between processes of one host, user and version
// of Verbena: structs as they lie in memory, after a kind.
//
//   `verbena run`   Claim ->       <- Claimed, or Refused      and stays until the program's end
//   a device        Attach ->      <- Attached, or Refused
//                   Packet ->      <- Packet, Credit, Clock, PortAttributes   while it lives
//                   Leave ->       <- Report                   then both close
//   `verbena fabric --unplug`      Cable ->       <- CableChanged, or Refused
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "host/links/fabric/fabric_clock.h"
#include "host/os/descriptor.h"
#include "host/os/error.h"
#include "wire/ib/gid.h"
#include "wire/ib/opcode.h"

namespace verbena::host {

inline constexpr const char* kFabricVariable = "VERBENA_FABRIC";  // a FabricPlace
// A folder for the servers' sockets, in place of abstract names: of the server and its programs.
inline constexpr const char* kFabricFolderVariable = "VERBENA_FABRIC_FOLDER";
inline constexpr u32 kFabricVersion = 0x56464133;  // changes with the layout of any message

// FabricPlace: the host that a device is, and its fabric's server: "NAME HOST CLAIM".
struct FabricPlace {
  std::string name;  // of the server
  u32 host = 0;      // among the scenario's hosts
  u64 claim = 0;     // as the server has named it
  [[nodiscard]] std::string text() const;
  // Returns nullopt if the text is no place.
  [[nodiscard]] static std::optional<FabricPlace> parse(const std::string& text);
};

// The IPv4 address of a host, from 127.64.0.1 up: its device's GID, and an address at which the
// kernel reaches the program itself.
[[nodiscard]] constexpr u32 fabric_address_of(u32 host) { return 0x7f400001 + host; }
// Returns nullopt if no host of a fabric has this address.
[[nodiscard]] constexpr std::optional<u32> fabric_host_of(u32 address) {
  if (address < 0x7f400001 || address - 0x7f400001 >= 1u << 16) return std::nullopt;
  return address - 0x7f400001;
}

enum class FabricKind : u32 {
  kClaim = 1,
  kClaimed,
  kRefused,
  kAttach,
  kAttached,
  kPacket,
  kCredit,
  kClock,
  kLeave,
  kReport,
  kPortAttributes,
  // management_protocol.h
  kPortQuery,
  kMADAttach,
  kMADAttached,
  kMADRegister,
  kMADRegistered,
  kMAD,
  kCable,
  kCableChanged,
};

inline constexpr u32 kMaxPKeys = 64;
// FabricPortAttributes: the attributes of a host's port on an InfiniBand subnet. The server sends
// them to its devices whenever they have changed.
struct FabricPortAttributes {
  static constexpr FabricKind kKind = FabricKind::kPortAttributes;
  u64 node_guid = 0, port_guid = 0, gid_prefix = 0;
  u64 rate_bps = 0;
  u32 capability_mask = 0;
  u16 lid = 0, sm_lid = 0;
  u8 lmc = 0, sm_sl = 0;
  u8 state = 0, physical_state = 0;  // codes of PortInfo
  u8 width = 0, speed = 0, ext_speed = 0;
  u8 mtu = 0, mtu_cap = 0, lanes = 0, subnet_timeout = 0;
  u16 p_key_violations = 0, q_key_violations = 0;
  std::array<u16, kMaxPKeys> p_keys{};
  bool client_reregister = false;  // of a change: the manager asks for it
};
[[nodiscard]] GID gid_of(const FabricPortAttributes& port);
struct FabricClaim {
  static constexpr FabricKind kKind = FabricKind::kClaim;
  u32 version = kFabricVersion;
  u64 scenario = 0;             // hash of the file
  u32 scale = 0;                // 0: whatever it is
  std::array<char, 64> host{};  // name or number, ended by 0
};
struct FabricClaimed {
  static constexpr FabricKind kKind = FabricKind::kClaimed;
  u32 host = 0;
  u64 claim = 0;
  bool is_infiniband = false;
  FabricPortAttributes port{};  // on InfiniBand, as it is now
};
struct FabricRefused {
  static constexpr FabricKind kKind = FabricKind::kRefused;
  i32 error = 0;                    // errno
  std::array<char, 200> message{};  // ended by 0
};
struct FabricAttach {
  static constexpr FabricKind kKind = FabricKind::kAttach;
  u32 version = kFabricVersion;
  u32 host = 0;
  u64 claim = 0;
  u32 slot = 0;  // of its QPNs
};
struct FabricAttached {
  static constexpr FabricKind kKind = FabricKind::kAttached;
  u64 rate_bps = 0;     // of the host's NIC
  u32 mtu = 0;          // bytes of payload
  u32 queue_bytes = 0;  // of data that may wait in the NIC, packets as in FabricPacket
  FabricClock clock{};
  bool is_infiniband = false;
  FabricPortAttributes port{};  // on InfiniBand
};
struct FabricPacket {  // and the bytes behind it
  static constexpr FabricKind kKind = FabricKind::kPacket;
  u32 peer = 0;  // to the server: where it goes; from it: where it comes from
  u16 udp_source_port = 0;
  u8 traffic_class = 0, hop_limit = 0;
  u16 slid = 0, dlid = 0;  // on InfiniBand, in place of the peer
  // On InfiniBand all the same by the peer, whose LID the server knows: between the addresses that
  // rdma_cm uses, as files that map them to paths do.
  bool by_peer = false;
};
struct FabricCredit {  // so much data has left the NIC
  static constexpr FabricKind kKind = FabricKind::kCredit;
  u64 bytes = 0;
};
struct FabricClockMessage {
  static constexpr FabricKind kKind = FabricKind::kClock;
  FabricClock clock{};
};
struct FabricLeave {
  static constexpr FabricKind kKind = FabricKind::kLeave;
};
// Changes of a fabric that runs: of one link by its name, or of a node and all of its links.
enum class FabricChange : u32 {
  kUnplug,
  kPlug,
  kPowerOff,
  kPowerOn,
  kErrorRate,
  kOverrun,      // both ends of the link see more packets than they gave credits for
  kCreditStall,  // both ends see no flow control packets for too long
};
struct FabricCable {
  static constexpr FabricKind kKind = FabricKind::kCable;
  u32 version = kFabricVersion;
  FabricChange change{};
  double error_rate = 0;        // kErrorRate: the probability that a packet is lost to it
  std::array<char, 64> name{};  // ended by 0
};
struct FabricCableChanged {
  static constexpr FabricKind kKind = FabricKind::kCableChanged;
  u32 links = 0;  // how many
};
struct FabricReport {  // and a text behind it
  static constexpr FabricKind kKind = FabricKind::kReport;
};

inline constexpr std::size_t kMaxFabricMessage = 8192;

// Returns true for ACKs and CNPs. They go before data, and into no limited queue of the NIC.
[[nodiscard]] constexpr bool is_fabric_acknowledgement(Opcode opcode) {
  return opcode == kCNPOpcode || opcode == kSackOpcode || opcode.op == Op::kAcknowledge;
}

// A connected socket, or one that listens, on the abstract name that this user's server of `name`
// has. EADDRINUSE: there is one already; ECONNREFUSED: there is none.
[[nodiscard]] Expected<Descriptor> connect_to_fabric(const std::string& name);
[[nodiscard]] Expected<Descriptor> listen_as_fabric(const std::string& name);
// That the process at the other end is of this user.
[[nodiscard]] bool is_own_user(int socket);

// Sends one message, without blocking. 0, or an errno.
[[nodiscard]] int send_fabric_message(int socket, FabricKind kind, std::span<const u8> fixed,
                                      std::span<const u8> rest = {});
template <typename Message>
[[nodiscard]] int send_fabric(int socket, const Message& message, std::span<const u8> rest = {}) {
  return send_fabric_message(
      socket, Message::kKind,
      {reinterpret_cast<const u8*>(&message), std::is_empty_v<Message> ? 0 : sizeof(message)},
      rest);
}

// A message that was received, still in its buffer.
struct FabricMessage {
  FabricKind kind{};
  std::span<const u8> body;

  // Returns nullopt if the bytes are no such message, or too short.
  [[nodiscard]] static std::optional<FabricMessage> of(std::span<const u8> bytes);
  template <typename Message>
  [[nodiscard]] std::optional<Message> as() const {
    Message message{};
    const std::size_t size = std::is_empty_v<Message> ? 0 : sizeof(message);
    if (kind != Message::kKind || body.size() < size) return std::nullopt;
    std::copy_n(body.begin(), size, reinterpret_cast<u8*>(&message));
    return message;
  }
  template <typename Message>
  [[nodiscard]] std::span<const u8> rest() const {
    return body.subspan(std::is_empty_v<Message> ? 0 : sizeof(Message));
  }
};

// Sends `message` and waits for the answer, for a few seconds at most.
template <typename Answer, typename Message>
[[nodiscard]] Expected<Answer> ask_fabric(int socket, const Message& message);
// Waits for one message. Returns 0 if the other end is gone, an Error if nothing came in time.
[[nodiscard]] Expected<std::size_t> await_fabric_message(int socket, std::span<u8> buffer);

[[nodiscard]] Error error_of(const FabricRefused& refused);

template <typename Answer, typename Message>
Expected<Answer> ask_fabric(int socket, const Message& message) {
  std::array<u8, kMaxFabricMessage> buffer;
  if (const int error = send_fabric(socket, message); error != 0)
    return failure(error, "the fabric's server does not listen");
  const Expected<std::size_t> size = await_fabric_message(socket, buffer);
  if (!size) return tl::unexpected(size.error());
  const auto answer = FabricMessage::of(std::span(buffer).first(*size));
  if (!answer) return failure(ECONNRESET, "the fabric's server has ended");
  if (const auto refused = answer->template as<FabricRefused>())
    return tl::unexpected(error_of(*refused));
  if (const auto wanted = answer->template as<Answer>()) return *wanted;
  return failure(EPROTO, "the fabric's server is of another version of Verbena");
}

}  // namespace verbena::host
