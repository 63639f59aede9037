#include "management/rmpp_transfers.h"

#include <algorithm>

#include "base/check.h"

namespace verbena::management {
namespace {

constexpr std::size_t kRMPPDataAt = RMPPHeader::kAt + RMPPHeader::kSize;  // PayloadLength counts on
constexpr std::size_t kMethodAt = 3, kTransactionAt = 8;
constexpr u8 kResponseBit = 0x80;

// Common, RMPP and class header, which each segment of the class has.
std::size_t rmpp_headers_of(std::span<const u8> mad) {
  constexpr std::size_t kOfAdministration = 56, kOfVendors = 40;  // 15.2.1.1, 16.5.1
  return static_cast<MgmtClass>(mad[1]) == MgmtClass::kSubnAdm ? kOfAdministration : kOfVendors;
}
std::size_t data_room_of(std::span<const u8> mad) { return kMADSize - rmpp_headers_of(mad); }

// At least one.
u32 segments_of(std::size_t data, std::size_t room) {
  return static_cast<u32>(std::max<std::size_t>(1, (data + room - 1) / room));
}

}  // namespace

RMPPTransfers::Key RMPPTransfers::key_of(PortPlace at, u16 peer_lid, std::span<const u8> mad) {
  return {.at = at,
          .peer_lid = peer_lid,
          .mgmt_class = mad[1],
          .transaction = load_be64(mad.data() + kTransactionAt)};
}

// --- out

void RMPPTransfers::send(PortPlace at, Datagram message, Time now) {
  const Key key = key_of(at, message.dlid, message.mad);
  std::erase_if(outgoing_, [&](const Outgoing& transfer) { return transfer.key == key; });
  if (outgoing_.size() >= kMostTransfers) return;
  const std::size_t headers = rmpp_headers_of(message.mad);
  const std::size_t bytes =
      std::clamp<std::size_t>(message.message_bytes, headers, message.mad.size());
  const auto behind = message.mad.begin() + static_cast<std::ptrdiff_t>(headers);
  std::vector<u8> data(behind, message.mad.begin() + static_cast<std::ptrdiff_t>(bytes));
  const u32 segments = segments_of(data.size(), kMADSize - headers);
  message.mad.resize(headers);
  outgoing_.push_back({.key = key,
                       .envelope = std::move(message),
                       .data = std::move(data),
                       .segments = segments,
                       .due = now});
  send_window(outgoing_.back(), now);
}

bool RMPPTransfers::is_sending(PortPlace at, const Datagram& message) const {
  const Key key = key_of(at, message.dlid, message.mad);
  return std::ranges::find(outgoing_, key, &Outgoing::key) != outgoing_.end();
}

void RMPPTransfers::send_window(Outgoing& transfer, Time now) {
  const u32 last =
      std::min({transfer.window_last, transfer.segments, transfer.acknowledged + kMostUnderWay});
  while (transfer.sent < last) send_segment(transfer, ++transfer.sent);
  transfer.due = now + kAckTimeout;
}

// PayloadLength counts the class header of each segment: in the first one, of all together.
void RMPPTransfers::send_segment(const Outgoing& transfer, u32 number) {
  const std::size_t headers = transfer.envelope.mad.size(), room = kMADSize - headers;
  const std::size_t from = (number - 1) * room;
  const std::span<const u8> part =
      std::span(transfer.data).subspan(from).first(std::min(room, transfer.data.size() - from));
  Datagram segment = transfer.envelope;
  segment.mad.resize(kMADSize);
  std::ranges::copy(part, segment.mad.begin() + static_cast<std::ptrdiff_t>(headers));
  segment.message_bytes = kMADSize;
  const bool is_first = number == 1, is_last = number == transfer.segments;
  const std::size_t class_header = headers - kRMPPDataAt;
  RMPPHeader header{.segment = number};
  if (is_first) header.flags |= RMPPHeader::kFirst;
  if (is_last) header.flags |= RMPPHeader::kLast;
  if (is_first)
    header.length = static_cast<u32>(transfer.segments * class_header + transfer.data.size());
  if (is_last) header.length = static_cast<u32>(class_header + part.size());
  header.encode(segment.mad);
  to_send_.push_back({transfer.key.at, std::move(segment)});
}

void RMPPTransfers::on_ack(const Key& key, const Datagram& mad, Time now) {
  const auto transfer = std::ranges::find(outgoing_, key, &Outgoing::key);
  if (transfer == outgoing_.end()) return;
  const RMPPHeader ack = RMPPHeader::decode(mad.mad);
  if (ack.segment > transfer->segments) {
    abort(key, mad, RMPPStatus::kInconsistentSegmentNumber);
    return end(key);
  }
  if (ack.length < ack.segment) {
    abort(key, mad, RMPPStatus::kWindowTooSmall);
    return end(key);
  }
  if (ack.segment < transfer->acknowledged) return;  // an old one
  if (ack.segment > transfer->acknowledged) transfer->retries = 0;
  // A request that is sent again is acknowledged as far as it came the first time.
  transfer->sent = std::max(transfer->sent, ack.segment);
  transfer->acknowledged = ack.segment;
  transfer->window_last = std::max(transfer->window_last, ack.length);
  if (transfer->acknowledged == transfer->segments)
    end(key);
  else
    send_window(*transfer, now);
}

// --- in

std::optional<Datagram> RMPPTransfers::on_mad(PortPlace at, const Datagram& mad, Time now) {
  const Key key = key_of(at, mad.slid, mad.mad);
  const RMPPHeader header = RMPPHeader::decode(mad.mad);
  switch (header.type) {
    case RMPPType::kData:
      if (header.version == RMPPHeader::kVersion) return on_data(key, mad, now);
      abort(key, mad, RMPPStatus::kUnsupportedVersion);
      return std::nullopt;
    case RMPPType::kACK: on_ack(key, mad, now); return std::nullopt;
    case RMPPType::kStop:
    case RMPPType::kAbort: end(key); return std::nullopt;
  }
  return std::nullopt;
}

std::optional<Datagram> RMPPTransfers::on_data(const Key& key, const Datagram& mad, Time now) {
  auto transfer = std::ranges::find(incoming_, key, &Incoming::key);
  const RMPPHeader header = RMPPHeader::decode(mad.mad);
  if (transfer == incoming_.end()) {
    if (header.segment != 1 || (header.flags & RMPPHeader::kFirst) == 0) return std::nullopt;
    if (!has_room_for_incoming()) {
      answer(key, mad, {.type = RMPPType::kStop, .status = RMPPStatus::kResourcesExhausted});
      return std::nullopt;
    }
    Datagram begun = mad;
    begun.mad.resize(rmpp_headers_of(mad.mad));
    incoming_.push_back({.key = key, .message = std::move(begun), .window_last = 1, .due = now});
    transfer = std::prev(incoming_.end());
  }
  return take_segment(*transfer, mad, now);
}

// Those that are whole and only wait for their sender to hear it go first.
bool RMPPTransfers::has_room_for_incoming() {
  if (incoming_.size() < kMostTransfers) return true;
  std::erase_if(incoming_, [](const Incoming& transfer) { return transfer.is_complete; });
  return incoming_.size() < kMostTransfers;
}

// A segment that is not the next one is dropped; its sender hears which is expected.
std::optional<Datagram> RMPPTransfers::take_segment(Incoming& transfer, const Datagram& mad,
                                                    Time now) {
  const Key key = transfer.key;
  const RMPPHeader header = RMPPHeader::decode(mad.mad);
  const std::size_t headers = rmpp_headers_of(mad.mad);
  const bool is_last = (header.flags & RMPPHeader::kLast) != 0;
  const auto acknowledge = [&] {
    answer(key, mad,
           {.type = RMPPType::kACK, .segment = transfer.received, .length = transfer.window_last});
  };
  transfer.due = now + kIdleTimeout;
  if (transfer.is_complete || header.segment != transfer.received + 1) {
    acknowledge();
    return std::nullopt;
  }
  const std::size_t class_header = headers - kRMPPDataAt;
  const std::size_t bytes = is_last ? header.length - class_header : data_room_of(mad.mad);
  if ((is_last && (header.length < class_header || bytes > data_room_of(mad.mad))) ||
      transfer.message.mad.size() + bytes > Datagram::kMaxBytes) {
    abort(key, mad, RMPPStatus::kInconsistentPayloadLength);
    end(key);
    return std::nullopt;
  }
  const auto data = mad.mad.begin() + static_cast<std::ptrdiff_t>(headers);
  transfer.message.mad.insert(transfer.message.mad.end(), data,
                              data + static_cast<std::ptrdiff_t>(bytes));
  transfer.received = header.segment;
  if (is_last) {
    transfer.window_last = header.segment;
    transfer.is_complete = true;
    acknowledge();
    Datagram message = std::move(transfer.message);
    message.message_bytes = static_cast<u32>(message.mad.size());
    if (message.mad.size() < kMADSize) message.mad.resize(kMADSize);
    return message;
  }
  if (header.segment >= transfer.window_last) {
    transfer.window_last = header.segment == 1 ? kWindow : header.segment + kWindow;
    acknowledge();
  }
  return std::nullopt;
}

// --- both

// Back to the sender of `mad`: with its common header, but in the other direction.
void RMPPTransfers::answer(const Key& key, const Datagram& mad, const RMPPHeader& header) {
  Datagram reply = mad;
  std::swap(reply.source_qp, reply.destination_qp);
  reply.dlid = mad.slid;
  reply.slid = 0;
  reply.message_bytes = kMADSize;
  reply.mad.resize(kRMPPDataAt);
  reply.mad.resize(kMADSize);
  reply.mad[kMethodAt] ^= kResponseBit;
  header.encode(reply.mad);
  to_send_.push_back({key.at, std::move(reply)});
}

void RMPPTransfers::abort(const Key& key, const Datagram& mad, RMPPStatus status) {
  answer(key, mad, {.type = RMPPType::kAbort, .status = status});
}

void RMPPTransfers::end(const Key& key) {
  std::erase_if(outgoing_, [&](const Outgoing& transfer) { return transfer.key == key; });
  std::erase_if(incoming_, [&](const Incoming& transfer) { return transfer.key == key; });
}

void RMPPTransfers::on_timer(Time now) {
  std::erase_if(incoming_, [now](const Incoming& transfer) { return transfer.due <= now; });
  std::erase_if(outgoing_, [now](const Outgoing& transfer) {
    return transfer.due <= now && transfer.retries == kMostRetries;
  });
  for (Outgoing& transfer : outgoing_) {
    if (transfer.due > now) continue;
    ++transfer.retries;
    transfer.sent = transfer.acknowledged;
    send_window(transfer, now);
  }
}

Time RMPPTransfers::next_timer() const {
  Time next = Time::never();
  for (const Outgoing& transfer : outgoing_) next = std::min(next, transfer.due);
  for (const Incoming& transfer : incoming_) next = std::min(next, transfer.due);
  return next;
}

std::optional<Delivery> RMPPTransfers::poll_to_send() {
  if (to_send_.empty()) return std::nullopt;
  Delivery delivery = std::move(to_send_.front());
  to_send_.pop_front();
  return delivery;
}

}  // namespace verbena::management
