// Objects that several contexts of a process share: ibv_import_device(3) and the others; and
// children of fork(2). Those of other processes: import_process_test.cc.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <functional>

#include "tests/abi/verbs_fixture.h"

namespace verbena::test {
namespace {

// Runs `work` in a child of fork; its exit status: 0, or the number of the first step that failed.
int in_child(const std::function<int()>& work) {
  const pid_t child = fork();
  if (child == 0) _exit(work());
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

class ImportTest : public VerbsTest {
 protected:
  void SetUp() override {
    VerbsTest::SetUp();
    mr_ = register_all(buffer_.data(), buffer_.size());
    imported_ = verbs.import_device(dup(context->cmd_fd));
    ASSERT_NE(imported_, nullptr);
  }
  void TearDown() override {
    EXPECT_EQ(imported_ == nullptr ? 0 : verbs.close_device(imported_), 0);
    VerbsTest::TearDown();
  }

  alignas(8) std::array<char, 4096> buffer_{};
  ibv_mr* mr_ = nullptr;
  ibv_context* imported_ = nullptr;
};

TEST_F(ImportTest, AnImportedDeviceIsTheSame) {
  EXPECT_STREQ(imported_->device->name, context->device->name);
  EXPECT_NE(imported_->async_fd, context->async_fd);
  ibv_gid a{}, b{};
  ASSERT_EQ(verbs.query_gid(context, 1, kGIDIndex, &a), 0);
  ASSERT_EQ(verbs.query_gid(imported_, 1, kGIDIndex, &b), 0);
  EXPECT_EQ(std::memcmp(&a, &b, sizeof a), 0);
}

TEST_F(ImportTest, WhatIsNoCommandFileIsInvalid) {
  EXPECT_EQ(verbs.import_device(-1), nullptr);
  const int other = open("/dev/null", O_RDONLY);
  EXPECT_EQ(verbs.import_device(other), nullptr);
  EXPECT_EQ(errno, EINVAL);
  close(other);
}

TEST_F(ImportTest, RegionsAndQPsOfAnImportedDomainMeet) {
  ibv_pd* same = verbs.import_pd(imported_, pd->handle);
  ASSERT_NE(same, nullptr);
  ibv_mr* mr = verbs.import_mr(same, mr_->handle);
  ASSERT_NE(mr, nullptr);
  EXPECT_EQ(mr->lkey, mr_->lkey);
  EXPECT_EQ(mr->rkey, mr_->rkey);
  EXPECT_EQ(mr->addr, nullptr);
  ibv_cq* other_cq = verbs.create_cq(imported_, 16, nullptr, nullptr, 0);
  ibv_qp_init_attr attr = qp_attributes(IBV_QPT_RC);
  attr.send_cq = attr.recv_cq = other_cq;
  ibv_qp *qp = verbs.create_qp(same, &attr), *peer = make_qp();
  ASSERT_NE(qp, nullptr);
  connect(qp, peer);
  std::memcpy(buffer_.data(), "shared", 6);
  ibv_sge sge = sge_of(mr_, 0, 6);
  sge.lkey = mr->lkey;
  ibv_send_wr wr = send_wr(1, IBV_WR_RDMA_WRITE, &sge);
  wr.wr.rdma = {.remote_addr = reinterpret_cast<std::uint64_t>(&buffer_[100]), .rkey = mr_->rkey};
  ASSERT_EQ(post(qp, wr), 0);
  EXPECT_EQ(wait_for_completion(other_cq).status, IBV_WC_SUCCESS);
  EXPECT_EQ(std::memcmp(&buffer_[100], "shared", 6), 0);

  EXPECT_EQ(verbs.destroy_qp(qp), 0);
  verbs.unimport_mr(mr);
  verbs.unimport_pd(same);
  ASSERT_EQ(verbs.destroy_qp(peer), 0);
  EXPECT_EQ(verbs.dereg_mr(mr_), 0) << "unimporting leaves the region to its owner";
  EXPECT_EQ(verbs.dealloc_pd(pd), 0);
}

TEST_F(ImportTest, AnyOfTheSharersMayDestroy) {
  const std::uint32_t handle = pd->handle;
  ibv_pd* same = verbs.import_pd(imported_, pd->handle);
  ibv_mr* mr = verbs.import_mr(same, mr_->handle);
  ASSERT_NE(mr, nullptr);
  EXPECT_EQ(verbs.dereg_mr(mr), 0);
  verbs.unimport_mr(mr_);
  EXPECT_EQ(verbs.dealloc_pd(same), 0);
  verbs.unimport_pd(pd);
  EXPECT_EQ(verbs.import_pd(imported_, handle), nullptr);
  EXPECT_EQ(errno, ENOENT);
}

TEST_F(ImportTest, WhatIsSharedOutlivesTheContextThatMadeIt) {
  ibv_context* first = verbs.import_device(dup(context->cmd_fd));
  ibv_pd* made = verbs.alloc_pd(first);
  ibv_pd* same = verbs.import_pd(imported_, made->handle);
  ASSERT_NE(same, nullptr);
  ibv_mr* mr = verbs.reg_mr(same, buffer_.data(), 64, kAllAccess);
  ASSERT_NE(mr, nullptr);
  EXPECT_EQ(verbs.close_device(first), 0);
  EXPECT_NE(verbs.reg_mr(same, buffer_.data(), 64, kAllAccess), nullptr);
  EXPECT_EQ(verbs.dealloc_pd(same), EBUSY);
}

TEST_F(ImportTest, DeviceMemoryIsShared) {
  ibv_alloc_dm_attr attr{.length = 64, .log_align_req = 0, .comp_mask = 0};
  ibv_dm* dm = ibv_alloc_dm(context, &attr);
  ibv_dm* same = verbs.import_dm(imported_, dm->handle);
  ASSERT_NE(same, nullptr);
  EXPECT_EQ(ibv_memcpy_to_dm(dm, 8, "here\0\0\0", 8), 0);
  char text[8] = {};
  EXPECT_EQ(ibv_memcpy_from_dm(text, same, 8, 8), 0);
  EXPECT_STREQ(text, "here");
  EXPECT_EQ(ibv_free_dm(dm), 0);
  EXPECT_EQ(ibv_memcpy_from_dm(text, same, 8, 8), 0);
  verbs.unimport_dm(same);
}

// --- fork

using ForkTest = ImportTest;

TEST_F(ForkTest, TheParentGoesOnAfterAChildHasEnded) {
  ibv_qp *qp = make_qp(), *peer = make_qp();
  connect(qp, peer);
  const auto write_once = [&](char mark) {
    buffer_[0] = mark;
    ibv_sge sge = sge_of(mr_, 0, 1);
    ibv_send_wr wr = send_wr(1, IBV_WR_RDMA_WRITE, &sge);
    wr.wr.rdma = {.remote_addr = reinterpret_cast<std::uint64_t>(&buffer_[99]), .rkey = mr_->rkey};
    EXPECT_EQ(post(qp, wr), 0);
    EXPECT_EQ(wait_for_completion().status, IBV_WC_SUCCESS);
    EXPECT_EQ(buffer_[99], mark);
  };
  EXPECT_EQ(verbs.fork_init(), 0);
  write_once('a');
  EXPECT_EQ(in_child([&] {
              buffer_.fill('!');  // its own copy
              return 0;
            }),
            0);
  write_once('b');
  EXPECT_EQ(in_child([&] { return verbs.close_device(context); }), 0)
      << "closing what it inherited hurts nobody";
  write_once('c');
}

TEST_F(ForkTest, AChildTalksToItsParentByADeviceOfItsOwn) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer lets a child of several threads start none";
#endif
  int to_child[2], to_parent[2];
  ASSERT_EQ(pipe(to_child), 0);
  ASSERT_EQ(pipe(to_parent), 0);
  ibv_qp* qp = make_qp();
  ASSERT_EQ(to_init(qp), 0);
  const pid_t child = fork();
  if (child == 0) {
    context = nullptr;
    VerbsTest::SetUp();  // opens the device anew
    std::array<char, 64> text{};
    std::memcpy(text.data(), "from the child", 15);
    ibv_mr* mr = register_all(text.data(), text.size());
    ibv_qp* mine = make_qp();
    std::uint32_t number = 0;
    if (write(to_parent[1], &mine->qp_num, 4) != 4 || read(to_child[0], &number, 4) != 4) _exit(1);
    if (to_init(mine) != 0 || to_rtr(mine, number) != 0 || to_rts(mine) != 0) _exit(2);
    ibv_sge sge = sge_of(mr, 0, 15);
    if (post(mine, send_wr(1, IBV_WR_SEND, &sge)) != 0) _exit(3);
    _exit(wait_for_completion().status == IBV_WC_SUCCESS ? 0 : 4);
  }
  close(to_parent[1]);  // a child that dies is an end of file
  std::uint32_t number = 0;
  ASSERT_EQ(read(to_parent[0], &number, 4), 4);
  ASSERT_EQ(to_rtr(qp, number), 0);
  ASSERT_EQ(to_rts(qp), 0);
  ibv_sge sge = sge_of(mr_, 0, 64);
  ASSERT_EQ(post(qp, recv_wr(9, &sge)), 0);
  ASSERT_EQ(write(to_child[1], &qp->qp_num, 4), 4);
  const ibv_wc wc = wait_for_completion();
  EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  EXPECT_EQ(wc.byte_len, 15u);
  EXPECT_STREQ(buffer_.data(), "from the child");
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  for (const int fd : {to_child[0], to_child[1], to_parent[0], to_parent[1]}) close(fd);
}

}  // namespace
}  // namespace verbena::test
