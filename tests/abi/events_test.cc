// Completion channels and asynchronous events: real descriptors, and destruction that waits for
// what was not acknowledged.
#include <fcntl.h>
#include <poll.h>

#include <atomic>
#include <cerrno>
#include <thread>

#include "tests/abi/verbs_fixture.h"

namespace verbena::test {
namespace {

bool readable(int fd, int timeout_ms) {
  pollfd state{.fd = fd, .events = POLLIN, .revents = 0};
  return poll(&state, 1, timeout_ms) == 1;
}

void make_nonblocking(int fd) { ASSERT_EQ(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK), 0); }

void make_blocking(int fd) { ASSERT_EQ(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK), 0); }

class EventsTest : public VerbsTest {
 protected:
  static constexpr int kLong = 30'000;  // ms

  void SetUp() override {
    VerbsTest::SetUp();
    channel_ = verbs.create_comp_channel(context);
    ASSERT_NE(channel_, nullptr);
    make_nonblocking(channel_->fd);
    make_nonblocking(context->async_fd);
    noisy_ = make_cq(16, channel_);
    ibv_qp_init_attr attr = qp_attributes(IBV_QPT_RC);
    attr.recv_cq = noisy_;
    qp_ = verbs.create_qp(pd, &attr);
    sender_ = make_qp();
    connect(sender_, qp_);
  }

  // One message from `sender_` to `qp_`.
  void send(unsigned flags = 0) {
    ASSERT_EQ(post(qp_, recv_wr(1, nullptr)), 0);
    ibv_send_wr wr = send_wr(2, IBV_WR_SEND, nullptr);
    wr.send_flags |= flags;
    ASSERT_EQ(post(sender_, wr), 0);
    EXPECT_EQ(wait_for_completion().status, IBV_WC_SUCCESS);
  }
  int get_event(ibv_cq*& which, void*& user) { return verbs.get_cq_event(channel_, &which, &user); }

  ibv_comp_channel* channel_ = nullptr;
  ibv_cq* noisy_ = nullptr;
  ibv_qp *qp_ = nullptr, *sender_ = nullptr;
};

TEST_F(EventsTest, AnArmedCQMakesItsChannelReadable) {
  ibv_cq* which = nullptr;
  void* user = nullptr;
  EXPECT_EQ(get_event(which, user), -1);
  EXPECT_EQ(errno, EAGAIN);
  ASSERT_EQ(ibv_req_notify_cq(noisy_, 0), 0);
  EXPECT_FALSE(readable(channel_->fd, 0));
  send();
  ASSERT_TRUE(readable(channel_->fd, kLong));
  ASSERT_EQ(get_event(which, user), 0);
  EXPECT_EQ(which, noisy_);
  EXPECT_EQ(user, this);
  EXPECT_FALSE(readable(channel_->fd, 0)) << "one event for one request";
  verbs.ack_cq_events(noisy_, 1);
}

TEST_F(EventsTest, SolicitedOnlyPassesOverOthers) {
  ASSERT_EQ(ibv_req_notify_cq(noisy_, 1), 0);
  send();
  EXPECT_FALSE(readable(channel_->fd, 0));
  send(IBV_SEND_SOLICITED);
  EXPECT_TRUE(readable(channel_->fd, kLong));
}

// As perftest does: a request first, then a poll that does not take all, then sleep.
TEST_F(EventsTest, WhatIsLeftAtTheRequestIsToldOf) {
  for (int i = 0; i < 3; ++i) send();
  for (int left = 3; left != 0; --left) {
    ASSERT_EQ(ibv_req_notify_cq(noisy_, 0), 0);
    ASSERT_TRUE(readable(channel_->fd, kLong));
    ibv_cq* which = nullptr;
    void* user = nullptr;
    ASSERT_EQ(get_event(which, user), 0);
    verbs.ack_cq_events(noisy_, 1);
    ibv_wc wc;
    ASSERT_EQ(ibv_poll_cq(noisy_, 1, &wc), 1);
  }
}

TEST_F(EventsTest, WhatIsLeftIsToldOfToWhoWaitsInTheCall) {
  make_blocking(channel_->fd);
  for (int i = 0; i < 3; ++i) send();
  for (int left = 3; left != 0; --left) {
    ASSERT_EQ(ibv_req_notify_cq(noisy_, 0), 0);
    ibv_cq* which = nullptr;
    void* user = nullptr;
    ASSERT_EQ(get_event(which, user), 0);
    verbs.ack_cq_events(noisy_, 1);
    ibv_wc wc;
    ASSERT_EQ(ibv_poll_cq(noisy_, 1, &wc), 1);
  }
}

TEST_F(EventsTest, UnreadEventsGoWithTheirCQ) {
  ASSERT_EQ(ibv_req_notify_cq(noisy_, 0), 0);
  send();
  ASSERT_TRUE(readable(channel_->fd, kLong));
  ASSERT_EQ(verbs.destroy_qp(qp_), 0);
  ASSERT_EQ(verbs.destroy_cq(noisy_), 0) << "does not wait for what was never read";
  EXPECT_FALSE(readable(channel_->fd, 0));
  EXPECT_EQ(verbs.destroy_comp_channel(channel_), 0);
}

TEST_F(EventsTest, DestroyingACQWaitsForAcknowledgement) {
  ASSERT_EQ(ibv_req_notify_cq(noisy_, 0), 0);
  send();
  ASSERT_TRUE(readable(channel_->fd, kLong));
  ibv_cq* which = nullptr;
  void* user = nullptr;
  ASSERT_EQ(get_event(which, user), 0);
  ASSERT_EQ(verbs.destroy_qp(qp_), 0);
  std::atomic<bool> acknowledged{false};
  std::thread destroyer([&] {
    EXPECT_EQ(verbs.destroy_cq(noisy_), 0);
    EXPECT_TRUE(acknowledged);
  });
  acknowledged = true;
  verbs.ack_cq_events(noisy_, 1);
  destroyer.join();
}

TEST_F(EventsTest, AQPThatFailsTellsSo) {
  ibv_async_event event{};
  EXPECT_EQ(verbs.get_async_event(context, &event), -1);
  EXPECT_EQ(errno, EAGAIN);
  // A WRITE without the right: the responder's QP goes to Error. IBTA 9.7.5.2.4
  ibv_send_wr wr = send_wr(1, IBV_WR_RDMA_WRITE, nullptr);
  char text[] = "?";
  ibv_sge sge{.addr = reinterpret_cast<std::uint64_t>(text), .length = 1, .lkey = 0};
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.send_flags |= IBV_SEND_INLINE;
  ASSERT_EQ(post(sender_, wr), 0);
  EXPECT_EQ(wait_for_completion().status, IBV_WC_REM_ACCESS_ERR);

  ASSERT_TRUE(readable(context->async_fd, kLong));
  ASSERT_EQ(verbs.get_async_event(context, &event), 0);
  EXPECT_EQ(event.event_type, IBV_EVENT_QP_ACCESS_ERR);
  EXPECT_EQ(event.element.qp, qp_);
  verbs.ack_async_event(&event);
  EXPECT_EQ(verbs.destroy_qp(qp_), 0);
}

TEST_F(EventsTest, AnSRQBelowItsLimitTellsSo) {
  ibv_srq_init_attr init{.srq_context = nullptr,
                         .attr = {.max_wr = 8, .max_sge = 1, .srq_limit = 0}};
  ibv_srq* srq = verbs.create_srq(pd, &init);
  ASSERT_NE(srq, nullptr);
  ibv_qp_init_attr attr = qp_attributes(IBV_QPT_RC);
  attr.srq = srq;
  ibv_qp* shared = verbs.create_qp(pd, &attr);
  ibv_qp* sender = make_qp();
  connect(sender, shared);
  for (std::uint64_t i = 0; i < 2; ++i) {
    ibv_recv_wr wr = recv_wr(i, nullptr);
    ibv_recv_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_srq_recv(srq, &wr, &bad), 0);
  }
  ibv_srq_attr limit{.max_wr = 0, .max_sge = 0, .srq_limit = 2};
  ASSERT_EQ(verbs.modify_srq(srq, &limit, IBV_SRQ_LIMIT), 0);
  ASSERT_EQ(post(sender, send_wr(1, IBV_WR_SEND, nullptr)), 0);

  ASSERT_TRUE(readable(context->async_fd, kLong));
  ibv_async_event event{};
  ASSERT_EQ(verbs.get_async_event(context, &event), 0);
  EXPECT_EQ(event.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
  EXPECT_EQ(event.element.srq, srq);
  verbs.ack_async_event(&event);
}

// Reads the next event and acknowledges it.
ibv_async_event next_event(const VerbsLibrary& verbs, ibv_context* context) {
  ibv_async_event event{};
  EXPECT_TRUE(readable(context->async_fd, 30'000));
  EXPECT_EQ(verbs.get_async_event(context, &event), 0);
  return event;
}

TEST_F(EventsTest, AnOverrunCQTellsSoAndSoDoItsQPs) {
  ibv_cq* small = make_cq(1);
  ibv_qp_init_attr attr = qp_attributes(IBV_QPT_RC);
  attr.recv_cq = small;
  ibv_qp *receiver = verbs.create_qp(pd, &attr), *sender = make_qp();
  connect(sender, receiver);
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(post(receiver, recv_wr(1, nullptr)), 0);
    ASSERT_EQ(post(sender, send_wr(2, IBV_WR_SEND, nullptr)), 0);
    static_cast<void>(wait_for_completion());
  }
  ibv_async_event event = next_event(verbs, context);
  EXPECT_EQ(event.event_type, IBV_EVENT_CQ_ERR);
  EXPECT_EQ(event.element.cq, small);
  verbs.ack_async_event(&event);
  event = next_event(verbs, context);
  EXPECT_EQ(event.event_type, IBV_EVENT_QP_FATAL);
  EXPECT_EQ(event.element.qp, receiver);
  verbs.ack_async_event(&event);
  EXPECT_EQ(verbs.destroy_qp(receiver), 0);
  EXPECT_EQ(verbs.destroy_cq(small), 0);
}

TEST_F(EventsTest, AQPOfAnSRQTellsThatItTakesNoMore) {
  ibv_srq_init_attr init{.srq_context = nullptr,
                         .attr = {.max_wr = 8, .max_sge = 1, .srq_limit = 0}};
  ibv_srq* srq = verbs.create_srq(pd, &init);
  ibv_qp_init_attr attr = qp_attributes(IBV_QPT_RC);
  attr.srq = srq;
  ibv_qp *shared = verbs.create_qp(pd, &attr), *sender = make_qp();
  connect(sender, shared);
  ibv_qp_attr error{};
  error.qp_state = IBV_QPS_ERR;
  ASSERT_EQ(verbs.modify_qp(shared, &error, IBV_QP_STATE), 0);
  ibv_async_event event = next_event(verbs, context);
  EXPECT_EQ(event.event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
  EXPECT_EQ(event.element.qp, shared);

  // Read, not acknowledged: destruction waits for it, and only for it.
  std::atomic<bool> acknowledged{false};
  std::thread destroyer([&] {
    EXPECT_EQ(verbs.destroy_qp(shared), 0);
    EXPECT_TRUE(acknowledged);
  });
  EXPECT_EQ(verbs.destroy_qp(sender), 0) << "another QP does not wait";
  acknowledged = true;
  verbs.ack_async_event(&event);
  destroyer.join();
  EXPECT_EQ(verbs.destroy_srq(srq), 0);
}

TEST_F(EventsTest, UnreadAsynchronousEventsGoWithTheirQP) {
  ibv_srq_init_attr init{.srq_context = nullptr,
                         .attr = {.max_wr = 8, .max_sge = 1, .srq_limit = 0}};
  ibv_srq* srq = verbs.create_srq(pd, &init);
  ibv_qp_init_attr attr = qp_attributes(IBV_QPT_RC);
  attr.srq = srq;
  ibv_qp* shared = verbs.create_qp(pd, &attr);
  ASSERT_EQ(to_init(shared), 0);
  ibv_qp_attr error{};
  error.qp_state = IBV_QPS_ERR;
  ASSERT_EQ(verbs.modify_qp(shared, &error, IBV_QP_STATE), 0);
  ASSERT_TRUE(readable(context->async_fd, kLong));
  EXPECT_EQ(verbs.destroy_qp(shared), 0);
  EXPECT_FALSE(readable(context->async_fd, 0));
}

}  // namespace
}  // namespace verbena::test
