// Two pairs of engines in the same situation: one uses the common case wherever it may
// (common_case.cc), the other the general path. Whatever is posted, lost or refused, their outputs
// are the same.
#include <algorithm>
#include <cstring>
#include <map>

#include "base/prng.h"
#include "transport/rc/rc_pair_for_test.h"

namespace verbena::test {
namespace {

// Takes all packets that it is offered; packets polled out of an engine come here, too.
class Wires final : public LocalPackets {
 public:
  bool take(const QPAttributes&, const TxPacket&) override { return false; }
  bool send(const QPAttributes& qp, const LocalSend& send) override {
    Packet packet;
    packet.headers.bth.opcode = {Service::kRC,
                                 send.with_immediate ? Op::kSendOnlyWithImmediate : Op::kSendOnly};
    packet.headers.bth.ack_req = true;
    packet.headers.bth.solicited_event = send.solicited;
    packet.headers.imm.value = send.immediate;
    packet.payload.assign(send.payload.begin(), send.payload.end());
    EXPECT_EQ(send.bytes(), packet.encode().size());
    return add(qp, send.psn, std::move(packet));
  }
  bool acknowledge(const QPAttributes& qp, PSN psn, const AETH& aeth) override {
    Packet packet;
    packet.headers.bth.opcode = {Service::kRC, Op::kAcknowledge};
    packet.headers.aeth = aeth;
    return add(qp, psn, std::move(packet));
  }
  void flush() override {}

  std::map<u32, std::vector<Packet>> from;  // by QPN

 private:
  bool add(const QPAttributes& qp, PSN psn, Packet packet) {
    packet.headers.bth.psn = psn;
    packet.headers.bth.dest_qp = qp.dest_qp;
    from[qp.qpn.value].push_back(std::move(packet));
    return true;
  }
};

RCOptions options_for(PRNG& prng, LocalPackets& wires) {
  RCOptions o;
  o.mtu = MTU::k256;
  o.depth = 16;
  o.psn = prng.next() % 2 == 0 ? 0xfffff0 : 0x100;
  o.signal_all = prng.next() % 2 == 0;
  o.shared_receive_queue = prng.next() % 4 == 0;
  o.rnr_retry_count = prng.next() % 2 == 0 ? 7 : 2;
  if (prng.next() % 2 == 0) o.limits.path.min_probe_timeout = us(100);
  if (prng.next() % 4 == 0) o.limits.path.window_packets = 4;
  o.local_packets = &wires;
  return o;
}

enum class Way { kCommonCase, kGeneral };

// One pair, driven by a seed.
class World {
 public:
  World(u64 seed, Way way) : way_(way), prng_(seed), pair_(options_for(prng_, wires_)) {}

  void step() {
    Side& side = prng_.next() % 2 == 0 ? pair_.a : pair_.b;
    const bool has_failed =
        pair_.a.qp.state == QPState::kError || pair_.b.qp.state == QPState::kError;
    if (has_failed && prng_.next() % 16 == 0) begin_again();
    switch (prng_.next() % 16) {
      case 0:
      case 1:
      case 2:
      case 3: post_send(side); break;
      case 4:
      case 5:
      case 6: post_receive(side); break;
      case 7: post_other(side); break;
      case 8: pair_.now = pair_.now + us(static_cast<i64>(prng_.next() % 50)); break;
      case 9: lose(side); break;
      case 10: repeat(side); break;
      case 11: pair_.fire_timer(side); break;
      case 12: drain_queue(side); break;
      default: deliver(side, 1 + prng_.next() % 3); break;
    }
    for (Side* const each : {&pair_.a, &pair_.b}) collect(*each);
  }

  // All visible state except memory.
  std::string look(const Side& side) {
    std::string out;
    const auto add = [&out](const auto&... values) {
      ((out += std::to_string(static_cast<i64>(values)) + " "), ...);
      out += "\n";
    };
    for (const std::vector<CQE>* const cqes : {&side.send_cqes, &side.receive_cqes}) {
      for (const CQE& cqe : *cqes)
        add(cqe.wr_id, cqe.status, cqe.op, cqe.with_immediate, cqe.with_invalidate, cqe.with_grh,
            cqe.solicited, cqe.service_level, cqe.p_key_index, cqe.byte_length, cqe.immediate,
            cqe.qp.value, cqe.source_qp.value, cqe.srq, cqe.entries);
      add(cqes->size());
    }
    for (const EngineEvent event : side.events) add(event);
    const EngineOutputs outputs = side.engine.outputs();
    add(outputs.send_cqe, outputs.receive_cqe, outputs.event, outputs.packet);
    add(side.engine.next_timer().ns(), side.qp.state, side.receive_queue.size());
    out.append(reinterpret_cast<const char*>(&side.engine.counters()), sizeof(EngineCounters));
    for (const Packet& packet : from(side)) {
      const BTH& bth = packet.headers.bth;
      add(bth.opcode.to_byte(), bth.psn.value(), bth.ack_req, bth.solicited_event);
      if (traits_of(bth.opcode).imm_dt) add(packet.headers.imm.value);
      const AETH& aeth = packet.headers.aeth;
      if (traits_of(bth.opcode).aeth) add(aeth.kind, aeth.value, aeth.msn.value());
      out.append(packet.payload.begin(), packet.payload.end());
    }
    out += outcomes_;
    return out;
  }
  RCPair& pair() { return pair_; }
  u32 in_one_go() const { return in_one_go_; }

 private:
  void begin_again() {
    for (Side* const side : {&pair_.a, &pair_.b}) {
      side->set_state(QPState::kReset, pair_.now);
      from(*side).clear();
    }
    pair_.connect();
  }
  void post_send(Side& side) {
    SendWR wr =
        make_wr(prng_.next() % 4 == 0 ? SendOp::kSendWithImmediate : SendOp::kSend, ++wr_id_);
    wr.signaled = prng_.next() % 2 == 0;
    wr.solicited = prng_.next() % 4 == 0;
    wr.fence = prng_.next() % 8 == 0;
    wr.immediate = static_cast<u32>(prng_.next());
    wr.inline_data = prng_.next() % 4 == 0;
    const u32 length = static_cast<u32>(prng_.next() % (prng_.next() % 8 == 0 ? 600 : 200));
    SGE sge = side.sge(prng_.next() % 1000, length);
    if (prng_.next() % 128 == 0 && !wr.inline_data) sge.l_key.value ^= 1;
    std::vector<SGE> list{sge};
    if (prng_.next() % 8 == 0 && !wr.inline_data) list.push_back(side.sge(0, 8));
    wr.sg_list = list;
    post(side, wr);
  }
  void post_other(Side& side) {
    constexpr std::array kOps{SendOp::kRDMAWrite, SendOp::kRDMARead, SendOp::kFetchAdd,
                              SendOp::kLocalInvalidate};
    Side& peer = peer_of(side);
    SendWR wr = signaled(make_wr(kOps[prng_.next() % (prng_.next() % 32 == 0 ? 4 : 3)], ++wr_id_));
    const u32 length = wr.op == SendOp::kFetchAdd ? 8 : static_cast<u32>(prng_.next() % 600);
    wr.remote_address = peer.address(4096 + prng_.next() % 64 * 8);
    wr.r_key = peer.keys.r_key;
    wr.swap_or_add = 1;
    const SGE sge = side.sge(8192, length);
    if (wr.op != SendOp::kLocalInvalidate) wr.sg_list = {&sge, 1};
    post(side, wr);
  }
  void post(Side& side, const SendWR& wr) {
    const PostError error = side.engine.post_send(wr, pair_.now);
    outcomes_ += static_cast<char>(error);
    if (error == PostError::kOk && way_ == Way::kCommonCase &&
        side.engine.send_at_once(pair_.now).has_value())
      ++in_one_go_;
  }
  void post_receive(Side& side) {
    std::vector<SGE> list{side.sge(16384 + prng_.next() % 1000, 600)};
    if (prng_.next() % 8 == 0) list.insert(list.begin(), side.sge(0, 4));
    if (prng_.next() % 64 == 0) list[0].length = 8;
    if (prng_.next() % 128 == 0) list[0].l_key.value ^= 1;
    (void)side.post_receive(++wr_id_, list, pair_.now);
  }
  void drain_queue(Side& side) {
    if (prng_.next() % 4 != 0) return;
    if (side.qp.state == QPState::kRTS)
      side.set_state(QPState::kSQD, pair_.now);
    else if (side.qp.state == QPState::kSQD)
      side.set_state(QPState::kRTS, pair_.now);
  }

  Side& peer_of(const Side& side) { return &side == &pair_.a ? pair_.b : pair_.a; }
  std::vector<Packet>& from(const Side& side) { return wires_.from[side.qp.qpn.value]; }
  void collect(Side& side) {
    for (Packet& packet : pair_.take_all(side)) from(side).push_back(std::move(packet));
  }
  void lose(Side& side) {
    if (!from(side).empty() && prng_.next() % 2 == 0) from(side).erase(from(side).begin());
  }
  void repeat(Side& side) {
    std::vector<Packet>& packets = from(side);
    if (!packets.empty()) packets.push_back(packets.front());
  }
  void deliver(Side& side, u64 count) {
    for (; count != 0 && !from(side).empty(); --count) {
      const Packet packet = from(side).front();
      from(side).erase(from(side).begin());
      Side& to = peer_of(side);
      if (to.qp.state == QPState::kError) continue;
      if (way_ == Way::kGeneral || !take(to, packet)) pair_.deliver(to, packet);
    }
  }
  bool take(Side& to, const Packet& packet) {
    const std::vector<u8> bytes = packet.encode();
    const std::optional<PacketView> view = PacketView::decode(bytes);
    const std::optional<u8*> place = to.engine.expects_send(*view);
    CQE cqe;
    std::memset(static_cast<void*>(&cqe), 0xa5, sizeof cqe);  // what another left there
    if (!place || !to.engine.take_send(*view, *place, cqe)) return false;
    to.receive_cqes.push_back(cqe);
    to.receive_queue.free_entries(cqe.entries);
    pair_.drain(to);
    ++in_one_go_;
    return true;
  }

  const Way way_;
  PRNG prng_;
  Wires wires_;
  RCPair pair_;
  u64 wr_id_ = 0;
  u32 in_one_go_ = 0;
  std::string outcomes_;
};

class RCCommonCaseTest : public testing::TestWithParam<u64> {};

TEST_P(RCCommonCaseTest, IsTheGeneralCaseInOneGo) {
  World common(GetParam(), Way::kCommonCase), general(GetParam(), Way::kGeneral);
  for (u32 i = 0; i < 400; ++i) {
    common.step();
    general.step();
    ASSERT_TRUE(common.look(common.pair().a) == general.look(general.pair().a)) << "step " << i;
    ASSERT_TRUE(common.look(common.pair().b) == general.look(general.pair().b)) << "step " << i;
  }
  EXPECT_TRUE(common.pair().a.buffer == general.pair().a.buffer);
  EXPECT_TRUE(common.pair().b.buffer == general.pair().b.buffer);
  EXPECT_EQ(general.in_one_go(), 0u);
  EXPECT_GT(common.in_one_go(), 0u);
}

// 200 where simulations have 2,000 seeds, fewer in the quick presets.
INSTANTIATE_TEST_SUITE_P(Seeds, RCCommonCaseTest,
                         testing::Range(u64{1}, std::min(u64{VERBENA_SIM_SEEDS}, u64{200}) + 1));

}  // namespace
}  // namespace verbena::test
