#include "transport/completions.h"

#include <gtest/gtest.h>

namespace verbena {
namespace {

SendWQE wqe_of(SendOp op) {
  SendWQE wqe;
  wqe.wr.wr_id = 5;
  wqe.wr.op = op;
  wqe.length_bytes = 100;
  return wqe;
}

TEST(CompletionsTest, UnsignaledSuccessIsInvisibleErrorsNever) {
  QPAttributes qp;
  SendWQE wqe = wqe_of(SendOp::kSend);
  EXPECT_FALSE(completes_visibly(wqe, qp, WQEStatus::kSuccess));
  EXPECT_TRUE(completes_visibly(wqe, qp, WQEStatus::kFlushed));
  EXPECT_TRUE(completes_visibly(wqe, qp, WQEStatus::kLocalProtection));
  wqe.wr.signaled = true;
  EXPECT_TRUE(completes_visibly(wqe, qp, WQEStatus::kSuccess));
  wqe.wr.signaled = false;
  qp.signal_all = true;
  EXPECT_TRUE(completes_visibly(wqe, qp, WQEStatus::kSuccess));
}

TEST(CompletionsTest, OnlyOperationsThatBringDataBackCountBytes) {
  QPAttributes qp;
  qp.qpn = QPN{9};
  for (const SendOp op : {SendOp::kRDMARead, SendOp::kCompareSwap, SendOp::kFetchAdd})
    EXPECT_EQ(send_cqe(wqe_of(op), qp, WQEStatus::kSuccess).byte_length, 100u);
  for (const SendOp op : {SendOp::kSend, SendOp::kRDMAWrite, SendOp::kBindMW})
    EXPECT_EQ(send_cqe(wqe_of(op), qp, WQEStatus::kSuccess).byte_length, 0u);
  const CQE failed = send_cqe(wqe_of(SendOp::kRDMARead), qp, WQEStatus::kRemoteAccess);
  EXPECT_EQ(failed.byte_length, 0u);
  EXPECT_EQ(failed.qp, QPN{9});
  EXPECT_EQ(failed.wr_id, 5u);
  EXPECT_EQ(failed.op, CompletionOp::kRDMARead);
}

// IBTA 11.4.2.2: an error wakes a program that waits for solicited completions only.
TEST(CompletionsTest, ErrorsCountAsSolicited) {
  const QPAttributes qp;
  EXPECT_TRUE(send_cqe(wqe_of(SendOp::kSend), qp, WQEStatus::kFlushed).solicited);
  EXPECT_FALSE(send_cqe(wqe_of(SendOp::kSend), qp, WQEStatus::kSuccess).solicited);
  EXPECT_TRUE(receive_cqe(1, qp, WQEStatus::kFlushed).solicited);
}

}  // namespace
}  // namespace verbena
