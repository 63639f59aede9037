// The port of a device: frames in and out, what is dropped and why, marks and CNPs.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>
#include <vector>

#include "device/port/cnp_queue.h"
#include "device/testing.h"
#include "wire/roce/cnp.h"
#include "wire/roce/source_port.h"

namespace verbena {
namespace {

using test::config_at;
using test::kGIDA;
using test::kGIDB;
using test::kStart;
using test::kTestQKey;
using test::Node;
using test::on_the_wire;
using test::path_to;
using test::received;
using test::to_state;
using test::Wire;

constexpr std::array kTypes = {QPType::kRC, QPType::kUC, QPType::kUD};

struct DevicePortTest : ::testing::Test {
  // Posts a SEND of the first `length` bytes of a's memory to ends.b.
  void post_send(const Wire::Ends& ends, u32 length) {
    const SGE sge = wire.a.sge(0, length);
    SendWR wr;
    wr.wr_id = 1;
    wr.signaled = true;
    wr.sg_list = {&sge, 1};
    wr.destination = path_to(kGIDB);
    wr.dest_qp = wire.b.number(ends.b);
    wr.q_key = kTestQKey;
    ASSERT_EQ(wire.a.device.post_send(ends.a, wr, wire.now), PostError::kOk);
  }
  void post_receive(QueuePair* qp, u32 offset, u32 length) {
    const SGE sge = wire.b.sge(offset, length);
    ASSERT_EQ(wire.b.device.post_receive(qp, {.wr_id = 2, .sg_list = {&sge, 1}}, wire.now),
              PostError::kOk);
  }
  EgressFrame next_frame() {
    EgressFrame frame;
    EXPECT_TRUE(wire.a.device.poll_frame(wire.now, frame));
    return frame;
  }
  static PacketHeaders headers_of(const EgressFrame& frame) {
    std::vector<u8> bytes = on_the_wire(frame);
    return PacketView::decode(std::span(bytes).first(bytes.size() - kICRCSize))->headers;
  }
  const Counters& counters_b() { return wire.b.device.counters(); }
  Wire wire;
};

TEST_F(DevicePortTest, ASendArrivesOnEveryService) {
  for (const QPType type : kTypes) {
    const Wire::Ends ends = wire.connect(type);
    const u32 grh = type == QPType::kUD ? 40 : 0;
    const u32 length = 1001;
    for (u32 i = 0; i < length; ++i) wire.a.memory[i] = static_cast<u8>(i + i / 256);
    post_receive(ends.b, 4096, 2000);
    post_send(ends, length);
    wire.run();
    EXPECT_EQ(wire.a.completion()->status, WQEStatus::kSuccess);
    const std::optional<CQE> receive = wire.b.completion();
    ASSERT_TRUE(receive.has_value());
    EXPECT_EQ(receive->wr_id, 2u);
    EXPECT_EQ(receive->byte_length, length + grh);
    EXPECT_TRUE(std::equal(wire.a.memory.begin(), wire.a.memory.begin() + length,
                           wire.b.memory.begin() + 4096 + grh));
  }
}

TEST_F(DevicePortTest, WhatAPacketCarriesIsNotToldOfTheNext) {
  const Wire::Ends ends = wire.connect(QPType::kRC);
  post_receive(ends.b, 0, 64);
  post_receive(ends.b, 0, 64);
  SendWR wr;
  wr.op = SendOp::kSendWithImmediate;
  wr.immediate = 0xcafe;
  ASSERT_EQ(wire.a.device.post_send(ends.a, wr, wire.now), PostError::kOk);
  post_send(ends, 40);
  wire.run();
  EXPECT_EQ(wire.b.completion()->immediate, 0xcafeu);
  const std::optional<CQE> second = wire.b.completion();
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(second->immediate, 0u);
}

TEST_F(DevicePortTest, EachQPCountsItsTraffic) {
  const Wire::Ends ends = wire.connect(QPType::kUC);
  const Wire::Ends idle = wire.connect(QPType::kUC);
  post_receive(ends.b, 0, 64);
  post_send(ends, 40);
  wire.run();
  const u64 bytes = BTH::kSize + 40 + kICRCSize;
  EXPECT_EQ(wire.a.device.traffic_of(ends.a).sent_packets, 1u);
  EXPECT_EQ(wire.a.device.traffic_of(ends.a).sent_bytes, bytes);
  EXPECT_EQ(wire.a.device.traffic_of(ends.a).received_packets, 0u);
  EXPECT_EQ(wire.b.device.traffic_of(ends.b).received_packets, 1u);
  EXPECT_EQ(wire.b.device.traffic_of(ends.b).received_bytes, bytes);
  EXPECT_EQ(wire.b.device.traffic_of(idle.b).received_packets, 0u);
}

TEST_F(DevicePortTest, ReadOverRCComesBackAndItsPayloadIsNotStable) {
  const Wire::Ends ends = wire.connect(QPType::kRC);
  std::fill_n(wire.b.memory.begin(), 5000, u8{0x77});
  const SGE sge = wire.a.sge(0, 5000);
  SendWR wr;
  wr.op = SendOp::kRDMARead;
  wr.signaled = true;
  wr.sg_list = {&sge, 1};
  wr.remote_address = wire.b.address();
  wr.r_key = wire.b.keys.r_key;
  ASSERT_EQ(wire.a.device.post_send(ends.a, wr, wire.now), PostError::kOk);
  EXPECT_TRUE(next_frame().payload_is_stable);  // the request
  EXPECT_FALSE(wire.a.completion().has_value());
  // The request above went nowhere: the timer sends it again.
  wire.now = wire.a.device.next_timer();
  ASSERT_NE(wire.now, Time::never());
  wire.a.device.on_timer(wire.now);
  EXPECT_EQ(wire.carry(wire.a, wire.b), 1u);
  EgressFrame response;
  ASSERT_TRUE(wire.b.device.poll_frame(wire.now, response));
  EXPECT_FALSE(response.payload_is_stable);
  const std::vector<u8> bytes = on_the_wire(response);
  wire.a.device.on_frame(received(response, bytes), wire.now);
  wire.run();
  EXPECT_EQ(wire.a.completion()->status, WQEStatus::kSuccess);
  EXPECT_EQ(std::count(wire.a.memory.begin(), wire.a.memory.end(), 0x77), 5000);
}

TEST_F(DevicePortTest, AQPMaySendToItself) {
  for (const QPType type : {QPType::kRC, QPType::kUC}) {
    QueuePair* const qp = wire.b.create(type);
    ASSERT_EQ(wire.b.bring_up(qp, kGIDB, wire.b.number(qp)), QPState::kRTS);
    post_receive(qp, 0, 100);
    const SGE sge = wire.b.sge(200, 50);
    SendWR wr;
    wr.signaled = true;
    wr.sg_list = {&sge, 1};
    ASSERT_EQ(wire.b.device.post_send(qp, wr, wire.now), PostError::kOk);
    while (wire.carry(wire.b, wire.b) != 0) continue;
    EXPECT_EQ(wire.b.completion()->status, WQEStatus::kSuccess);
    EXPECT_EQ(wire.b.completion()->status, WQEStatus::kSuccess);
  }
}

TEST_F(DevicePortTest, FramesAreAddressedAsThePathSays) {
  const Wire::Ends ends{wire.a.create(QPType::kUC), wire.b.create(QPType::kUC)};
  const QPN local = wire.a.number(ends.a), remote = wire.b.number(ends.b);
  QPModify rtr = test::to_rtr(QPType::kUC, kGIDB, remote);
  rtr.path.traffic_class = 0x6a;
  rtr.path.hop_limit = 0;
  for (const QPModify& change : {test::to_init(QPType::kUC), rtr, test::to_rts(QPType::kUC)})
    ASSERT_EQ(wire.a.device.modify_qp(ends.a, change, wire.now), Status::kOk);
  post_send(ends, 5);
  const EgressFrame frame = next_frame();
  EXPECT_EQ(frame.source, kGIDA);
  EXPECT_EQ(frame.destination, kGIDB);
  EXPECT_EQ(frame.traffic_class, 0x6a);
  EXPECT_EQ(frame.hop_limit, 64);  // 0 would not leave the host
  EXPECT_EQ(frame.udp_source_port, source_port_of(local, remote));
  EXPECT_EQ(frame.headers_size, BTH::kSize);
  EXPECT_EQ(frame.pad_count, 3);
  EXPECT_EQ(frame.transport_size(), 20u);
  const BTH bth = headers_of(frame).bth;
  EXPECT_TRUE(bth.mig_req);
  EXPECT_EQ(bth.p_key, kDefaultPKey);
  EXPECT_EQ(bth.dest_qp, remote);
  EXPECT_EQ(bth.pad_count, 3);
  const Counters& counters = wire.a.device.counters();
  EXPECT_EQ(counters.port_xmit_packets, 1u);
  EXPECT_EQ(counters.port_xmit_bytes, 24u);
}

// 64 QPs with neighbouring numbers, so that a link can join what they send.
TEST(DeviceSourcePortTest, TheFirstQPsHaveAPortEachAndTheOthersShare) {
  DeviceConfig config = config_at(kGIDA, QPN{0x100});
  config.limits.max_qp = 130;
  config.egress.qps_with_own_port = 2;
  Node node(config);
  std::vector<u16> ports;
  for (u32 i = 0; i < 130; ++i) {
    QueuePair* const qp = node.create(QPType::kUC);
    ASSERT_EQ(node.bring_up(qp, kGIDB, QPN{0x200 + i}), QPState::kRTS);
    ASSERT_EQ(node.device.post_send(qp, SendWR{}, kStart), PostError::kOk);
    EgressFrame frame;
    ASSERT_TRUE(node.device.poll_frame(kStart, frame));
    ports.push_back(frame.udp_source_port);
  }
  EXPECT_EQ(ports[0], source_port_of(QPN{0x100}, QPN{0x200}));
  EXPECT_EQ(ports[1], source_port_of(QPN{0x101}, QPN{0x201}));
  EXPECT_EQ(std::count(ports.begin() + 2, ports.begin() + 64, ports[2]), 62);
  EXPECT_EQ(std::count(ports.begin() + 64, ports.begin() + 128, ports[64]), 64);
  EXPECT_EQ(std::set<u16>({ports[0], ports[1], ports[2], ports[64], ports[128]}).size(), 5u);
}

TEST_F(DevicePortTest, DatagramsGoWhereTheirWorkRequestSays) {
  const Wire::Ends ends = wire.connect(QPType::kUD);
  SendWR wr;
  wr.destination = path_to(GID::from_ipv4(0x0a0000fe));
  wr.destination.flow_label = 0x12345;
  wr.destination.hop_limit = 3;
  wr.dest_qp = QPN{0x777};
  ASSERT_EQ(wire.a.device.post_send(ends.a, wr, wire.now), PostError::kOk);
  const EgressFrame frame = next_frame();
  EXPECT_EQ(frame.source, kGIDA);
  EXPECT_EQ(frame.destination, GID::from_ipv4(0x0a0000fe));
  EXPECT_EQ(frame.hop_limit, 3);
  EXPECT_EQ(frame.udp_source_port, source_port_of_flow_label(0x12345));
  EXPECT_EQ(headers_of(frame).bth.dest_qp, QPN{0x777});
  EXPECT_EQ(headers_of(frame).deth.source_qp, wire.a.number(ends.a));
}

TEST_F(DevicePortTest, TwoBusyQPsShareThePortInRuns) {
  const Wire::Ends first = wire.connect(QPType::kUC), second = wire.connect(QPType::kUC);
  post_send(first, 60'000);
  post_send(second, 60'000);
  std::vector<std::pair<QPN, int>> runs;
  EgressFrame frame;
  while (wire.a.device.poll_frame(wire.now, frame)) {
    const QPN qpn = headers_of(frame).bth.dest_qp;
    if (runs.empty() || runs.back().first != qpn) runs.push_back({qpn, 0});
    ++runs.back().second;
  }
  const QPN p = wire.b.number(first.b), q = wire.b.number(second.b);
  EXPECT_EQ(runs, (std::vector<std::pair<QPN, int>>{{p, 32}, {q, 32}, {p, 27}, {q, 27}}));
}

TEST_F(DevicePortTest, AQPThatDrawsFromAnSRQ) {
  int user = 0;
  SharedReceiveQueue* const srq =
      wire.b.device
          .create_srq({.pd = wire.b.pd, .limits = {.depth = 8, .max_sge = 1}, .user = &user})
          .value();
  QPInit init = wire.b.init(QPType::kRC);
  init.srq = srq;
  const Wire::Ends ends{wire.a.create(QPType::kRC), wire.b.device.create_qp(init).value()};
  wire.a.bring_up(ends.a, kGIDB, wire.b.number(ends.b));
  wire.b.bring_up(ends.b, kGIDA, wire.a.number(ends.a));
  const SGE sge = wire.b.sge(0, 100);
  for (u64 id = 0; id < 2; ++id)
    EXPECT_EQ(wire.b.device.post_srq_receive(srq, {.wr_id = id, .sg_list = {&sge, 1}}, wire.now),
              PostError::kOk);
  EXPECT_EQ(wire.b.device.modify_srq(srq, {.limit = 2}), Status::kOk);
  post_send(ends, 100);
  wire.run();
  EXPECT_EQ(wire.b.completion()->wr_id, 0u);
  EXPECT_EQ(wire.b.device.poll_async_event()->type, AsyncEventType::kSRQLimitReached);
  EXPECT_EQ(wire.b.device.modify_qp(ends.b, to_state(QPState::kError), wire.now), Status::kOk);
  EXPECT_EQ(wire.b.device.poll_async_event()->type, AsyncEventType::kQPLastWQEReached);
  EXPECT_FALSE(wire.b.completion().has_value());  // the SRQ's receives are not flushed
}

// --- drops

// DropTest: a device receives one frame that was changed in one point on its path.
struct DropTest : DevicePortTest {
  using Alter = std::function<void(PacketHeaders&, IngressFrame&)>;

  // Has b receive a SEND from a, altered; the ICRC fits what arrives.
  void deliver(const Wire::Ends& ends, const Alter& alter) {
    post_send(ends, 20);
    EgressFrame egress = next_frame();
    PacketHeaders headers = headers_of(egress);
    IngressFrame ingress = received(egress, {});
    alter(headers, ingress);
    headers.encode(egress.headers);
    egress.headers_size = static_cast<u8>(headers.size());
    egress.source = ingress.source;
    egress.destination = ingress.destination;
    const std::vector<u8> bytes = on_the_wire(egress);
    ingress.transport = bytes;
    wire.b.device.on_frame(ingress, wire.now);
  }
  // All reasons together.
  u64 drops() {
    const Counters& c = counters_b();
    return c.dropped_unknown_qp + c.dropped_p_key + c.dropped_source + c.dropped_service +
           c.dropped_state + c.port_rcv_errors;
  }
  static void nothing(PacketHeaders&, IngressFrame&) {}
};

TEST_F(DropTest, UnalteredItIsAdmitted) {
  for (const QPType type : kTypes) deliver(wire.connect(type), nothing);
  EXPECT_EQ(drops(), 0u);
  EXPECT_EQ(counters_b().port_rcv_packets, 3u);
}

TEST_F(DropTest, UnknownQP) {
  const Wire::Ends ends = wire.connect(QPType::kUC);
  for (const u32 qpn : {0u, 2u, 0xffu, 0x23fu, 0x240u, 0xfffffeu, 0xffffffu})
    deliver(ends, [qpn](PacketHeaders& h, IngressFrame&) { h.bth.dest_qp = QPN{qpn}; });
  EXPECT_EQ(counters_b().dropped_unknown_qp, 7u);
  EXPECT_EQ(drops(), 7u);
}

TEST_F(DropTest, AnotherService) {
  const Wire::Ends rc = wire.connect(QPType::kRC), uc = wire.connect(QPType::kUC),
                   ud = wire.connect(QPType::kUD);
  const auto make = [](Service service) {
    return [service](PacketHeaders& h, IngressFrame&) { h.bth.opcode.service = service; };
  };
  deliver(rc, make(Service::kUC));
  deliver(rc, make(Service::kUD));
  deliver(rc, make(Service::kXRC));
  deliver(uc, make(Service::kRC));
  deliver(ud, make(Service::kRC));
  EXPECT_EQ(counters_b().dropped_service, 5u);
  EXPECT_EQ(drops(), 5u);
}

TEST_F(DropTest, AReservedOpCodeIsMalformed) {
  deliver(wire.connect(QPType::kRC), [](PacketHeaders&, IngressFrame&) {});
  const Wire::Ends ends = wire.connect(QPType::kRC);
  post_send(ends, 20);
  EgressFrame frame = next_frame();
  frame.headers[0] = 0x1f;
  const std::vector<u8> bytes = on_the_wire(frame);
  wire.b.device.on_frame(received(frame, bytes), wire.now);
  EXPECT_EQ(counters_b().port_rcv_errors, 1u);
  EXPECT_EQ(counters_b().rx_icrc_encapsulated, 0u);
  EXPECT_EQ(drops(), 1u);
}

TEST_F(DropTest, StatesThatTakeNothing) {
  u64 dropped = 0;
  for (const QPType type : kTypes) {
    const Wire::Ends ends = wire.connect(type);
    for (const QPModify& change :
         {to_state(QPState::kError), to_state(QPState::kReset), test::to_init(type)}) {
      ASSERT_EQ(wire.b.device.modify_qp(ends.b, change, wire.now), Status::kOk);
      deliver(ends, nothing);
      EXPECT_EQ(counters_b().dropped_state, ++dropped);
    }
    ASSERT_EQ(
        wire.b.device.modify_qp(ends.b, test::to_rtr(type, kGIDA, wire.a.number(ends.a)), wire.now),
        Status::kOk);
    deliver(ends, nothing);
    EXPECT_EQ(counters_b().dropped_state, dropped);
  }
  EXPECT_EQ(drops(), dropped);
}

TEST_F(DropTest, RTRTakesNoResponses) {
  const Wire::Ends ends{wire.a.create(QPType::kRC), wire.b.create(QPType::kRC)};
  wire.a.bring_up(ends.a, kGIDB, wire.b.number(ends.b));
  for (const QPModify& change :
       {test::to_init(QPType::kRC), test::to_rtr(QPType::kRC, kGIDA, wire.a.number(ends.a))})
    ASSERT_EQ(wire.b.device.modify_qp(ends.b, change, wire.now), Status::kOk);
  deliver(ends,
          [](PacketHeaders& h, IngressFrame&) { h.bth.opcode.op = Op::kRDMAReadResponseOnly; });
  EXPECT_EQ(counters_b().dropped_state, 1u);
  EXPECT_EQ(drops(), 1u);
}

TEST_F(DropTest, PKey) {
  const Wire::Ends ends = wire.connect(QPType::kUD);
  const auto with = [](u16 p_key) {
    return [p_key](PacketHeaders& h, IngressFrame&) { h.bth.p_key = PKey{p_key}; };
  };
  deliver(ends, with(0x7fff));  // a limited member talks to a full one
  EXPECT_EQ(drops(), 0u);
  deliver(ends, with(0x8001));
  deliver(ends, with(0));
  EXPECT_EQ(counters_b().dropped_p_key, 2u);
  EXPECT_EQ(drops(), 2u);
}

TEST_F(DropTest, AConnectedQPHearsItsPeerOnly) {
  u64 dropped = 0;
  for (const QPType type : {QPType::kRC, QPType::kUC}) {
    const Wire::Ends ends = wire.connect(type);
    deliver(ends, [](PacketHeaders&, IngressFrame& f) { f.source = GID::from_ipv4(0x0a000003); });
    deliver(ends,
            [](PacketHeaders&, IngressFrame& f) { f.destination = GID::from_ipv4(0x0a000003); });
    EXPECT_EQ(counters_b().dropped_source, dropped += 2);
  }
  deliver(wire.connect(QPType::kUD),
          [](PacketHeaders&, IngressFrame& f) { f.source = GID::from_ipv4(0x0a000003); });
  EXPECT_EQ(drops(), dropped);
}

TEST_F(DropTest, ABadICRCIsCountedAndNothingElseHappens) {
  const Wire::Ends ends = wire.connect(QPType::kUC);
  for (const bool known : {true, false}) {
    post_receive(ends.b, 0, 100);
    post_send(ends, 20);
    const EgressFrame frame = next_frame();
    std::vector<u8> bytes = on_the_wire(frame, 0xbeef);
    IngressFrame ingress = received(frame, bytes);
    ingress.identification = 0xbeef;
    ingress.identification_known = known;
    bytes[20] ^= 1;
    wire.b.device.on_frame(ingress, wire.now);
    EXPECT_FALSE(wire.b.completion().has_value());
    bytes[20] ^= 1;
    wire.b.device.on_frame(ingress, wire.now);  // unspoiled it is taken
    EXPECT_TRUE(wire.b.completion().has_value());
  }
  EXPECT_EQ(counters_b().rx_icrc_encapsulated, 2u);
  EXPECT_EQ(counters_b().port_rcv_errors, 2u);
}

TEST_F(DropTest, ABadICRCWithAnUnknownIdentificationIsFoundToo) {
  const Wire::Ends ends = wire.connect(QPType::kUC);
  post_receive(ends.b, 0, 100);
  post_send(ends, 20);
  const EgressFrame frame = next_frame();
  std::vector<u8> bytes = on_the_wire(frame, 0xbeef);
  for (std::size_t at = 12; at < bytes.size(); ++at) {
    bytes[at] ^= 0x10;
    wire.b.device.on_frame(received(frame, bytes), wire.now);
    bytes[at] ^= 0x10;
  }
  EXPECT_EQ(counters_b().rx_icrc_encapsulated, bytes.size() - 12);
  EXPECT_FALSE(wire.b.completion().has_value());
}

TEST_F(DropTest, AnUnknownIdentificationIsFound) {
  const Wire::Ends ends = wire.connect(QPType::kUC);
  post_receive(ends.b, 0, 100);
  post_send(ends, 20);
  const EgressFrame frame = next_frame();
  const std::vector<u8> bytes = on_the_wire(frame, 0xbeef);
  wire.b.device.on_frame(received(frame, bytes), wire.now);
  EXPECT_EQ(drops(), 0u);
  EXPECT_TRUE(wire.b.completion().has_value());
}

TEST_F(DropTest, Truncated) {
  const Wire::Ends ends = wire.connect(QPType::kUC);
  post_send(ends, 20);
  const EgressFrame frame = next_frame();
  const std::vector<u8> bytes = on_the_wire(frame);
  for (std::size_t size = 0; size < bytes.size(); ++size)
    wire.b.device.on_frame(received(frame, std::span(bytes).first(size)), wire.now);
  EXPECT_EQ(counters_b().port_rcv_errors, bytes.size());
  EXPECT_EQ(counters_b().port_rcv_packets, bytes.size());
}

// --- congestion

struct ECNTest : DropTest {
  void deliver_marked(const Wire::Ends& ends, u8 traffic_class) {
    deliver(ends, [=](PacketHeaders&, IngressFrame& f) { f.traffic_class = traffic_class; });
  }
  // The CNP that b sends, if it does; acknowledgements are passed over.
  std::optional<EgressFrame> cnp_from_b() {
    EgressFrame frame;
    while (wire.b.device.poll_frame(wire.now, frame))
      if (headers_of(frame).bth.opcode == kCNPOpcode) return frame;
    return std::nullopt;
  }
};

TEST_F(ECNTest, AMarkIsAnsweredWithACNP) {
  for (const QPType type : {QPType::kRC, QPType::kUC}) {
    const Wire::Ends ends = wire.connect(type);
    deliver_marked(ends, 0x6b);
    const std::optional<EgressFrame> cnp = cnp_from_b();
    ASSERT_TRUE(cnp.has_value());
    EXPECT_EQ(cnp->source, kGIDB);
    EXPECT_EQ(cnp->destination, kGIDA);
    EXPECT_EQ(cnp->traffic_class & 3, 0);
    EXPECT_EQ(cnp->transport_size(), 28u);
    const BTH bth = headers_of(*cnp).bth;
    EXPECT_EQ(bth.dest_qp, wire.a.number(ends.a));
    EXPECT_TRUE(bth.becn);
    const std::vector<u8> bytes = on_the_wire(*cnp);
    EXPECT_EQ(bytes[0], 0x81);
    EXPECT_TRUE(std::all_of(bytes.begin() + 12, bytes.begin() + 28, [](u8 b) { return b == 0; }));
    wire.a.device.on_frame(received(*cnp, bytes), wire.now);
  }
  EXPECT_EQ(counters_b().np_ecn_marked_roce_packets, 2u);
  EXPECT_EQ(counters_b().np_cnp_sent, 2u);
  EXPECT_EQ(wire.a.device.counters().rp_cnp_handled, 2u);
  EXPECT_EQ(wire.a.device.counters().rp_cnp_ignored, 0u);
}

TEST_F(ECNTest, OnlyCEIsAMark) {
  const Wire::Ends ends = wire.connect(QPType::kUC);
  for (const u8 traffic_class : {u8{0}, u8{1}, u8{2}}) deliver_marked(ends, traffic_class);
  EXPECT_FALSE(cnp_from_b().has_value());
  EXPECT_EQ(counters_b().np_ecn_marked_roce_packets, 0u);
}

TEST_F(ECNTest, OneCNPPerInterval) {
  const Wire::Ends ends = wire.connect(QPType::kUC);
  for (int i = 0; i < 5; ++i) deliver_marked(ends, 3);
  EXPECT_TRUE(cnp_from_b().has_value());
  EXPECT_FALSE(cnp_from_b().has_value());
  wire.now = wire.now + wire.b.device.config().congestion.notification.cnp_interval;
  deliver_marked(ends, 3);
  EXPECT_TRUE(cnp_from_b().has_value());
  EXPECT_EQ(counters_b().np_ecn_marked_roce_packets, 6u);
}

TEST_F(ECNTest, ADatagramIsCountedButNobodyIsTold) {
  const Wire::Ends ends = wire.connect(QPType::kUD);
  deliver_marked(ends, 3);
  EXPECT_EQ(counters_b().np_ecn_marked_roce_packets, 1u);
  EXPECT_FALSE(cnp_from_b().has_value());
}

TEST_F(ECNTest, ADroppedPacketIsNotAnswered) {
  const Wire::Ends ends = wire.connect(QPType::kUC);
  deliver(ends, [](PacketHeaders& h, IngressFrame& f) {
    h.bth.p_key = PKey{0x8001};
    f.traffic_class = 3;
  });
  EXPECT_EQ(counters_b().np_ecn_marked_roce_packets, 0u);
  EXPECT_FALSE(cnp_from_b().has_value());
}

TEST_F(ECNTest, AResetOrDestroyedQPOwesNoCNP) {
  const Wire::Ends first = wire.connect(QPType::kUC), second = wire.connect(QPType::kUC);
  deliver_marked(first, 3);
  deliver_marked(second, 3);
  EXPECT_EQ(wire.b.device.modify_qp(first.b, to_state(QPState::kReset), wire.now), Status::kOk);
  EXPECT_EQ(wire.b.device.destroy_qp(second.b), Status::kOk);
  EXPECT_FALSE(cnp_from_b().has_value());
}

TEST_F(ECNTest, ACNPForNobodyOrFromAStrangerIsIgnored) {
  const Wire::Ends ends = wire.connect(QPType::kUC);
  deliver_marked(ends, 3);
  EgressFrame cnp = *cnp_from_b();
  cnp.source = GID::from_ipv4(0x0a000003);
  std::vector<u8> bytes = on_the_wire(cnp);
  wire.a.device.on_frame(received(cnp, bytes), wire.now);
  cnp.source = kGIDB;
  cnp.headers[7] = 0x0f;  // DestQP
  bytes = on_the_wire(cnp);
  wire.a.device.on_frame(received(cnp, bytes), wire.now);
  EXPECT_EQ(wire.a.device.counters().rp_cnp_ignored, 2u);
  EXPECT_EQ(wire.a.device.counters().rp_cnp_handled, 0u);
}

}  // namespace
}  // namespace verbena
