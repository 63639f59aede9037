// Protection domains, memory regions and windows: their life, and what is refused.
#include <sys/mman.h>

#include <cerrno>
#include <cstdint>

#include "tests/abi/verbs_fixture.h"

namespace verbena::test {
namespace {

class MemoryTest : public VerbsTest {
 protected:
  alignas(64) std::array<char, 4096> buffer_{};
};

TEST_F(MemoryTest, AProtectionDomainInUseIsBusy) {
  ibv_mr* mr = register_all(buffer_.data(), buffer_.size());
  EXPECT_EQ(verbs.dealloc_pd(pd), EBUSY);
  EXPECT_EQ(verbs.dereg_mr(mr), 0);
  ibv_ah_attr route = loopback_route();
  ibv_ah* ah = verbs.create_ah(pd, &route);
  ASSERT_NE(ah, nullptr);
  EXPECT_EQ(verbs.dealloc_pd(pd), EBUSY) << "an address handle lives in it";
  EXPECT_EQ(verbs.destroy_ah(ah), 0);
  EXPECT_EQ(verbs.dealloc_pd(pd), 0);
}

TEST_F(MemoryTest, RegionsTellWhatTheyAre) {
  ibv_mr* mr = register_all(buffer_.data(), 100);
  EXPECT_EQ(mr->context, context);
  EXPECT_EQ(mr->pd, pd);
  EXPECT_EQ(mr->addr, buffer_.data());
  EXPECT_EQ(mr->length, 100u);
  ibv_mr* other = register_all(buffer_.data(), 100);
  EXPECT_NE(mr->rkey, other->rkey);
}

TEST_F(MemoryTest, OptionalAndOnDemandAccessIsAccepted) {
  ibv_mr* mr = verbs.reg_mr_iova2(pd, buffer_.data(), buffer_.size(), 0x1000,
                                  kAllAccess | IBV_ACCESS_RELAXED_ORDERING | IBV_ACCESS_ON_DEMAND);
  EXPECT_NE(mr, nullptr);
}

TEST_F(MemoryTest, TheWholeProcessCanBeRegisteredOnDemand) {
  EXPECT_NE(verbs.reg_mr(pd, nullptr, SIZE_MAX, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND),
            nullptr);
  EXPECT_EQ(verbs.reg_mr(pd, nullptr, SIZE_MAX, IBV_ACCESS_LOCAL_WRITE), nullptr);
}

struct BadAccess {
  int access;
  int error;
};
class BadAccessTest : public MemoryTest, public ::testing::WithParamInterface<BadAccess> {};

TEST_P(BadAccessTest, IsRefused) {
  errno = 0;
  EXPECT_EQ(verbs.reg_mr(pd, buffer_.data(), buffer_.size(), GetParam().access), nullptr);
  EXPECT_EQ(errno, GetParam().error);
}

INSTANTIATE_TEST_SUITE_P(
    , BadAccessTest,
    ::testing::Values(BadAccess{IBV_ACCESS_REMOTE_WRITE, EINVAL},   // needs local write
                      BadAccess{IBV_ACCESS_REMOTE_ATOMIC, EINVAL},  // needs local write
                      BadAccess{1 << 12, EINVAL},                   // no such right
                      BadAccess{1 << 9, EOPNOTSUPP}));              // a FLUSH to persistence

TEST_F(MemoryTest, NoMemoryThereIsAFault) {
  EXPECT_EQ(verbs.reg_mr(pd, reinterpret_cast<void*>(0x1000), 4096, IBV_ACCESS_LOCAL_WRITE),
            nullptr);  // nothing is mapped there
  EXPECT_EQ(errno, EFAULT);
  EXPECT_EQ(verbs.reg_mr(pd, nullptr, 4096, IBV_ACCESS_LOCAL_WRITE), nullptr);
  EXPECT_EQ(errno, EFAULT);
}

TEST_F(MemoryTest, ReregistrationChangesWhatItIsTold) {
  ibv_mr* mr = register_all(buffer_.data(), 100);
  ibv_pd* other = verbs.alloc_pd(context);
  ASSERT_NE(other, nullptr);
  EXPECT_EQ(
      verbs.rereg_mr(
          mr, IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_ACCESS,
          other, buffer_.data() + 8, 50, IBV_ACCESS_LOCAL_WRITE),
      0);
  EXPECT_EQ(mr->pd, other);
  EXPECT_EQ(mr->addr, buffer_.data() + 8);
  EXPECT_EQ(mr->length, 50u);
  EXPECT_EQ(verbs.dealloc_pd(pd), 0) << "nothing is left in the old one";
  EXPECT_EQ(verbs.dealloc_pd(other), EBUSY);
  EXPECT_EQ(verbs.dereg_mr(mr), 0);
}

TEST_F(MemoryTest, BadReregistrationLeavesTheRegionAlone) {
  ibv_mr* mr = register_all(buffer_.data(), 100);
  const std::uint32_t key = mr->lkey;
  EXPECT_EQ(verbs.rereg_mr(mr, 0, nullptr, nullptr, 0, 0), IBV_REREG_MR_ERR_INPUT);
  EXPECT_EQ(verbs.rereg_mr(mr, 1 << 5, nullptr, nullptr, 0, 0), IBV_REREG_MR_ERR_INPUT);
  EXPECT_EQ(verbs.rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, nullptr, nullptr, 0, 0),
            IBV_REREG_MR_ERR_INPUT);
  EXPECT_EQ(mr->lkey, key);
  EXPECT_EQ(verbs.dereg_mr(mr), 0);
}

TEST_F(MemoryTest, AFailedReregistrationLeavesARegionThatOnlyGoes) {
  ibv_mr* mr = register_all(buffer_.data(), 100);
  EXPECT_EQ(verbs.rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0,
                           IBV_ACCESS_REMOTE_WRITE),  // needs local write
            IBV_REREG_MR_ERR_CMD);
  EXPECT_EQ(errno, EINVAL);
  ibv_sge sge = sge_of(mr, 0, 1);
  EXPECT_EQ(ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1), ENOENT);
  EXPECT_EQ(verbs.dereg_mr(mr), 0);
}

TEST_F(MemoryTest, AdviceIsCheckedAndTaken) {
  ibv_mr* mr = register_all(buffer_.data(), 100, 0);
  ibv_sge sge = sge_of(mr, 0, 100);
  const auto advise = [&](ibv_advise_mr_advice advice) {
    return ibv_advise_mr(pd, advice, IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1);
  };
  EXPECT_EQ(advise(IBV_ADVISE_MR_ADVICE_PREFETCH), 0);
  EXPECT_EQ(advise(IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE), EPERM);
  sge.length = 101;
  EXPECT_EQ(advise(IBV_ADVISE_MR_ADVICE_PREFETCH), EFAULT);
  sge.lkey ^= 0x100;
  EXPECT_EQ(advise(IBV_ADVISE_MR_ADVICE_PREFETCH), ENOENT);
}

TEST_F(MemoryTest, WindowOfAnUnknownTypeIsInvalid) {
  EXPECT_EQ(ibv_alloc_mw(pd, static_cast<ibv_mw_type>(3)), nullptr);
  EXPECT_EQ(errno, EINVAL);
}

TEST_F(MemoryTest, ABoundWindowKeepsItsRegion) {
  ibv_mr* mr = register_all(buffer_.data(), buffer_.size());
  ibv_mw* mw = ibv_alloc_mw(pd, IBV_MW_TYPE_1);
  ASSERT_NE(mw, nullptr);
  ibv_qp *qp = make_qp(), *peer = make_qp();
  connect(qp, peer);

  const std::uint32_t old_key = mw->rkey;
  ibv_mw_bind bind{.wr_id = 9, .send_flags = IBV_SEND_SIGNALED, .bind_info = {}};
  bind.bind_info = {.mr = mr,
                    .addr = reinterpret_cast<std::uint64_t>(buffer_.data()),
                    .length = 64,
                    .mw_access_flags = IBV_ACCESS_REMOTE_WRITE};
  ASSERT_EQ(ibv_bind_mw(qp, mw, &bind), 0);
  EXPECT_NE(mw->rkey, old_key) << "the key after the bind";
  const ibv_wc wc = wait_for_completion();
  EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  EXPECT_EQ(wc.opcode, IBV_WC_BIND_MW);
  EXPECT_EQ(wc.wr_id, 9u);
  EXPECT_EQ(verbs.dereg_mr(mr), EBUSY);
  EXPECT_EQ(ibv_dealloc_mw(mw), 0);
  EXPECT_EQ(verbs.dereg_mr(mr), 0);
}

TEST_F(MemoryTest, AWindowGoesEvenAfterItsBindHasFailed) {
  ibv_mr* mr = register_all(buffer_.data(), buffer_.size(), IBV_ACCESS_LOCAL_WRITE);  // no MW_BIND
  ibv_mw* mw = ibv_alloc_mw(pd, IBV_MW_TYPE_1);
  ibv_qp *qp = make_qp(), *peer = make_qp();
  connect(qp, peer);
  ibv_mw_bind bind{.wr_id = 1, .send_flags = IBV_SEND_SIGNALED, .bind_info = {}};
  bind.bind_info = {.mr = mr,
                    .addr = reinterpret_cast<std::uint64_t>(buffer_.data()),
                    .length = 64,
                    .mw_access_flags = IBV_ACCESS_REMOTE_READ};
  ASSERT_EQ(ibv_bind_mw(qp, mw, &bind), 0);
  EXPECT_EQ(wait_for_completion().status, IBV_WC_MW_BIND_ERR);
  EXPECT_EQ(ibv_dealloc_mw(mw), 0);
}

TEST_F(MemoryTest, EveryCombinationOfChangesIsMade) {
  std::array<char, 4096> other{};
  ibv_pd* other_pd = verbs.alloc_pd(context);
  for (int flags = 1; flags <= IBV_REREG_MR_FLAGS_SUPPORTED; ++flags) {
    ibv_mr* mr = register_all(buffer_.data(), 100);
    EXPECT_EQ(verbs.rereg_mr(mr, flags, other_pd, other.data(), 200, 0), 0) << flags;
    const bool moved = (flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0;
    const bool elsewhere = (flags & IBV_REREG_MR_CHANGE_PD) != 0;
    const bool read_only = (flags & IBV_REREG_MR_CHANGE_ACCESS) != 0;
    EXPECT_EQ(mr->addr, moved ? other.data() : buffer_.data());
    EXPECT_EQ(mr->length, moved ? 200u : 100u);
    EXPECT_EQ(mr->pd, elsewhere ? other_pd : pd);
    ibv_sge all = sge_of(mr, 0, moved ? 200 : 100);
    EXPECT_EQ(ibv_advise_mr(mr->pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &all, 1), 0);
    EXPECT_EQ(ibv_advise_mr(mr->pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, 0, &all, 1),
              read_only ? EPERM : 0);
    EXPECT_EQ(ibv_advise_mr(elsewhere ? pd : other_pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &all, 1),
              ENOENT);
    EXPECT_EQ(verbs.dealloc_pd(other_pd), elsewhere ? EBUSY : 0);
    EXPECT_EQ(verbs.dereg_mr(mr), 0);
    if (!elsewhere) other_pd = verbs.alloc_pd(context);
  }
}

TEST_F(MemoryTest, ARegionDoesNotMoveToWhereNothingIs) {
  ibv_mr* mr = register_all(buffer_.data(), 100);
  void* hole = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  munmap(hole, 4096);
  EXPECT_EQ(verbs.rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, hole, 64, 0),
            IBV_REREG_MR_ERR_INPUT);
  EXPECT_EQ(errno, EFAULT);
  EXPECT_EQ(mr->addr, buffer_.data()) << "it is what it was";
  EXPECT_EQ(verbs.rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_ACCESS,
                           nullptr, hole, 64, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND),
            0)
      << "on demand it may";
  ibv_sge sge = sge_of(mr, 0, 64);
  for (const auto advice : {IBV_ADVISE_MR_ADVICE_PREFETCH, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
                            IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT})
    EXPECT_EQ(ibv_advise_mr(pd, advice, IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1), EFAULT);
}

// --- memory that the process cannot write, or not read

class ProtectedMemoryTest : public MemoryTest {
 protected:
  static constexpr std::size_t kPage = 4096;
  void SetUp() override {
    MemoryTest::SetUp();
    pages_ = static_cast<char*>(
        mmap(nullptr, 3 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(pages_, MAP_FAILED);
  }
  void TearDown() override {
    munmap(pages_, 3 * kPage);
    MemoryTest::TearDown();
  }
  // Returns 0, or the errno of a registration.
  int error_of_registration(const void* address, std::size_t length, int access) {
    errno = 0;
    ibv_mr* const mr = verbs.reg_mr(pd, const_cast<void*>(address), length, access);
    const int error = errno;
    if (mr == nullptr) return error;
    EXPECT_EQ(verbs.dereg_mr(mr), 0);
    return 0;
  }

  char* pages_ = nullptr;
};

constexpr int kWrites[] = {IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
                           IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC, IBV_ACCESS_MW_BIND,
                           kAllAccess};

TEST_F(ProtectedMemoryTest, ReadOnlyMemoryIsRegisteredToBeReadOnly) {
  ASSERT_EQ(mprotect(pages_ + kPage, kPage, PROT_READ), 0);
  static constexpr char kConstants[kPage] = {1};
  for (const int access : kWrites) {
    EXPECT_EQ(error_of_registration(pages_ + kPage, kPage, access), EFAULT) << access;
    EXPECT_EQ(error_of_registration(pages_, 3 * kPage, access), EFAULT) << "one page of three";
    EXPECT_EQ(error_of_registration(pages_, kPage, access), 0);
    EXPECT_EQ(error_of_registration(pages_ + 2 * kPage, kPage, access), 0);
    EXPECT_EQ(error_of_registration(kConstants, kPage, access), EFAULT);
    EXPECT_EQ(error_of_registration(pages_ + kPage, kPage, access | IBV_ACCESS_ON_DEMAND), 0);
  }
  for (const int access : {0, int{IBV_ACCESS_REMOTE_READ}}) {
    EXPECT_EQ(error_of_registration(pages_, 3 * kPage, access), 0);
    EXPECT_EQ(error_of_registration(kConstants, kPage, access), 0);
  }
}

TEST_F(ProtectedMemoryTest, MemoryWithoutAnyRightIsNotRegistered) {
  ASSERT_EQ(mprotect(pages_ + kPage, kPage, PROT_NONE), 0);
  for (const int access : {0, int{IBV_ACCESS_REMOTE_READ}, kAllAccess}) {
    EXPECT_EQ(error_of_registration(pages_, 3 * kPage, access), EFAULT);
    EXPECT_EQ(error_of_registration(pages_, 3 * kPage, access | IBV_ACCESS_ON_DEMAND), 0);
  }
}

TEST_F(ProtectedMemoryTest, AFileThatIsMappedToBeReadIsNotRegisteredToBeWritten) {
  const int file = memfd_create("program", MFD_CLOEXEC);
  ASSERT_EQ(ftruncate(file, kPage), 0);
  void* const shared = mmap(nullptr, kPage, PROT_READ, MAP_SHARED, file, 0);
  ASSERT_NE(shared, MAP_FAILED);
  EXPECT_EQ(error_of_registration(shared, kPage, kAllAccess), EFAULT);
  EXPECT_EQ(error_of_registration(shared, kPage, IBV_ACCESS_REMOTE_READ), 0);
  munmap(shared, kPage);
  close(file);
}

TEST_F(ProtectedMemoryTest, ReregistrationAsksForTheSameRights) {
  ASSERT_EQ(mprotect(pages_ + kPage, kPage, PROT_READ), 0);
  ibv_mr* mr = register_all(pages_ + kPage, kPage, IBV_ACCESS_REMOTE_READ);
  EXPECT_EQ(verbs.rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, kAllAccess),
            IBV_REREG_MR_ERR_INPUT);
  EXPECT_EQ(errno, EFAULT);
  constexpr int kAll = IBV_REREG_MR_CHANGE_ACCESS | IBV_REREG_MR_CHANGE_TRANSLATION;
  EXPECT_EQ(verbs.rereg_mr(mr, kAll, nullptr, pages_, kPage, kAllAccess), 0);
  EXPECT_EQ(verbs.rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, pages_, 2 * kPage, 0),
            IBV_REREG_MR_ERR_INPUT)
      << "with the access that it has";
  EXPECT_EQ(errno, EFAULT);
  EXPECT_EQ(verbs.rereg_mr(mr, kAll, nullptr, pages_, 2 * kPage, IBV_ACCESS_REMOTE_READ), 0);
  EXPECT_EQ(verbs.dereg_mr(mr), 0);
}

TEST_F(ProtectedMemoryTest, OnDemandMemoryIsCheckedWhenItNoLongerIs) {
  ASSERT_EQ(mprotect(pages_, kPage, PROT_READ), 0);
  ibv_mr* mr = register_all(pages_, kPage, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND);
  EXPECT_EQ(
      verbs.rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, IBV_ACCESS_LOCAL_WRITE),
      IBV_REREG_MR_ERR_INPUT);
  EXPECT_EQ(errno, EFAULT);
  ibv_sge sge = sge_of(mr, 0, 64);
  EXPECT_EQ(ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH, IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1), 0);
  EXPECT_EQ(
      ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1),
      EFAULT);
  EXPECT_EQ(verbs.dereg_mr(mr), 0);
}

TEST_F(MemoryTest, PrefetchedPagesAreResident) {
  constexpr std::size_t kLength = 64 << 10;
  void* pages = mmap(nullptr, kLength, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(pages, MAP_FAILED);
  ibv_mr* mr = register_all(pages, kLength, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND);
  ibv_sge sge = sge_of(mr, 0, kLength);
  EXPECT_EQ(
      ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1), 0);
  std::array<unsigned char, kLength / 4096> resident{};
  ASSERT_EQ(mincore(pages, kLength, resident.data()), 0);
  EXPECT_EQ(resident.front() & 1, 1);
  EXPECT_EQ(resident.back() & 1, 1);
  munmap(pages, kLength);
  EXPECT_EQ(ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 0), EINVAL) << "of nothing";
}

// --- windows at work

class WindowTest : public MemoryTest {
 protected:
  void SetUp() override {
    MemoryTest::SetUp();
    mr_ = register_all(buffer_.data(), buffer_.size());
    qp_ = make_qp();
    peer_ = make_qp();
    connect(qp_, peer_);
  }
  std::uint64_t address(std::size_t offset) const {
    return reinterpret_cast<std::uint64_t>(buffer_.data()) + offset;
  }
  // Binds `mw` through the peer to [0, 64), to be written. The status.
  ibv_wc_status bind(ibv_mw* mw, std::uint32_t rkey) {
    ibv_send_wr wr = send_wr(1, IBV_WR_BIND_MW, nullptr);
    wr.bind_mw = {.mw = mw,
                  .rkey = rkey,
                  .bind_info = {.mr = mr_,
                                .addr = address(0),
                                .length = 64,
                                .mw_access_flags = IBV_ACCESS_REMOTE_WRITE}};
    EXPECT_EQ(post(peer_, wr), 0);
    return wait_for_completion().status;
  }
  ibv_wc_status write_through(std::uint32_t rkey, std::uint64_t remote) {
    ibv_sge sge = sge_of(mr_, 128, 8);
    ibv_send_wr wr = send_wr(2, IBV_WR_RDMA_WRITE, &sge);
    wr.wr.rdma = {.remote_addr = remote, .rkey = rkey};
    EXPECT_EQ(post(qp_, wr), 0);
    return wait_for_completion().status;
  }
  ibv_wc_status invalidate(ibv_qp* qp, std::uint32_t rkey) {
    ibv_send_wr wr = send_wr(3, IBV_WR_LOCAL_INV, nullptr);
    wr.invalidate_rkey = rkey;
    EXPECT_EQ(post(qp, wr), 0);
    return wait_for_completion().status;
  }

  ibv_mr* mr_ = nullptr;
  ibv_qp *qp_ = nullptr, *peer_ = nullptr;
};

TEST_F(WindowTest, Type2OpensUntilItIsInvalidated) {
  ibv_mw* mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
  const std::uint32_t key = ibv_inc_rkey(mw->rkey);
  ASSERT_EQ(bind(mw, key), IBV_WC_SUCCESS);
  EXPECT_EQ(mw->rkey, key);
  EXPECT_EQ(write_through(key, address(56)), IBV_WC_SUCCESS);
  EXPECT_EQ(invalidate(peer_, key), IBV_WC_SUCCESS);
  EXPECT_EQ(write_through(key, address(0)), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(WindowTest, AByteBeyondTheWindowIsRefused) {
  ibv_mw* mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
  ASSERT_EQ(bind(mw, ibv_inc_rkey(mw->rkey)), IBV_WC_SUCCESS);
  EXPECT_EQ(write_through(mw->rkey, address(57)), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(WindowTest, ThePeerInvalidatesWithItsSend) {
  ibv_mw* mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
  const std::uint32_t key = ibv_inc_rkey(mw->rkey);
  ASSERT_EQ(bind(mw, key), IBV_WC_SUCCESS);
  ASSERT_EQ(post(peer_, recv_wr(7, nullptr)), 0);
  ibv_send_wr wr = send_wr(8, IBV_WR_SEND_WITH_INV, nullptr);
  wr.invalidate_rkey = key;
  ASSERT_EQ(post(qp_, wr), 0);
  for (int i = 0; i < 2; ++i) {
    const ibv_wc wc = wait_for_completion();
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    if (wc.opcode != IBV_WC_RECV) continue;
    EXPECT_EQ(wc.wc_flags, static_cast<unsigned>(IBV_WC_WITH_INV));
    EXPECT_EQ(wc.invalidated_rkey, key);
  }
  EXPECT_EQ(write_through(key, address(0)), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(WindowTest, OnlyABoundType2WindowIsInvalidated) {
  EXPECT_EQ(invalidate(peer_, mr_->rkey), IBV_WC_MW_BIND_ERR) << "a region";
}

TEST_F(WindowTest, Type2IsBoundOnce) {
  ibv_mw* mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
  ASSERT_EQ(bind(mw, ibv_inc_rkey(mw->rkey)), IBV_WC_SUCCESS);
  EXPECT_EQ(bind(mw, ibv_inc_rkey(mw->rkey)), IBV_WC_MW_BIND_ERR);
}

}  // namespace
}  // namespace verbena::test
