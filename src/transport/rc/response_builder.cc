// Response packets of an RC responder. IBTA Vol 1, 9.7.5.1 (ACK, READ response, atomic ACK).
#include <algorithm>

#include "base/check.h"
#include "memory/sg_walk.h"
#include "memory/touch.h"
#include "transport/rc/responder.h"
#include "wire/ib/credits.h"

namespace verbena {

// Returns the credits to advertise: receives that are ready. With a shared SRQ none are counted.
// 9.7.7.2
u8 RCResponder::credits() {
  if (shared_) return kNoCredits;
  advertised_zero_ = receive_queue_.empty();
  return code_from_credits(receive_queue_.size());
}

void RCResponder::build_headers(const Response& response, Op op, TxPacket& out) const {
  out.destination = nullptr;
  out.payload.clear();
  out.headers.bth.opcode = {Service::kRC, op};
  out.headers.bth.psn = response.psn;
  out.headers.bth.ack_req = out.headers.bth.solicited_event = out.headers.bth.takes_sack = false;
  out.headers.aeth = {
      .kind = response.aeth_kind, .value = response.aeth_value, .msn = response.msn};
}

// Returns the next bytes of a READ response; nullopt if the key was invalidated since, the memory
// has gone, or its bytes have not arrived: `why`.
std::optional<Bytes> RCResponder::next_of_read(const Response& response, u32 length,
                                               MemoryFault& why) const {
  const Resolved from = memory_.remote(response.pd, qp_.qpn, response.r_key, response.address,
                                       length, Access::kRemoteRead);
  why = from.fault;
  if (!from) return std::nullopt;
  if (copies_ != nullptr) copies_->read_for(response.msn.value());
  return readable(memory_, from.data, length, response.length_bytes - length, copies_, why);
}

// The same for more than one middle packet, in memory of this process; nullopt if that is
// impossible.
std::optional<Bytes> RCResponder::train_of_read(const Response& response, u32 at_most) const {
  if (!response.started || response.length_bytes <= mtu()) return std::nullopt;
  const u32 packets = std::min({at_most, kLongestTrain, (response.length_bytes - 1) / mtu()});
  const u32 length = packets * mtu();
  if (packets < 2) return std::nullopt;
  const Resolved from = memory_.remote(response.pd, qp_.qpn, response.r_key, response.address,
                                       length, Access::kRemoteRead);
  if (!from || !is_here(from.data) || !is_readable({from.data, length})) return std::nullopt;
  return Bytes(from.data, length);
}

void RCResponder::note_unreadable(const Response& response, MemoryFault why) {
  fault_ = {.refusal = Refusal::kRemoteMemory,
            .opcode = {Service::kRC, Op::kRDMAReadRequest},
            .remote_address = response.address,
            .length_bytes = response.length_bytes,
            .r_key = response.r_key,
            .memory = why,
            .key = memory_.describe(response.r_key.value)};
  ++counters_.resp_remote_access_errors;
}

// A NAK takes its place. A requester that has had the response already ignores the NAK of a
// duplicate, so that leaves the QP as it is. Else nothing behind it is answered.
void RCResponder::refuse_read(const Response& response, MemoryFault why) {
  const bool repeated = response.repeated;
  if (!repeated) note_unreadable(response, why);
  responses_.refuse_front(NAKCode::kRemoteAccessError);
  if (repeated) return;
  responses_.drop_behind_front();
  failed_ = fatal_pending_ = true;
  event_ = EngineEvent::kAccessError;
}

// Builds one packet of a READ response, or a train. Returns false if its bytes have not arrived, or
// if a NAK has taken its place.
bool RCResponder::build_read(Response& response, u32 at_most, TxPacket& out) {
  MemoryFault why = MemoryFault::kNone;
  std::optional<Bytes> payload = train_of_read(response, at_most);
  if (payload)
    out.packets = static_cast<u32>(payload->size()) / mtu();
  else
    payload = next_of_read(response, std::min(response.length_bytes, mtu()), why);
  if (!payload && why == MemoryFault::kLater) return false;
  if (!payload) {
    refuse_read(response, why);
    return false;
  }
  const u32 length = static_cast<u32>(payload->size());
  const bool last = length == response.length_bytes;
  const Op op = response.started ? (last ? Op::kRDMAReadResponseLast : Op::kRDMAReadResponseMiddle)
                                 : (last ? Op::kRDMAReadResponseOnly : Op::kRDMAReadResponseFirst);
  build_headers(response, op, out);
  out.headers.aeth.value = credits();
  out.payload.add_unstable(*payload);  // its owner may write to it at any time. IBTA 10.6.6
  response.started = true;
  response.address += length;
  response.length_bytes -= length;
  response.psn = response.psn.advanced(out.packets);
  if (last) responses_.pop_front();
  return true;
}

bool RCResponder::poll_acknowledgement(TxPacket& out) {
  const Response* const response = responses_.front();
  return response != nullptr && response->kind != Response::Kind::kRead && poll_packet(out);
}

// Returns false if there is no response, or if it waits for copies.
bool RCResponder::begin_response() {
  Response* const response = responses_.front();
  if (response == nullptr) return false;
  if (copies_ == nullptr) return true;
  if (!copies_->has_ended(response->after)) return false;
  expect(expected_);  // notes the progress that waited for the copies
  if (response->far_atomic != 0)
    response->original = copies_->original(response->far_atomic).value_or(response->original);
  return true;
}

bool RCResponder::poll_packet(TxPacket& out, u32 at_most) {
  if (!begin_response()) return false;
  Response* response = responses_.front();
  if (response->kind == Response::Kind::kRead) {
    if (build_read(*response, at_most, out)) return true;
    response = responses_.front();
    if (response->kind == Response::Kind::kRead) return false;  // it waits for its bytes
  }
  if (response->kind == Response::Kind::kAtomic) {
    build_headers(*response, Op::kAtomicAcknowledge, out);
    out.headers.aeth.value = credits();
    out.headers.atomic_ack.original_data = response->original;
  } else if (response->kind == Response::Kind::kConfirmation) {
    build_headers(*response, Op::kRDMAReadResponseOnly, out);
    out.headers.aeth.value = credits();
  } else if (response->kind == Response::Kind::kSack) {
    build_headers(*response, kSackOpcode.op, out);
    out.headers.bth.opcode = kSackOpcode;
    out.headers.aeth.value = credits();
    out.headers.sack = {.first = response->sacked_from, .bits = response->original};
  } else {
    if (response->positive_ack()) {
      response->aeth_value = credits();
      out.urgency = Urgency::kWithReply;
    }
    build_headers(*response, Op::kAcknowledge, out);
  }
  responses_.pop_front();
  return true;
}

}  // namespace verbena
