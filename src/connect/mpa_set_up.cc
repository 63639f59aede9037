#include "connect/mpa_set_up.h"

#include <algorithm>

#include "base/check.h"

namespace verbena {

using iwarp::MPAEnhancement;
using iwarp::MPAFrame;

namespace {

constexpr u16 kNotNegotiated = 0x3fff;  // RFC 6581, 9: the value of a depth that is left open
constexpr u8 kHighestRevision = 2;
// RFC 5044, 7.1.2: a responder sends nothing before the initiator's first FPDU. Where that offers
// no ready-to-receive message, its program may wait for ours; by then it has read the reply.
constexpr Duration kPatience = ms(100);

u8 depth_of(u16 value, u8 if_open) {
  return value == kNotNegotiated ? if_open : static_cast<u8>(std::min<u16>(value, 0xff));
}

void set_ready(ReadyToReceive how, MPAEnhancement& to) {
  to.peer_to_peer = how != ReadyToReceive::kNone;
  to.rtr_send = how == ReadyToReceive::kSend;
  to.rtr_write = how == ReadyToReceive::kWrite;
  to.rtr_read = how == ReadyToReceive::kRead;
}

}  // namespace

MPASetUp MPASetUp::active(const MPAConfig& config, std::span<const u8> private_data) {
  MPASetUp set_up(config, State::kSending);
  const bool offers = config.peer_to_peer;
  set_up.send({.markers = config.markers,
               .crc = config.crc,
               .rfc7306 = config.rfc7306,
               .revision = config.revision},
              {.peer_to_peer = offers,
               .rtr_write = offers,
               .rtr_read = offers,
               .ird = config.ird,
               .ord = config.ord},
              private_data);
  return set_up;
}

MPASetUp MPASetUp::passive(const MPAConfig& config) {
  return MPASetUp(config, State::kAwaitsRequest);
}

void MPASetUp::send(MPAFrame frame, const MPAEnhancement& enhancement,
                    std::span<const u8> private_data) {
  CHECK(private_data.size() <= kMaxPrivateData);
  frame.enhanced = frame.revision >= 2;
  const std::size_t more = frame.enhanced ? MPAEnhancement::kSize : 0;
  frame.private_data_length = static_cast<u16>(more + private_data.size());
  outgoing_.resize(MPAFrame::kSize + more);
  frame.encode(std::span(outgoing_).first<MPAFrame::kSize>());
  if (frame.enhanced)
    enhancement.encode(std::span(outgoing_).subspan<MPAFrame::kSize, MPAEnhancement::kSize>());
  outgoing_.insert(outgoing_.end(), private_data.begin(), private_data.end());
  sent_ = 0;
}

void MPASetUp::on_sent(std::size_t bytes) {
  sent_ += bytes;
  CHECK(sent_ <= outgoing_.size());
  if (state_ == State::kSending && sent_ == outgoing_.size()) state_ = State::kAwaitsReply;
}

std::span<const u8> MPASetUp::on_bytes(std::span<const u8> bytes) {
  while (!bytes.empty() && (state_ == State::kAwaitsReply || state_ == State::kAwaitsRequest)) {
    const std::size_t size = incoming_.size() < MPAFrame::kSize
                                 ? MPAFrame::kSize
                                 : MPAFrame::kSize + frame_.private_data_length;
    const std::size_t take = std::min(bytes.size(), size - incoming_.size());
    incoming_.insert(incoming_.end(), bytes.begin(),
                     bytes.begin() + static_cast<std::ptrdiff_t>(take));
    bytes = bytes.subspan(take);
    if (!MPAFrame::may_begin(incoming_, state_ == State::kAwaitsReply)) {
      state_ = State::kFailed;
    } else if (incoming_.size() == MPAFrame::kSize && take != 0) {
      const std::optional<MPAFrame> frame = MPAFrame::decode(incoming_);
      if (!frame) return refuse(), bytes;
      frame_ = *frame;
      if (has_frame()) on_frame();
    } else if (incoming_.size() > MPAFrame::kSize && has_frame()) {
      on_frame();
    }
  }
  return bytes;
}

bool MPASetUp::has_frame() const {
  return incoming_.size() == MPAFrame::kSize + frame_.private_data_length;
}

// A revision or a length that there is not: a passive end says so, and which revision it has.
void MPASetUp::refuse() {
  if (state_ == State::kAwaitsRequest)
    send({.is_reply = true, .rejected = true, .revision = kHighestRevision}, {}, {});
  state_ = State::kFailed;
}

void MPASetUp::on_frame() {
  is_enhanced_ = frame_.revision >= 2 && frame_.enhanced;
  if (is_enhanced_) {
    const std::optional<MPAEnhancement> enhancement =
        MPAEnhancement::decode(std::span(incoming_).subspan(MPAFrame::kSize));
    if (!enhancement) return refuse();
    enhancement_ = *enhancement;
  }
  note_depths();
  state_ == State::kAwaitsRequest ? on_request() : on_reply();
}

void MPASetUp::note_depths() {
  peer_ird_ = is_enhanced_ ? depth_of(enhancement_.ird, config_.ord) : config_.ord;
  peer_ord_ = is_enhanced_ ? depth_of(enhancement_.ord, config_.ird) : config_.ird;
}

void MPASetUp::on_request() {
  if (frame_.rejected || !choose_ready()) return refuse();
  state_ = State::kRequested;
}

// Chooses the first ready-to-receive message that the peer offers. RFC 6581, 9. Returns false if it
// offers none.
bool MPASetUp::choose_ready() {
  ready_ = ReadyToReceive::kNone;
  if (!is_enhanced_ || !enhancement_.peer_to_peer) return true;
  ready_ = enhancement_.rtr_write  ? ReadyToReceive::kWrite
           : enhancement_.rtr_read ? ReadyToReceive::kRead
           : enhancement_.rtr_send ? ReadyToReceive::kSend
                                   : ReadyToReceive::kNone;
  return ready_ != ReadyToReceive::kNone;
}

void MPASetUp::on_reply() {
  if (frame_.rejected) {
    state_ = State::kRejected;
    return;
  }
  const bool is_usable = frame_.revision == config_.revision && choose_ready();
  state_ = is_usable ? State::kAgreed : State::kFailed;
}

void MPASetUp::accept(u8 ird, u8 ord, std::span<const u8> private_data) {
  CHECK(state_ == State::kRequested);
  config_.ird = ird;
  config_.ord = std::min(ord, peer_ird_);
  config_.crc |= frame_.crc;
  config_.rfc7306 &= frame_.rfc7306;
  MPAEnhancement enhancement{.ird = config_.ird, .ord = config_.ord};
  set_ready(ready_, enhancement);
  send({.is_reply = true,
        .markers = config_.markers,
        .crc = config_.crc,
        .rfc7306 = config_.rfc7306,
        .revision = frame_.revision},
       enhancement, private_data);
  state_ = State::kAgreed;
}

void MPASetUp::reject(std::span<const u8> private_data) {
  CHECK(state_ == State::kRequested);
  send({.is_reply = true, .crc = config_.crc, .rejected = true, .revision = frame_.revision},
       {.ird = config_.ird, .ord = config_.ord}, private_data);
  state_ = State::kRejected;
}

std::span<const u8> MPASetUp::private_data() const {
  const std::size_t skip = MPAFrame::kSize + (is_enhanced_ ? MPAEnhancement::kSize : 0);
  return incoming_.size() < skip ? std::span<const u8>{} : std::span(incoming_).subspan(skip);
}

// A peer that is not Verbena needs time to take our ready-to-receive message: Linux's siw leaves
// bytes that arrive meanwhile in the socket.
StreamAgreement MPASetUp::agreement(u32 segment_bytes) const {
  CHECK(state_ == State::kAgreed);
  const bool is_active = frame_.is_reply;
  const bool has_ready = ready_ != ReadyToReceive::kNone;
  const bool waits = !is_active || (has_ready && !frame_.rfc7306);
  const bool waits_long = !is_active && has_ready;  // until it comes
  return {.crc = config_.crc || frame_.crc,
          .sends_markers = frame_.markers,
          .receives_markers = config_.markers,
          .atomics_and_immediate = config_.rfc7306 && frame_.rfc7306,
          .to_send = is_active ? ready_ : ReadyToReceive::kNone,
          .awaits_ready = waits,
          .ready_patience = waits && !waits_long ? std::optional(kPatience) : std::nullopt,
          .ird = config_.ird,
          .ord = std::min(config_.ord, peer_ird_),
          .segment_bytes = segment_bytes};
}

}  // namespace verbena
