// The messages between `verbena nic` and a program whose device on a virtual function is an iWARP
// one. The NIC owns the TCP sockets. For each connection the program gets one end of a pair of Unix
// stream sockets, and the NIC relays the bytes. As in nic_protocol.h: structs as they lie in
// memory, on a Unix socket of whole messages.
//
//   a device    NICAttach ->         <- NICAttached, or an error; the socket stays
//   listen      NICStreamRequest ->  <- NICStreamAnswer with a descriptor, or an error
//   connect     the same
//   close       NICStreamRequest ->  <- NICStreamAnswer, when the listener is closed
//
// The descriptor is the program's end of another socket of whole messages, on which the NIC hands
// over connections by NICStreamOpened, each with its descriptor: every one that a listener accepts,
// or the one that was asked for, or its error. When the program closes that end, the NIC soon
// listens no longer, or gives up the connection; `close` says when the port is free.
//
// The NIC takes no descriptor from a program, and none that it gives away is one that it uses.
#pragma once

#include <optional>
#include <span>

#include "host/nic/nic_protocol.h"
#include "transport/tcp_tuple.h"

namespace verbena::host {

enum class NICStreamCall : u32 { kListen = 1, kConnect, kClose };

struct NICStreamRequest {
  u32 version = kNICVersion;
  NICStreamCall call = NICStreamCall::kListen;
  u32 number = 0;   // the answer has it, too
  u32 backlog = 0;  // of kListen: connections that the kernel keeps for the NIC
  u32 closed = 0;   // of kClose: the number of the request to listen
  TCPTuple ends{};  // of kListen only the local one. A local port of 0: any

  // Returns nullopt if `message` is no such request, or has another version.
  [[nodiscard]] static std::optional<NICStreamRequest> decode(std::span<const u8> message);
};

struct NICStreamAnswer {
  u32 version = kNICVersion;
  u32 number = 0;
  i32 error = 0;  // errno; then there is no descriptor
};

struct NICStreamOpened {
  u32 version = kNICVersion;
  i32 error = 0;          // errno; then there is no descriptor
  u32 segment_bytes = 0;  // of TCP. RFC 5044: EMSS
  TCPTuple ends{};        // of the TCP connection
};

// A message and the descriptor that came with it, if one did.
template <typename T>
struct NICMessage {
  T body{};
  Descriptor descriptor{};
};

// Receives without waiting. Returns the size of the message: 0 at the end, negative on failure;
// errno says why. A second descriptor is closed.
[[nodiscard]] long receive_with_descriptor(int socket, std::span<u8> message, Descriptor& out);
// Returns the next message. If there is none, errno says why: EAGAIN, or ENOTCONN when none will
// ever come, as the other side has ended or does not keep to the protocol.
template <typename T>
[[nodiscard]] std::optional<NICMessage<T>> receive_nic_message(int socket) {
  NICMessage<T> message;
  const std::span<u8> bytes(reinterpret_cast<u8*>(&message.body), sizeof(T));
  const long size = receive_with_descriptor(socket, bytes, message.descriptor);
  if (size == static_cast<long>(sizeof(T)) && message.body.version == kNICVersion) return message;
  if (size >= 0 || errno != EAGAIN) errno = ENOTCONN;
  return std::nullopt;
}

struct NICStreamAttachment {
  NICAttached attached;
  Descriptor socket;
};
// Attaches an iWARP device to a function. Waits for a few seconds. `function`: as in NICAttach.
[[nodiscard]] Expected<NICStreamAttachment> attach_streams_to_nic(const std::string& path,
                                                                  const std::string& function);

}  // namespace verbena::host
