#include "device/qp/streams.h"

#include <gtest/gtest.h>

#include "device/device.h"

namespace verbena {
namespace {

constexpr Time kNow = Time::from_ns(1000);
constexpr u64 kIova = 0x10000;

DeviceConfig iwarp_config(u64 seed) {
  DeviceConfig config;
  config.transport = Transport::kIWARP;
  config.gids = {{GID{}}};
  config.seed = seed;
  return config;
}

// A device with one QP, in Init.
struct Host {
  explicit Host(u64 seed) : device(iwarp_config(seed)) {
    pd = *device.alloc_pd();
    cq = *device.create_cq(16, nullptr);
    qp = *device.create_qp(init());
    keys = *device.memory().register_mr(
        pd->id, memory.data(), memory.size(), kIova,
        Access::kLocalWrite | Access::kRemoteWrite | AccessFlags(Access::kRemoteRead));
    QPModify to_init;
    to_init.state = QPState::kInit;
    to_init.remote_access = Access::kRemoteWrite | AccessFlags(Access::kRemoteRead);
    to_init.set(QPField::kState).set(QPField::kAccessFlags);
    EXPECT_EQ(device.modify_qp(qp, to_init, kNow), Status::kOk);
  }
  QPInit init() const {
    return {.pd = pd,
            .send_cq = cq,
            .receive_cq = cq,
            .send = {.depth = 8, .max_sge = 2},
            .receive = {.depth = 8, .max_sge = 2}};
  }
  Result<u64> open() {
    return device.streams().open(
        *qp, {.agreement = {.ird = 4, .ord = 4}, .local = {}, .remote = {}}, kNow);
  }
  std::vector<CQE> poll() {
    std::vector<CQE> cqes(16);
    cqes.resize(device.poll_cq(cq, cqes));
    return cqes;
  }
  SGE sge(u64 offset, u32 length) const { return {kIova + offset, length, keys.l_key}; }

  Device device;
  ProtectionDomain* pd;
  CompletionQueue* cq;
  QueuePair* qp;
  std::vector<u8> memory = std::vector<u8>(1 << 16);
  MRKeys keys;
};

// All that `from` has to send, `at_once` bytes at a time.
bool carry(Host& from, Host& to, u32 at_once) {
  bool any = false;
  StreamGather gather;
  while (QueuePair* const qp = from.device.streams().poll(kNow)) {
    gather.clear();
    from.device.streams().gather(*qp, gather, kNow);
    if (gather.empty()) continue;
    any = true;
    const u32 bytes = std::min(at_once, gather.bytes());
    std::vector<u8> wire;
    gather.visit_range(0, bytes, [&](Bytes b) { wire.insert(wire.end(), b.begin(), b.end()); });
    from.device.streams().on_sent(*qp, gather, bytes, kNow);
    if (bytes < gather.bytes()) {  // as a socket that is full, and then no more
      from.device.pause(qp);
      from.device.resume(qp);
    }
    to.device.streams().on_bytes(*to.qp, wire, kNow);
  }
  return any;
}

TEST(Streams, CarryRequestsAndCompletions) {
  for (const u32 at_once : {100u, 1u << 20}) {
    Host a(1), b(2);
    ASSERT_TRUE(a.open().has_value());
    ASSERT_TRUE(b.open().has_value());
    EXPECT_EQ(a.device.attributes_of(a.qp).state, QPState::kRTS);
    const SGE to = b.sge(0, 100), from = a.sge(0, 5000), read = a.sge(10'000, 6000);
    EXPECT_EQ(b.device.post_receive(b.qp, {.wr_id = 1, .sg_list = {&to, 1}}, kNow), PostError::kOk);
    SendWR wr;
    wr.wr_id = 2;
    wr.op = SendOp::kRDMAWrite;
    wr.signaled = true;
    wr.remote_address = kIova + 1000;
    wr.r_key = b.keys.r_key;
    wr.sg_list = {&from, 1};
    EXPECT_EQ(a.device.post_send(a.qp, wr, kNow), PostError::kOk);
    wr.wr_id = 3;
    wr.op = SendOp::kRDMARead;
    wr.sg_list = {&read, 1};
    EXPECT_EQ(a.device.post_send(a.qp, wr, kNow), PostError::kOk);
    const SGE ten = a.sge(0, 10);
    wr.wr_id = 4;
    wr.op = SendOp::kSend;
    wr.sg_list = {&ten, 1};
    EXPECT_EQ(a.device.post_send(a.qp, wr, kNow), PostError::kOk);
    while (carry(a, b, at_once) | carry(b, a, at_once)) {
    }
    EXPECT_EQ(a.poll().size(), 3u);
    EXPECT_EQ(b.poll().size(), 1u);
    const QPTraffic sent = a.device.traffic_of(a.qp), got = b.device.traffic_of(b.qp);
    EXPECT_EQ(sent.sent_bytes, got.received_bytes);
    EXPECT_EQ(sent.sent_packets, got.received_packets);
    EXPECT_EQ(sent.sent_packets, 6u);  // 5000 bytes are four segments
  }
}

// Neither the sender nor the receiver of a WRITE is asked again for bytes that it has not.
TEST(Streams, AWriteLeavesNothingToSend) {
  Host a(1), b(2);
  ASSERT_TRUE(a.open().has_value());
  ASSERT_TRUE(b.open().has_value());
  while (carry(a, b, 1u << 20) | carry(b, a, 1u << 20)) {
  }
  const SGE from = a.sge(0, 8);
  SendWR wr;
  wr.op = SendOp::kRDMAWrite;
  wr.signaled = true;
  wr.remote_address = kIova + 1000;
  wr.r_key = b.keys.r_key;
  wr.sg_list = {&from, 1};
  ASSERT_EQ(a.device.post_send(a.qp, wr, kNow), PostError::kOk);
  StreamGather gather;
  ASSERT_EQ(a.device.streams().poll(kNow), a.qp);
  a.device.streams().gather(*a.qp, gather, kNow);
  const std::vector<u8> wire(gather.pieces()[0].begin(), gather.pieces()[0].end());
  ASSERT_EQ(wire.size(), gather.bytes());
  a.device.streams().on_sent(*a.qp, gather, gather.bytes(), kNow);
  EXPECT_EQ(a.device.streams().poll(kNow), nullptr);
  EXPECT_EQ(a.poll().size(), 1u);
  b.device.streams().on_bytes(*b.qp, wire, kNow);
  EXPECT_EQ(b.memory[1000], a.memory[0]);
  EXPECT_FALSE(b.device.has_frames());
}

TEST(Streams, AnEndIsNoFault) {
  Host a(1);
  ASSERT_TRUE(a.open().has_value());
  const SGE to = a.sge(0, 100);
  EXPECT_EQ(a.device.post_receive(a.qp, {.wr_id = 1, .sg_list = {&to, 1}}, kNow), PostError::kOk);
  a.device.streams().on_end(*a.qp, StreamEnd::kFinished, kNow);
  EXPECT_EQ(a.device.attributes_of(a.qp).state, QPState::kError);
  EXPECT_FALSE(a.device.poll_async_event().has_value());
  const std::vector<CQE> flushed = a.poll();
  ASSERT_EQ(flushed.size(), 1u);
  EXPECT_EQ(flushed[0].status, WQEStatus::kFlushed);
}

TEST(Streams, AStreamThatIsLostIsAFault) {
  Host a(1);
  ASSERT_TRUE(a.open().has_value());
  a.device.streams().on_end(*a.qp, StreamEnd::kLost, kNow);
  const std::optional<AsyncEvent> event = a.device.poll_async_event();
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->type, AsyncEventType::kQPFatal);
}

TEST(Streams, ANumberIsOfOneQP) {
  Host a(1);
  const u64 number = *a.open();
  const QPN qpn = a.device.attributes_of(a.qp).qpn;
  EXPECT_EQ(a.device.streams().find(qpn, number), a.qp);
  EXPECT_EQ(a.device.streams().orphans(), 0u);
  QPModify to_reset;
  to_reset.set(QPField::kState);
  EXPECT_EQ(a.device.modify_qp(a.qp, to_reset, kNow), Status::kOk);
  EXPECT_EQ(a.device.streams().find(qpn, number), nullptr);
  EXPECT_EQ(a.device.streams().orphans(), 1u);
}

TEST(Streams, OnlyRCQPsAndOnlyByAConnection) {
  Host a(1);
  QPInit datagrams = a.init();
  datagrams.type = QPType::kUD;
  EXPECT_EQ(a.device.create_qp(datagrams).error(), Status::kNotSupported);
  QPModify to_rtr;
  to_rtr.state = QPState::kRTR;
  to_rtr.set(QPField::kState);
  EXPECT_EQ(a.device.modify_qp(a.qp, to_rtr, kNow), Status::kInvalidArgument);
  ASSERT_TRUE(a.open().has_value());
  EXPECT_EQ(a.open().error(), Status::kInvalidArgument);  // RTS already
}

}  // namespace
}  // namespace verbena
