#include "abi/rdmacm/rsocket/stream.h"

#include <endian.h>

#include <atomic>
#include <bit>
#include <cstddef>

namespace verbena::rdmacm::rsocket {
namespace {

constexpr u32 kControls = 4;         // spare places in the send queue
constexpr u32 kMostBatches = 64;     // of completions, at one look
constexpr u32 kSendLowWater = 2048;  // bytes
constexpr u64 kReceive = 1ULL << 63;
constexpr u32 kSlot = sizeof(Iomap);  // of control messages, behind the data in the send buffer

int error_of(ibv_wc_status status) {
  return status == IBV_WC_RETRY_EXC_ERR ? ETIMEDOUT : ECONNRESET;
}

}  // namespace

Stream::~Stream() {
  if (id_ != nullptr) rdma_destroy_qp(id_);
}

int Stream::make_qp(rdma_cm_id& id) {
  if (completions_.open(id.verbs, settings_.send_queue + settings_.receive_queue) != 0) return -1;
  ibv_qp_init_attr attr{};
  attr.send_cq = attr.recv_cq = completions_.cq();
  attr.qp_type = IBV_QPT_RC;
  attr.sq_sig_all = 1;
  attr.cap = {.max_send_wr = settings_.send_queue,
              .max_recv_wr = settings_.receive_queue,
              .max_send_sge = 2,
              .max_recv_sge = 1,
              .max_inline_data = settings_.inline_bytes};
  if (rdma_create_qp(&id, nullptr, &attr) != 0) return -1;
  settings_.inline_bytes = attr.cap.max_inline_data;
  id_ = &id;
  pd_ = id.qp->pd;
  return 0;
}

int Stream::open(rdma_cm_id& id, const Settings& settings) {
  settings_ = settings;
  constexpr int kWritten = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
  const std::size_t table = kTargets * sizeof(RemoteSGE) + settings.iomaps * sizeof(Iomap);
  if (make_qp(id) != 0 ||
      send_.open(pd_, settings.send_bytes + kControls * kSlot, IBV_ACCESS_LOCAL_WRITE) != 0 ||
      receive_.open(pd_, settings.receive_bytes, kWritten) != 0 ||
      table_.open(pd_, table, kWritten) != 0)
    return -1;
  received_.resize(settings.receive_queue + 1);
  free_bytes_ = free_offset_ = settings.receive_bytes / 2;
  credits_due_ = static_cast<u16>(settings.receive_queue / 2);
  send_bytes_left_ = settings.send_bytes;
  sends_left_ = settings.send_queue - kControls;
  controls_left_ = kControls;
  for (u32 i = 0; i < settings.receive_queue; ++i)
    if (const int error = post_receive()) return result_of(error);
  return 0;
}

ConnectionData Stream::offer() const {
  return {.big_endian = std::endian::native == std::endian::big,
          .credits = static_cast<u16>(settings_.receive_queue),
          .iomap_count = settings_.iomaps,
          .targets = {.address = table_.address(), .key = table_.rkey(), .length = kTargets},
          .buffer = {.address = receive_.address(),
                     .key = receive_.rkey(),
                     .length = settings_.receive_bytes / 2}};
}

void Stream::meet(const ConnectionData& peer) {
  peer_targets_ = peer.targets;
  peer_swaps_ = peer.big_endian != (std::endian::native == std::endian::big);
  peer_iomap_count_ = peer.has_iomaps ? peer.iomap_count : 0;
  peer_iomaps_ = peer.targets;
  peer_iomaps_.address += std::size_t{peer.targets.length} * sizeof(RemoteSGE);
  peer_target_ = peer.targets.length > 1 ? 1 : 0;
  targets_[0] = peer.buffer;
  may_send_ = peer.credits;
}

// --- completions

int Stream::post_receive() {
  ibv_recv_wr request{};
  request.wr_id = kReceive;
  ibv_recv_wr* bad = nullptr;
  return ibv_post_recv(id_->qp, &request, &bad);
}

// A look that finds less than it asks for is the last: to look again at once would seem to the
// device like a program that spins here, and it is one that will next look at memory.
bool Stream::progress() {
  bool any = false;
  for (u32 i = 0; i < kMostBatches; ++i) {
    const int count = ibv_poll_cq(completions_.cq(), kBatch, done_.data());
    if (count < 0) fail(EIO);
    if (count <= 0) break;
    any = true;
    for (const ibv_wc& wc : std::span(done_).first(static_cast<std::size_t>(count)))
      on_completion(wc);
    if (count < kBatch) break;
  }
  give_credits();
  return any;
}

void Stream::on_completion(const ibv_wc& wc) {
  const bool is_receive = (wc.wr_id & kReceive) != 0;
  if (!is_receive) on_sent(static_cast<u32>(wc.wr_id));
  if (wc.status != IBV_WC_SUCCESS) return fail(error_of(wc.status));
  if (!is_receive) return;
  if ((wc.wc_flags & IBV_WC_WITH_IMM) != 0) on_receive(be32toh(wc.imm_data));
  if (post_receive() != 0) fail(ECONNRESET);
}

void Stream::on_receive(u32 message) {
  const u32 value = value_of(message);
  switch (op_of(message)) {
    case Op::kData: return on_data(value);
    case Op::kCredits: may_send_ = static_cast<u16>(value); return on_targets();
    case Op::kIomap: ++consumed_; return;
    case Op::kControl:
      if (value == static_cast<u32>(Control::kDisconnect))
        peer_stopped_sending_ = peer_disconnected_ = true;
      if (value == static_cast<u32>(Control::kShutdown)) peer_stopped_sending_ = true;
      return;
    case Op::kWrite: break;
  }
  fail(EPROTO);
}

// More than it had credits or room for is the peer's mistake.
void Stream::on_data(u32 length) {
  if (length == 0) {
    ++consumed_;
    return;
  }
  const std::size_t next = (received_tail_ + 1) % received_.size();
  if (next == received_head_ || length > settings_.receive_bytes - unread_bytes_)
    return fail(EPROTO);
  received_[received_tail_] = length;
  received_tail_ = next;
  unread_bytes_ += length;
}

void Stream::on_sent(u32 message) {
  switch (op_of(message)) {
    case Op::kCredits:
    case Op::kControl: ++controls_left_; return;
    case Op::kIomap:
      ++sends_left_;
      send_bytes_left_ += sizeof(Iomap);
      return;
    case Op::kData:
    case Op::kWrite: break;
  }
  ++sends_left_;
  send_bytes_left_ += value_of(message);
}

// The peer has written an entry of our table, or none.
void Stream::on_targets() {
  while (targets_[next_target_].length == 0) {
    const RemoteSGE written = from_memory(next_target_);
    if (written.length == 0) return;
    std::memset(table_.bytes() + next_target_ * sizeof(RemoteSGE), 0, sizeof(RemoteSGE));
    targets_[next_target_] = written;
    next_target_ = (next_target_ + 1) % kTargets;
  }
}

// A peer's WRITE stores the last eight bytes of an entry last, and at once: key and length.
RemoteSGE Stream::from_memory(std::size_t index) const {
  struct Last {
    u32 key, length;
  };
  u8* const entry = table_.bytes() + index * sizeof(RemoteSGE);
  const std::atomic_ref<u64> stored_last(*reinterpret_cast<u64*>(entry + sizeof(u64)));
  const Last last = std::bit_cast<Last>(stored_last.load(std::memory_order_acquire));
  if (last.length == 0) return {};
  RemoteSGE sge = {.key = last.key, .length = last.length};
  std::memcpy(&sge.address, entry, sizeof sge.address);
  return sge;
}

void Stream::fail(int error) {
  if (error_ == 0) error_ = error;
}

// --- credits

void Stream::give_credits() {
  if (!started_ || error_ != 0 || peer_disconnected_) return;
  const u32 half = settings_.receive_bytes / 2;
  while (controls_left_ > 0) {
    const bool is_due = static_cast<std::int16_t>(consumed_ - credits_due_) >= 0;
    if (free_bytes_ < half && !is_due) return;
    credits_due_ = static_cast<u16>(consumed_ + settings_.receive_queue / 2);
    if (free_bytes_ >= half) {
      offer_half();
    } else {
      --controls_left_;
      post(message_of(Op::kCredits, static_cast<u16>(consumed_ + settings_.receive_queue)), 0, 0,
           0);
    }
  }
}

RemoteSGE Stream::to_peer(const RemoteSGE& sge) const { return peer_swaps_ ? swapped(sge) : sge; }

void Stream::offer_half() {
  const u32 half = settings_.receive_bytes / 2;
  const RemoteSGE sge = to_peer(
      {.address = receive_.address() + free_offset_, .key = receive_.rkey(), .length = half});
  --controls_left_;
  const u32 slot = settings_.send_bytes + control_slot_++ % kControls * kSlot;
  std::memcpy(send_.bytes() + slot, &sge, sizeof sge);
  ibv_sge from{.addr = send_.address() + slot, .length = sizeof sge, .lkey = send_.lkey()};
  const u32 message =
      message_of(Op::kCredits, static_cast<u16>(consumed_ + settings_.receive_queue));
  ibv_send_wr request{};
  request.wr_id = message;
  request.sg_list = &from;
  request.num_sge = 1;
  request.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  request.send_flags = settings_.inline_bytes >= sizeof sge ? IBV_SEND_INLINE : 0;
  request.imm_data = htobe32(message);
  request.wr.rdma.remote_addr = peer_targets_.address + peer_target_ * sizeof sge;
  request.wr.rdma.rkey = peer_targets_.key;
  ibv_send_wr* bad = nullptr;
  if (const int error = ibv_post_send(id_->qp, &request, &bad)) fail(error);
  free_bytes_ -= half;
  free_offset_ = free_offset_ == 0 ? half : 0;
  peer_target_ = peer_target_ + 1 >= peer_targets_.length ? 0 : peer_target_ + 1;
}

// --- sending

bool Stream::can_write_directly() const {
  return started_ && error_ == 0 && sends_left_ > 0 && send_bytes_left_ >= kSendLowWater;
}

bool Stream::can_send() const {
  return can_write_directly() && sent_ != may_send_ && targets_[target_].length != 0;
}

bool Stream::is_sent() const {
  return controls_left_ == kControls && sends_left_ == settings_.send_queue - kControls;
}

// Posts `length_bytes` that stage() put last into the send buffer.
void Stream::post(u32 message, u32 length_bytes, u64 address, u32 key) {
  const u32 size = settings_.send_bytes;
  const u32 start = (send_offset_ + size - length_bytes % size) % size;
  const u32 first = std::min(length_bytes, size - start);
  const u64 base = send_.address();
  std::array<ibv_sge, 2> parts{
      {{.addr = base + start, .length = first, .lkey = send_.lkey()},
       {.addr = base, .length = length_bytes - first, .lkey = send_.lkey()}}};
  ibv_send_wr request{};
  request.wr_id = message;
  request.sg_list = parts.data();
  request.num_sge = length_bytes == 0 ? 0 : first == length_bytes ? 1 : 2;
  request.send_flags =
      length_bytes != 0 && length_bytes <= settings_.inline_bytes ? IBV_SEND_INLINE : 0;
  request.wr.rdma.remote_addr = address;
  request.wr.rdma.rkey = key;
  if (op_of(message) == Op::kWrite) {
    request.opcode = IBV_WR_RDMA_WRITE;
  } else {
    request.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
    request.imm_data = htobe32(message);
  }
  ibv_send_wr* bad = nullptr;
  if (const int error = ibv_post_send(id_->qp, &request, &bad)) fail(error);
}

u32 Stream::stage(IOCursor& from, u32 length_bytes) {
  const u32 first = std::min(length_bytes, settings_.send_bytes - send_offset_);
  from.read(send_.bytes() + send_offset_, first);
  from.read(send_.bytes(), length_bytes - first);
  send_offset_ = (send_offset_ + length_bytes) % settings_.send_bytes;
  send_bytes_left_ -= length_bytes;
  --sends_left_;
  return length_bytes;
}

std::size_t Stream::send_some(IOCursor& from, u32 limit_bytes) {
  RemoteSGE& target = targets_[target_];
  const u32 length = stage(from, static_cast<u32>(std::min({from.left(), std::size_t{limit_bytes},
                                                            std::size_t{send_bytes_left_},
                                                            std::size_t{target.length}})));
  const RemoteSGE to = target;
  target.address += length;
  target.length -= length;
  ++sent_;
  if (target.length == 0) target_ = (target_ + 1) % kTargets;
  post(message_of(Op::kData, length), length, to.address, to.key);
  return length;
}

std::size_t Stream::write_directly(IOCursor& from, const Iomap& to, u64 offset, u32 limit_bytes) {
  const u64 room = to.buffer.length - (offset - to.offset);
  const u32 length =
      stage(from, static_cast<u32>(std::min({from.left(), std::size_t{limit_bytes},
                                             std::size_t{send_bytes_left_}, std::size_t{room}})));
  post(message_of(Op::kWrite, length), length, to.buffer.address + (offset - to.offset),
       to.buffer.key);
  return length;
}

void Stream::send_iomap(u32 index, const Iomap& iomap) {
  Iomap entry{.offset = peer_swaps_ ? __builtin_bswap64(iomap.offset) : iomap.offset,
              .buffer = to_peer(iomap.buffer)};
  const iovec bytes{.iov_base = &entry, .iov_len = sizeof entry};
  IOCursor from({&bytes, 1});
  stage(from, sizeof entry);
  ++sent_;
  post(message_of(Op::kIomap, index), sizeof entry, peer_iomaps_.address + index * sizeof entry,
       peer_iomaps_.key);
}

void Stream::control(Control what) {
  --controls_left_;
  post(message_of(what), 0, 0, 0);
}

// A WRITE of no bytes: it takes nothing of the peer's, and no answer is a lost connection.
void Stream::keep_alive() {
  --controls_left_;
  ibv_send_wr request{};
  request.wr_id = message_of(Control::kKeepalive);
  request.opcode = IBV_WR_RDMA_WRITE;
  ibv_send_wr* bad = nullptr;
  if (const int error = ibv_post_send(id_->qp, &request, &bad)) fail(error);
}

std::optional<Iomap> Stream::find_iomap(u64 offset) const {
  const u8* const first = table_.bytes() + kTargets * sizeof(RemoteSGE);
  for (u32 i = 0; i < settings_.iomaps; ++i) {
    Iomap entry;
    std::memcpy(&entry, first + i * sizeof entry, sizeof entry);
    if (offset >= entry.offset && offset - entry.offset < entry.buffer.length) return entry;
  }
  return std::nullopt;
}

// --- receiving

std::size_t Stream::receive_some(IOCursor& to) {
  const std::size_t wanted = to.left();
  while (to.left() != 0 && has_data()) {
    u32& length = received_[received_head_];
    const u32 n = static_cast<u32>(std::min(
        {to.left(), std::size_t{length}, std::size_t{settings_.receive_bytes - read_offset_}}));
    to.write(receive_.bytes() + read_offset_, n);
    read_offset_ = (read_offset_ + n) % settings_.receive_bytes;
    free_bytes_ += n;
    unread_bytes_ -= n;
    length -= n;
    if (length != 0) continue;
    ++consumed_;
    received_head_ = (received_head_ + 1) % received_.size();
  }
  give_credits();
  return wanted - to.left();
}

std::size_t Stream::peek(IOCursor& to) const {
  const std::size_t wanted = to.left();
  u32 offset = read_offset_;
  for (std::size_t i = received_head_; i != received_tail_ && to.left() != 0;
       i = (i + 1) % received_.size()) {
    u32 length = static_cast<u32>(std::min(to.left(), std::size_t{received_[i]}));
    while (length != 0) {
      const u32 n = std::min(length, settings_.receive_bytes - offset);
      to.write(receive_.bytes() + offset, n);
      offset = (offset + n) % settings_.receive_bytes;
      length -= n;
    }
  }
  return wanted - to.left();
}

void Stream::arm() {
  if (const int error = completions_.arm()) fail(error);
}

}  // namespace verbena::rdmacm::rsocket
