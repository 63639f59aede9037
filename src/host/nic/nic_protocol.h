// The messages between a program and `verbena nic`: structs as they lie in memory, on a Unix socket
// of whole messages (SOCK_SEQPACKET), between processes of one host and one version of Verbena. The
// NIC identifies the process at the other end by SO_PEERCRED.
//
//   a device           NICAttach ->    <- NICAttached with three descriptors, or an error
//                      and stays: when either end closes, the virtual function is detached
//                      NICGroupRequest ->   <- NICGroupAnswer, if it asks to join
//   an iWARP device   nic_stream_protocol.h
//   `verbena nic status`   NICAttach ->    <- NICStatusAnswer with one descriptor: memory with
//                      text, sealed
//
// The descriptors: memory with rings of frames (NICRings); an eventfd, the NIC's doorbell,
// which the program writes; the reading end of a pipe, the program's doorbell. A program can change
// the flags of both, so the NIC reads and writes neither: a call of it might wait. It waits for the
// eventfd by an edge-triggered epoll, and has the pipe's other end.
#pragma once

#include <array>
#include <string>

#include "device/device_config.h"
#include "host/nic/class_rings.h"
#include "host/os/descriptor.h"
#include "host/os/error.h"
#include "host/os/mapping.h"

namespace verbena::host {

inline constexpr const char* kNICVariable = "VERBENA_NIC";  // the socket's path
inline constexpr u32 kNICVersion = 0x564e4338;  // changes with the layout of any message

enum class NICRequest : u32 { kAttach = 1, kDescribe, kStatus, kJoin, kLeave, kAttachStreams };

struct NICAttach {
  u32 version = kNICVersion;
  NICRequest request = NICRequest::kAttach;
  u32 wanted_slot = 0;              // that the device had before the NIC ended; 0: any
  std::array<char, 64> function{};  // its name or address, ended by 0; empty: any
};

struct NICAttached {
  static constexpr u32 kMaxPKeysOfFunction = 64;
  u32 version = kNICVersion;
  i32 error = 0;  // errno; then `text` says why
  u32 slot = 0;   // of the QPNs
  u32 p_key_count = 0;
  u32 max_qp = 0, max_mr = 0, max_cqe = 0;
  u32 is_encrypted = 0;  // 1: the NIC encrypts what it sends
  u64 max_registered_bytes = 0;
  u32 max_groups = 0;       // 0: no multicast
  u32 packet_overhead = 0;  // bytes that encryption adds to each
  u32 receive_buffer_bytes = 0;
  std::array<u16, kMaxPKeysOfFunction> p_keys{};
  std::array<char, 64> address{};  // as VERBENA_ADDRESS has it
  std::array<char, 200> text{};
};

// kJoin or kLeave, of a multicast group.
struct NICGroupRequest {
  u32 version = kNICVersion;
  NICRequest request = NICRequest::kJoin;
  GID group{};
};
struct NICGroupAnswer {
  u32 version = kNICVersion;
  i32 error = 0;  // errno; then `text` says why
  GID group{};
  std::array<char, 200> text{};
};

// The text may be longer than a message of the socket, and the NIC waits for no reader: it is in
// memory of its own.
struct NICStatusAnswer {
  u32 version = kNICVersion;
  i32 error = 0;  // errno; then there is no descriptor
  u64 text_bytes = 0;
};

// Connects and sends the request.
[[nodiscard]] Expected<Descriptor> connect_to_nic(const std::string& path,
                                                  const NICAttach& request);
struct NICAttachment {
  NICAttached attached;
  Descriptor socket, doorbell_of_nic, doorbell_of_program;
  Mapping rings;
};
// Attaches to a function. Waits for a few seconds. `function`: as in NICAttach.
[[nodiscard]] Expected<NICAttachment> attach_to_nic(const std::string& path, u32 wanted_slot,
                                                    const std::string& function = "");
// Joins a multicast group, with the socket of an attachment. Waits as above.
[[nodiscard]] Expected<void> join_group_on_nic(const std::string& path, const Descriptor& socket,
                                               const GID& group);
void leave_group_on_nic(const Descriptor& socket, const GID& group);
// Waits for the answer to a request whose answer has no descriptors.
[[nodiscard]] Expected<NICAttached> await_attached(const std::string& path,
                                                   const Descriptor& socket);
// The function that this process would get. Its slot is 0.
[[nodiscard]] Expected<NICAttached> function_on_nic(const std::string& path,
                                                    const std::string& function = "");
// Its address.
[[nodiscard]] Expected<std::string> address_on_nic(const std::string& path,
                                                   const std::string& function = "");
[[nodiscard]] Expected<std::string> status_of_nic(const std::string& path);

// VERBENA_ADDRESS, or where VERBENA_NIC is set the address of the virtual function that
// VERBENA_ADDRESS names, or of any.
[[nodiscard]] Expected<std::string> chosen_address_from_environment();
// The same for a choice in place of VERBENA_ADDRESS.
[[nodiscard]] Expected<std::string> address_on_nic_or_host(const std::string& choice);
[[nodiscard]] std::string nic_from_environment();  // "": none

// Returns memory that holds `text` and is sealed against changes. If it is not open, errno says
// why.
[[nodiscard]] Descriptor sealed_text(const std::string& text);
// Sends a message with descriptors. Returns false if that failed; errno says why.
[[nodiscard]] bool send_with_descriptors(int socket, std::span<const u8> message,
                                         std::span<const int> descriptors);
void ring_doorbell(int fd);   // of either kind
void clear_doorbell(int fd);  // of the program

template <std::size_t N>
void put_text(std::array<char, N>& out, const std::string& text) {
  const std::size_t size = text.copy(out.data(), N - 1);
  out[size] = '\0';
}
template <std::size_t N>
[[nodiscard]] std::string text_of(const std::array<char, N>& in) {
  return {in.data(), ::strnlen(in.data(), N)};
}

}  // namespace verbena::host
