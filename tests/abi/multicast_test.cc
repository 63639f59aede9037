// Multicast groups. ibv_attach_mcast(3).
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "tests/abi/verbs_fixture.h"

namespace verbena::test {
namespace {

constexpr std::uint32_t kGRHBytes = sizeof(ibv_grh);

class MulticastTest : public VerbsTest {
 protected:
  void SetUp() override {
    VerbsTest::SetUp();
    mr = register_all(buffer, sizeof buffer);
    sender = make_ready_qp();
    receiver = make_ready_qp();
  }
  ibv_qp* make_ready_qp() {
    ibv_qp* qp = make_qp(IBV_QPT_UD);
    ready_ud(qp);
    return qp;
  }
  // ::ffff:239.x.y.Z, of this process alone.
  static ibv_gid group(std::uint8_t last) {
    ibv_gid gid{};
    const auto pid = static_cast<std::uint32_t>(::getpid());
    gid.raw[10] = gid.raw[11] = 0xff;
    gid.raw[12] = 239;
    gid.raw[13] = static_cast<std::uint8_t>(pid);
    gid.raw[14] = static_cast<std::uint8_t>(pid >> 8);
    gid.raw[15] = last;
    return gid;
  }
  void post_receive(ibv_qp* qp, std::uint64_t wr_id, std::uint64_t offset) {
    ibv_sge sge = sge_of(mr, offset, 512);
    ASSERT_EQ(post(qp, recv_wr(wr_id, &sge)), 0);
  }
  // To the group, and the send's own completion.
  void send_to(const ibv_gid& gid) {
    ibv_ah_attr route = loopback_route();
    route.grh.dgid = gid;
    ibv_ah* ah = verbs.create_ah(pd, &route);
    ASSERT_NE(ah, nullptr);
    ibv_sge sge = sge_of(mr, 0, 32);
    ibv_send_wr wr = send_wr(1, IBV_WR_SEND, &sge);
    wr.wr.ud = {.ah = ah, .remote_qpn = 0xffffff, .remote_qkey = kQKey};
    ASSERT_EQ(post(sender, wr), 0);
    EXPECT_EQ(verbs.destroy_ah(ah), 0);
  }

  alignas(64) char buffer[4096] = {};
  ibv_mr* mr = nullptr;
  ibv_qp *sender = nullptr, *receiver = nullptr;
};

TEST_F(MulticastTest, EveryAttachedQPReceives) {
  const ibv_gid gid = group(1);
  ibv_qp* second = make_ready_qp();
  ASSERT_EQ(verbs.attach_mcast(receiver, &gid, 0), 0);
  ASSERT_EQ(verbs.attach_mcast(second, &gid, 0), 0);
  ASSERT_EQ(verbs.attach_mcast(second, &gid, 0), 0) << "once more is no error";
  post_receive(receiver, 10, 1024);
  post_receive(second, 11, 2048);
  std::strcpy(buffer, "to all");
  send_to(gid);
  for (int i = 0; i < 3; ++i) {
    const ibv_wc wc = wait_for_completion();
    ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
    if (wc.wr_id == 1) continue;
    EXPECT_EQ(wc.qp_num, wc.wr_id == 10 ? receiver->qp_num : second->qp_num);
    EXPECT_EQ(wc.src_qp, sender->qp_num);
    EXPECT_NE(wc.wc_flags & IBV_WC_GRH, 0u);
  }
  EXPECT_STREQ(buffer + 1024 + kGRHBytes, "to all");
  EXPECT_STREQ(buffer + 2048 + kGRHBytes, "to all");
  EXPECT_EQ(std::memcmp(buffer + 1024 + 36, gid.raw + 12, 4), 0) << "the group in the IPv4 header";
  for (ibv_qp* qp : {receiver, second}) {
    EXPECT_EQ(verbs.destroy_qp(qp), EBUSY);
    EXPECT_EQ(verbs.detach_mcast(qp, &gid, 0), 0);
    EXPECT_EQ(verbs.detach_mcast(qp, &gid, 0), EINVAL);
    EXPECT_EQ(verbs.destroy_qp(qp), 0);
  }
}

TEST_F(MulticastTest, OtherGroupsAreNotReceived) {
  const ibv_gid joined = group(2), left = group(3);
  ASSERT_EQ(verbs.attach_mcast(receiver, &joined, 0), 0);
  ASSERT_EQ(verbs.attach_mcast(receiver, &left, 0), 0);
  ASSERT_EQ(verbs.detach_mcast(receiver, &left, 0), 0);
  post_receive(receiver, 10, 1024);
  send_to(left);
  EXPECT_EQ(wait_for_completion().wr_id, 1u);
  buffer[1024 + 39] = 0;
  send_to(joined);
  ibv_wc wc = wait_for_completion();
  if (wc.wr_id == 1) wc = wait_for_completion();
  EXPECT_EQ(wc.wr_id, 10u);
  EXPECT_EQ(buffer[1024 + 39], 2) << "the last byte of the group's address";
}

TEST_F(MulticastTest, WhatIsNoGroupOrNoDatagramQP) {
  const ibv_gid gid = group(4);
  EXPECT_EQ(verbs.attach_mcast(make_qp(IBV_QPT_RC), &gid, 0), EINVAL);
  EXPECT_EQ(verbs.attach_mcast(receiver, nullptr, 0), EINVAL);
  const ibv_gid own = loopback_route().grh.dgid;
  EXPECT_EQ(verbs.attach_mcast(receiver, &own, 0), EINVAL);
}

TEST_F(MulticastTest, LimitsAreTold) {
  ibv_device_attr attr{};
  ASSERT_EQ(verbs.query_device(context, &attr), 0);
  EXPECT_GT(attr.max_mcast_grp, 0);
  EXPECT_GT(attr.max_mcast_qp_attach, 0);
  EXPECT_EQ(attr.max_total_mcast_qp_attach, attr.max_mcast_grp * attr.max_mcast_qp_attach);
  ibv_gid gid = group(0);
  for (int i = 0; i < attr.max_mcast_grp; ++i) {
    gid.raw[15] = static_cast<std::uint8_t>(i);
    ASSERT_EQ(verbs.attach_mcast(receiver, &gid, 0), 0) << i;
  }
  gid.raw[12] = 238;
  EXPECT_EQ(verbs.attach_mcast(receiver, &gid, 0), ENOMEM);
}

TEST_F(MulticastTest, ClosingTheContextLeavesTheGroups) {
  const ibv_gid gid = group(5);
  ASSERT_EQ(verbs.attach_mcast(receiver, &gid, 0), 0);
}

}  // namespace
}  // namespace verbena::test
