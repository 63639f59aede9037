// CMAgent against Linux: the tests feed the MADs of Linux's CM (tests/captures/rxe-cm-*.pcap) to an
// agent. Its answers differ from Linux's only in the numbers that each side draws.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/bytes.h"
#include "connect/cm_agent.h"
#include "connect/cm_test_host.h"
#include "connect/ip_cm.h"
#include "tests/support/golden.h"
#include "tests/support/pcap.h"

namespace verbena {
namespace {

using test::body_of;
using test::names_of;
using test::TestHost;

constexpr Time kNow = Time() + sec(1);

MADOut captured(const std::string& file, std::size_t frame) {
  const std::vector<u8> bytes = test::captured_frame(file, frame);
  MADOut out{.source = GID::from_ipv4(load_be32(bytes.data() + 26)),
             .destination = GID::from_ipv4(load_be32(bytes.data() + 30))};
  std::copy_n(bytes.begin() + test::kMADAt, out.mad.size(), out.mad.begin());
  return out;
}

template <typename T>
T message(const MADOut& mad) {
  return std::get<T>(body_of(mad));
}
u64 transaction(const MADOut& mad) { return cm::Message::decode(mad.mad)->transaction_id; }

// Guest 1 of the lab answers, guest 2 requests.
struct Lab {
  TestHost passive{"10.77.0.2", {.ca_guid = GUID{0x505400fffe770002}, .seed = 1}};
  TestHost active{"10.77.0.3", {.ca_guid = GUID{0x505400fffe770003}, .seed = 2}};
};

// The parameters that rdma_cm gives the kernel for a captured REQ.
ConnectParams params_of(const cm::REQ& req) {
  return {.local_gid = req.primary.local_gid,
          .remote_gid = req.primary.remote_gid,
          .service_id = req.service_id,
          .qpn = req.local_qpn,
          .starting_psn = req.starting_psn,
          .responder_resources = req.responder_resources,
          .initiator_depth = req.initiator_depth,
          .retry_count = req.retry_count,
          .rnr_retry_count = req.rnr_retry_count,
          .flow_label = req.primary.flow_label};
}

AcceptParams params_of(const cm::REP& rep) {
  return {.qpn = rep.local_qpn,
          .starting_psn = rep.starting_psn,
          .responder_resources = rep.responder_resources,
          .initiator_depth = rep.initiator_depth,
          .rnr_retry_count = rep.rnr_retry_count};
}

class CMAgentCapturesTest : public testing::TestWithParam<std::string> {};

TEST_P(CMAgentCapturesTest, OurREQIsLinuxs) {
  const cm::REQ theirs = message<cm::REQ>(captured(GetParam(), 1));
  const std::optional<IPRequest> ip = parse_ip_request(theirs.service_id, theirs.private_data);
  ASSERT_TRUE(ip.has_value());
  const Result<IPPrivateData> data =
      IPPrivateData::compose(ip->source, ip->destination.address, {}, kIPConnectDataSize);
  ASSERT_TRUE(data.has_value());

  Lab lab;
  ConnectParams params = params_of(theirs);
  params.private_data = data->bytes();
  const CommId id = *lab.active.agent.connect(params, kNow);
  cm::REQ ours = message<cm::REQ>(lab.active.mads().at(0));
  EXPECT_EQ(ours.local_comm_id, id);
  ours.local_comm_id = theirs.local_comm_id;
  EXPECT_EQ(ours, theirs);
}

TEST_P(CMAgentCapturesTest, OurREPIsLinuxs) {
  const MADOut req = captured(GetParam(), 1), rep = captured(GetParam(), 2);
  Lab lab;
  ASSERT_TRUE(
      lab.passive.agent.listen({.service_id = message<cm::REQ>(req).service_id}).has_value());
  lab.passive.receive(req, kNow);
  const std::vector<CMEvent> events = lab.passive.events();
  ASSERT_EQ(names_of(events), "ConnectRequest");
  EXPECT_EQ(std::get<ConnectRequest>(events[0].what).req, message<cm::REQ>(req));

  const cm::REP theirs = message<cm::REP>(rep);
  ASSERT_EQ(lab.passive.agent.accept(events[0].id, params_of(theirs), kNow), Status::kOk);
  const MADOut sent = lab.passive.mads().at(0);
  EXPECT_EQ(sent.destination, rep.destination);
  EXPECT_EQ(transaction(sent), transaction(rep));
  cm::REP ours = message<cm::REP>(sent);
  EXPECT_EQ(ours.local_comm_id, events[0].id);
  ours.local_comm_id = theirs.local_comm_id;
  EXPECT_EQ(ours, theirs);
}

// The whole capture as the active side: the agent accepts Linux's answers, changed to our IDs.
TEST_P(CMAgentCapturesTest, LinuxsREPEstablishes) {
  Lab lab;
  const cm::REQ req = message<cm::REQ>(captured(GetParam(), 1));
  const CommId id = *lab.active.agent.connect(params_of(req), kNow);
  const MADOut sent = lab.active.mads().at(0);
  cm::REP rep = message<cm::REP>(captured(GetParam(), 2));
  rep.remote_comm_id = id;
  lab.active.receive(lab.passive.gid, rep, kNow, transaction(sent));
  ASSERT_EQ(names_of(lab.active.events()), "ReplyReceived");
  ASSERT_EQ(lab.active.agent.ready_to_use(id, {}), Status::kOk);
  const MADOut rtu = lab.active.mads().at(0);
  cm::RTU theirs = message<cm::RTU>(captured(GetParam(), 3));
  theirs.local_comm_id = id;
  EXPECT_EQ(message<cm::RTU>(rtu), theirs);
  EXPECT_EQ(transaction(rtu), transaction(sent));
}

INSTANTIATE_TEST_SUITE_P(Captures, CMAgentCapturesTest,
                         testing::Values("rxe-cm-rping.pcap", "rxe-cm-ucmatose.pcap",
                                         "rxe-cm-ops.pcap"));

TEST(CMAgentCaptureTest, OurREJIsLinuxsByteForByte) {  // rping -p 9999: nobody listens
  Lab lab;
  lab.passive.receive(captured("rxe-cm-reject.pcap", 1), kNow);
  const std::vector<MADOut> mads = lab.passive.mads();
  ASSERT_EQ(names_of(mads), "REJ");
  EXPECT_EQ(mads[0].mad, captured("rxe-cm-reject.pcap", 2).mad);
}

TEST(CMAgentCaptureTest, OurSIDRREPIsLinuxsByteForByte) {  // udaddy
  Lab lab;
  ASSERT_TRUE(
      lab.passive.agent.listen({.service_id = service_id_of({PortSpace::kUDP, 7174})}).has_value());
  lab.passive.receive(captured("rxe-cm-ud.pcap", 1), kNow);
  const std::vector<CMEvent> events = lab.passive.events();
  ASSERT_EQ(names_of(events), "SIDRRequest");
  ASSERT_EQ(lab.passive.agent.sidr_reply(events[0].id,
                                         {.qpn = QPN{0x24}, .q_key = QKey{0x01234567}}, kNow),
            Status::kOk);
  const std::vector<MADOut> mads = lab.passive.mads();
  ASSERT_EQ(names_of(mads), "SIDR_REP");
  EXPECT_EQ(mads[0].mad, captured("rxe-cm-ud.pcap", 2).mad);
}

TEST(CMAgentCaptureTest, LinuxsDREQForAConnectionThatIsOverHasItsDREPByteForByte) {
  Lab lab;
  lab.passive.receive(captured("rxe-cm-rping.pcap", 28), kNow);
  const std::vector<MADOut> mads = lab.passive.mads();
  ASSERT_EQ(names_of(mads), "DREP");
  EXPECT_EQ(mads[0].mad, captured("rxe-cm-rping.pcap", 29).mad);
}

// An old recorded message is sent once more: no connection, no event.
TEST(CMAgentCaptureTest, ReplayedCapturesHaveNoEffect) {
  Lab lab;
  for (const std::string& file : test::capture_names("rxe-cm-"))
    for (const test::CapturedFrame& frame : test::read_capture(file)) {
      if (frame.bytes.size() < test::kMADAt + kMADSize) continue;
      const MADOut mad = captured(file, frame.number);
      lab.passive.receive(mad, kNow);
      lab.active.receive(mad, kNow);
    }
  for (TestHost* host : {&lab.passive, &lab.active}) {
    EXPECT_EQ(names_of(host->events()), "");
    EXPECT_EQ(host->agent.connections(), 0u);
    EXPECT_EQ(host->agent.next_timer(), Time::never());
  }
}

}  // namespace
}  // namespace verbena
