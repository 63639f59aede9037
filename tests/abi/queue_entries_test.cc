// When an entry of a work queue is free again: when the program has polled the completion that
// reports it, as cards do. A full queue is then the flow control of a program that posts until
// ENOMEM and polls.
#include <cerrno>

#include "tests/abi/verbs_fixture.h"

namespace verbena::test {
namespace {

struct QueueEntriesTest : VerbsTest {
  void SetUp() override {
    VerbsTest::SetUp();
    memory_ = register_all(buffer_.data(), buffer_.size());
  }
  // A QP whose CQ has as many entries as its send queue.
  ibv_qp* make_tight_qp(ibv_cq* completions, std::uint32_t depth) {
    ibv_qp_init_attr attr = qp_attributes(IBV_QPT_RC);
    attr.send_cq = completions;
    attr.cap.max_send_wr = depth;
    return verbs.create_qp(pd, &attr);
  }
  int write(ibv_qp* qp, std::uint64_t wr_id, unsigned flags = IBV_SEND_SIGNALED) {
    ibv_sge sge = sge_of(memory_, 0, 64);
    ibv_send_wr wr = send_wr(wr_id, IBV_WR_RDMA_WRITE, &sge);
    wr.send_flags = flags;
    wr.wr.rdma.remote_addr = reinterpret_cast<std::uint64_t>(memory_->addr) + 64;
    wr.wr.rdma.rkey = memory_->rkey;
    return post(qp, wr);
  }

  std::array<char, 128> buffer_{};
  ibv_mr* memory_ = nullptr;
};

TEST_F(QueueEntriesTest, AProgramThatPostsUntilTheQueueIsFullCompletesAll) {
  constexpr std::uint64_t kRequests = 2000;
  ibv_cq* completions = make_cq(16);
  ibv_qp *qp = make_tight_qp(completions, 16), *peer = make_qp();
  connect(qp, peer);
  std::uint64_t posted = 0, done = 0;
  while (done < kRequests) {
    int error = 0;
    while (posted < kRequests && (error = write(qp, posted)) == 0) ++posted;
    ASSERT_TRUE(error == 0 || error == ENOMEM) << error;
    ASSERT_LE(posted - done, 16u);
    const ibv_wc wc = wait_for_completion(completions);
    ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
    ASSERT_EQ(wc.wr_id, done++);
  }
}

TEST_F(QueueEntriesTest, ASignaledCompletionFreesTheUnsignaledBeforeIt) {
  ibv_qp *qp = make_tight_qp(cq, 4), *peer = make_qp();
  connect(qp, peer);
  for (int round = 0; round < 3; ++round) {
    for (std::uint64_t id = 0; id < 4; ++id)
      ASSERT_EQ(write(qp, id, id == 3 ? IBV_SEND_SIGNALED : 0), 0);
    EXPECT_EQ(write(qp, 4), ENOMEM);
    EXPECT_EQ(wait_for_completion().wr_id, 3u);
  }
}

TEST_F(QueueEntriesTest, ReceivesAreFreeWhenTheirCompletionsArePolled) {
  ibv_cq* completions = make_cq(16);
  ibv_qp_init_attr attr = qp_attributes(IBV_QPT_RC);
  attr.recv_cq = completions;
  attr.cap.max_recv_wr = 2;
  ibv_qp *receiver = verbs.create_qp(pd, &attr), *sender = make_qp();
  connect(sender, receiver);
  ASSERT_EQ(post(receiver, recv_wr(1, nullptr)), 0);
  ASSERT_EQ(post(receiver, recv_wr(2, nullptr)), 0);
  ASSERT_EQ(post(sender, send_wr(3, IBV_WR_SEND, nullptr)), 0);
  EXPECT_EQ(wait_for_completion().wr_id, 3u);
  EXPECT_EQ(post(receiver, recv_wr(4, nullptr)), ENOMEM);
  EXPECT_EQ(wait_for_completion(completions).wr_id, 1u);
  EXPECT_EQ(post(receiver, recv_wr(4, nullptr)), 0);
}

// Not even a flush could report what is posted.
TEST_F(QueueEntriesTest, AQPInErrorWhoseCQHasOverrunTakesNoWork) {
  ibv_cq* completions = make_cq(1);
  ibv_qp *qp = make_tight_qp(completions, 4), *peer = make_qp();
  connect(qp, peer);
  for (std::uint64_t id = 0; id < 3; ++id) static_cast<void>(write(qp, id));
  EXPECT_EQ(wait_for_completion(completions).wr_id, 0u);
  ibv_async_event event{};
  ASSERT_EQ(verbs.get_async_event(context, &event), 0);
  EXPECT_EQ(event.event_type, IBV_EVENT_CQ_ERR);
  verbs.ack_async_event(&event);
  EXPECT_EQ(write(qp, 9), EINVAL);
}

}  // namespace
}  // namespace verbena::test
