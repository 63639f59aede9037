// SENDs between two devices of one host, in one go and in turn (transport/rc/common_case.cc), and
// trains as one and packet by packet: the application, the statistics and the timers see the same.
#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <utility>

#include "base/prng.h"
#include "device/testing.h"

namespace verbena::test {
namespace {

enum class Way { kInOneGo, kInTurn };

struct Record {
  PacketHeaders headers;
  std::vector<u8> payload;
  u32 packets = 1;
};

class Ring final : public LocalPackets {
 public:
  explicit Ring(Way way) : way_(way) {}

  bool take(const QPAttributes&, const TxPacket& packet) override {
    Record& record = records.emplace_back(
        Record{.headers = packet.headers, .payload = {}, .packets = packet.packets});
    trains += packet.packets > 1 ? 1 : 0;
    for (u32 i = 0; i < packet.payload.count; ++i)
      record.payload.insert(record.payload.end(), packet.payload.parts[i].begin(),
                            packet.payload.parts[i].end());
    return true;
  }
  bool send(const QPAttributes& qp, const LocalSend& send) override {
    if (way_ == Way::kInTurn) return false;
    Record& record = add(qp, send.with_immediate ? Op::kSendOnlyWithImmediate : Op::kSendOnly);
    record.headers.bth.psn = send.psn;
    record.headers.bth.ack_req = true;
    record.headers.bth.solicited_event = send.solicited;
    record.headers.imm.value = send.immediate;
    record.payload.assign(send.payload.begin(), send.payload.end());
    ++sent_at_once;
    return true;
  }
  bool acknowledge(const QPAttributes& qp, PSN psn, const AETH& aeth) override {
    Record& record = add(qp, Op::kAcknowledge);
    record.headers.bth.psn = psn;
    record.headers.aeth = aeth;
    return true;
  }
  void flush() override {}

  std::deque<Record> records;
  u32 sent_at_once = 0, trains = 0;

 private:
  Record& add(const QPAttributes& qp, Op op) {
    Record& record = records.emplace_back();
    record.headers.bth.opcode = {Service::kRC, op};
    record.headers.bth.dest_qp = qp.dest_qp;
    return record;
  }

  const Way way_;
};

DeviceConfig with(DeviceConfig config, Ring& ring) {
  config.local.packets = &ring;
  return config;
}

class World {
 public:
  World(u64 seed, Way way)
      : prng_(seed),
        way_(way),
        ring_a_(way),
        ring_b_(way),
        a_(with(config_at(kGIDA, QPN{0x100}), ring_a_)),
        b_(with(config_at(kGIDB, QPN{0x200}), ring_b_)) {
    QPInit at_b = b_.init(QPType::kRC);
    srq_ = b_.device.create_srq({.pd = b_.pd, .limits = {.depth = 32, .max_sge = 2}}).value();
    small_ = b_.device.create_cq(8, &small_).value();
    for (u32 i = 0; i < kPairs; ++i) {
      at_b.srq = i == 1 ? srq_ : nullptr;
      at_b.receive_cq = i == 2 ? small_ : b_.cq;  // nobody polls it often
      QueuePair* const a = a_.create(QPType::kRC);
      QueuePair* const b = b_.device.create_qp(at_b).value();
      CHECK(a_.bring_up(a, kGIDB, b_.number(b)) == QPState::kRTS);
      CHECK(b_.bring_up(b, kGIDA, a_.number(a)) == QPState::kRTS);
      qps_.push_back({a, b});
    }
  }

  void step() {
    const u64 what = prng_.next() % 12;
    const u32 pair = static_cast<u32>(prng_.next() % kPairs);
    if (what < 4) return post_send(pair);
    if (what < 6) return post_receive(pair);
    if (what < 8) return carry(ring_a_, b_, kGIDA, kGIDB);
    if (what < 10) return carry(ring_b_, a_, kGIDB, kGIDA);
    if (what == 10) return look_at_time();
    poll(prng_.next() % 4 == 0 ? small_ : b_.cq, b_);
    poll(a_.cq, a_);
    if (prng_.next() % 4 == 0)
      b_.device.request_notification(
          small_, prng_.next() % 2 == 0 ? NotifyOn::kAnyCompletion : NotifyOn::kSolicitedOnly,
          now_);
    if (prng_.next() % 8 == 0) (void)b_.device.modify_srq(srq_, {.limit = 2});
  }
  // Returns the notes since the last call, and the present state of the devices.
  std::string look() {
    for (const Node* const node : {&a_, &b_}) {
      const Counters& counters = node->device.counters();
      note(counters.port_xmit_packets, counters.port_xmit_bytes, counters.port_rcv_packets,
           counters.port_rcv_bytes, counters.transport.retransmitted_packets,
           counters.transport.local_acknowledgements, counters.transport.rnr_naks_sent,
           node->device.next_timer().ns());
    }
    for (const auto& [a, b] : qps_) {
      const QPTraffic sent = a_.device.traffic_of(a), received = b_.device.traffic_of(b);
      note(sent.sent_packets, sent.sent_bytes, received.received_packets, received.received_bytes,
           a_.state(a), b_.state(b));
    }
    return std::exchange(seen_, {});
  }
  u32 sent_at_once() const { return ring_a_.sent_at_once; }
  u32 trains() const { return ring_a_.trains; }

 private:
  static constexpr u32 kPairs = 3;
  static constexpr u32 kLongest = 20000, kRoom = 19000;  // bytes: some SENDs do not fit
  struct Pair {
    QueuePair *a, *b;
  };

  void note(const auto&... values) {
    ((seen_ += std::to_string(static_cast<i64>(values)) + " "), ...);
    seen_ += "\n";
  }
  void post_send(u32 pair) {
    SendWR wr;
    wr.op = prng_.next() % 4 == 0 ? SendOp::kSendWithImmediate : SendOp::kSend;
    wr.wr_id = ++wr_id_;
    wr.signaled = prng_.next() % 2 == 0;
    wr.solicited = prng_.next() % 2 == 0;
    wr.immediate = static_cast<u32>(prng_.next());
    const u32 most = prng_.next() % 4 == 0 ? kLongest : 1200;
    const SGE sge = a_.sge(0, static_cast<u32>(prng_.next() % most));
    wr.sg_list = {&sge, 1};
    note(a_.device.post_last_send(qps_[pair].a, wr, now_));
    drain();
  }
  // An element more, without a byte, is beyond the common case.
  void post_receive(u32 pair) {
    const std::array<SGE, 2> list{b_.sge(4096, kRoom), b_.sge(0, 0)};
    const RecvWR wr{.wr_id = ++wr_id_,
                    .sg_list = std::span(list).first(way_ == Way::kInOneGo ? 1 : 2)};
    note(pair == 1 ? b_.device.post_srq_receive(srq_, wr, now_)
                   : b_.device.post_receive(qps_[pair].b, wr, now_));
    drain();
  }
  void carry(Ring& ring, Node& to, const GID& source, const GID& destination) {
    if (ring.records.empty()) return;
    const Record record = std::move(ring.records.front());
    ring.records.pop_front();
    if (prng_.next() % 16 == 0) return;  // lost
    PacketView packet;
    packet.headers = record.headers;
    packet.headers.bth.p_key = kDefaultPKey;
    packet.payload = record.payload;
    const std::size_t size = record.payload.size() / record.packets;
    const std::vector<u8> bytes(record.headers.size() + size + kICRCSize);
    IngressFrame frame{.source = source, .destination = destination, .transport = bytes};
    if (way_ == Way::kInOneGo) {
      frame.packets = record.packets;
      note(to.device.on_packet(packet, frame, now_));
      return drain();
    }
    for (u32 i = 0; i < record.packets; ++i) {
      packet.payload = std::span(record.payload).subspan(i * size, size);
      const Reception reception = to.device.on_packet(packet, frame, now_);
      if (i == 0) note(reception);
      packet.headers.bth.psn = packet.headers.bth.psn.next();
    }
    drain();
  }
  void look_at_time() {
    now_ = now_ + us(static_cast<i64>(prng_.next() % 40));
    a_.device.on_timer(now_);
    b_.device.on_timer(now_);
    drain();
  }
  void poll(CompletionQueue* cq, Node& node) {
    std::array<CQE, 4> cqes;
    const u32 count = node.device.poll_cq(cq, cqes);
    for (const CQE& cqe : std::span(cqes).first(count))
      note(cqe.wr_id, cqe.status, cqe.op, cqe.byte_length, cqe.immediate, cqe.with_immediate,
           cqe.qp.value, cqe.completed_at.ns());
  }
  void drain() {
    for (Node* const node : {&a_, &b_}) {
      EgressFrame frame;
      CHECK(!node->device.poll_frame(now_, frame, Trains::kYes));  // the rings take it all
      while (node->device.poll_completion_event()) note(-1);
      while (const std::optional<AsyncEvent> event = node->device.poll_async_event())
        note(event->type);
    }
  }

  PRNG prng_;
  const Way way_;
  Ring ring_a_, ring_b_;
  Node a_, b_;
  SharedReceiveQueue* srq_ = nullptr;
  CompletionQueue* small_ = nullptr;
  std::vector<Pair> qps_;
  Time now_ = kStart;
  u64 wr_id_ = 0;
  std::string seen_;
};

class CommonCaseTest : public ::testing::TestWithParam<u64> {};

TEST_P(CommonCaseTest, NobodySeesADifference) {
  World at_once(GetParam(), Way::kInOneGo), in_turn(GetParam(), Way::kInTurn);
  for (u32 i = 0; i < 500; ++i) {
    at_once.step();
    in_turn.step();
    ASSERT_TRUE(at_once.look() == in_turn.look()) << "step " << i;
  }
  EXPECT_GT(at_once.sent_at_once(), 0u);
  EXPECT_GT(at_once.trains(), 0u);
  EXPECT_EQ(in_turn.sent_at_once(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, CommonCaseTest, ::testing::Range(u64{1}, u64{51}));

}  // namespace
}  // namespace verbena::test
