// CMAgent: successful connections, from begin to end.
#include "connect/cm_agent.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "connect/cm_test_pair.h"

namespace verbena {
namespace {

using test::body_of;
using test::kPassiveQPN;
using test::kService;
using test::names_of;

class CMAgentTest : public testing::Test, public test::Pair {};

TEST_F(CMAgentTest, ConnectAndDisconnect) {
  const std::array<u8, 2> request_data = {1, 2}, reply_data = {3, 4};
  const std::array<u8, 1> ready_data = {5}, bye_data = {6}, last_data = {7};
  ConnectParams p = params();
  p.private_data = request_data;
  connect(p);
  carry(a, b);
  std::vector<CMEvent> events = b.events();
  ASSERT_EQ(names_of(events), "ConnectRequest");
  passive = events[0].id;
  EXPECT_EQ(events[0].user, 77u);  // the listener's
  const auto& request = std::get<ConnectRequest>(events[0].what);
  EXPECT_EQ(request.listener, listener);
  EXPECT_EQ(request.local_gid, b.gid);
  EXPECT_EQ(request.remote_gid, a.gid);
  EXPECT_EQ(request.req.local_qpn, test::kActiveQPN);
  EXPECT_EQ(request.req.starting_psn, PSN{0x111111});
  EXPECT_EQ(request.req.private_data[1], 2);

  ASSERT_EQ(
      b.agent.accept(passive, {.qpn = kPassiveQPN, .private_data = reply_data, .user = 2}, now),
      Status::kOk);
  carry(b, a);
  events = a.events();
  ASSERT_EQ(names_of(events), "ReplyReceived");
  EXPECT_EQ(events[0].id, active);
  EXPECT_EQ(events[0].user, 1u);
  const cm::REP& rep = std::get<ReplyReceived>(events[0].what).rep;
  EXPECT_EQ(rep.local_qpn, kPassiveQPN);
  EXPECT_EQ(rep.private_data[1], 4);

  ASSERT_EQ(a.agent.ready_to_use(active, ready_data), Status::kOk);
  carry(a, b);
  events = b.events();
  ASSERT_EQ(names_of(events), "Established");
  EXPECT_EQ(events[0].user, 2u);
  EXPECT_EQ(std::get<Established>(events[0].what).rtu.private_data[0], 5);

  ASSERT_EQ(a.agent.disconnect(active, bye_data, now), Status::kOk);
  EXPECT_EQ(carry(a, b), "DREQ");
  events = b.events();
  ASSERT_EQ(names_of(events), "Disconnected");
  EXPECT_EQ(std::get<Disconnected>(events[0].what).cause, DisconnectCause::kRequested);
  EXPECT_EQ(std::get<Disconnected>(events[0].what).private_data[0], 6);
  ASSERT_EQ(b.agent.reply_disconnect(passive, last_data, now), Status::kOk);
  EXPECT_EQ(carry(b, a), "DREP");
  events = a.events();
  ASSERT_EQ(names_of(events), "Disconnected");
  EXPECT_EQ(std::get<Disconnected>(events[0].what).cause, DisconnectCause::kReplied);
  EXPECT_EQ(std::get<Disconnected>(events[0].what).private_data[0], 7);

  EXPECT_EQ(let_time_pass(a), "TimeWaitExit");
  EXPECT_EQ(let_time_pass(b), "TimeWaitExit");
  EXPECT_EQ(a.agent.connections(), 0u);
  EXPECT_EQ(b.agent.connections(), 0u);
  EXPECT_EQ(a.agent.disconnect(active, {}, now), Status::kNotFound);
}

TEST_F(CMAgentTest, OptionsOfAVendorAreOfferedAndTaken) {
  ConnectParams p = params();
  p.ece = {.vendor_id = 0xfedcba, .options = 0x12345678};
  connect(p);
  carry(a, b);
  std::vector<CMEvent> events = b.events();
  ASSERT_EQ(names_of(events), "ConnectRequest");
  EXPECT_EQ(std::get<ConnectRequest>(events[0].what).ece, p.ece);
  const cm::ECE taken{.vendor_id = 0xfedcba, .options = 0x10000008};
  ASSERT_EQ(b.agent.accept(events[0].id, {.qpn = kPassiveQPN, .ece = taken}, now), Status::kOk);
  carry(b, a);
  events = a.events();
  ASSERT_EQ(names_of(events), "ReplyReceived");
  EXPECT_EQ(std::get<ReplyReceived>(events[0].what).ece, taken);
}

TEST_F(CMAgentTest, OneTransactionForTheWholeConnect) {
  connect();
  const std::vector<MADOut> req = a.mads();
  b.receive(req[0], now);
  passive = b.events()[0].id;
  accept();
  const std::vector<MADOut> rep = b.mads();
  EXPECT_EQ(cm::Message::decode(rep[0].mad)->transaction_id,
            cm::Message::decode(req[0].mad)->transaction_id);
}

TEST_F(CMAgentTest, IDsCarryTheProcessSlot) {
  establish();
  EXPECT_EQ(process_slot_of(active), ProcessSlot{3});
  EXPECT_EQ(process_slot_of(passive), ProcessSlot{5});
}

TEST_F(CMAgentTest, BothConnectAtOnce) {  // two REQs are two connections, as in Linux
  const ListenerId listener_of_a = *a.agent.listen({.service_id = kService});
  connect();
  ConnectParams back = params();
  std::swap(back.local_gid, back.remote_gid);
  back.qpn = QPN{0x24};
  const CommId from_b = *b.agent.connect(back, now);
  const std::vector<MADOut> to_b = a.mads(), to_a = b.mads();
  b.receive(to_b[0], now);
  a.receive(to_a[0], now);
  passive = b.events()[0].id;
  accept();
  const std::vector<CMEvent> asked = a.events();
  ASSERT_EQ(names_of(asked), "ConnectRequest");
  EXPECT_EQ(std::get<ConnectRequest>(asked[0].what).listener, listener_of_a);
  EXPECT_EQ(a.agent.accept(asked[0].id, {.qpn = QPN{0x46}}, now), Status::kOk);
  carry(a, b);
  carry(b, a);
  EXPECT_EQ(a.agent.ready_to_use(active, {}), Status::kOk);
  EXPECT_EQ(b.agent.ready_to_use(from_b, {}), Status::kOk);
  carry(a, b);
  carry(b, a);
  EXPECT_EQ(names_of(a.events()), "ReplyReceived Established");
  EXPECT_EQ(names_of(b.events()), "ReplyReceived Established");
}

TEST_F(CMAgentTest, ConnectToOneself) {  // both ends in one agent
  ConnectParams p = params();
  p.local_gid = p.remote_gid = b.gid;
  active = *b.agent.connect(p, now);
  carry(b, b);
  passive = b.events()[0].id;
  EXPECT_NE(active, passive);
  accept();
  carry(b, b);
  EXPECT_EQ(names_of(b.events()), "ReplyReceived");
  EXPECT_EQ(b.agent.ready_to_use(active, {}), Status::kOk);
  carry(b, b);
  EXPECT_EQ(names_of(b.events()), "Established");
}

TEST_F(CMAgentTest, UCAndXRCAreRequestedAsLinuxDoes) {
  ConnectParams p = params();
  p.transport = CMTransport::kUC;
  connect(p);
  p.transport = CMTransport::kXRC;
  p.responder_resources = 4;
  p.initiator_depth = 5;
  connect(p);
  const std::vector<MADOut> mads = a.mads();
  const auto uc = std::get<cm::REQ>(body_of(mads[0])), xrc = std::get<cm::REQ>(body_of(mads[1]));
  EXPECT_EQ(uc.transport_service, cm::TransportService::kUC);
  EXPECT_EQ(uc.retry_count, 7);
  EXPECT_EQ(xrc.transport_service, cm::TransportService::kExtended);
  EXPECT_EQ(xrc.extended_transport, cm::kExtendedXRC);
  EXPECT_EQ(xrc.initiator_depth, 5);
  EXPECT_EQ(xrc.responder_resources, 0);
  EXPECT_EQ(xrc.retry_count, 0);
}

TEST_F(CMAgentTest, AnXRCTargetPutsItsQPNInEECN) {
  ConnectParams p = params();
  p.transport = CMTransport::kXRC;
  connect(p);
  carry(a, b);
  passive = b.events()[0].id;
  accept();
  const std::vector<MADOut> mads = b.mads();
  const auto rep = std::get<cm::REP>(body_of(mads[0]));
  EXPECT_EQ(rep.local_eecn, kPassiveQPN.value);
  EXPECT_EQ(rep.local_qpn, QPN{});
  EXPECT_TRUE(rep.srq);
  a.receive(mads[0], now);
  EXPECT_EQ(a.agent.ready_to_use(active, {}), Status::kOk);
  EXPECT_EQ(a.agent.disconnect(active, {}, now), Status::kOk);
  EXPECT_EQ(carry(a, b), "RTU DREQ");
  EXPECT_EQ(names_of(b.events()), "Established Disconnected");  // the DREQ names that QPN
}

TEST_F(CMAgentTest, DataBeforeTheRTUEstablishes) {  // 12.9.8.1
  reply();
  EXPECT_EQ(a.agent.ready_to_use(active, {}), Status::kOk);
  const std::vector<MADOut> rtu = a.mads();
  EXPECT_EQ(b.agent.establish(passive), Status::kOk);
  EXPECT_EQ(b.agent.next_timer(), Time::never());  // no REP again
  b.receive(rtu[0], now);
  EXPECT_EQ(names_of(b.events()), "");  // the call has established it; nothing is new
  EXPECT_EQ(b.agent.disconnect(passive, {}, now), Status::kOk);
}

TEST_F(CMAgentTest, BothDisconnectAtOnce) {
  establish();
  EXPECT_EQ(a.agent.disconnect(active, {}, now), Status::kOk);
  EXPECT_EQ(b.agent.disconnect(passive, {}, now), Status::kOk);
  const std::vector<MADOut> to_b = a.mads(), to_a = b.mads();
  b.receive(to_b[0], now);
  a.receive(to_a[0], now);
  for (test::TestHost* host : {&a, &b}) {
    const std::vector<CMEvent> events = host->events();
    ASSERT_EQ(names_of(events), "Disconnected");
    EXPECT_EQ(std::get<Disconnected>(events[0].what).cause, DisconnectCause::kCrossed);
  }
  EXPECT_EQ(carry(a, b), "DREP");  // that come too late to matter
  EXPECT_EQ(carry(b, a), "DREP");
  EXPECT_EQ(let_time_pass(a), "TimeWaitExit");
  EXPECT_EQ(let_time_pass(b), "TimeWaitExit");
}

TEST_F(CMAgentTest, ARejectionHasItsReasonAndWords) {
  const std::array<u8, 3> data = {'n', 'o', '!'}, ari = {1, 2, 3};
  request();
  EXPECT_EQ(b.agent.reject(
                passive,
                {.reason = cm::RejectReason::kNoResources, .ari = ari, .private_data = data}, now),
            Status::kOk);
  EXPECT_EQ(carry(b, a), "REJ");
  const std::vector<CMEvent> events = a.events();
  ASSERT_EQ(names_of(events), "Rejected");
  const cm::REJ& rej = std::get<Rejected>(events[0].what).rej;
  EXPECT_EQ(rej.reason, cm::RejectReason::kNoResources);
  EXPECT_EQ(rej.message_rejected, cm::Answered::kREQ);
  EXPECT_EQ(rej.reject_info_length, 3);
  EXPECT_EQ(rej.ari[2], 3);
  EXPECT_EQ(rej.private_data[0], 'n');
  EXPECT_EQ(a.agent.connections(), 0u);
  EXPECT_EQ(let_time_pass(b), "");
  EXPECT_EQ(b.agent.connections(), 0u);
}

TEST_F(CMAgentTest, TheActiveSideMayRejectTheReply) {
  reply();
  EXPECT_EQ(a.agent.reject(active, {}, now), Status::kOk);
  EXPECT_EQ(carry(a, b), "REJ");
  const std::vector<CMEvent> events = b.events();
  ASSERT_EQ(names_of(events), "Rejected");
  EXPECT_EQ(std::get<Rejected>(events[0].what).rej.message_rejected, cm::Answered::kREP);
}

TEST_F(CMAgentTest, NobodyListens) {  // "connection refused"
  EXPECT_EQ(b.agent.unlisten(listener), Status::kOk);
  connect();
  carry(a, b);
  EXPECT_EQ(carry(b, a), "REJ");
  const std::vector<CMEvent> events = a.events();
  ASSERT_EQ(names_of(events), "Rejected");
  EXPECT_EQ(std::get<Rejected>(events[0].what).rej.reason, cm::RejectReason::kInvalidServiceID);
  EXPECT_EQ(b.agent.connections(), 0u);
}

class PatientCMAgentTest : public CMAgentTest {
 protected:
  static constexpr Duration kPatience = ms(100);

  void SetUp() override {
    ASSERT_EQ(b.agent.unlisten(listener), Status::kOk);
    ConnectParams p = params();
    p.local_gid = patient.gid;
    p.max_cm_retries = 0;
    ASSERT_TRUE(patient.agent.connect(p, now).has_value());
    EXPECT_EQ(ask(), "REJ");
  }
  // Sends the request, or its repetition, and checks the answer.
  std::string ask() {
    carry(patient, b);
    return carry(b, patient);
  }

  test::TestHost patient{"10.0.0.3",
                         {.process_slot = ProcessSlot{7},
                          .refusal_patience = kPatience,
                          .max_connections = kMaxConnections}};
};

TEST_F(PatientCMAgentTest, AServerThatListensATimeLaterIsReached) {
  EXPECT_EQ(names_of(patient.events()), "");
  fire_timer(patient);
  EXPECT_EQ(ask(), "REJ");
  listener = *b.agent.listen({.service_id = kService});
  fire_timer(patient);
  carry(patient, b);
  EXPECT_EQ(names_of(b.events()), "ConnectRequest");
}

TEST_F(PatientCMAgentTest, PatienceEnds) {
  const Time asked = now;
  while (patient.agent.next_timer() != Time::never()) {
    fire_timer(patient);
    ask();
  }
  EXPECT_EQ(names_of(patient.events()), "Rejected");
  EXPECT_GE(now, asked + kPatience);
  EXPECT_LT(now, asked + kPatience * 2);
}

TEST_F(CMAgentTest, ARequestOutlivesItsListener) {
  request();
  EXPECT_EQ(b.agent.unlisten(listener), Status::kOk);
  accept();
  EXPECT_EQ(carry(b, a), "REP");
}

TEST_F(CMAgentTest, SIDRFindsTheQP) {
  const std::array<u8, 2> request_data = {1, 2}, reply_data = {3, 4};
  active = *a.agent.sidr_request({.local_gid = a.gid,
                                  .remote_gid = b.gid,
                                  .service_id = kService,
                                  .private_data = request_data,
                                  .user = 5},
                                 now);
  EXPECT_EQ(carry(a, b), "SIDR_REQ");
  std::vector<CMEvent> events = b.events();
  ASSERT_EQ(names_of(events), "SIDRRequest");
  EXPECT_EQ(events[0].user, 77u);
  const auto& request = std::get<SIDRRequest>(events[0].what);
  EXPECT_EQ(request.listener, listener);
  EXPECT_EQ(request.remote_gid, a.gid);
  EXPECT_EQ(request.req.private_data[1], 2);
  EXPECT_EQ(b.agent.sidr_reply(
                events[0].id,
                {.qpn = QPN{0x24}, .q_key = QKey{0x01234567}, .private_data = reply_data}, now),
            Status::kOk);
  EXPECT_EQ(carry(b, a), "SIDR_REP");
  events = a.events();
  ASSERT_EQ(names_of(events), "SIDRReply");
  EXPECT_EQ(events[0].user, 5u);
  const cm::SIDRREP& rep = std::get<SIDRReply>(events[0].what).rep;
  EXPECT_EQ(rep.status, cm::SIDRStatus::kValid);
  EXPECT_EQ(rep.qpn, QPN{0x24});
  EXPECT_EQ(rep.q_key, QKey{0x01234567});
  EXPECT_EQ(rep.service_id, kService);
  EXPECT_EQ(rep.private_data[0], 3);
  EXPECT_EQ(a.agent.connections(), 0u);
  EXPECT_EQ(let_time_pass(b), "");
  EXPECT_EQ(b.agent.connections(), 0u);
}

TEST_F(CMAgentTest, SIDRForNobody) {
  EXPECT_EQ(b.agent.unlisten(listener), Status::kOk);
  sidr_request();
  carry(a, b);
  carry(b, a);
  const std::vector<CMEvent> events = a.events();
  ASSERT_EQ(names_of(events), "SIDRReply");
  EXPECT_EQ(std::get<SIDRReply>(events[0].what).rep.status, cm::SIDRStatus::kServiceIDNotSupported);
}

}  // namespace
}  // namespace verbena
