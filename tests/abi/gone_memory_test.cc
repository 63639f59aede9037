// Memory that was registered and is not there any more, or never was: an operation on it completes
// in error, at the side and with the status that the specification has for it. No process ends.
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <tuple>
#include <utility>

#include "tests/abi/verbs_fixture.h"

namespace verbena::test {
namespace {

constexpr std::size_t kPage = 4096;

// Where peers have the very pages (VERBENA_SHARE=on), they notice within 10 ms.
bool peers_have_the_pages() {
  const char* const share = std::getenv("VERBENA_SHARE");
  return share != nullptr && std::string(share) == "on";
}

class GoneMemoryTest : public VerbsTest {
 protected:
  void SetUp() override {
    VerbsTest::SetUp();
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "ThreadSanitizer's memcpy holds signals back: a fault in it never ends";
#endif
    here_ = register_all(buffer_.data(), buffer_.size());
    pages_ = static_cast<char*>(
        mmap(nullptr, 3 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(pages_, MAP_FAILED);
    gone_ = register_all(pages_, 3 * kPage);
    peer_cq_ = make_cq();
    datagrams_ = make_pair(IBV_QPT_UD);
    std::tie(qp_, peer_) = make_pair(IBV_QPT_RC);
    make_hole(pages_ + kPage);  // last: memory that is mapped after it may come to lie there
  }
  void TearDown() override {
    munmap(pages_, kPage);
    munmap(pages_ + 2 * kPage, kPage);
    VerbsTest::TearDown();
  }

  // Where peers map pages, or a sanitizer does, one of them might come to lie in what is only
  // unmapped.
  static void make_hole(char* page) {
    ASSERT_EQ(munmap(page, kPage), 0);
    if (!others_map_pages()) return;
    ASSERT_EQ(mmap(page, kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), page);
    if (peers_have_the_pages()) usleep(20'000);
  }
  static bool others_map_pages() {
#ifdef __SANITIZE_ADDRESS__
    return true;
#else
    return peers_have_the_pages();
#endif
  }
  std::pair<ibv_qp*, ibv_qp*> make_pair(ibv_qp_type type) {
    ibv_qp* const qp = make_qp(type);
    ibv_qp_init_attr attr = qp_attributes(type);
    attr.send_cq = attr.recv_cq = peer_cq_;
    ibv_qp* const peer = verbs.create_qp(pd, &attr);
    EXPECT_NE(peer, nullptr);
    return {qp, peer};
  }
  std::uint64_t hole() const { return reinterpret_cast<std::uint64_t>(pages_) + kPage; }
  ibv_sge hole_sge(std::uint32_t length = 64) const {
    return {.addr = hole(), .length = length, .lkey = gone_->lkey};
  }

  // The status of an operation on the hole at the peer.
  ibv_wc_status remote(ibv_wr_opcode opcode, std::uint32_t length) {
    connect(qp_, peer_);
    ibv_sge sge = sge_of(here_, 0, length);
    ibv_send_wr wr = send_wr(1, opcode, &sge);
    if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
      wr.wr.atomic = {.remote_addr = hole(), .compare_add = 1, .swap = 0, .rkey = gone_->rkey};
    else
      wr.wr.rdma = {.remote_addr = hole(), .rkey = gone_->rkey};
    EXPECT_EQ(post(qp_, wr), 0);
    return wait_for_completion().status;
  }
  void expect_event(ibv_event_type type, const ibv_qp* qp) {
    ibv_async_event event{};
    ASSERT_EQ(verbs.get_async_event(context, &event), 0);
    EXPECT_EQ(event.event_type, type);
    EXPECT_EQ(event.element.qp, qp);
    verbs.ack_async_event(&event);
  }

  alignas(8) std::array<char, 2 * kPage> buffer_{};
  char* pages_ = nullptr;
  ibv_mr *here_ = nullptr, *gone_ = nullptr;
  ibv_cq* peer_cq_ = nullptr;
  ibv_qp *qp_ = nullptr, *peer_ = nullptr;
  std::pair<ibv_qp*, ibv_qp*> datagrams_;  // of UD
};

TEST_F(GoneMemoryTest, ARemoteWriteIsRefused) {
  EXPECT_EQ(remote(IBV_WR_RDMA_WRITE, 64), IBV_WC_REM_ACCESS_ERR);
  expect_event(IBV_EVENT_QP_ACCESS_ERR, peer_);
}

TEST_F(GoneMemoryTest, ARemoteReadIsRefused) {
  EXPECT_EQ(remote(IBV_WR_RDMA_READ, 2 * kPage), IBV_WC_REM_ACCESS_ERR);
  expect_event(IBV_EVENT_QP_ACCESS_ERR, peer_);
}

TEST_F(GoneMemoryTest, ARemoteAtomicIsRefused) {
  EXPECT_EQ(remote(IBV_WR_ATOMIC_FETCH_AND_ADD, 8), IBV_WC_REM_ACCESS_ERR);
  expect_event(IBV_EVENT_QP_ACCESS_ERR, peer_);
}

TEST_F(GoneMemoryTest, ASendFromItIsALocalError) {
  connect(qp_, peer_);
  ibv_sge sge = hole_sge(2048);
  EXPECT_EQ(post(qp_, send_wr(1, IBV_WR_SEND, &sge)), 0);
  EXPECT_EQ(wait_for_completion().status, IBV_WC_LOC_PROT_ERR);
}

// The program's thread would read it: the post is refused, and the QP goes on.
TEST_F(GoneMemoryTest, InlineDataFromItIsRefusedAtThePost) {
  connect(qp_, peer_);
  ibv_sge sge = hole_sge(16);
  ibv_send_wr wr = send_wr(1, IBV_WR_RDMA_WRITE, &sge);
  wr.send_flags |= IBV_SEND_INLINE;
  wr.wr.rdma = {.remote_addr = reinterpret_cast<std::uint64_t>(buffer_.data()),
                .rkey = here_->rkey};
  EXPECT_EQ(post(qp_, wr), EFAULT);
  sge = sge_of(here_, 64, 16);
  EXPECT_EQ(post(qp_, wr), 0);
  EXPECT_EQ(wait_for_completion().status, IBV_WC_SUCCESS);
}

TEST_F(GoneMemoryTest, AReadIntoItIsALocalError) {
  connect(qp_, peer_);
  ibv_sge sge = hole_sge();
  ibv_send_wr wr = send_wr(1, IBV_WR_RDMA_READ, &sge);
  wr.wr.rdma = {.remote_addr = reinterpret_cast<std::uint64_t>(buffer_.data()),
                .rkey = here_->rkey};
  EXPECT_EQ(post(qp_, wr), 0);
  EXPECT_EQ(wait_for_completion().status, IBV_WC_LOC_PROT_ERR);
}

TEST_F(GoneMemoryTest, AReceiveIntoItFailsBothSides) {
  connect(qp_, peer_);
  ibv_sge sge = hole_sge(), text = sge_of(here_, 0, 64);
  ASSERT_EQ(post(peer_, recv_wr(7, &sge)), 0);
  ASSERT_EQ(post(qp_, send_wr(1, IBV_WR_SEND, &text)), 0);
  EXPECT_EQ(wait_for_completion().status, IBV_WC_REM_OP_ERR);
  const ibv_wc wc = wait_for_completion(peer_cq_);
  EXPECT_EQ(wc.wr_id, 7u);
  EXPECT_EQ(wc.status, IBV_WC_LOC_PROT_ERR);
}

TEST_F(GoneMemoryTest, AReceiveOfADatagramIntoItFails) {
  std::tie(qp_, peer_) = datagrams_;
  // The path of datagrams maps memory, which would come to lie in what is only unmapped.
  void* const kept = mmap(pages_ + kPage, kPage, PROT_NONE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  if (kept == MAP_FAILED && !peers_have_the_pages()) GTEST_SKIP() << "the hole is taken already";
  ready_ud(qp_);
  ready_ud(peer_);
  ibv_ah_attr route = loopback_route();
  ibv_ah* ah = verbs.create_ah(pd, &route);
  ibv_sge sge = hole_sge(256), text = sge_of(here_, 0, 64);
  ASSERT_EQ(post(peer_, recv_wr(7, &sge)), 0);
  ibv_send_wr wr = send_wr(1, IBV_WR_SEND, &text);
  wr.wr.ud = {.ah = ah, .remote_qpn = peer_->qp_num, .remote_qkey = kQKey};
  ASSERT_EQ(post(qp_, wr), 0);
  EXPECT_EQ(wait_for_completion().status, IBV_WC_SUCCESS);
  EXPECT_EQ(wait_for_completion(peer_cq_).status, IBV_WC_LOC_PROT_ERR);
}

TEST_F(GoneMemoryTest, HolesOfAnImplicitRegionAreRefusedAndTheRestWorks) {
  ibv_mr* all = verbs.reg_mr(pd, nullptr, SIZE_MAX, kAllAccess | IBV_ACCESS_ON_DEMAND);
  ASSERT_NE(all, nullptr);
  connect(qp_, peer_);
  ibv_sge sge{
      .addr = reinterpret_cast<std::uint64_t>(buffer_.data()), .length = 64, .lkey = all->lkey};
  ibv_send_wr wr = send_wr(1, IBV_WR_RDMA_WRITE, &sge);
  wr.wr.rdma = {.remote_addr = hole() + kPage, .rkey = all->rkey};
  buffer_.fill('x');
  ASSERT_EQ(post(qp_, wr), 0);
  EXPECT_EQ(wait_for_completion().status, IBV_WC_SUCCESS);
  EXPECT_EQ(pages_[2 * kPage + 63], 'x');
  wr.wr.rdma.remote_addr = hole();
  ASSERT_EQ(post(qp_, wr), 0);
  EXPECT_EQ(wait_for_completion().status, IBV_WC_REM_ACCESS_ERR);
}

TEST_F(GoneMemoryTest, FaultsOfTheProgramStayItsOwn) {
  EXPECT_DEATH((void)*const_cast<volatile char*>(pages_ + kPage), "");  // a signal's, or ASan's
}

}  // namespace
}  // namespace verbena::test
