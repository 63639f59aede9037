// RCPair: two RC engines joined by hand, for unit tests. A test posts work, takes each packet that
// comes out, and delivers, loses or changes it; the test moves `now`. Packets are encoded and
// decoded, so that an engine reads what a wire would carry.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/software_path.h"
#include "transport/outcomes_for_test.h"
#include "transport/rc/engine.h"

namespace verbena::test {

// In the peer's buffer, apart from the part that the peer itself uses.
inline constexpr u64 kFar = 1u << 17;

// A packet in flight, which owns its payload.
struct Packet {
  PacketHeaders headers;
  std::vector<u8> payload;
  Urgency urgency = Urgency::kNow;

  Op op() const { return headers.bth.opcode.op; }
  u32 psn() const { return headers.bth.psn.value(); }
  bool is_ack() const { return op() == Op::kAcknowledge && headers.aeth.kind == AETHKind::kACK; }
  bool is_nak(NAKCode code) const {
    return op() == Op::kAcknowledge && headers.aeth.kind == AETHKind::kNAK &&
           headers.aeth.value == static_cast<u8>(code);
  }
  bool is_rnr_nak() const {
    return op() == Op::kAcknowledge && headers.aeth.kind == AETHKind::kRNRNAK;
  }
  std::vector<u8> encode() const {
    PacketHeaders h = headers;
    h.bth.pad_count = static_cast<u8>((4 - payload.size() % 4) % 4);
    std::vector<u8> out(h.size());
    h.encode(out);
    out.insert(out.end(), payload.begin(), payload.end());
    out.resize(out.size() + h.bth.pad_count);
    return out;
  }
};

struct RCOptions {
  MTU mtu = MTU::k1024;
  u32 psn = 0x0a0000;  // of a's requests; b's start at psn + 0x10000
  u8 max_rd_atomic = 4, max_dest_rd_atomic = 4;
  u8 ack_timeout = 14, retry_count = 3, rnr_retry_count = 3, min_rnr_timer = 12;
  bool signal_all = false, shared_receive_queue = false;
  u32 depth = 512;
  RCLimits limits{.path = software_path()};
  CongestionControl* congestion = nullptr;
  PeerMemoryFinder* peers = nullptr;
  PollHabit* habit = nullptr;
  LocalPackets* local_packets = nullptr;
  LocalProgress* local_progress = nullptr;
  CopyLane* send_copies = nullptr;     // of one side that sends
  CopyLane* receive_copies = nullptr;  // of one side that receives
};

inline constexpr u32 kBufferBytes = 1u << 18;
inline constexpr AccessFlags kAllRights = Access::kLocalWrite | Access::kRemoteWrite |
                                          Access::kRemoteRead | Access::kRemoteAtomic |
                                          Access::kMWBind;
inline constexpr PDId kPD{1};

// A work request, piece by piece.
inline SendWR make_wr(SendOp op, u64 wr_id = 0) {
  SendWR wr;
  wr.op = op;
  wr.wr_id = wr_id;
  return wr;
}
inline SendWR signaled(SendWR wr) { return wr.signaled = true, wr; }
inline SendWR solicited(SendWR wr) { return wr.solicited = true, wr; }
inline SendWR fence(SendWR wr) { return wr.fence = true, wr; }
inline SendWR inline_data(SendWR wr) { return wr.inline_data = true, wr; }
inline SendWR with_sges(SendWR wr, std::span<const SGE> list) { return wr.sg_list = list, wr; }

// One end: a QP, its memory and its application.
struct Side {
  Side(const RCOptions& o, u64 seed, QPN qpn)
      : memory(1024, PRNG(seed)),
        receive_queue({.depth = o.depth, .max_sge = 4}),
        engine({.attributes = qp,
                .memory = memory,
                .receive_queue = receive_queue,
                .shared_receive_queue = o.shared_receive_queue,
                .send_limits = {.depth = o.depth, .max_sge = 4, .max_inline_bytes = 256},
                .congestion = o.congestion,
                .peers = o.peers,
                .habit = o.habit,
                .local_packets = o.local_packets,
                .local_progress = o.local_progress,
                .send_copies = o.send_copies,
                .receive_copies = o.receive_copies},
               o.limits),
        buffer(kBufferBytes) {
    PRNG content(seed + 1);
    for (std::size_t i = 0; i < buffer.size(); i += sizeof(u64)) set_word(i, content.next());
    keys = *memory.register_mr(kPD, buffer.data(), buffer.size(), address(), kAllRights);
    qp.qpn = qpn;
    qp.pd = kPD;
    qp.path_mtu = o.mtu;
    qp.signal_all = o.signal_all;
    qp.remote_access = kAllRights;
    qp.max_rd_atomic = o.max_rd_atomic;
    qp.max_dest_rd_atomic = o.max_dest_rd_atomic;
    qp.ack_timeout = o.ack_timeout;
    qp.retry_count = o.retry_count;
    qp.rnr_retry_count = o.rnr_retry_count;
    qp.min_rnr_timer = o.min_rnr_timer;
  }
  u64 address(u64 offset = 0) const { return reinterpret_cast<u64>(buffer.data()) + offset; }
  SGE sge(u64 offset, u32 length) const { return {address(offset), length, keys.l_key}; }
  std::vector<u8> bytes(u64 offset, u64 length) const {
    return {buffer.begin() + static_cast<i64>(offset),
            buffer.begin() + static_cast<i64>(offset + length)};
  }
  u64 word(u64 offset) const {
    u64 value;
    std::memcpy(&value, buffer.data() + offset, sizeof value);
    return value;
  }
  void set_word(u64 offset, u64 value) {
    std::memcpy(buffer.data() + offset, &value, sizeof value);
  }
  void set_state(QPState to, Time now) {
    const QPState from = qp.state;
    qp.state = to;
    engine.on_state(from, now);
  }
  [[nodiscard]] PostError post_receive(u64 wr_id, std::vector<SGE> list, Time now) {
    const PostError error = receive_queue.push({.wr_id = wr_id, .sg_list = list});
    (void)engine.on_receive_posted(now);
    return error;
  }

  QPAttributes qp;
  ProtectionTable memory;
  ReceiveQueue receive_queue;
  RCEngine engine;
  std::vector<u8> buffer;
  MRKeys keys;
  std::vector<CQE> send_cqes, receive_cqes;  // as collected by RCPair::drain()
  std::vector<EngineEvent> events;
};

class RCPair {
 public:
  explicit RCPair(const RCOptions& options = {})
      : o(options), a(o, 1, QPN{0x11}), b(o, 3, QPN{0x22}) {
    connect();
  }

  // Reset to RTS on both sides.
  void connect() {
    a.qp.dest_qp = b.qp.qpn;
    b.qp.dest_qp = a.qp.qpn;
    a.qp.sq_psn = b.qp.rq_psn = PSN(o.psn);
    b.qp.sq_psn = a.qp.rq_psn = PSN(o.psn + 0x10000);
    for (const QPState s : {QPState::kInit, QPState::kRTR, QPState::kRTS}) {
      a.set_state(s, now);
      b.set_state(s, now);
    }
  }

  // --- posting. `wr` lacks only its SGEs: the bytes [local, local + length) of `side`'s buffer.
  PostError post(Side& side, SendWR wr, u64 local, u32 length) {
    const SGE list = side.sge(local, length);
    wr.sg_list = {&list, 1};
    const PostError error = side.engine.post_send(wr, now);
    drain(side);
    return error;
  }
  void must_post(Side& side, const SendWR& wr, u64 local, u32 length) {
    ASSERT_EQ(post(side, wr, local, length), PostError::kOk);
  }
  void send(u64 wr_id, u32 length, u64 local = 0) {
    must_post(a, signaled(make_wr(SendOp::kSend, wr_id)), local, length);
  }
  void write(u64 wr_id, u32 length, u64 remote, u64 local = 0) {
    must_post(a, with_remote(signaled(make_wr(SendOp::kRDMAWrite, wr_id)), remote), local, length);
  }
  void read(u64 wr_id, u32 length, u64 remote, u64 local = 0) {
    must_post(a, with_remote(signaled(make_wr(SendOp::kRDMARead, wr_id)), remote), local, length);
  }
  void fetch_add(u64 wr_id, u64 add, u64 remote, u64 local = 0) {
    SendWR wr = with_remote(signaled(make_wr(SendOp::kFetchAdd, wr_id)), remote);
    wr.swap_or_add = add;
    must_post(a, wr, local, 8);
  }
  void receive(u64 wr_id, u64 offset, u32 length) {  // at b
    ASSERT_EQ(b.post_receive(wr_id, {b.sge(offset, length)}, now), PostError::kOk);
  }
  SendWR with_remote(SendWR wr, u64 remote) const {
    wr.remote_address = b.address(remote);
    wr.r_key = b.keys.r_key;
    return wr;
  }

  // --- packets
  std::optional<Packet> take(Side& side) {
    TxPacket tx;
    const Time timer = side.engine.next_timer();
    if (!side.engine.poll_packet(now, MaySend::kAnything, tx)) {
      drain(side);
      return std::nullopt;
    }
    EXPECT_TRUE(timer == Time::never() || side.engine.next_timer() >= timer ||
                side.engine.outputs().sooner_timer);
    Packet packet;
    packet.headers = tx.headers;
    packet.urgency = tx.urgency;
    packet.headers.bth.dest_qp = side.qp.dest_qp;
    for (u32 i = 0; i < tx.payload.count; ++i)
      packet.payload.insert(packet.payload.end(), tx.payload.parts[i].begin(),
                            tx.payload.parts[i].end());
    EXPECT_EQ(packet.payload.size(), tx.payload.size_bytes);
    drain(side);
    return packet;
  }
  std::vector<Packet> take_all(Side& side) {
    std::vector<Packet> all;
    while (std::optional<Packet> packet = take(side)) all.push_back(*std::move(packet));
    return all;
  }
  void deliver(Side& to, const Packet& packet) {
    const std::vector<u8> bytes = packet.encode();
    const std::optional<PacketView> view = PacketView::decode(bytes);
    ASSERT_TRUE(view.has_value());
    to.engine.on_packet(*view, {}, now);
    drain(to);
  }
  void deliver_all(Side& to, const std::vector<Packet>& packets) {
    for (const Packet& packet : packets) deliver(to, packet);
  }
  // Carries everything both ways until nothing moves. Time stands still.
  void settle() {
    for (;;) {
      const std::vector<Packet> from_a = take_all(a), from_b = take_all(b);
      if (from_a.empty() && from_b.empty()) return;
      deliver_all(b, from_a);
      deliver_all(a, from_b);
    }
  }
  // Advances to the next timer of `side`, and fires it. Returns false if none is armed.
  bool fire_timer(Side& side) {
    const Time at = side.engine.next_timer();
    if (at == Time::never()) return false;
    now = std::max(now, at);
    side.engine.on_timer(now);
    drain(side);
    return true;
  }
  // An output that outputs() excludes must not come. The application polls every CQE at once.
  void drain(Side& side) {
    const RCEngine& engine = side.engine;
    EngineOutputs expected = engine.outputs();
    for (CQE cqe; side.engine.poll_send_cqe(cqe); expected = engine.outputs()) {
      EXPECT_TRUE(expected.send_cqe);
      side.send_cqes.push_back(cqe);
      side.engine.free_sends(cqe.entries);
    }
    for (CQE cqe; side.engine.poll_receive_cqe(cqe); expected = engine.outputs()) {
      EXPECT_TRUE(expected.receive_cqe);
      side.receive_cqes.push_back(cqe);
      side.receive_queue.free_entries(cqe.entries);
    }
    bool fatal = false;
    while (const std::optional<EngineEvent> event = side.engine.poll_event()) {
      EXPECT_TRUE(expected.event);
      expected = engine.outputs();
      side.events.push_back(*event);
      fatal = fatal || *event == EngineEvent::kFatal;
    }
    if (!fatal || side.qp.state == QPState::kError) return;
    side.set_state(QPState::kError, now);  // as the device does
    drain(side);
  }

  // --- a request crafted by hand, from a to b
  Packet request(Op op, u32 psn, std::size_t payload = 0) const {
    Packet packet;
    packet.headers.bth.opcode = {Service::kRC, op};
    packet.headers.bth.dest_qp = b.qp.qpn;
    packet.headers.bth.psn = PSN(psn);
    packet.headers.bth.ack_req = true;
    packet.headers.reth = {.virtual_address = b.address(),
                           .r_key = b.keys.r_key,
                           .dma_length = static_cast<u32>(payload)};
    packet.headers.atomic = {.virtual_address = b.address(), .r_key = b.keys.r_key};
    for (std::size_t i = 0; i < payload; ++i)
      packet.payload.push_back(static_cast<u8>(i * 7 + psn));
    return packet;
  }
  Packet read_request(u32 psn, u64 offset, u32 length) const {
    Packet packet = request(Op::kRDMAReadRequest, psn);
    packet.headers.reth.virtual_address = b.address(offset);
    packet.headers.reth.dma_length = length;
    return packet;
  }
  // and a response, from b to a
  Packet response(Op op, u32 psn, std::size_t payload = 0) const {
    Packet packet;
    packet.headers.bth.opcode = {Service::kRC, op};
    packet.headers.bth.dest_qp = a.qp.qpn;
    packet.headers.bth.psn = PSN(psn);
    packet.payload.resize(payload, 0x5a);
    return packet;
  }
  Packet nak(NAKCode code, u32 psn) const {
    Packet packet = response(Op::kAcknowledge, psn);
    packet.headers.aeth = {.kind = AETHKind::kNAK, .value = static_cast<u8>(code)};
    return packet;
  }
  Packet rnr_nak(u8 timer, u32 psn) const {
    Packet packet = response(Op::kAcknowledge, psn);
    packet.headers.aeth = {.kind = AETHKind::kRNRNAK, .value = timer};
    return packet;
  }
  Packet ack(u32 psn, u8 credits = kNoCredits, u32 msn = 0) const {
    Packet packet = response(Op::kAcknowledge, psn);
    packet.headers.aeth = {.kind = AETHKind::kACK, .value = credits, .msn = MSN(msn)};
    return packet;
  }

  const RCOptions o;
  Time now = Time::from_ns(1000);
  Side a, b;
};

inline std::vector<Op> ops_of(const std::vector<Packet>& packets) {
  std::vector<Op> ops;
  for (const Packet& packet : packets) ops.push_back(packet.op());
  return ops;
}
inline std::vector<u32> psns_of(const std::vector<Packet>& packets) {
  std::vector<u32> psns;
  for (const Packet& packet : packets) psns.push_back(packet.psn());
  return psns;
}

}  // namespace verbena::test
