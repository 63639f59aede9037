// <verbena/verbena.h>: faults set from inside a program, and what its verbs then say.
#include <dlfcn.h>

#include <cerrno>
#include <map>
#include <string>

#include "include/verbena/verbena.h"
#include "tests/abi/verbs_fixture.h"

namespace verbena::test {
namespace {

class FaultsTest : public VerbsTest {
 protected:
  void SetUp() override {
    VerbsTest::SetUp();
    load(set_faults_, "verbena_set_faults");
    load(fault_error_, "verbena_fault_error");
    load(count_faults_, "verbena_count_faults");
    mr_ = register_all(memory_.data(), memory_.size());
    reconnect();
  }
  void TearDown() override {
    EXPECT_EQ(set_faults_(context, nullptr, 0), 0);
    VerbsTest::TearDown();
  }

  void reconnect() {
    qp_ = make_qp();
    peer_ = make_qp();
    connect(qp_, peer_);
  }
  ibv_wc write() {
    ibv_sge sge = sge_of(mr_, 0, 64);
    ibv_send_wr wr = send_wr(1, IBV_WR_RDMA_WRITE, &sge);
    wr.wr.rdma.remote_addr = reinterpret_cast<std::uint64_t>(memory_.data()) + kSize / 2;
    wr.wr.rdma.rkey = mr_->rkey;
    EXPECT_EQ(post(qp_, wr), 0);
    return wait_for_completion();
  }
  verbena_fault_count count(unsigned rule = 0) const {
    verbena_fault_count counted{};
    EXPECT_EQ(count_faults_(context, rule, &counted), 0);
    return counted;
  }
  // How many of the first so many packets of 100 WRITEs, one after the other, were lost. A busy
  // machine has some sent once more, so that not each run stops at the same numbers.
  std::map<std::uint64_t, std::uint64_t> lost(std::uint64_t seed) {
    EXPECT_EQ(set_faults_(context, "loss 20% dir=tx opcode=write", seed), 0);
    std::map<std::uint64_t, std::uint64_t> lost;
    for (int i = 0; i < 100; ++i) {
      EXPECT_EQ(write().status, IBV_WC_SUCCESS);
      const verbena_fault_count so_far = count();
      lost[so_far.selected] = so_far.applied;
    }
    return lost;
  }

  static constexpr std::size_t kSize = 4096;
  std::array<char, kSize> memory_{};
  ibv_mr* mr_ = nullptr;
  ibv_qp *qp_ = nullptr, *peer_ = nullptr;
  decltype(&verbena_set_faults) set_faults_ = nullptr;
  decltype(&verbena_fault_error) fault_error_ = nullptr;
  decltype(&verbena_count_faults) count_faults_ = nullptr;

 private:
  template <typename Function>
  static void load(Function& to, const char* name) {
    void* const library = dlopen(VERBENA_LIBRARY_DIR "/libibverbs.so.1", RTLD_NOW | RTLD_NOLOAD);
    ASSERT_NE(library, nullptr);
    to = reinterpret_cast<Function>(dlvsym(library, name, "VERBENA_1.0"));
    ASSERT_NE(to, nullptr) << name;
  }
};

TEST_F(FaultsTest, WrongRulesAreRefusedAndExplained) {
  EXPECT_EQ(set_faults_(context, "los 1%", 1), EINVAL);
  EXPECT_NE(std::string(fault_error_()).find("unknown fault 'los'"), std::string::npos);
  EXPECT_EQ(set_faults_(context, "loss nth=1", 1), 0);
  EXPECT_STREQ(fault_error_(), "");
}

TEST_F(FaultsTest, RulesCountAndEnd) {
  ASSERT_EQ(set_faults_(context, "delay by=1us opcode=write; loss opcode=write nth=2", 1), 0);
  EXPECT_EQ(write().status, IBV_WC_SUCCESS);
  EXPECT_EQ(write().status, IBV_WC_SUCCESS);  // sent again
  EXPECT_GE(count(0).applied, 3u);
  EXPECT_EQ(count(1).applied, 1u);
  verbena_fault_count none{};
  EXPECT_EQ(count_faults_(context, 2, &none), ENOENT);
  ASSERT_EQ(set_faults_(context, "", 1), 0);
  EXPECT_EQ(count_faults_(context, 0, &none), ENOENT);
  EXPECT_EQ(write().status, IBV_WC_SUCCESS);
}

TEST_F(FaultsTest, SameSeedSameFaults) {
  const std::map<std::uint64_t, std::uint64_t> first = lost(7);
  reconnect();
  std::size_t compared = 0;
  for (const auto& [packets, losses] : lost(7))
    if (const auto then = first.find(packets); then != first.end()) {
      EXPECT_EQ(losses, then->second) << packets;
      ++compared;
    }
  EXPECT_GT(compared, 20u);
  EXPECT_GT(first.rbegin()->second, 5u);
}

TEST_F(FaultsTest, NAKsComeWithTheirStatus) {
  ASSERT_EQ(set_faults_(context, "nak code=remote-access opcode=write", 1), 0);
  EXPECT_EQ(write().status, IBV_WC_REM_ACCESS_ERR);
}

TEST_F(FaultsTest, ABrokenQPTellsByAnEvent) {
  ASSERT_EQ(set_faults_(context, "qp-error nth=1", 1), 0);
  EXPECT_EQ(write().status, IBV_WC_WR_FLUSH_ERR);
  ibv_async_event event{};
  ASSERT_EQ(verbs.get_async_event(context, &event), 0);
  EXPECT_EQ(event.event_type, IBV_EVENT_QP_FATAL);
  verbs.ack_async_event(&event);
}

TEST_F(FaultsTest, AnOverrunCQTellsByAnEvent) {
  ASSERT_EQ(set_faults_(context, "cq-overrun nth=1 dir=tx", 1), 0);
  ibv_sge sge = sge_of(mr_, 0, 64);
  ibv_send_wr wr = send_wr(1, IBV_WR_RDMA_WRITE, &sge);
  wr.wr.rdma.remote_addr = reinterpret_cast<std::uint64_t>(memory_.data());
  wr.wr.rdma.rkey = mr_->rkey;
  ASSERT_EQ(post(qp_, wr), 0);
  ibv_async_event event{};
  ASSERT_EQ(verbs.get_async_event(context, &event), 0);
  EXPECT_EQ(event.event_type, IBV_EVENT_CQ_ERR);
  verbs.ack_async_event(&event);
  do {  // the QPs that used it follow
    ASSERT_EQ(verbs.get_async_event(context, &event), 0);
    verbs.ack_async_event(&event);
  } while (event.event_type != IBV_EVENT_QP_FATAL || event.element.qp != peer_);
}

TEST_F(FaultsTest, RegistrationIsRefused) {
  ASSERT_EQ(set_faults_(context, "registration-error nth=2", 1), 0);
  ibv_mr* const first = verbs.reg_mr(pd, memory_.data(), kSize, IBV_ACCESS_LOCAL_WRITE);
  ASSERT_NE(first, nullptr);
  errno = 0;
  EXPECT_EQ(verbs.reg_mr(pd, memory_.data(), kSize, IBV_ACCESS_LOCAL_WRITE), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_EQ(verbs.dereg_mr(first), 0);
}

}  // namespace
}  // namespace verbena::test
