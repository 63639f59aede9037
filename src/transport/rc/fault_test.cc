// The recorded facts of the error that ends an RC QP: enough to explain it, on the side that knows.
#include <gtest/gtest.h>

#include "transport/rc/rc_pair_for_test.h"

namespace verbena::test {
namespace {

constexpr u32 kUnknownKey = 0x1234;

struct Fault : RCPair {
  explicit Fault(const RCOptions& options = {}) : RCPair(options) {}
  const ResponderFault& refused(const Packet& packet) {
    deliver(b, packet);
    EXPECT_EQ(b.qp.state, QPState::kError);
    return b.engine.fault().responder;
  }
  Packet with_address(Packet packet, u64 offset) const {
    packet.headers.reth.virtual_address = b.address(offset);
    packet.headers.atomic.virtual_address = b.address(offset);
    return packet;
  }
  Packet with_key(Packet packet, u32 key) const {
    packet.headers.reth.r_key = packet.headers.atomic.r_key = RKey{key};
    return packet;
  }
};

TEST(RCFaultTest, ARefusalTellsWhatWasAskedAndWhatTheKeyIs) {
  Fault pair;
  const ResponderFault& fault = pair.refused(
      pair.with_address(pair.request(Op::kRDMAWriteOnly, pair.o.psn, 64), kBufferBytes - 8));
  EXPECT_EQ(fault.refusal, Refusal::kRemoteMemory);
  EXPECT_EQ(fault.memory, MemoryFault::kBounds);
  EXPECT_EQ(fault.remote_address, pair.b.address(kBufferBytes - 8));
  EXPECT_EQ(fault.length_bytes, 64u);
  EXPECT_EQ(fault.r_key, pair.b.keys.r_key);
  ASSERT_TRUE(fault.key.has_value());
  EXPECT_EQ(fault.key->address, pair.b.address());
  EXPECT_EQ(fault.key->length, kBufferBytes);
}

TEST(RCFaultTest, AnUnknownKeyIsNoKey) {
  for (const Op op : {Op::kRDMAWriteOnly, Op::kRDMAReadRequest, Op::kFetchAdd, Op::kAtomicWrite}) {
    Fault pair;
    const bool has_payload = op == Op::kRDMAWriteOnly || op == Op::kAtomicWrite;
    Packet packet = pair.with_key(pair.request(op, pair.o.psn, has_payload ? 8 : 0), kUnknownKey);
    packet.headers.reth.dma_length = 8;
    const ResponderFault& fault = pair.refused(packet);
    EXPECT_EQ(fault.refusal, Refusal::kRemoteMemory);
    EXPECT_EQ(fault.memory, MemoryFault::kBadKey);
    EXPECT_EQ(fault.opcode, (Opcode{Service::kRC, op}));
    EXPECT_EQ(fault.r_key, RKey{kUnknownKey});
    EXPECT_FALSE(fault.key.has_value());
  }
}

TEST(RCFaultTest, RightsOfTheQPAndOfTheRegionAreToldApart) {
  for (const Op op : {Op::kFlush, Op::kAtomicWrite}) {
    Fault pair;
    pair.b.qp.remote_access = {};
    Packet packet = pair.request(op, pair.o.psn, op == Op::kAtomicWrite ? 8 : 0);
    packet.headers.feth = {.global = true};
    EXPECT_EQ(pair.refused(packet).refusal, Refusal::kNotEnabled);
  }
  Fault pair;
  pair.b.qp.remote_access = kAllRights | Access::kFlushGlobal;
  Packet packet = pair.request(Op::kFlush, pair.o.psn);
  packet.headers.feth = {.global = true};
  const ResponderFault& fault = pair.refused(packet);
  EXPECT_EQ(fault.refusal, Refusal::kRemoteMemory);
  EXPECT_EQ(fault.memory, MemoryFault::kAccess);
}

TEST(RCFaultTest, ShapesOfRequests) {
  const auto refusal_of = [](auto&& change, Op op, std::size_t payload) {
    Fault pair;
    pair.b.qp.remote_access = kAllRights | Access::kFlushGlobal;
    Packet packet = pair.request(op, pair.o.psn, payload);
    change(pair, packet);
    return pair.refused(packet).refusal;
  };
  const auto nothing = [](Fault&, Packet&) {};
  const auto unaligned = [](Fault& pair, Packet& packet) { packet = pair.with_address(packet, 4); };
  EXPECT_EQ(refusal_of(nothing, Op::kFlush, 0), Refusal::kFlushKind);
  EXPECT_EQ(refusal_of(nothing, Op::kAtomicWrite, 4), Refusal::kLength);
  EXPECT_EQ(refusal_of(unaligned, Op::kAtomicWrite, 8), Refusal::kUnaligned);
  EXPECT_EQ(refusal_of(unaligned, Op::kFetchAdd, 0), Refusal::kUnaligned);
  EXPECT_EQ(refusal_of(nothing, Op::kSendLast, 8), Refusal::kOpcodeSequence);
}

TEST(RCFaultTest, TheRequesterTellsWhichWorkItWas) {
  RCPair pair;
  SendWR wr = pair.with_remote(signaled(make_wr(SendOp::kFlush, 7)), 256);
  wr.flush = {.global = true};
  wr.flush_length = 64;
  ASSERT_EQ(pair.a.engine.post_send(wr, pair.now), PostError::kOk);
  (void)pair.take_all(pair.a);
  pair.deliver(pair.a, pair.nak(NAKCode::kRemoteAccessError, pair.o.psn));
  const RequesterFault& fault = pair.a.engine.fault().requester;
  EXPECT_EQ(fault.status, WQEStatus::kRemoteAccess);
  EXPECT_EQ(fault.op, SendOp::kFlush);
  EXPECT_EQ(fault.wr_id, 7u);
  EXPECT_EQ(fault.length_bytes, 64u);
  EXPECT_EQ(fault.remote_address, pair.b.address(256));
  EXPECT_TRUE(fault.started);
  EXPECT_FALSE(fault.answered);
}

// An operation that only reads its own memory needs no write access there.
TEST(RCFaultTest, TheSGEThatIsRefusedIsNamed) {
  for (const SendOp op : {SendOp::kRDMAWrite, SendOp::kAtomicWrite}) {
    RCPair pair;
    std::vector<u8> read_only(8);
    const u64 address = reinterpret_cast<u64>(read_only.data());
    const MRKeys keys = *pair.a.memory.register_mr(kPD, read_only.data(), 8, address, {});
    const SGE list = {address, 8, LKey{keys.l_key.value ^ 1}};
    SendWR wr = pair.with_remote(signaled(make_wr(op, 1)), 0);
    wr.sg_list = {&list, 1};
    ASSERT_EQ(pair.a.engine.post_send(wr, pair.now), PostError::kOk);
    pair.settle();
    const RequesterFault& fault = pair.a.engine.fault().requester;
    EXPECT_EQ(fault.status, WQEStatus::kLocalProtection);
    EXPECT_EQ(fault.refused.index, 0u);
    EXPECT_EQ(fault.refused.fault, MemoryFault::kBadKey);
  }
}

TEST(RCFaultTest, ANewLifeOfTheQPHasNoFault) {
  Fault pair;
  (void)pair.refused(pair.with_key(pair.request(Op::kRDMAWriteOnly, pair.o.psn, 8), kUnknownKey));
  pair.b.set_state(QPState::kReset, pair.now);
  EXPECT_EQ(pair.b.engine.fault().responder.refusal, Refusal::kNone);
}

}  // namespace
}  // namespace verbena::test
