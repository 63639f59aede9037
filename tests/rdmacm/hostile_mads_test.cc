// A stranger sends MADs to QP 1 of a running device: truncated, of no known kind, without a
// receiver, repeated, and late. Each gets the answer of IBTA Vol 1, chapter 12, or none. The
// program gets events only for requests to it, and other connections are not affected.
#include <algorithm>
#include <cerrno>

#include "base/bytes.h"
#include "base/prng.h"
#include "tests/rdmacm/rdmacm_fixture.h"
#include "tests/rdmacm/stranger.h"

namespace verbena::test {
namespace {

constexpr int kLimit_ms = 10'000;

class HostileMADsTest : public RDMACMTest {
 protected:
  void SetUp() override {
    RDMACMTest::SetUp();
    listener_ = make_listener();
    stranger_.emplace(another_address(), own_address());
  }
  static std::string another_address() {
    std::string text = own_address();
    text.back() = '4';
    return text;
  }
  template <typename Body>
  std::optional<Body> answer() {
    return answer_to<Body>(theirs_);
  }
  // The next answer of this kind to this ID; those to others may come meanwhile.
  template <typename Body>
  std::optional<Body> answer_to(CommId id) {
    while (const std::optional<cm::Message> message = stranger_->receive(kLimit_ms)) {
      const Body* body = std::get_if<Body>(&message->body);
      if (body != nullptr && body->remote_comm_id == id) return *body;
    }
    return std::nullopt;
  }
  rdma_cm_id* request() {
    stranger_->send(stranger_->request(port_of(listener_), theirs_, qpn_));
    return expect_event(RDMA_CM_EVENT_CONNECT_REQUEST).id;
  }
  // A connection with the stranger; what the device answered.
  cm::REP establish() {
    server_ = request();
    rdma_conn_param param = with_data("");
    param.qp_num = 0x99;
    EXPECT_EQ(rdma_accept(server_, &param), 0);
    const std::optional<cm::REP> rep = answer<cm::REP>();
    EXPECT_TRUE(rep.has_value());
    if (!rep) return {};
    stranger_->send(cm::RTU{.local_comm_id = theirs_, .remote_comm_id = rep->local_comm_id});
    EXPECT_EQ(expect_event(RDMA_CM_EVENT_ESTABLISHED).id, server_);
    return *rep;
  }
  // Expects that a new request is served: the earlier MADs have done no harm.
  void expect_service() {
    EXPECT_FALSE(has_event(0));
    const Pair pair = connect_pair();
    ASSERT_NE(pair.server, nullptr);
  }

  rdma_cm_id *listener_ = nullptr, *server_ = nullptr;
  std::optional<Stranger> stranger_;
  // The device remembers what others have asked.
  const u32 number_ = ++last_number_;
  const CommId theirs_{0x77000 + number_}, next_of_theirs_{0x88000 + number_};
  const u32 qpn_ = 0x4000 + number_;

 private:
  static inline u32 last_number_ = 0;
};

TEST_F(HostileMADsTest, AnyLengthAndAnyByteIsHarmless) {
  const cm::MADBytes whole =
      cm::Message{.transaction_id = 1,
                  .body = stranger_->request(port_of(listener_), theirs_, qpn_)}
          .encode();
  for (std::size_t size = 0; size < whole.size(); ++size)
    stranger_->send(std::span(whole).first(size));
  std::vector<u8> longer(whole.begin(), whole.end());
  longer.resize(longer.size() + 4);
  stranger_->send(longer);
  const std::vector<u8> packet = stranger_->packet_of(whole);
  for (std::size_t size = 1; size < packet.size(); size += 3)
    stranger_->send_raw(std::span(packet).first(size));
  for (std::size_t at = 0; at < 24; ++at) {  // the common header: version, class, method, attribute
    if (at == 2 || (at >= 4 && at < 16) || at >= 18) continue;
    cm::MADBytes wrong = whole;
    wrong[at] ^= 0x40;
    stranger_->send(wrong);
  }
  expect_service();
}

TEST_F(HostileMADsTest, RandomBytesAreHarmless) {
  PRNG prng(20261120);
  for (int i = 0; i < 300; ++i) {
    cm::MADBytes mad = cm::Message{.transaction_id = 1, .body = cm::RTU{}}.encode();
    store_be16(mad.data() + 16, static_cast<u16>(prng.in(0x10, 0x1b)));
    std::ranges::generate(std::span(mad).subspan(24), [&] { return static_cast<u8>(prng.next()); });
    stranger_->send(mad);
  }
  expect_service();
}

TEST_F(HostileMADsTest, WhatIsForNobodyGetsTheAnswerThatSaysSo) {
  const CommId nobody{0x3fffff};
  stranger_->send(cm::DREQ{.local_comm_id = theirs_, .remote_comm_id = nobody});
  const auto drep = answer<cm::DREP>();
  ASSERT_TRUE(drep.has_value()) << "who asks again and again is let go";
  EXPECT_EQ(drep->remote_comm_id, theirs_);
  stranger_->send(cm::REP{.local_comm_id = theirs_, .remote_comm_id = nobody});
  const auto rej = answer<cm::REJ>();
  ASSERT_TRUE(rej.has_value());
  EXPECT_EQ(rej->reason, cm::RejectReason::kInvalidCommunicationID);
  for (const cm::Body& body :
       std::initializer_list<cm::Body>{cm::RTU{.local_comm_id = theirs_, .remote_comm_id = nobody},
                                       cm::REJ{.local_comm_id = theirs_, .remote_comm_id = nobody},
                                       cm::MRA{.local_comm_id = theirs_, .remote_comm_id = nobody},
                                       cm::DREP{.local_comm_id = theirs_, .remote_comm_id = nobody},
                                       cm::SIDRREP{.request_id = nobody}})
    stranger_->send(body);
  expect_service();
}

TEST_F(HostileMADsTest, ARequestForNoServiceIsRejected) {
  stranger_->send(stranger_->request(1, theirs_, qpn_));
  const auto rej = answer<cm::REJ>();
  ASSERT_TRUE(rej.has_value());
  EXPECT_EQ(rej->reason, cm::RejectReason::kInvalidServiceID);
  EXPECT_EQ(rej->remote_comm_id, theirs_);
  expect_service();
}

TEST_F(HostileMADsTest, ARepeatedRequestIsOneRequest) {
  rdma_cm_id* const first = request();
  for (int i = 0; i < 5; ++i)
    stranger_->send(stranger_->request(port_of(listener_), theirs_, qpn_));
  EXPECT_TRUE(answer<cm::MRA>().has_value()) << "wait, I think";
  EXPECT_FALSE(has_event(20));
  ASSERT_EQ(rdma_reject(first, nullptr, 0), 0);
  stranger_->send(stranger_->request(port_of(listener_), theirs_, qpn_));
  EXPECT_TRUE(answer<cm::REJ>().has_value());
  EXPECT_TRUE(answer<cm::REJ>().has_value()) << "the same answer again";
  expect_service();
}

TEST_F(HostileMADsTest, ARequestThatIsReplayedLaterChangesNothing) {
  const cm::REP rep = establish();
  for (int i = 0; i < 3; ++i)
    stranger_->send(stranger_->request(port_of(listener_), theirs_, qpn_));
  stranger_->send(cm::RTU{.local_comm_id = theirs_, .remote_comm_id = rep.local_comm_id});
  EXPECT_FALSE(has_event(20));
  expect_service();
}

TEST_F(HostileMADsTest, ANewRequestOfAConnectedQPEndsTheOldConnection) {
  (void)establish();
  stranger_->send(stranger_->request(port_of(listener_), next_of_theirs_, qpn_));
  EXPECT_EQ(expect_event(RDMA_CM_EVENT_DISCONNECTED).id, server_);
  const auto rej = answer_to<cm::REJ>(next_of_theirs_);
  ASSERT_TRUE(rej.has_value());
  EXPECT_EQ(rej->reason, cm::RejectReason::kStaleConnection);
  const auto dreq = answer<cm::DREQ>();
  ASSERT_TRUE(dreq.has_value());
  stranger_->send(cm::DREP{.local_comm_id = theirs_, .remote_comm_id = dreq->local_comm_id});
}

TEST_F(HostileMADsTest, OnlyThePeerEndsAConnection) {
  const Pair pair = connect_pair();
  ASSERT_NE(pair.server, nullptr);
  const cm::REP rep = establish();
  // Its neighbours' IDs, and a QP that is not its own.
  for (u32 near = 1; near < 200; ++near) {
    const CommId guessed{(rep.local_comm_id.value & ~0x3fffffu) | (near * 20'000)};
    if (guessed == rep.local_comm_id) continue;
    stranger_->send(cm::DREQ{.local_comm_id = theirs_, .remote_comm_id = guessed});
    stranger_->send(cm::REJ{.local_comm_id = theirs_, .remote_comm_id = guessed});
  }
  stranger_->send(cm::DREQ{
      .local_comm_id = theirs_, .remote_comm_id = rep.local_comm_id, .remote_qpn = QPN{0x98}});
  EXPECT_FALSE(has_event(20));
  stranger_->send(cm::DREQ{
      .local_comm_id = theirs_, .remote_comm_id = rep.local_comm_id, .remote_qpn = QPN{0x99}});
  EXPECT_EQ(expect_event(RDMA_CM_EVENT_DISCONNECTED).id, server_);
  expect_service();
}

TEST_F(HostileMADsTest, AnAlternatePathIsRefused) {
  const cm::REP rep = establish();
  stranger_->send(cm::LAP{.local_comm_id = theirs_, .remote_comm_id = rep.local_comm_id});
  const auto apr = answer<cm::APR>();
  ASSERT_TRUE(apr.has_value());
  EXPECT_EQ(apr->remote_comm_id, theirs_);
  EXPECT_FALSE(has_event(0));
}

TEST_F(HostileMADsTest, AFloodOfRequestsIsServedAsFarAsTheBacklogGoes) {
  for (u32 i = 0; i < 500; ++i)
    stranger_->send(stranger_->request(port_of(listener_), CommId{0x80000 + i}, 0x5000 + i));
  int requests = 0;
  while (has_event(200)) {
    destroy(expect_event(RDMA_CM_EVENT_CONNECT_REQUEST).id);
    ++requests;
  }
  EXPECT_GE(requests, 1);
  expect_service();
}

}  // namespace
}  // namespace verbena::test
