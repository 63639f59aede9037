// GPU memory through the verbs, on the stand-in for the CUDA driver (tests/standin/libcuda.cc): no
// result of this file is one of a GPU.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

#include "tests/abi/verbs_fixture.h"
#include "tests/support/standin_cuda.h"

namespace verbena::test {
namespace {

constexpr std::size_t kBytes = 256 << 10;
constexpr std::size_t kGranularity = 2 << 20;

class GPUMemoryTest : public VerbsTest {
 protected:
  using Pointer = StandinCuda::Pointer;

  void SetUp() override {
    VerbsTest::SetUp();
    ASSERT_NE(cuda().library, nullptr);
    ASSERT_EQ(cuda().ctx_create(&gpu_context_, 0, 0), 0);
    ASSERT_EQ(cuda().mem_alloc(&gpu_, kBytes), 0);
    qp_ = make_qp();
    peer_ = make_qp();
    connect(qp_, peer_);
    host_.resize(kBytes);
    std::iota(host_.begin(), host_.end(), char{1});
    host_mr_ = register_all(host_.data(), host_.size());
  }
  void TearDown() override {
    cuda().control("stuck", 0);
    cuda().ctx_set_current(nullptr);
    VerbsTest::TearDown();
  }
  static void* at(Pointer pointer) { return reinterpret_cast<void*>(pointer); }
  std::vector<char> on_gpu(Pointer from, std::size_t bytes) {
    std::vector<char> all(bytes);
    EXPECT_EQ(cuda().to_host(all.data(), from, bytes), 0);
    return all;
  }
  void fill_gpu(Pointer to, std::size_t bytes, char value) {
    const std::vector<char> all(bytes, value);
    EXPECT_EQ(cuda().to_device(to, all.data(), bytes), 0);
  }
  ibv_wc transfer(ibv_wr_opcode opcode, ibv_sge local, std::uint64_t remote, std::uint32_t rkey) {
    ibv_send_wr wr = send_wr(1, opcode, &local);
    wr.wr.rdma = {.remote_addr = remote, .rkey = rkey};
    EXPECT_EQ(post(qp_, wr), 0);
    return wait_for_completion();
  }
  // Writes to the region, reads it back and compares.
  void expect_works(ibv_mr* mr, Pointer memory, std::uint64_t iova, std::size_t bytes) {
    const auto length = static_cast<std::uint32_t>(bytes);
    ASSERT_EQ(transfer(IBV_WR_RDMA_WRITE, sge_of(host_mr_, 0, length), iova, mr->rkey).status,
              IBV_WC_SUCCESS);
    EXPECT_EQ(std::memcmp(on_gpu(memory, bytes).data(), host_.data(), bytes), 0);
    std::vector<char> back(bytes);
    ibv_mr* const back_mr = register_all(back.data(), back.size());
    EXPECT_EQ(transfer(IBV_WR_RDMA_READ, sge_of(back_mr, 0, length), iova, mr->rkey).status,
              IBV_WC_SUCCESS);
    EXPECT_EQ(std::memcmp(back.data(), host_.data(), bytes), 0);
    EXPECT_EQ(verbs.dereg_mr(back_mr), 0);
  }

  void* gpu_context_ = nullptr;
  Pointer gpu_ = 0;
  ibv_qp *qp_ = nullptr, *peer_ = nullptr;
  std::vector<char> host_;
  ibv_mr* host_mr_ = nullptr;
};

TEST_F(GPUMemoryTest, IsWrittenAndReadByPeers) {
  ibv_mr* const mr = register_all(at(gpu_), kBytes);
  EXPECT_EQ(mr->addr, at(gpu_));
  EXPECT_EQ(mr->length, kBytes);
  expect_works(mr, gpu_, gpu_, kBytes);
}

TEST_F(GPUMemoryTest, IsTheSourceAndTheSinkOfOurOwnRequests) {
  ibv_mr* const mr = register_all(at(gpu_), kBytes);
  fill_gpu(gpu_, kBytes, 'g');
  const auto half = static_cast<std::uint32_t>(kBytes / 2);
  EXPECT_EQ(transfer(IBV_WR_RDMA_WRITE, sge_of(mr, 0, half),
                     reinterpret_cast<std::uint64_t>(host_.data()), host_mr_->rkey)
                .status,
            IBV_WC_SUCCESS);
  EXPECT_EQ(host_[0], 'g');
  EXPECT_EQ(host_[half - 1], 'g');
  EXPECT_NE(host_[half], 'g');
  EXPECT_EQ(transfer(IBV_WR_RDMA_READ, sge_of(mr, half, half),
                     reinterpret_cast<std::uint64_t>(host_.data()) + half, host_mr_->rkey)
                .status,
            IBV_WC_SUCCESS);
  EXPECT_EQ(std::memcmp(on_gpu(gpu_ + half, half).data(), host_.data() + half, half), 0);
}

TEST_F(GPUMemoryTest, GoesFromOneToAnother) {
  Pointer other = 0;
  ASSERT_EQ(cuda().mem_alloc(&other, kBytes), 0);
  ibv_mr* const mr = register_all(at(gpu_), kBytes);
  ibv_mr* const other_mr = register_all(at(other), kBytes);
  fill_gpu(gpu_, kBytes, 'a');
  EXPECT_EQ(transfer(IBV_WR_RDMA_WRITE, sge_of(mr, 0, kBytes), other, other_mr->rkey).status,
            IBV_WC_SUCCESS);
  EXPECT_EQ(on_gpu(other, kBytes), std::vector<char>(kBytes, 'a'));
}

// Between two regions of GPUs the device copies directly, unless everything is packets.
class GPUCopiesTest : public GPUMemoryTest {
 protected:
  void SetUp() override {
    GPUMemoryTest::SetUp();
    const char* const local = std::getenv("VERBENA_LOCAL");
    if (local != nullptr && std::strcmp(local, "off") == 0) GTEST_SKIP() << "all is packets";
    ASSERT_EQ(cuda().mem_alloc(&other_, kBytes), 0);
    mr_ = register_all(at(gpu_), kBytes);
    other_mr_ = register_all(at(other_), kBytes);
    fill_gpu(gpu_, kBytes, 'a');
    fill_gpu(other_, kBytes, 'b');
  }
  ibv_send_wr request(ibv_sge& local, std::uint64_t wr_id = 1) {
    local = sge_of(mr_, 0, kBytes);
    ibv_send_wr wr = send_wr(wr_id, IBV_WR_RDMA_WRITE, &local);
    wr.wr.rdma = {.remote_addr = other_, .rkey = other_mr_->rkey};
    return wr;
  }
  void post_stuck_write() {
    cuda().control("stuck", 1);
    ibv_sge local;
    ASSERT_EQ(post(qp_, request(local)), 0);
    expect_no_completion();
  }
  void expect_no_completion() {
    ibv_wc none{};
    for (int i = 0; i < 20; ++i) {
      EXPECT_EQ(ibv_poll_cq(cq, 1, &none), 0);
      ::usleep(200);
    }
  }
  // Lets the copies go on 20 ms from now. Returns whether `call` has returned only then.
  template <typename Call>
  static bool waits_for_copies(Call call) {
    std::atomic<bool> goes_on = false;
    std::thread later([&goes_on] {
      ::usleep(20'000);
      goes_on = true;
      cuda().control("stuck", 0);
    });
    call();
    const bool has_waited = goes_on;
    later.join();
    return has_waited;
  }

  Pointer other_ = 0;
  ibv_mr *mr_ = nullptr, *other_mr_ = nullptr;
};

TEST_F(GPUCopiesTest, TouchNoHostMemory) {
  for (const ibv_wr_opcode opcode : {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ}) {
    fill_gpu(gpu_, kBytes, 'a');
    fill_gpu(other_, kBytes, 'b');
    const unsigned long long before = cuda().count("copies");
    EXPECT_EQ(transfer(opcode, sge_of(mr_, 0, kBytes), other_, other_mr_->rkey).status,
              IBV_WC_SUCCESS);
    EXPECT_EQ(cuda().count("copies"), before);
    EXPECT_EQ(on_gpu(gpu_, kBytes), on_gpu(other_, kBytes));
  }
}

TEST_F(GPUCopiesTest, ArePossibleInMemoryWithoutAHandle) {
  Pointer pool = 0;
  ASSERT_EQ(cuda().mem_alloc_async(&pool, kBytes, nullptr), 0);
  ibv_mr* const target = register_all(at(pool), kBytes);
  const unsigned long long before = cuda().count("copies");
  EXPECT_EQ(transfer(IBV_WR_RDMA_WRITE, sge_of(mr_, 8, 1000), pool + 16, target->rkey).status,
            IBV_WC_SUCCESS);
  EXPECT_EQ(cuda().count("copies"), before);
  EXPECT_EQ(on_gpu(pool + 16, 1000), on_gpu(gpu_ + 8, 1000));
}

TEST_F(GPUCopiesTest, ASendBehindThemComesAfterThem) {
  post_stuck_write();
  ibv_sge into = sge_of(host_mr_, 0, 10), from = sge_of(host_mr_, 100, 10);
  ASSERT_EQ(post(peer_, recv_wr(7, &into)), 0);
  ASSERT_EQ(post(qp_, send_wr(2, IBV_WR_SEND, &from)), 0);
  expect_no_completion();
  cuda().control("stuck", 0);
  EXPECT_EQ(wait_for_completion().wr_id, 1u);
  EXPECT_EQ(wait_for_completion().wr_id + wait_for_completion().wr_id, 9u);
}

TEST_F(GPUCopiesTest, DeregistrationOfEitherEndWaitsForThem) {
  for (ibv_mr** const region : {&other_mr_, &mr_}) {
    post_stuck_write();
    EXPECT_TRUE(waits_for_copies([&] { EXPECT_EQ(verbs.dereg_mr(*region), 0); }));
    EXPECT_EQ(on_gpu(other_, kBytes), std::vector<char>(kBytes, 'a'));
    EXPECT_EQ(wait_for_completion().status, IBV_WC_SUCCESS);
    if (region == &other_mr_) other_mr_ = register_all(at(other_), kBytes);
    fill_gpu(other_, kBytes, 'b');
  }
}

TEST_F(GPUCopiesTest, AChangeOfRightsWaitsForThem) {
  post_stuck_write();
  EXPECT_TRUE(waits_for_copies([&] {
    EXPECT_EQ(verbs.rereg_mr(other_mr_, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0,
                             IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ),
              0);
  }));
  EXPECT_EQ(wait_for_completion().status, IBV_WC_SUCCESS);
  EXPECT_EQ(transfer(IBV_WR_RDMA_WRITE, sge_of(mr_, 0, 10), other_, other_mr_->rkey).status,
            IBV_WC_REM_ACCESS_ERR);
}

TEST_F(GPUCopiesTest, AQPThatIsResetWaitsForThem) {
  post_stuck_write();
  ibv_qp_attr reset{};
  reset.qp_state = IBV_QPS_RESET;
  EXPECT_TRUE(waits_for_copies([&] { EXPECT_EQ(verbs.modify_qp(qp_, &reset, IBV_QP_STATE), 0); }));
  EXPECT_EQ(on_gpu(other_, kBytes), std::vector<char>(kBytes, 'a'));
}

TEST_F(GPUCopiesTest, FreedMemoryOfOurOwnIsALocalProtectionError) {
  ASSERT_EQ(cuda().mem_free(gpu_), 0);
  EXPECT_EQ(transfer(IBV_WR_RDMA_WRITE, sge_of(mr_, 0, 5000), other_, other_mr_->rkey).status,
            IBV_WC_LOC_PROT_ERR);
}

TEST_F(GPUMemoryTest, HasReceivesAndASendOfSeveralPieces) {
  ibv_mr* const mr = register_all(at(gpu_), kBytes);
  fill_gpu(gpu_, kBytes, 'z');
  ibv_sge into = sge_of(mr, 1000, 10000);
  ASSERT_EQ(post(peer_, recv_wr(7, &into)), 0);
  ibv_sge from[] = {sge_of(host_mr_, 0, 100), sge_of(mr, 50000, 33), sge_of(host_mr_, 100, 5000)};
  ibv_send_wr wr = send_wr(1, IBV_WR_SEND, from);
  wr.num_sge = 3;
  ASSERT_EQ(post(qp_, wr), 0);
  for (int i = 0; i < 2; ++i) {
    const ibv_wc wc = wait_for_completion();
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    if (wc.opcode != IBV_WC_RECV) continue;
    EXPECT_EQ(wc.byte_len, 5133u);
    const std::vector<char> got = on_gpu(gpu_ + 1000, 5133);
    EXPECT_EQ(std::memcmp(got.data(), host_.data(), 100), 0);
    EXPECT_EQ(got[100], 'z');
    EXPECT_EQ(got[132], 'z');
    EXPECT_EQ(std::memcmp(got.data() + 133, host_.data() + 100, 5000), 0);
  }
}

TEST_F(GPUMemoryTest, AtomicsSayWhatTheyFound) {
  ibv_mr* const mr = register_all(at(gpu_), kBytes);
  const std::uint64_t before = 40;
  ASSERT_EQ(cuda().to_device(gpu_ + 64, &before, sizeof before), 0);
  alignas(8) std::uint64_t found[2] = {};
  ibv_mr* const found_mr = register_all(found, sizeof found);
  for (int i = 0; i < 2; ++i) {
    ibv_sge sge = sge_of(found_mr, static_cast<std::uint64_t>(i) * 8, 8);
    ibv_send_wr wr =
        send_wr(1, i == 0 ? IBV_WR_ATOMIC_FETCH_AND_ADD : IBV_WR_ATOMIC_CMP_AND_SWP, &sge);
    wr.wr.atomic = {
        .remote_addr = gpu_ + 64, .compare_add = i == 0 ? 2u : 42u, .swap = 7, .rkey = mr->rkey};
    ASSERT_EQ(post(qp_, wr), 0);
    ASSERT_EQ(wait_for_completion().status, IBV_WC_SUCCESS);
  }
  EXPECT_EQ(found[0], 40u);
  EXPECT_EQ(found[1], 42u);
  EXPECT_EQ(on_gpu(gpu_ + 64, 1)[0], 7);
}

TEST_F(GPUMemoryTest, AReadAfterWritesFlushesThem) {
  ibv_mr* const mr = register_all(at(gpu_), kBytes);
  ibv_sge from = sge_of(host_mr_, 0, 60000), into = sge_of(host_mr_, 70000, 1);
  ibv_send_wr write = send_wr(1, IBV_WR_RDMA_WRITE, &from);
  write.send_flags = 0;
  write.wr.rdma = {.remote_addr = gpu_, .rkey = mr->rkey};
  ASSERT_EQ(post(qp_, write), 0);
  ibv_send_wr read = send_wr(2, IBV_WR_RDMA_READ, &into);
  read.wr.rdma = {.remote_addr = gpu_ + 59999, .rkey = mr->rkey};
  ASSERT_EQ(post(qp_, read), 0);
  EXPECT_EQ(wait_for_completion().status, IBV_WC_SUCCESS);
  EXPECT_EQ(host_[70000], host_[59999]);
  EXPECT_EQ(std::memcmp(on_gpu(gpu_, 60000).data(), host_.data(), 60000), 0);
}

TEST_F(GPUMemoryTest, KindsOfAllocation) {
  Pointer managed = 0, pool = 0, mapped = 0;
  void* pinned = nullptr;
  ASSERT_EQ(cuda().mem_alloc_managed(&managed, kBytes, 1), 0);
  ASSERT_EQ(cuda().mem_host_alloc(&pinned, kBytes, 0), 0);
  ASSERT_EQ(cuda().mem_alloc_async(&pool, kBytes, nullptr), 0);
  unsigned long long handle = 0;
  ASSERT_EQ(cuda().address_reserve(&mapped, kGranularity, 0, 0, 0), 0);
  ASSERT_EQ(cuda().mem_create(&handle, kGranularity, nullptr, 0), 0);
  ASSERT_EQ(cuda().mem_map(mapped, kGranularity, 0, handle, 0), 0);
  ASSERT_EQ(cuda().mem_release(handle), 0);  // The mapping keeps the memory.
  for (const Pointer memory : {pool, mapped})
    expect_works(register_all(at(memory), kBytes), memory, memory, kBytes);
  // The CPU reaches both of these: they are as any memory.
  for (void* const memory : {at(managed), pinned}) {
    ibv_mr* const mr = register_all(memory, kBytes);
    EXPECT_EQ(transfer(IBV_WR_RDMA_WRITE, sge_of(host_mr_, 0, kBytes),
                       reinterpret_cast<std::uint64_t>(memory), mr->rkey)
                  .status,
              IBV_WC_SUCCESS);
    EXPECT_EQ(std::memcmp(memory, host_.data(), kBytes), 0);
  }
}

TEST_F(GPUMemoryTest, RegistrationsOfOtherKinds) {
  ibv_mr* const moved = verbs.reg_mr_iova2(pd, at(gpu_ + 4096), 8192, 0x5000, kAllAccess);
  ASSERT_NE(moved, nullptr);
  expect_works(moved, gpu_ + 4096, 0x5000, 8192);
  int fd = -1;
  ASSERT_EQ(cuda().range_handle(&fd, gpu_, kBytes, 1, 0), 0);
  ibv_mr* const file =
      verbs.reg_dmabuf_mr(pd, 8192, 10000, gpu_ + 8192, fd, kAllAccess & ~IBV_ACCESS_MW_BIND);
  ASSERT_NE(file, nullptr);
  expect_works(file, gpu_ + 8192, gpu_ + 8192, 10000);
  EXPECT_EQ(verbs.reg_dmabuf_mr(pd, 0, 4096, 0x1000, fd, IBV_ACCESS_LOCAL_WRITE), nullptr)
      << "an iova that names no GPU memory";
  ::close(fd);
}

// --- what goes wrong

TEST_F(GPUMemoryTest, MemoryThatWasFreedIsARemoteAccessError) {
  ibv_mr* const mr = register_all(at(gpu_), kBytes);
  ASSERT_EQ(cuda().mem_free(gpu_), 0);
  EXPECT_EQ(transfer(IBV_WR_RDMA_WRITE, sge_of(host_mr_, 0, 5000), gpu_, mr->rkey).status,
            IBV_WC_REM_ACCESS_ERR);
}

TEST_F(GPUMemoryTest, FreedMemoryIsNotReadEither) {
  ibv_mr* const mr = register_all(at(gpu_), kBytes);
  ASSERT_EQ(cuda().mem_free(gpu_), 0);
  EXPECT_EQ(transfer(IBV_WR_RDMA_READ, sge_of(host_mr_, 0, 5000), gpu_, mr->rkey).status,
            IBV_WC_REM_ACCESS_ERR);
}

TEST_F(GPUMemoryTest, FreedMemoryOfOurOwnIsALocalProtectionError) {
  ibv_mr* const mr = register_all(at(gpu_), kBytes);
  ASSERT_EQ(cuda().mem_free(gpu_), 0);
  EXPECT_EQ(transfer(IBV_WR_RDMA_WRITE, sge_of(mr, 0, 5000),
                     reinterpret_cast<std::uint64_t>(host_.data()), host_mr_->rkey)
                .status,
            IBV_WC_LOC_PROT_ERR);
}

TEST_F(GPUMemoryTest, AReadIntoFreedMemoryIsALocalProtectionError) {
  ibv_mr* const mr = register_all(at(gpu_), kBytes);
  ASSERT_EQ(cuda().mem_free(gpu_), 0);
  EXPECT_EQ(transfer(IBV_WR_RDMA_READ, sge_of(mr, 0, 5000),
                     reinterpret_cast<std::uint64_t>(host_.data()), host_mr_->rkey)
                .status,
            IBV_WC_LOC_PROT_ERR);
}

TEST_F(GPUMemoryTest, AReceiveInFreedMemoryFailsAtBothEnds) {
  ibv_mr* const mr = register_all(at(gpu_), kBytes);
  ASSERT_EQ(cuda().mem_free(gpu_), 0);
  ibv_sge into = sge_of(mr, 0, 10000), from = sge_of(host_mr_, 0, 5000);
  ASSERT_EQ(post(peer_, recv_wr(7, &into)), 0);
  ASSERT_EQ(post(qp_, send_wr(1, IBV_WR_SEND, &from)), 0);
  for (int i = 0; i < 2; ++i) {
    const ibv_wc wc = wait_for_completion();
    EXPECT_EQ(wc.status, wc.wr_id == 7 ? IBV_WC_LOC_PROT_ERR : IBV_WC_REM_OP_ERR);
  }
}

TEST_F(GPUMemoryTest, RangesThatAreNoneAreRefused) {
  EXPECT_EQ(verbs.reg_mr(pd, at(gpu_ + 4096), kBytes, kAllAccess), nullptr);
  EXPECT_EQ(errno, EFAULT) << "across the end of the allocation";
  EXPECT_EQ(verbs.reg_mr(pd, at(gpu_ - 64), 128, kAllAccess), nullptr);
  EXPECT_EQ(errno, EFAULT) << "begins outside";
  EXPECT_EQ(verbs.reg_mr(pd, at(0x10), 128, kAllAccess), nullptr);
  EXPECT_EQ(errno, EFAULT) << "no memory at all";
}

// --- re-registration

TEST_F(GPUMemoryTest, ARegionMovesBetweenHostAndGPU) {
  Pointer other = 0;
  ASSERT_EQ(cuda().mem_alloc(&other, kBytes), 0);
  std::vector<char> plain(kBytes);
  ibv_mr* const mr = register_all(plain.data(), plain.size());
  const auto move = [&](void* to) {
    return verbs.rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, to, kBytes, 0);
  };
  for (const Pointer memory : {gpu_, other}) {
    ASSERT_EQ(move(at(memory)), 0) << errno;
    EXPECT_EQ(mr->addr, at(memory));
    expect_works(mr, memory, memory, kBytes);
  }
  ASSERT_EQ(move(plain.data()), 0);
  EXPECT_EQ(transfer(IBV_WR_RDMA_WRITE, sge_of(host_mr_, 0, 5000),
                     reinterpret_cast<std::uint64_t>(plain.data()), mr->rkey)
                .status,
            IBV_WC_SUCCESS);
  EXPECT_EQ(std::memcmp(plain.data(), host_.data(), 5000), 0);
  EXPECT_EQ(verbs.dereg_mr(mr), 0);
}

TEST_F(GPUMemoryTest, RightsAndDomainOfARegionChange) {
  ibv_mr* const mr = register_all(at(gpu_), kBytes);
  ASSERT_EQ(verbs.rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0,
                           IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE),
            0);
  EXPECT_EQ(transfer(IBV_WR_RDMA_WRITE, sge_of(host_mr_, 0, 100), gpu_, mr->rkey).status,
            IBV_WC_SUCCESS);
  ibv_pd* const second = verbs.alloc_pd(context);
  ASSERT_EQ(verbs.rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, second, nullptr, 0, 0), 0);
  EXPECT_EQ(mr->pd, second);
  ASSERT_EQ(
      verbs.rereg_mr(
          mr, IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_ACCESS | IBV_REREG_MR_CHANGE_TRANSLATION,
          pd, at(gpu_ + 4096), 8192, kAllAccess),
      0);
  EXPECT_EQ(mr->length, 8192u);
  expect_works(mr, gpu_ + 4096, gpu_ + 4096, 8192);
  EXPECT_EQ(transfer(IBV_WR_RDMA_READ, sge_of(host_mr_, 0, 100), gpu_, mr->rkey).status,
            IBV_WC_REM_ACCESS_ERR)
      << "before the new range";
  EXPECT_EQ(verbs.dereg_mr(mr), 0);
  EXPECT_EQ(verbs.dealloc_pd(second), 0);
}

TEST_F(GPUMemoryTest, ReregistrationsThatAreRefusedChangeNothing) {
  ibv_mr* const mr = register_all(at(gpu_), kBytes);
  const auto refused = [&](int flags, void* to, std::size_t length, int access) {
    errno = 0;
    EXPECT_EQ(verbs.rereg_mr(mr, flags, nullptr, to, length, access), IBV_REREG_MR_ERR_INPUT);
    return errno;
  };
  constexpr int kMove = IBV_REREG_MR_CHANGE_TRANSLATION;
  EXPECT_EQ(refused(kMove, at(gpu_ + 4096), kBytes, 0), EFAULT) << "across the end";
  EXPECT_EQ(refused(kMove, at(gpu_ - 64), 128, 0), EFAULT) << "begins outside";
  EXPECT_EQ(refused(kMove, at(0x10), 128, 0), EFAULT) << "no memory at all";
  EXPECT_EQ(refused(kMove, at(gpu_), 0, 0), EINVAL) << "no length";
  EXPECT_EQ(refused(IBV_REREG_MR_CHANGE_ACCESS, nullptr, 0, 1 << 30), EINVAL);
  EXPECT_EQ(refused(0, nullptr, 0, 0), EINVAL);
  expect_works(mr, gpu_, gpu_, kBytes);
}

// The memory before may be freed as soon as the call has returned.
TEST_F(GPUMemoryTest, AReregistrationWaitsForCopies) {
  ibv_mr* const mr = register_all(at(gpu_), kBytes);
  cuda().control("stuck", 1);
  ibv_sge from = sge_of(host_mr_, 0, 5000);
  ibv_send_wr wr = send_wr(1, IBV_WR_RDMA_WRITE, &from);
  wr.wr.rdma = {.remote_addr = gpu_, .rkey = mr->rkey};
  ASSERT_EQ(post(qp_, wr), 0);
  ibv_wc none{};
  for (int i = 0; i < 50; ++i) {  // long enough for the packets to arrive
    EXPECT_EQ(ibv_poll_cq(cq, 1, &none), 0);
    ::usleep(200);
  }
  std::thread later([] {
    ::usleep(20000);
    cuda().control("stuck", 0);
  });
  EXPECT_EQ(verbs.rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, host_.data(), kBytes, 0),
            0);
  EXPECT_EQ(std::memcmp(on_gpu(gpu_, 5000).data(), host_.data(), 5000), 0);
  later.join();
}

TEST_F(GPUMemoryTest, TheCurrentContextStays) {
  void* now = nullptr;
  ibv_mr* const mr = register_all(at(gpu_), kBytes);
  expect_works(mr, gpu_, gpu_, 5000);
  EXPECT_EQ(cuda().ctx_get_current(&now), 0);
  EXPECT_EQ(now, gpu_context_);
  EXPECT_EQ(verbs.dereg_mr(mr), 0);
  EXPECT_EQ(cuda().ctx_get_current(&now), 0);
  EXPECT_EQ(now, gpu_context_);
}

// A QP whose copies wait delays no other QP, and holds no lock.
TEST_F(GPUMemoryTest, CopiesThatWaitHoldUpNoOtherQP) {
  ibv_mr* const mr = register_all(at(gpu_), kBytes);
  ibv_qp* const free = make_qp();
  ibv_qp* const free_peer = make_qp();
  connect(free, free_peer);
  cuda().control("stuck", 1);
  ibv_sge from = sge_of(host_mr_, 0, 5000);
  ibv_send_wr stuck = send_wr(1, IBV_WR_RDMA_WRITE, &from);
  stuck.wr.rdma = {.remote_addr = gpu_, .rkey = mr->rkey};
  ASSERT_EQ(post(qp_, stuck), 0);
  for (std::uint64_t id = 100; id < 120; ++id) {
    ibv_send_wr wr = send_wr(id, IBV_WR_RDMA_WRITE, &from);
    wr.wr.rdma = {.remote_addr = reinterpret_cast<std::uint64_t>(host_.data()) + 100000,
                  .rkey = host_mr_->rkey};
    ASSERT_EQ(post(free, wr), 0);
    const ibv_wc wc = wait_for_completion();
    EXPECT_EQ(wc.wr_id, id);
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  }
  cuda().control("stuck", 0);
  EXPECT_EQ(wait_for_completion().wr_id, 1u);
}

// A program that destroys or resets a QP may use its memory for something else.
TEST_F(GPUMemoryTest, NothingIsWrittenForAQPThatIsReset) {
  ibv_mr* const mr = register_all(at(gpu_), kBytes);
  cuda().control("stuck", 1);
  ibv_sge from = sge_of(host_mr_, 0, 5000);
  ibv_send_wr wr = send_wr(1, IBV_WR_RDMA_WRITE, &from);
  wr.wr.rdma = {.remote_addr = gpu_, .rkey = mr->rkey};
  ASSERT_EQ(post(qp_, wr), 0);
  ibv_wc none{};
  for (int i = 0; i < 50; ++i) {  // long enough for the packets to arrive
    EXPECT_EQ(ibv_poll_cq(cq, 1, &none), 0);
    ::usleep(200);
  }
  std::thread later([] {
    ::usleep(50'000);
    cuda().control("stuck", 0);
  });
  ibv_qp_attr reset{};
  reset.qp_state = IBV_QPS_RESET;
  EXPECT_EQ(verbs.modify_qp(peer_, &reset, IBV_QP_STATE), 0);
  fill_gpu(gpu_, 5000, 'n');
  later.join();
  ::usleep(1000);
  EXPECT_EQ(on_gpu(gpu_, 5000), std::vector<char>(5000, 'n'));
}

TEST_F(GPUMemoryTest, AContextThatDiesEndsItsRegions) {
  ibv_mr* const mr = register_all(at(gpu_), kBytes);
  expect_works(mr, gpu_, gpu_, 100);
  ASSERT_EQ(cuda().ctx_destroy(gpu_context_), 0);
  EXPECT_EQ(transfer(IBV_WR_RDMA_WRITE, sge_of(host_mr_, 0, 5000), gpu_, mr->rkey).status,
            IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(verbs.dereg_mr(mr), 0);
}

TEST_F(GPUMemoryTest, WithoutPinnedMemoryThereIsNoRegion) {
  cuda().control("registrations", 0);
  EXPECT_EQ(verbs.reg_mr(pd, at(gpu_), kBytes, kAllAccess), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  cuda().control("registrations", -1);
  expect_works(register_all(at(gpu_), kBytes), gpu_, gpu_, 100);
}

TEST_F(GPUMemoryTest, AForkedChildHasNoGPU) {
  ibv_mr* const mr = register_all(at(gpu_), kBytes);
  const pid_t child = ::fork();
  if (child == 0)
    ::_exit(verbs.reg_mr(pd, at(gpu_), kBytes, kAllAccess) == nullptr && errno == EFAULT ? 0 : 1);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  expect_works(mr, gpu_, gpu_, 100);
}

// A reset of the device: what was there is gone, and what is allocated afterwards works.
TEST_F(GPUMemoryTest, MemoryOfAContextThatWasResetIsGone) {
  Pointer pool = 0, later = 0;
  ASSERT_EQ(cuda().mem_alloc_async(&pool, kBytes, nullptr), 0);  // of the primary context
  ibv_mr* const mr = register_all(at(pool), kBytes);
  expect_works(mr, pool, pool, 5000);
  cuda().control("kill_context", 1);
  EXPECT_EQ(verbs.reg_mr(pd, at(pool), kBytes, kAllAccess), nullptr);
  EXPECT_EQ(errno, EIO);
  EXPECT_EQ(transfer(IBV_WR_RDMA_WRITE, sge_of(host_mr_, 0, 5000), pool, mr->rkey).status,
            IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(verbs.dereg_mr(mr), 0);
  cuda().control("kill_context", 0);
  ASSERT_EQ(cuda().mem_alloc_async(&later, kBytes, nullptr), 0);
  qp_ = make_qp();
  peer_ = make_qp();
  connect(qp_, peer_);
  expect_works(register_all(at(later), kBytes), later, later, 5000);
}

TEST_F(GPUMemoryTest, DescriptorsThatAreNoneAreRefused) {
  const auto refused = [&](int fd, std::uint64_t offset, std::size_t length, std::uint64_t iova) {
    errno = 0;
    EXPECT_EQ(verbs.reg_dmabuf_mr(pd, offset, length, iova, fd, IBV_ACCESS_LOCAL_WRITE), nullptr);
    return errno;
  };
  // As NCCL asks whether dma-bufs are there: neither EOPNOTSUPP nor EPROTONOSUPPORT.
  EXPECT_EQ(refused(-1, 0, 0, 0), EBADF);
  EXPECT_EQ(refused(1000, 0, kBytes, 0x1000), EBADF);
  int fd = -1;
  ASSERT_EQ(cuda().range_handle(&fd, gpu_, kBytes, 1, 0), 0);
  EXPECT_EQ(refused(fd, 0, 0, gpu_), EINVAL) << "no length";
  EXPECT_EQ(refused(fd, 8, 4096, gpu_), EINVAL) << "another place in the page";
  EXPECT_EQ(refused(fd, 0, 2 * kBytes, gpu_), EFAULT) << "across the end of the allocation";
  ::close(fd);
  cuda().control("no_dmabuf", 1);
  EXPECT_NE(cuda().range_handle(&fd, gpu_, kBytes, 1, 0), 0) << "a driver too old";
  cuda().control("no_dmabuf", 0);
  expect_works(register_all(at(gpu_), kBytes), gpu_, gpu_, 100);
}

}  // namespace
}  // namespace verbena::test
