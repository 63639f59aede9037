// Two RC QPs of one process, connected over the loopback address: every operation, and every reason
// to refuse one when it is posted.
#include <endian.h>

#include <cstring>
#include <string>

#include "tests/abi/verbs_fixture.h"

namespace verbena::test {
namespace {

class RCTest : public VerbsTest {
 protected:
  void SetUp() override {
    VerbsTest::SetUp();
    local_mr_ = register_all(local_.data(), local_.size());
    remote_mr_ = register_all(remote_.data(), remote_.size());
    qp_ = make_qp();
    peer_cq_ = make_cq();
    ibv_qp_init_attr attr = qp_attributes(IBV_QPT_RC);
    attr.send_cq = attr.recv_cq = peer_cq_;
    peer_ = verbs.create_qp(pd, &attr);
    ASSERT_NE(peer_, nullptr);
    connect(qp_, peer_);
  }

  ibv_send_wr remote_wr(std::uint64_t wr_id, ibv_wr_opcode opcode, ibv_sge* sge) const {
    ibv_send_wr wr = send_wr(wr_id, opcode, sge);
    wr.wr.rdma.remote_addr = reinterpret_cast<std::uint64_t>(remote_.data());
    wr.wr.rdma.rkey = remote_mr_->rkey;
    return wr;
  }
  ibv_send_wr atomic_wr(ibv_wr_opcode opcode, ibv_sge* sge) const {
    ibv_send_wr wr = send_wr(1, opcode, sge);
    wr.wr.atomic.remote_addr = reinterpret_cast<std::uint64_t>(remote_.data());
    wr.wr.atomic.rkey = remote_mr_->rkey;
    return wr;
  }

  static constexpr std::size_t kSize = 64 * 1024;
  alignas(8) std::array<char, kSize> local_{};
  alignas(8) std::array<char, kSize> remote_{};
  ibv_mr *local_mr_ = nullptr, *remote_mr_ = nullptr;
  ibv_cq* peer_cq_ = nullptr;
  ibv_qp *qp_ = nullptr, *peer_ = nullptr;
};

// A card has processed the acknowledgement when the peer's completion can be polled. The helper
// thread leaves it to the program, which has polled until now.
TEST_F(RCTest, AnErrorFlushesNothingThatThePeerHasAcknowledged) {
  for (std::uint64_t round = 0; round < 20; ++round) {
    ibv_sge from = sge_of(local_mr_, 0, 8), to = sge_of(remote_mr_, 0, 8);
    ASSERT_EQ(post(peer_, recv_wr(round, &to)), 0);
    ibv_wc wc{};
    for (int polls = 0; polls < 1000; ++polls) ASSERT_EQ(ibv_poll_cq(cq, 1, &wc), 0);
    ASSERT_EQ(post(qp_, send_wr(100 + round, IBV_WR_SEND, &from)), 0);
    ASSERT_EQ(wait_for_completion(peer_cq_).status, IBV_WC_SUCCESS);

    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_ERR;
    ASSERT_EQ(verbs.modify_qp(qp_, &attr, IBV_QP_STATE), 0);
    const ibv_wc sent = wait_for_completion();
    EXPECT_EQ(sent.status, IBV_WC_SUCCESS) << round;
    EXPECT_EQ(sent.wr_id, 100 + round);

    attr.qp_state = IBV_QPS_RESET;
    for (ibv_qp* qp : {qp_, peer_}) ASSERT_EQ(verbs.modify_qp(qp, &attr, IBV_QP_STATE), 0);
    connect(qp_, peer_);
  }
}

TEST_F(RCTest, WhatHasArrivedIsAcknowledgedBeforeAQPIsDestroyed) {
  ibv_sge from = sge_of(local_mr_, 0, 8), to = sge_of(remote_mr_, 0, 8);
  ASSERT_EQ(post(peer_, recv_wr(1, &to)), 0);
  ibv_wc wc{};
  for (int polls = 0; polls < 1000; ++polls) ASSERT_EQ(ibv_poll_cq(cq, 1, &wc), 0);
  ASSERT_EQ(post(qp_, send_wr(2, IBV_WR_SEND, &from)), 0);
  ASSERT_EQ(verbs.destroy_qp(peer_), 0);
  EXPECT_EQ(wait_for_completion().status, IBV_WC_SUCCESS);
}

TEST_F(RCTest, WhatHasArrivedIsExecutedBeforeItsMemoryIsDeregistered) {
  for (const bool deregisters_target : {true, false}) {
    ibv_mr* const own = verbs.reg_mr(pd, local_.data(), kSize, kAllAccess);
    ASSERT_NE(own, nullptr);
    ibv_sge from = sge_of(deregisters_target ? local_mr_ : own, 0, 8);
    ibv_sge to = sge_of(deregisters_target ? own : remote_mr_, 0, 8);
    ASSERT_EQ(post(peer_, recv_wr(1, &to)), 0);
    ibv_wc wc{};
    for (int polls = 0; polls < 1000; ++polls) ASSERT_EQ(ibv_poll_cq(cq, 1, &wc), 0);
    ASSERT_EQ(post(qp_, send_wr(2, IBV_WR_SEND, &from)), 0);
    ASSERT_EQ(verbs.dereg_mr(own), 0);
    EXPECT_EQ(wait_for_completion().status, IBV_WC_SUCCESS) << deregisters_target;
    EXPECT_EQ(wait_for_completion(peer_cq_).status, IBV_WC_SUCCESS) << deregisters_target;
  }
}

TEST_F(RCTest, SendWithImmediateArrivesWhole) {
  local_.fill('s');
  ibv_sge from = sge_of(local_mr_, 0, kSize), to = sge_of(remote_mr_, 0, kSize);
  ASSERT_EQ(post(peer_, recv_wr(5, &to)), 0);
  ibv_send_wr wr = send_wr(6, IBV_WR_SEND_WITH_IMM, &from);
  wr.imm_data = htobe32(0xcafe0123);
  ASSERT_EQ(post(qp_, wr), 0);

  const ibv_wc sent = wait_for_completion();
  EXPECT_EQ(sent.status, IBV_WC_SUCCESS);
  EXPECT_EQ(sent.opcode, IBV_WC_SEND);
  EXPECT_EQ(sent.wr_id, 6u);
  EXPECT_EQ(sent.qp_num, qp_->qp_num);
  const ibv_wc received = wait_for_completion(peer_cq_);
  EXPECT_EQ(received.status, IBV_WC_SUCCESS);
  EXPECT_EQ(received.opcode, IBV_WC_RECV);
  EXPECT_EQ(received.wr_id, 5u);
  EXPECT_EQ(received.byte_len, kSize);
  EXPECT_EQ(received.wc_flags, static_cast<unsigned>(IBV_WC_WITH_IMM));
  EXPECT_EQ(received.imm_data, htobe32(0xcafe0123)) << "in network order";
  EXPECT_EQ(remote_, local_);
}

TEST_F(RCTest, WriteThenReadBack) {
  local_.fill('w');
  ibv_sge sge = sge_of(local_mr_, 0, kSize);
  ASSERT_EQ(post(qp_, remote_wr(1, IBV_WR_RDMA_WRITE, &sge)), 0);
  const ibv_wc written = wait_for_completion();
  EXPECT_EQ(written.status, IBV_WC_SUCCESS);
  EXPECT_EQ(written.opcode, IBV_WC_RDMA_WRITE);
  EXPECT_EQ(remote_, local_);

  remote_.fill('r');
  ASSERT_EQ(post(qp_, remote_wr(2, IBV_WR_RDMA_READ, &sge)), 0);
  const ibv_wc read = wait_for_completion();
  EXPECT_EQ(read.status, IBV_WC_SUCCESS);
  EXPECT_EQ(read.opcode, IBV_WC_RDMA_READ);
  EXPECT_EQ(read.byte_len, kSize);
  EXPECT_EQ(remote_, local_);
}

TEST_F(RCTest, WriteWithImmediateCompletesAReceive) {
  ibv_sge sge = sge_of(local_mr_, 0, 100);
  ASSERT_EQ(post(peer_, recv_wr(7, nullptr)), 0);
  ibv_send_wr wr = remote_wr(1, IBV_WR_RDMA_WRITE_WITH_IMM, &sge);
  wr.imm_data = htobe32(42);
  ASSERT_EQ(post(qp_, wr), 0);
  const ibv_wc received = wait_for_completion(peer_cq_);
  EXPECT_EQ(received.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
  EXPECT_EQ(received.wr_id, 7u);
  EXPECT_EQ(received.byte_len, 100u);
  EXPECT_EQ(received.imm_data, htobe32(42));
  EXPECT_EQ(wait_for_completion().status, IBV_WC_SUCCESS);
}

TEST_F(RCTest, AtomicsReturnWhatWasThere) {
  const auto old_value = [&] {
    std::uint64_t value = 0;
    std::memcpy(&value, local_.data(), sizeof value);
    return value;
  };
  const auto remote_value = [&] {
    std::uint64_t value = 0;
    std::memcpy(&value, remote_.data(), sizeof value);
    return value;
  };
  ibv_sge sge = sge_of(local_mr_, 0, 8);
  ibv_send_wr add = atomic_wr(IBV_WR_ATOMIC_FETCH_AND_ADD, &sge);
  add.wr.atomic.compare_add = 5;
  for (const std::uint64_t before : {0u, 5u}) {
    ASSERT_EQ(post(qp_, add), 0);
    const ibv_wc wc = wait_for_completion();
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.opcode, IBV_WC_FETCH_ADD);
    EXPECT_EQ(old_value(), before);
  }
  ibv_send_wr swap = atomic_wr(IBV_WR_ATOMIC_CMP_AND_SWP, &sge);
  swap.wr.atomic.compare_add = 10;
  swap.wr.atomic.swap = 77;
  ASSERT_EQ(post(qp_, swap), 0);
  EXPECT_EQ(wait_for_completion().opcode, IBV_WC_COMP_SWAP);
  EXPECT_EQ(old_value(), 10u);
  EXPECT_EQ(remote_value(), 77u);
}

TEST_F(RCTest, InlineDataIsTakenAtOnce) {
  char text[] = "inline";
  ibv_sge sge{.addr = reinterpret_cast<std::uint64_t>(text), .length = sizeof text, .lkey = 0};
  ibv_send_wr wr = remote_wr(1, IBV_WR_RDMA_WRITE, &sge);
  wr.send_flags |= IBV_SEND_INLINE;
  ASSERT_EQ(post(qp_, wr), 0);
  std::memset(text, '!', sizeof text);
  EXPECT_EQ(wait_for_completion().status, IBV_WC_SUCCESS);
  EXPECT_EQ(std::string(remote_.data()), "inline");
}

TEST_F(RCTest, AWindowOfType2ServesUntilItIsInvalidated) {
  ibv_mw* mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
  ASSERT_NE(mw, nullptr);
  ibv_send_wr bind = send_wr(1, IBV_WR_BIND_MW, nullptr);
  bind.bind_mw.mw = mw;
  bind.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
  bind.bind_mw.bind_info = {.mr = remote_mr_,
                            .addr = reinterpret_cast<std::uint64_t>(remote_.data()),
                            .length = 64,
                            .mw_access_flags = IBV_ACCESS_REMOTE_WRITE};
  ASSERT_EQ(post(peer_, bind), 0);
  ASSERT_EQ(wait_for_completion(peer_cq_).status, IBV_WC_SUCCESS);

  local_.fill('m');
  ibv_sge sge = sge_of(local_mr_, 0, 64);
  ibv_send_wr write = remote_wr(2, IBV_WR_RDMA_WRITE, &sge);
  write.wr.rdma.rkey = bind.bind_mw.rkey;
  ASSERT_EQ(post(qp_, write), 0);
  EXPECT_EQ(wait_for_completion().status, IBV_WC_SUCCESS);
  EXPECT_EQ(remote_[63], 'm');

  ASSERT_EQ(post(peer_, recv_wr(3, nullptr)), 0);
  ibv_send_wr invalidate = send_wr(4, IBV_WR_SEND_WITH_INV, nullptr);
  invalidate.invalidate_rkey = bind.bind_mw.rkey;
  ASSERT_EQ(post(qp_, invalidate), 0);
  const ibv_wc received = wait_for_completion(peer_cq_);
  EXPECT_EQ(received.wc_flags, static_cast<unsigned>(IBV_WC_WITH_INV));
  EXPECT_EQ(received.invalidated_rkey, bind.bind_mw.rkey);
  EXPECT_EQ(wait_for_completion().status, IBV_WC_SUCCESS);

  ASSERT_EQ(post(qp_, write), 0);
  EXPECT_EQ(wait_for_completion().status, IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(ibv_dealloc_mw(mw), 0);
}

TEST_F(RCTest, AWrongKeyIsARemoteAccessErrorAndFlushesTheRest) {
  ibv_sge sge = sge_of(local_mr_, 0, 8);
  ibv_send_wr second = remote_wr(2, IBV_WR_RDMA_WRITE, &sge);
  ibv_send_wr first = remote_wr(1, IBV_WR_RDMA_WRITE, &sge);
  first.wr.rdma.rkey ^= 0x5500;
  first.next = &second;
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(ibv_post_send(qp_, &first, &bad), 0);
  const ibv_wc refused = wait_for_completion();
  EXPECT_EQ(refused.status, IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(refused.wr_id, 1u);
  EXPECT_NE(refused.vendor_err, 0u);
  EXPECT_EQ(wait_for_completion().status, IBV_WC_WR_FLUSH_ERR);
}

TEST_F(RCTest, BadRequestsAreRefusedWhenPosted) {
  ibv_sge sge = sge_of(local_mr_, 0, 8);
  std::array<ibv_sge, 40> many{};
  many.fill(sge);

  ibv_send_wr wr = remote_wr(1, IBV_WR_TSO, &sge);
  EXPECT_EQ(post(qp_, wr), EINVAL) << "not an operation of RC";
  wr = remote_wr(1, IBV_WR_RDMA_WRITE, many.data());
  wr.num_sge = 5;
  EXPECT_EQ(post(qp_, wr), EINVAL) << "more elements than the QP was made for";
  wr.num_sge = static_cast<int>(many.size());
  EXPECT_EQ(post(qp_, wr), EINVAL) << "more elements than any QP can have";
  wr.num_sge = -1;
  EXPECT_EQ(post(qp_, wr), EINVAL);
  sge = sge_of(local_mr_, 0, kSize);
  wr = remote_wr(1, IBV_WR_RDMA_WRITE, &sge);
  wr.send_flags |= IBV_SEND_INLINE;
  EXPECT_EQ(post(qp_, wr), EINVAL) << "too long to be inline";
  ibv_recv_wr receive = recv_wr(1, many.data());
  receive.num_sge = static_cast<int>(many.size());
  EXPECT_EQ(post(qp_, receive), EINVAL);
  EXPECT_EQ(post(make_qp(), send_wr(1, IBV_WR_SEND, nullptr)), EINVAL) << "in Reset";
}

TEST_F(RCTest, OfAChainWhatIsBeforeTheBadOneIsPosted) {
  ibv_sge sge = sge_of(local_mr_, 0, 8);
  ibv_send_wr third = remote_wr(3, IBV_WR_RDMA_WRITE, &sge);
  ibv_send_wr second = remote_wr(2, IBV_WR_TSO, &sge);
  ibv_send_wr first = remote_wr(1, IBV_WR_RDMA_WRITE, &sge);
  first.next = &second;
  second.next = &third;
  ibv_send_wr* bad = nullptr;
  EXPECT_EQ(ibv_post_send(qp_, &first, &bad), EINVAL);
  EXPECT_EQ(bad, &second);
  EXPECT_EQ(wait_for_completion().wr_id, 1u);
  ibv_wc wc{};
  EXPECT_EQ(ibv_poll_cq(cq, 1, &wc), 0);
}

TEST_F(RCTest, AFullQueueIsNoMemory) {
  int error = 0;
  for (int i = 0; i < 100'000 && error == 0; ++i) error = post(peer_, recv_wr(1, nullptr));
  EXPECT_EQ(error, ENOMEM);
}

TEST_F(RCTest, ManyCompletionsComeInOnePoll) {
  ibv_sge sge = sge_of(local_mr_, 0, 8);
  constexpr int kRequests = 10;
  for (int i = 0; i < kRequests; ++i)
    ASSERT_EQ(post(qp_, remote_wr(static_cast<std::uint64_t>(i), IBV_WR_RDMA_WRITE, &sge)), 0);
  std::array<ibv_wc, 100> wc{};
  int count = 0;
  while (count < kRequests) {
    const int polled = ibv_poll_cq(cq, static_cast<int>(wc.size()) - count, &wc.at(count));
    ASSERT_GE(polled, 0);
    count += polled;
  }
  EXPECT_EQ(count, kRequests);
  for (int i = 0; i < kRequests; ++i) EXPECT_EQ(wc.at(i).wr_id, static_cast<std::uint64_t>(i));
}

TEST_F(RCTest, ASharedReceiveQueueServesTheQP) {
  ibv_srq_init_attr init{.srq_context = nullptr,
                         .attr = {.max_wr = 8, .max_sge = 1, .srq_limit = 0}};
  ibv_srq* srq = verbs.create_srq(pd, &init);
  ASSERT_NE(srq, nullptr);
  ibv_qp_init_attr attr = qp_attributes(IBV_QPT_RC);
  attr.recv_cq = peer_cq_;
  attr.srq = srq;
  ibv_qp* shared = verbs.create_qp(pd, &attr);
  ibv_qp* sender = make_qp();
  connect(sender, shared);
  ibv_sge to = sge_of(remote_mr_, 0, 64), from = sge_of(local_mr_, 0, 64);
  ibv_recv_wr wr = recv_wr(11, &to);
  ibv_recv_wr* bad = nullptr;
  ASSERT_EQ(ibv_post_srq_recv(srq, &wr, &bad), 0);
  ASSERT_EQ(post(sender, send_wr(12, IBV_WR_SEND, &from)), 0);
  const ibv_wc received = wait_for_completion(peer_cq_);
  EXPECT_EQ(received.wr_id, 11u);
  EXPECT_EQ(received.qp_num, shared->qp_num);
}

class ECETest : public VerbsTest {};

TEST_F(ECETest, OptionsAreThoseOfOneVendor) {
  ibv_qp* qp = make_qp();
  ibv_ece ece{};
  ASSERT_EQ(verbs.query_ece(qp, &ece), 0);
  EXPECT_NE(ece.vendor_id, 0u);
  ece.options = 0xff;
  EXPECT_EQ(verbs.set_ece(qp, &ece), 0);
  EXPECT_EQ(ece.options, 0u) << "what is accepted of them";
  ++ece.vendor_id;
  EXPECT_EQ(verbs.set_ece(qp, &ece), EINVAL);
  ece = {.vendor_id = 0, .options = 0, .comp_mask = 0};
  EXPECT_EQ(verbs.set_ece(qp, &ece), 0) << "none";
  ece.comp_mask = 1;
  EXPECT_EQ(verbs.set_ece(qp, &ece), EINVAL);
}

}  // namespace
}  // namespace verbena::test
