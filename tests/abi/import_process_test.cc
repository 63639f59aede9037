// Objects of another process: ibv_import_device(3), ibv_import_pd(3) and ibv_import_mr(3) with a
// cmd_fd that came through fork(2) or SCM_RIGHTS.
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "tests/abi/verbs_fixture.h"

namespace verbena::test {
namespace {

constexpr std::size_t kOffered = 32768;
constexpr int kReadOnly = IBV_ACCESS_REMOTE_READ;

// Offer: the values that an exporter sends with its cmd_fd.
struct Offer {
  std::uint32_t pd = 0, other_pd = 0, mr = 0, read_only = 0, null_mr = 0;
  std::uint64_t address = 0, read_only_address = 0;
};

bool send_offer(int socket, const Offer& offer, int fd) {
  iovec data{const_cast<Offer*>(&offer), sizeof offer};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof fd)> control{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof fd);
  std::memcpy(CMSG_DATA(rights), &fd, sizeof fd);
  return sendmsg(socket, &message, 0) == sizeof offer;
}

// The descriptor; -1: none came.
int receive_offer(int socket, Offer& offer) {
  iovec data{&offer, sizeof offer};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  if (recvmsg(socket, &message, 0) != sizeof offer) return -1;
  const cmsghdr* rights = CMSG_FIRSTHDR(&message);
  int fd = -1;
  if (rights != nullptr) std::memcpy(&fd, CMSG_DATA(rights), sizeof fd);
  return fd;
}

// The exporter is a child that does what it is told; the test imports from it. `pd` and `cq` of the
// fixture are then of the imported context.
class ImportProcessTest : public VerbsTest {
 protected:
  void SetUp() override {
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "ThreadSanitizer lets a child of several threads start none";
#endif
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets_.data()), 0);
    child_ = fork();
    if (child_ == 0) export_memory();
    close(sockets_[1]);
    const int fd = receive_offer(sockets_[0], offer_);
    ASSERT_GE(fd, 0);
    setenv("VERBENA_ADDRESS", "127.0.0.1", 1);
    context = verbs.import_device(fd);
    ASSERT_NE(context, nullptr);
    pd = verbs.import_pd(context, offer_.pd);
    ASSERT_NE(pd, nullptr);
    cq = make_cq();
    far_ = import(offer_.mr);
    near_ = register_all(buffer_.data(), buffer_.size());
    qp_ = make_qp();
    peer_ = make_qp();
    connect(qp_, peer_);
  }
  void TearDown() override {
    VerbsTest::TearDown();
    end_exporter();
  }

  [[noreturn]] void export_memory() {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    VerbsTest::SetUp();
    ibv_pd* other = verbs.alloc_pd(context);
    std::vector<char> bytes(kOffered), constant(kOffered, 'c');
    ibv_mr* mr = register_all(bytes.data(), kOffered);
    ibv_mr* read_only = register_all(constant.data(), kOffered, kReadOnly);
    const Offer offer{.pd = pd->handle,
                      .other_pd = other->handle,
                      .mr = mr->handle,
                      .read_only = read_only->handle,
                      .null_mr = ibv_alloc_null_mr(pd)->handle,
                      .address = reinterpret_cast<std::uint64_t>(bytes.data()),
                      .read_only_address = reinterpret_cast<std::uint64_t>(constant.data())};
    if (!send_offer(sockets_[1], offer, context->cmd_fd)) _exit(1);
    for (char order = 0; read(sockets_[1], &order, 1) == 1;) {
      if (order == 'w') std::memset(bytes.data(), 'x', kOffered);
      if (order == 'd' && verbs.dereg_mr(mr) != 0) _exit(2);
      if (order == 'p' && !protect_pages(bytes.data())) _exit(4);
      if (order == 'd') std::memset(bytes.data(), 0, kOffered);
      if (write(sockets_[1], bytes.data(), kOffered) != kOffered) _exit(3);
    }
    _exit(0);
  }
  // Those that lie wholly in the exported region.
  static bool protect_pages(char* exported) {
    constexpr std::uintptr_t kPageSize = 4096;
    char* const first =
        exported + (kPageSize - reinterpret_cast<std::uintptr_t>(exported) % kPageSize);
    return mprotect(first, kOffered - 2 * kPageSize, PROT_READ) == 0;
  }
  void end_exporter() {
    if (child_ > 0) kill(child_, SIGKILL);
    if (child_ > 0) waitpid(child_, nullptr, 0);
    child_ = 0;
  }
  // Returns the content of the exporter's memory after the exporter has carried out the order.
  std::vector<char> order(char what) {
    std::vector<char> bytes(kOffered);
    EXPECT_EQ(write(sockets_[0], &what, 1), 1);
    EXPECT_EQ(recv(sockets_[0], bytes.data(), kOffered, MSG_WAITALL),
              static_cast<ssize_t>(kOffered));
    return bytes;
  }

  ibv_mr* import(std::uint32_t handle) {
    ibv_mr* mr = verbs.import_mr(pd, handle);
    EXPECT_NE(mr, nullptr) << std::strerror(errno);
    return mr;
  }
  ibv_sge far(std::uint64_t offset, std::uint32_t length) const {
    return {.addr = offer_.address + offset, .length = length, .lkey = far_->lkey};
  }
  ibv_wc_status rdma(ibv_wr_opcode opcode, ibv_sge sge, std::uint64_t address, std::uint32_t key) {
    ibv_send_wr wr = send_wr(1, opcode, &sge);
    wr.wr.rdma = {.remote_addr = address, .rkey = key};
    if (post(qp_, wr) != 0) return IBV_WC_GENERAL_ERR;
    return wait_for_completion().status;
  }
  std::uint64_t here(std::size_t offset) const {
    return reinterpret_cast<std::uint64_t>(&buffer_[offset]);
  }

  std::array<int, 2> sockets_{};
  pid_t child_ = 0;
  Offer offer_;
  alignas(8) std::array<char, kOffered> buffer_{};
  ibv_mr *far_ = nullptr, *near_ = nullptr;
  ibv_qp *qp_ = nullptr, *peer_ = nullptr;
};

TEST_F(ImportProcessTest, TheRegionHasItsOwnKeysAndLength) {
  EXPECT_EQ(far_->addr, nullptr);
  EXPECT_EQ(far_->length, kOffered);
  EXPECT_EQ(far_->handle, offer_.mr);
  EXPECT_EQ(far_->lkey, offer_.mr) << "as the exporter has it";
  EXPECT_EQ(far_->rkey, offer_.mr);
}

TEST_F(ImportProcessTest, WritesAndReadsUseTheImportedRegionLocally) {
  order('w');
  EXPECT_EQ(rdma(IBV_WR_RDMA_WRITE, far(0, kOffered), here(0), near_->rkey), IBV_WC_SUCCESS);
  EXPECT_EQ(std::string_view(buffer_.data(), kOffered), std::string(kOffered, 'x'));
  for (std::size_t i = 0; i < kOffered; ++i) buffer_[i] = static_cast<char>(i * 7 / 256 + i);
  EXPECT_EQ(rdma(IBV_WR_RDMA_READ, far(0, kOffered), here(0), near_->rkey), IBV_WC_SUCCESS);
  EXPECT_EQ(order('r'), std::vector<char>(buffer_.begin(), buffer_.end()));
}

TEST_F(ImportProcessTest, SendsAndReceivesUseIt) {
  order('w');
  ibv_sge into = sge_of(near_, 0, 3000);
  ASSERT_EQ(post(peer_, recv_wr(5, &into)), 0);
  std::array<ibv_sge, 2> pieces = {sge_of(near_, 8000, 100), far(10, 2900)};
  std::memset(&buffer_[8000], 'n', 100);
  ibv_send_wr wr = send_wr(1, IBV_WR_SEND, pieces.data());
  wr.num_sge = 2;
  ASSERT_EQ(post(qp_, wr), 0);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(wait_for_completion().status, IBV_WC_SUCCESS);
  EXPECT_EQ(std::string_view(buffer_.data(), 3001),
            std::string(100, 'n') + std::string(2900, 'x') + '\0');

  std::array<ibv_sge, 2> out = {far(1000, 50), sge_of(near_, 20000, 50)};
  ibv_recv_wr receive = recv_wr(6, out.data());
  receive.num_sge = 2;
  ASSERT_EQ(post(peer_, receive), 0);
  std::memset(&buffer_[8000], 'm', 100);
  ibv_sge from = sge_of(near_, 8000, 100);
  ASSERT_EQ(post(qp_, send_wr(1, IBV_WR_SEND, &from)), 0);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(wait_for_completion().status, IBV_WC_SUCCESS);
  EXPECT_EQ(std::string_view(&order('r')[999], 52), 'x' + std::string(50, 'm') + 'x');
  EXPECT_EQ(std::string_view(&buffer_[19999], 52), '\0' + std::string(50, 'm') + '\0');
}

TEST_F(ImportProcessTest, PeersReachItByItsRKey) {
  order('w');
  EXPECT_EQ(rdma(IBV_WR_RDMA_READ, sge_of(near_, 0, kOffered), offer_.address, far_->rkey),
            IBV_WC_SUCCESS);
  EXPECT_EQ(std::string_view(buffer_.data(), kOffered), std::string(kOffered, 'x'));
  for (std::size_t i = 0; i < kOffered; ++i) buffer_[i] = static_cast<char>(i * 3 / 256 + i);
  EXPECT_EQ(rdma(IBV_WR_RDMA_WRITE, sge_of(near_, 0, kOffered), offer_.address, far_->rkey),
            IBV_WC_SUCCESS);
  EXPECT_EQ(order('r'), std::vector<char>(buffer_.begin(), buffer_.end()));
}

TEST_F(ImportProcessTest, OfItsRightsOnlyAtomicsAreMissing) {
  ibv_mr* constant = import(offer_.read_only);
  ibv_sge there{.addr = offer_.read_only_address, .length = 8, .lkey = constant->lkey};
  EXPECT_EQ(rdma(IBV_WR_RDMA_WRITE, there, here(0), near_->rkey), IBV_WC_SUCCESS);
  EXPECT_EQ(buffer_[7], 'c');
  EXPECT_EQ(rdma(IBV_WR_RDMA_READ, there, here(0), near_->rkey), IBV_WC_LOC_PROT_ERR);
  qp_ = make_qp();
  peer_ = make_qp();
  connect(qp_, peer_);
  ibv_sge sge = sge_of(near_, 0, 8);
  ibv_send_wr wr = send_wr(1, IBV_WR_ATOMIC_FETCH_AND_ADD, &sge);
  wr.wr.atomic = {.remote_addr = offer_.address, .compare_add = 1, .swap = 0, .rkey = far_->rkey};
  ASSERT_EQ(post(qp_, wr), 0);
  ibv_wc wc = wait_for_completion();
  while (wc.status == IBV_WC_WR_FLUSH_ERR) wc = wait_for_completion();
  EXPECT_EQ(wc.status, IBV_WC_REM_ACCESS_ERR);
}

TEST_F(ImportProcessTest, TheProtectionOfItsPagesHolds) {
  order('w');
  EXPECT_EQ(order('p'), std::vector<char>(kOffered, 'x'));
  EXPECT_EQ(rdma(IBV_WR_RDMA_WRITE, far(16384, 8), here(0), near_->rkey), IBV_WC_SUCCESS);
  EXPECT_EQ(buffer_[7], 'x') << "they can be read";
  EXPECT_EQ(rdma(IBV_WR_RDMA_READ, far(16384, 8), here(8), near_->rkey), IBV_WC_LOC_PROT_ERR);
  for (const std::uint32_t length : {8u, 4096u}) {
    qp_ = make_qp();
    peer_ = make_qp();
    connect(qp_, peer_);
    EXPECT_EQ(rdma(IBV_WR_RDMA_WRITE, sge_of(near_, 0, length), offer_.address + 16384, far_->rkey),
              IBV_WC_REM_ACCESS_ERR);
  }
  EXPECT_EQ(order('r'), std::vector<char>(kOffered, 'x'));
}

TEST_F(ImportProcessTest, ItEndsWhenItsOwnerDeregistersIt) {
  EXPECT_EQ(rdma(IBV_WR_RDMA_WRITE, far(0, 100), here(0), near_->rkey), IBV_WC_SUCCESS);
  order('d');
  EXPECT_EQ(rdma(IBV_WR_RDMA_READ, far(0, 100), here(0), near_->rkey), IBV_WC_LOC_PROT_ERR);
  EXPECT_EQ(order('r'), std::vector<char>(kOffered)) << "nothing was written";
  EXPECT_EQ(verbs.import_mr(pd, offer_.mr)->lkey, far_->lkey) << "this process knows it still";
  EXPECT_EQ(verbs.dereg_mr(far_), 0);
}

TEST_F(ImportProcessTest, ItEndsWithItsProcess) {
  end_exporter();
  EXPECT_EQ(rdma(IBV_WR_RDMA_WRITE, sge_of(near_, 0, 8), offer_.address, far_->rkey),
            IBV_WC_REM_ACCESS_ERR);
  qp_ = make_qp();
  peer_ = make_qp();
  connect(qp_, peer_);
  ibv_sge sge = far(0, 8);
  ibv_send_wr wr = send_wr(7, IBV_WR_SEND, &sge);
  ASSERT_EQ(post(qp_, wr), 0);
  ibv_wc wc = wait_for_completion();
  while (wc.wr_id != 7) wc = wait_for_completion();
  EXPECT_EQ(wc.status, IBV_WC_LOC_PROT_ERR);
  EXPECT_EQ(verbs.import_pd(context, offer_.other_pd), nullptr);
  EXPECT_EQ(errno, ESRCH);
}

TEST_F(ImportProcessTest, UnimportingLeavesTheOriginalsAlone) {
  ibv_pd* same = verbs.import_pd(context, offer_.pd);
  ASSERT_NE(same, nullptr);
  EXPECT_EQ(verbs.dealloc_pd(same), EBUSY) << "queue pairs of this process are in it";
  EXPECT_EQ(verbs.destroy_qp(qp_), 0);
  EXPECT_EQ(verbs.destroy_qp(peer_), 0);
  EXPECT_EQ(verbs.dereg_mr(near_), 0);
  verbs.unimport_mr(far_);
  verbs.unimport_pd(same);
  EXPECT_EQ(verbs.dealloc_pd(pd), 0);
  pd = verbs.import_pd(context, offer_.pd);
  ASSERT_NE(pd, nullptr) << "it is there as before";
  EXPECT_NE(import(offer_.mr), nullptr);
}

TEST_F(ImportProcessTest, WhatIsNotThereIsRefused) {
  EXPECT_EQ(verbs.import_pd(context, offer_.pd + 1000), nullptr);
  EXPECT_EQ(errno, ENOENT);
  EXPECT_EQ(verbs.import_pd(context, 0x7fffffff), nullptr);
  EXPECT_EQ(errno, ENOENT);
  for (const std::uint32_t handle : {offer_.mr ^ 1, 0u, near_->handle, offer_.null_mr}) {
    EXPECT_EQ(verbs.import_mr(pd, handle), nullptr);
    EXPECT_EQ(errno, ENOENT);
  }
  EXPECT_EQ(verbs.import_mr(verbs.import_pd(context, offer_.other_pd), offer_.read_only), nullptr);
  EXPECT_EQ(errno, EINVAL) << "of another domain";
  EXPECT_EQ(verbs.import_mr(verbs.alloc_pd(context), offer_.read_only), nullptr);
  EXPECT_EQ(errno, EINVAL) << "of another domain";
  EXPECT_EQ(verbs.rereg_mr(far_, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, 0),
            IBV_REREG_MR_ERR_INPUT);
}

// --- the other way round: a child of fork(2) imports from its parent

using ImportInChildTest = VerbsTest;

// Returns 0, or the number of the first step that failed.
int use_memory_of_parent(const VerbsLibrary& verbs, ibv_context* of_parent, std::uint32_t pd_handle,
                         std::uint32_t mr_handle, char* memory) {
  ibv_context* context = verbs.import_device(dup(of_parent->cmd_fd));
  if (context == nullptr) return 1;
  ibv_pd* pd = verbs.import_pd(context, pd_handle);
  if (pd == nullptr) return 2;
  ibv_mr* mr = verbs.import_mr(pd, mr_handle);
  if (mr == nullptr) return 3;
  ibv_cq* cq = verbs.create_cq(context, 4, nullptr, nullptr, 0);
  ibv_srq_init_attr attr{};
  attr.attr = {.max_wr = 1, .max_sge = 1, .srq_limit = 0};
  if (cq == nullptr || verbs.create_srq(pd, &attr) == nullptr) return 4;
  memory[0] = 'c';  // its own copy
  verbs.unimport_mr(mr);
  if (verbs.close_device(context) != 0) return 5;
  return verbs.close_device(of_parent) == 0 ? 0 : 6;
}

TEST_F(ImportInChildTest, TheParentsObjectsStayThere) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer lets a child of several threads start none";
#endif
  std::array<char, 64> memory{};
  ibv_mr* mr = register_all(memory.data(), memory.size());
  for (int i = 0; i < 2; ++i) {  // the second finds what the first closed
    const pid_t child = fork();
    if (child == 0)
      _exit(use_memory_of_parent(verbs, context, pd->handle, mr->handle, memory.data()));
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(WEXITSTATUS(status), 0);
    EXPECT_TRUE(WIFEXITED(status));
  }
  EXPECT_EQ(memory[0], 0);
  EXPECT_EQ(verbs.dereg_mr(mr), 0);
  EXPECT_EQ(verbs.dealloc_pd(pd), 0);
}

}  // namespace
}  // namespace verbena::test
