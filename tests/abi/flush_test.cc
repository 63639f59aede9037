// FLUSH and ATOMIC WRITE: ibv_wr_flush(3), and what a device says of them.
#include <cerrno>
#include <cstring>

#include "tests/abi/verbs_fixture.h"

namespace verbena::test {
namespace {

// As <infiniband/verbs.h> of rdma-core 45 and later has them.
struct NewerQPEx : ibv_qp_ex {
  void (*wr_flush)(ibv_qp_ex* qp, std::uint32_t rkey, std::uint64_t remote_addr, std::size_t length,
                   std::uint8_t type, std::uint8_t level);
};
constexpr int kFlushGlobalAccess = 1 << 8, kFlushPersistentAccess = 1 << 9;
constexpr std::uint8_t kGlobal = 1, kPersistent = 2;  // types
constexpr std::uint8_t kRange = 0, kRegion = 1;       // levels
constexpr std::uint64_t kWithFlush = 1 << 11, kWithAtomicWrite = 1 << 12;

class FlushTest : public VerbsTest {
 protected:
  void SetUp() override {
    VerbsTest::SetUp();
    mr_ = register_all(buffer_.data(), buffer_.size(), kAllAccess | kFlushGlobalAccess);
    qp_ = make_extended(kWithFlush | kWithAtomicWrite | IBV_QP_EX_WITH_RDMA_WRITE);
    peer_ = make_qp();
    ASSERT_NE(qp_, nullptr);
    connect(qp_, peer_);
    ibv_qp_attr attr{};
    attr.qp_access_flags = kAllAccess | kFlushGlobalAccess | kFlushPersistentAccess;
    ASSERT_EQ(verbs.modify_qp(peer_, &attr, IBV_QP_ACCESS_FLAGS), 0);
    qpx_ = verbs.qp_to_qp_ex(qp_);
    ASSERT_NE(qpx_, nullptr);
  }

  ibv_qp* make_extended(std::uint64_t operations, ibv_qp_type type = IBV_QPT_RC) {
    const ibv_qp_init_attr basic = qp_attributes(type);
    ibv_qp_init_attr_ex attr{};
    attr.send_cq = basic.send_cq;
    attr.recv_cq = basic.recv_cq;
    attr.cap = basic.cap;
    attr.cap.max_inline_data = 0;
    attr.qp_type = type;
    attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    attr.pd = pd;
    attr.send_ops_flags = operations;
    return verbs_get_ctx_op(context, create_qp_ex)->create_qp_ex(context, &attr);
  }
  std::uint64_t address(std::size_t offset) const {
    return reinterpret_cast<std::uint64_t>(buffer_.data()) + offset;
  }
  void start(std::uint64_t id) {
    ibv_wr_start(qpx_);
    qpx_->wr_id = id;
    qpx_->wr_flags = IBV_SEND_SIGNALED;
  }
  // The errno value of ibv_wr_complete().
  int flush(std::uint32_t rkey, std::size_t length, std::uint8_t type, std::uint8_t level) {
    start(7);
    static_cast<NewerQPEx*>(qpx_)->wr_flush(qpx_, rkey, address(0), length, type, level);
    return ibv_wr_complete(qpx_);
  }
  std::uint64_t word(std::size_t offset) const {
    std::uint64_t value;
    std::memcpy(&value, buffer_.data() + offset, sizeof value);
    return value;
  }

  alignas(8) std::array<char, 4096> buffer_{};
  ibv_mr* mr_ = nullptr;
  ibv_qp *qp_ = nullptr, *peer_ = nullptr;
  ibv_qp_ex* qpx_ = nullptr;
};

TEST_F(FlushTest, WhatWasWrittenBeforeIsThere) {
  start(1);
  ibv_wr_rdma_write(qpx_, mr_->rkey, address(1024));
  buffer_[0] = 'x';
  ibv_wr_set_sge(qpx_, mr_->lkey, address(0), 1024);
  qpx_->wr_id = 2;
  static_cast<NewerQPEx*>(qpx_)->wr_flush(qpx_, mr_->rkey, address(1024), 1024, kGlobal, kRange);
  ASSERT_EQ(ibv_wr_complete(qpx_), 0);
  EXPECT_EQ(wait_for_completion().wr_id, 1u);
  const ibv_wc wc = wait_for_completion();
  EXPECT_EQ(wc.wr_id, 2u);
  EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  EXPECT_EQ(static_cast<int>(wc.opcode), 8) << "IBV_WC_FLUSH";
  EXPECT_EQ(buffer_[1024], 'x');
  ASSERT_EQ(flush(mr_->rkey, 123456789, kGlobal, kRegion), 0);
  EXPECT_EQ(wait_for_completion().status, IBV_WC_SUCCESS)
      << "the whole region, whatever the length";
}

TEST_F(FlushTest, PersistenceIsNotPromised) {
  EXPECT_EQ(verbs.reg_mr(pd, buffer_.data(), 64, kAllAccess | kFlushPersistentAccess), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  ASSERT_EQ(flush(mr_->rkey, 64, kPersistent, kRange), 0);
  EXPECT_EQ(wait_for_completion().status, IBV_WC_REM_ACCESS_ERR);
}

TEST_F(FlushTest, ARegionThatDoesNotGrantItIsRefused) {
  ibv_mr* other = register_all(buffer_.data(), buffer_.size());
  ASSERT_EQ(flush(other->rkey, 64, kGlobal, kRegion), 0);
  EXPECT_EQ(wait_for_completion().status, IBV_WC_REM_ACCESS_ERR);
}

TEST_F(FlushTest, ARangeBeyondTheRegionIsRefused) {
  ASSERT_EQ(flush(mr_->rkey, buffer_.size() + 1, kGlobal, kRange), 0);
  EXPECT_EQ(wait_for_completion().status, IBV_WC_REM_ACCESS_ERR);
}

TEST_F(FlushTest, WhatIsNoFlushIsInvalid) {
  EXPECT_EQ(flush(mr_->rkey, 64, 0, kRange), EINVAL);
  EXPECT_EQ(flush(mr_->rkey, 64, 4, kRange), EINVAL);
  EXPECT_EQ(flush(mr_->rkey, 64, kGlobal, 2), EINVAL);
  EXPECT_EQ(flush(mr_->rkey, std::size_t{1} << 32, kGlobal, kRange), EINVAL);
  EXPECT_EQ(flush(mr_->rkey, 64, kGlobal, kRange), 0);
  EXPECT_EQ(wait_for_completion().status, IBV_WC_SUCCESS);
}

TEST_F(FlushTest, AWordIsWrittenAtOnce) {
  std::uint64_t value = 0x0123456789abcdef;
  start(3);
  ibv_wr_atomic_write(qpx_, mr_->rkey, address(64), &value);
  value = 0;  // taken already
  ASSERT_EQ(ibv_wr_complete(qpx_), 0);
  const ibv_wc wc = wait_for_completion();
  EXPECT_EQ(wc.wr_id, 3u);
  EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  EXPECT_EQ(wc.opcode, IBV_WC_ATOMIC_WRITE);
  EXPECT_EQ(word(64), 0x0123456789abcdefu);
}

TEST_F(FlushTest, AWordIsWrittenByPostSendToo) {
  std::strcpy(buffer_.data(), "8 bytes");
  ibv_sge sge = sge_of(mr_, 0, 8);
  ibv_send_wr wr = send_wr(4, IBV_WR_ATOMIC_WRITE, &sge);
  wr.wr.rdma.remote_addr = address(128);
  wr.wr.rdma.rkey = mr_->rkey;
  ASSERT_EQ(post(qp_, wr), 0);
  EXPECT_EQ(wait_for_completion().status, IBV_WC_SUCCESS);
  EXPECT_STREQ(buffer_.data() + 128, "8 bytes");
  sge.length = 4;
  EXPECT_EQ(post(qp_, wr), EINVAL);
  EXPECT_EQ(post(qp_, send_wr(5, static_cast<ibv_wr_opcode>(14), &sge)), EINVAL)
      << "a FLUSH has no place in ibv_send_wr";
}

TEST_F(FlushTest, AnUnalignedWordIsRefused) {
  const std::uint64_t value = 1;
  start(5);
  ibv_wr_atomic_write(qpx_, mr_->rkey, address(4), &value);
  ASSERT_EQ(ibv_wr_complete(qpx_), 0);
  EXPECT_EQ(wait_for_completion().status, IBV_WC_REM_INV_REQ_ERR);
  EXPECT_EQ(word(0), 0u);
}

TEST_F(FlushTest, OnlyReliableServicesHaveThem) {
  for (const ibv_qp_type type : {IBV_QPT_UC, IBV_QPT_UD})
    for (const std::uint64_t operation : {kWithFlush, kWithAtomicWrite}) {
      EXPECT_EQ(make_extended(operation, type), nullptr);
      EXPECT_EQ(errno, EOPNOTSUPP);
    }
}

TEST_F(FlushTest, TheDeviceSaysWhatItHas) {
  ibv_device_attr_ex attr{};
  verbs_context* extended = verbs_get_ctx_op(context, query_device_ex);
  ASSERT_EQ(extended->query_device_ex(context, nullptr, &attr, sizeof attr), 0);
  const auto has = [&](int bit) { return (attr.device_cap_flags_ex >> bit & 1) != 0; };
  EXPECT_TRUE(has(38)) << "FLUSH to global visibility";
  EXPECT_FALSE(has(39)) << "FLUSH to persistence";
  EXPECT_TRUE(has(40)) << "ATOMIC WRITE";
}

}  // namespace
}  // namespace verbena::test
