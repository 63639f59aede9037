// Regions of memory that a file backs and others map too, as programs have it in a memfd: what a
// peer of the same host may do to them is what it may do to any region.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

#include "tests/abi/verbs_fixture.h"

namespace verbena::test {
namespace {

constexpr std::size_t kPage = 4096;

class CommonMemoryTest : public VerbsTest {
 protected:
  void SetUp() override {
    VerbsTest::SetUp();
    file_ = memfd_create("program", MFD_CLOEXEC);
    ASSERT_EQ(ftruncate(file_, 2 * kPage), 0);
    // A private page, and two of the file behind it.
    pages_ = static_cast<char*>(
        mmap(nullptr, 3 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    common_ = static_cast<char*>(
        mmap(pages_ + kPage, 2 * kPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file_, 0));
    ASSERT_EQ(common_, pages_ + kPage);
    here_ = register_all(buffer_.data(), buffer_.size());
    qp_ = make_qp(IBV_QPT_RC);
    peer_ = make_qp(IBV_QPT_RC);
    connect(qp_, peer_);
  }
  void TearDown() override {
    munmap(pages_, 3 * kPage);
    close(file_);
    VerbsTest::TearDown();
  }

  ibv_wc_status operate(ibv_wr_opcode opcode, const ibv_mr* mr, const void* at,
                        std::uint32_t length) {
    ibv_sge sge = sge_of(here_, 0, length);
    ibv_send_wr wr = send_wr(1, opcode, &sge);
    const auto address = reinterpret_cast<std::uint64_t>(at);
    if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
      wr.wr.atomic = {.remote_addr = address, .compare_add = 5, .swap = 0, .rkey = mr->rkey};
    else
      wr.wr.rdma = {.remote_addr = address, .rkey = mr->rkey};
    EXPECT_EQ(post(qp_, wr), 0);
    return wait_for_completion().status;
  }

  alignas(8) std::array<char, 3 * kPage> buffer_{};
  int file_ = -1;
  char *pages_ = nullptr, *common_ = nullptr;
  ibv_mr* here_ = nullptr;
  ibv_qp *qp_ = nullptr, *peer_ = nullptr;
};

TEST_F(CommonMemoryTest, IsWrittenAndRead) {
  ibv_mr* const mr = register_all(common_, 2 * kPage);
  for (const std::uint32_t length : {1u, 2u, 7u, 8u, 64u, 4097u, 8192u}) {
    std::fill(buffer_.begin(), buffer_.end(), static_cast<char>(length));
    EXPECT_EQ(operate(IBV_WR_RDMA_WRITE, mr, common_, length), IBV_WC_SUCCESS);
    EXPECT_TRUE(std::equal(common_, common_ + length, buffer_.data())) << length;
    std::fill(common_, common_ + length, static_cast<char>(length + 1));
    EXPECT_EQ(operate(IBV_WR_RDMA_READ, mr, common_, length), IBV_WC_SUCCESS);
    EXPECT_TRUE(std::equal(common_, common_ + length, buffer_.data())) << length;
  }
}

TEST_F(CommonMemoryTest, ThatIsOnlyAPartOfARegionIsWrittenWithTheRest) {
  ibv_mr* const mr = register_all(pages_ + 100, 3 * kPage - 200);
  buffer_.fill('x');
  EXPECT_EQ(operate(IBV_WR_RDMA_WRITE, mr, pages_ + 100, 3 * kPage - 200), IBV_WC_SUCCESS);
  EXPECT_EQ(std::count(pages_, pages_ + 3 * kPage, 'x'), 3 * kPage - 200);
  EXPECT_EQ(operate(IBV_WR_RDMA_WRITE, mr, pages_ + 2 * kPage, 8), IBV_WC_SUCCESS);
}

TEST_F(CommonMemoryTest, AtomicsAndCopiesMeetInIt) {
  ibv_mr* const mr = register_all(common_, 2 * kPage);
  auto* const word = reinterpret_cast<volatile std::uint64_t*>(common_);
  *word = 37;
  EXPECT_EQ(operate(IBV_WR_ATOMIC_FETCH_AND_ADD, mr, common_, 8), IBV_WC_SUCCESS);
  EXPECT_EQ(*word, 42u);
  EXPECT_EQ(operate(IBV_WR_RDMA_READ, mr, common_, 8), IBV_WC_SUCCESS);
  EXPECT_EQ(buffer_[0], 42);
}

TEST_F(CommonMemoryTest, IsWrittenOnlyWithTheRight) {
  ibv_mr* const mr = verbs.reg_mr(pd, common_, 2 * kPage, IBV_ACCESS_REMOTE_READ);
  ASSERT_NE(mr, nullptr);
  EXPECT_EQ(operate(IBV_WR_RDMA_READ, mr, common_, 8), IBV_WC_SUCCESS);
  EXPECT_EQ(operate(IBV_WR_RDMA_WRITE, mr, common_, 8), IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(verbs.dereg_mr(mr), 0);
}

TEST_F(CommonMemoryTest, IsWrittenOnlyInsideItsRegion) {
  ibv_mr* const mr = register_all(common_, kPage);
  EXPECT_EQ(operate(IBV_WR_RDMA_WRITE, mr, common_ + kPage - 8, 8), IBV_WC_SUCCESS);
  EXPECT_EQ(operate(IBV_WR_RDMA_WRITE, mr, common_ + kPage - 7, 8), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(CommonMemoryTest, IsNotWrittenAfterItsDeregistration) {
  ibv_mr* const mr = verbs.reg_mr(pd, common_, kPage, kAllAccess);
  EXPECT_EQ(operate(IBV_WR_RDMA_WRITE, mr, common_, 8), IBV_WC_SUCCESS);
  const ibv_mr gone = *mr;
  ASSERT_EQ(verbs.dereg_mr(mr), 0);
  buffer_.fill('y');
  EXPECT_EQ(operate(IBV_WR_RDMA_WRITE, &gone, common_, 8), IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(common_[0], '\0');
}

TEST_F(CommonMemoryTest, OfAFileThatWasCutShortIsRefused) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer's memcpy holds signals back: a fault in it never ends";
#endif
  ibv_mr* const mr = register_all(common_, 2 * kPage);
  EXPECT_EQ(operate(IBV_WR_RDMA_WRITE, mr, common_, 2 * kPage), IBV_WC_SUCCESS);
  ASSERT_EQ(ftruncate(file_, kPage), 0);
  EXPECT_EQ(operate(IBV_WR_RDMA_WRITE, mr, common_, kPage), IBV_WC_SUCCESS);
  EXPECT_EQ(operate(IBV_WR_RDMA_WRITE, mr, common_, 2 * kPage), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(CommonMemoryTest, OneRegionMayBecomeAnother) {
  ibv_mr* const mr = register_all(common_, kPage);
  EXPECT_EQ(operate(IBV_WR_RDMA_WRITE, mr, common_, 8), IBV_WC_SUCCESS);
  ASSERT_EQ(verbs.rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, common_ + kPage, kPage, 0),
            0);
  buffer_.fill('z');
  EXPECT_EQ(operate(IBV_WR_RDMA_WRITE, mr, common_ + kPage, 8), IBV_WC_SUCCESS);
  EXPECT_EQ(common_[kPage], 'z');
  EXPECT_EQ(common_[0], '\0');
}

}  // namespace
}  // namespace verbena::test
