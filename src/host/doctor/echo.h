// Echo: the question and answer by which one host tells whether another speaks RoCEv2, and how the
// way there is: a DREQ for a connection that is not there, which every communication manager
// answers with a DREP (IBTA Vol 1, 12.9.9), in a MAD to QP 1. In the private data, which others
// ignore, a doctor asks for marks on the answer, and tells what the question arrived with.
// Invariant: decode(encode(e)) == e. What arrives is untrusted.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "device/port/frame.h"
#include "wire/ib/cm/message.h"

namespace verbena::host {

struct EchoRequest {
  u64 transaction_id = 0;
  CommId ours{}, theirs{};      // upper 10 bits: the process that is to get it, if any
  u8 answer_traffic_class = 0;  // for the answer, where a doctor gives it
  [[nodiscard]] cm::MADBytes encode() const;
  friend bool operator==(const EchoRequest&, const EchoRequest&) = default;
};

// EchoNote: the properties of a question as it arrived.
struct EchoNote {
  u16 transport_bytes = 0;  // BTH to ICRC
  u8 traffic_class = 0;
  u8 hop_limit = 0;
  friend bool operator==(const EchoNote&, const EchoNote&) = default;
};

struct EchoReply {
  u64 transaction_id = 0;
  CommId ours{}, theirs{};
  std::optional<EchoNote> note;  // none: it is no doctor that answers
  [[nodiscard]] cm::MADBytes encode() const;
  friend bool operator==(const EchoReply&, const EchoReply&) = default;
};

// The MAD of a packet to QP 1 that may be longer than one; nullopt: another packet, or a bad one.
[[nodiscard]] std::optional<std::span<const u8>> mad_in(const IngressFrame& frame);
[[nodiscard]] std::optional<EchoRequest> decode_request(std::span<const u8> mad);
[[nodiscard]] std::optional<EchoReply> decode_reply(std::span<const u8> mad);

// The packet to QP 1 with this payload, which stays where it is until it is sent.
[[nodiscard]] EgressFrame echo_frame(const GID& source, const GID& destination, u8 traffic_class,
                                     std::span<const u8> payload);

}  // namespace verbena::host
