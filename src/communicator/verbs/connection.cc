#include "communicator/verbs/connection.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/check.h"
#include "communicator/verbs/queue_pair.h"
#include "communicator/verbs/stream_connector.h"

namespace verbena::coll {
namespace {

constexpr u32 kInlineBytes = 256;
constexpr u32 kReadsInQueue = 32;
constexpr u32 kUnsignalledSends = 8;  // at most, one after another
// 4.096 us 2^17 = 0.5 s, seven times: a peer that is stopped for some seconds is not lost.
constexpr u8 kTimeout = 17;

std::string rank_text(u32 peer) { return "rank " + std::to_string(peer); }

tl::unexpected<Error> refused_by(const char* what, u32 peer, int error) {
  return failure(VERBENA_COLL_SYSTEM,
                 std::string(what) + " (" + rank_text(peer) + "): " + std::strerror(error),
                 static_cast<int>(peer));
}

// Names the peer as the rank to blame.
Expected<void> blame(Expected<void> result, u32 peer) {
  if (!result) result.error().rank = static_cast<int>(peer);
  return result;
}

u32 first_psn(u32 peer, u32 rail) { return (peer * 7919 + rail * 104729 + 1) & 0xffffff; }

}  // namespace

Connection::~Connection() {
  for (const Line& line : lines_)
    if (line.qp != nullptr) ibv_destroy_qp(line.qp);
}

Expected<void> Connection::create(std::span<const std::unique_ptr<Rail>> rails) {
  for (u32 number = 0; number < rails.size(); ++number) {
    const Rail& rail = *rails[number];
    ibv_qp_init_attr wanted{};
    wanted.send_cq = wanted.recv_cq = rail.cq();
    wanted.qp_type = IBV_QPT_RC;
    wanted.cap.max_send_wr = kReadsInQueue + (number == 0 ? depth_ + kSpareSlots : 0);
    wanted.cap.max_recv_wr = number == 0 ? depth_ + kSpareSlots : 1;
    wanted.cap.max_send_sge = wanted.cap.max_recv_sge = 1;
    wanted.cap.max_inline_data = number == 0 ? kInlineBytes : 0;
    ibv_qp_init_attr asked = wanted;
    ibv_qp* qp = ibv_create_qp(rail.pd(), &asked);
    if (qp == nullptr) {  // a device with less inline data, or none
      asked = wanted;
      asked.cap.max_inline_data = 0;
      qp = ibv_create_qp(rail.pd(), &asked);
    }
    if (qp == nullptr) return refused_by("ibv_create_qp", peer_, errno);
    Line line;
    line.qp = qp;
    line.depth = wanted.cap.max_send_wr;
    line.marks.resize(line.depth);
    line.is_read.resize(line.depth);
    lines_.push_back(std::move(line));
    if (number == 0) max_inline_ = asked.cap.max_inline_data;
    if (const auto ready = blame(to_init(qp, rail.port(), rank_text(peer_)), peer_); !ready)
      return ready;
    QPAddress address = rail.address();
    address.qp_num = qp->qp_num;
    address.psn = first_psn(peer_, number);
    addresses_.push_back(address);
  }
  for (u32 i = 0; i < depth_ + kSpareSlots; ++i) post_receive(i);
  credits_ = depth_;
  return {};
}

Expected<void> Connection::connect(std::span<const std::unique_ptr<Rail>> rails,
                                   std::span<const QPAddress> remote) {
  for (u32 number = 0; number < lines_.size(); ++number) {
    Line& line = lines_[number];
    const Rail& rail = *rails[number];
    line.read_limit = std::min(rail.reads(), remote[number].reads);
    if (has_streams(rail)) continue;
    const std::string who = rank_text(peer_);
    if (const auto ready = blame(to_rtr(line.qp, rail, remote[number], who), peer_); !ready)
      return ready;
    const auto ready = blame(to_rts(line.qp,
                                    {.psn = addresses_[number].psn,
                                     .reads = static_cast<u8>(line.read_limit),
                                     .timeout = kTimeout},
                                    who),
                             peer_);
    if (!ready) return ready;
  }
  return {};
}

void Connection::post_receive(u32 index) {
  ibv_sge sge{
      .addr = reinterpret_cast<u64>(slot(index)), .length = kSlotSize, .lkey = memory_.lkey};
  ibv_recv_wr request{};
  request.wr_id = WorkId{WorkKind::kReceive, peer_, 0, index}.value();
  request.sg_list = &sge;
  request.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  if (ibv_post_recv(lines_[0].qp, &request, &bad) != 0) broken_ = true;
}

void Connection::post(Line& line, ibv_send_wr& request, bool is_read) {
  ++line.posted;
  const u32 last = line.first_mark == line.last_mark
                       ? line.completed
                       : line.marks[(line.last_mark - 1) % line.depth];
  if (is_read || line.posted - last >= kUnsignalledSends ||
      (request.send_flags & IBV_SEND_SIGNALED) != 0) {
    request.send_flags |= IBV_SEND_SIGNALED;
    line.marks[line.last_mark % line.depth] = line.posted;
    line.is_read[line.last_mark % line.depth] = is_read ? 1 : 0;
    ++line.last_mark;
  }
  ibv_send_wr* bad = nullptr;
  if (!broken_ && ibv_post_send(line.qp, &request, &bad) != 0) broken_ = true;
}

void Connection::send(Header header, std::span<const u8> more, std::span<const u8> payload) {
  --credits_;
  header.credits = std::exchange(owed_, 0);
  transmit(header, more, payload);
}

// A message without meaning. One for each sleep of the peer, so there is always a receive for it.
void Connection::wake_peer() {
  if (broken_ || !room_to_send()) return;
  const Header nothing{};
  ibv_sge sge{.addr = 0, .length = sizeof nothing, .lkey = memory_.lkey};
  u8* const to = slot(depth_ + kSpareSlots);
  std::memcpy(to, &nothing, sizeof nothing);
  sge.addr = reinterpret_cast<u64>(to);
  ibv_send_wr request{};
  request.wr_id = WorkId{WorkKind::kSend, peer_, 0, 0}.value();
  request.sg_list = &sge;
  request.num_sge = 1;
  request.opcode = IBV_WR_SEND;
  request.send_flags = max_inline_ >= sizeof nothing ? IBV_SEND_INLINE : 0;
  post(lines_[0], request, false);
}

void Connection::take_from_link(Header::Kind kind) {
  link_->take();
  if (kind != Header::Kind::kCredit) ++owed_;
  return_credits();
}

void Connection::transmit(const Header& header, std::span<const u8> more,
                          std::span<const u8> payload) {
  if (link_ != nullptr) {
    if (link_->send(header, more, payload)) wake_peer();
    return;
  }
  const u32 bytes = static_cast<u32>(sizeof header + more.size() + payload.size());
  CHECK(bytes <= kSlotSize);
  const bool is_inline = bytes <= max_inline_;
  u8 small[kInlineBytes];
  u8* const to =
      is_inline ? small : slot(depth_ + kSpareSlots + next_slot_++ % (depth_ + kSpareSlots));
  std::memcpy(to, &header, sizeof header);
  if (!more.empty()) std::memcpy(to + sizeof header, more.data(), more.size());
  if (!payload.empty())
    std::memcpy(to + sizeof header + more.size(), payload.data(), payload.size());
  ibv_sge sge{.addr = reinterpret_cast<u64>(to), .length = bytes, .lkey = memory_.lkey};
  ibv_send_wr request{};
  request.wr_id = WorkId{WorkKind::kSend, peer_, 0, 0}.value();
  request.sg_list = &sge;
  request.num_sge = 1;
  request.opcode = IBV_WR_SEND;
  request.send_flags = is_inline ? IBV_SEND_INLINE : 0;
  post(lines_[0], request, false);
}

// The spare slots are for these: two at most are under way, since the peer must take half of the
// others between them.
void Connection::return_credits() {
  if (owed_ < depth_ / 2 || broken_ || !room_to_send()) return;
  transmit({.kind = Header::Kind::kCredit, .credits = std::exchange(owed_, 0)}, {}, {});
}

void Connection::ping() {
  Line& line = lines_[0];
  if (broken_ || !room_to_send() || (pinging_ && !is_idle())) return;
  ibv_send_wr request{};
  request.wr_id = WorkId{WorkKind::kSend, peer_, 0, 0}.value();
  request.opcode = IBV_WR_RDMA_READ;
  request.send_flags = IBV_SEND_SIGNALED;
  post(line, request, false);
  pinging_ = true;
  ping_mark_ = line.posted;
}

bool Connection::is_idle() const {
  return !pinging_ || static_cast<i32>(lines_[0].completed - ping_mark_) >= 0;
}

bool Connection::can_read(u32 rail) const {
  const Line& line = lines_[rail];
  const u32 room = line.depth - (rail == 0 ? depth_ / 2 : 0);
  return !broken_ && line.reads < line.read_limit && line.posted - line.completed < room;
}

void Connection::read(u32 rail, u32 index, u64 to, u32 lkey, u64 from, u32 rkey, u32 bytes) {
  Line& line = lines_[rail];
  ibv_sge sge{.addr = to, .length = bytes, .lkey = lkey};
  ibv_send_wr request{};
  request.wr_id = WorkId{WorkKind::kRead, peer_, rail, index}.value();
  request.sg_list = &sge;
  request.num_sge = 1;
  request.opcode = IBV_WR_RDMA_READ;
  request.wr.rdma.remote_addr = from;
  request.wr.rdma.rkey = rkey;
  ++line.reads;
  post(line, request, true);
}

Connection::Message Connection::message(u32 index, u32 bytes) const {
  Message message{};
  const u8* const at = slot(index);
  std::memcpy(&message.header, at, sizeof message.header);
  message.payload = {at + sizeof(Header), bytes - sizeof(Header)};
  return message;
}

void Connection::give_back(u32 index) {
  Header header;
  std::memcpy(&header, slot(index), sizeof header);
  post_receive(index);
  if (header.kind != Header::Kind::kCredit) ++owed_;
  return_credits();
}

void Connection::on_sent(u32 rail) {
  Line& line = lines_[rail];
  if (line.first_mark == line.last_mark) return;
  const u32 mark = line.first_mark++ % line.depth;
  line.completed = line.marks[mark];
  if (line.is_read[mark] != 0) --line.reads;
}

void Connection::break_off() {
  broken_ = true;
  for (const Line& line : lines_) {
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_ERR;
    ibv_modify_qp(line.qp, &attributes, IBV_QP_STATE);
  }
}

}  // namespace verbena::coll
