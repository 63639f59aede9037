// Groups of IDs. rdma_join_multicast(3), rdma_leave_multicast(3).
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "tests/rdmacm/rdmacm_fixture.h"

namespace verbena::test {
namespace {

class MulticastTest : public RDMACMTest {
 protected:
  // Bound to our address, with a QP.
  rdma_cm_id* make_member() {
    rdma_cm_id* id = make_id(RDMA_PS_UDP);
    sockaddr_in own = address(own_address(), 0);
    EXPECT_EQ(rdma_resolve_addr(id, any(own), any(group), 1000), 0);
    expect_event(RDMA_CM_EVENT_ADDR_RESOLVED);
    make_qp(id, IBV_QPT_UD);
    return id;
  }
  static std::string own_group() {
    const int pid = ::getpid();
    return "239." + std::to_string(pid / 250 % 250) + "." + std::to_string(pid % 250) + ".7";
  }
  sockaddr_in group = address(own_group(), 0);
  int context = 0;
};

TEST_F(MulticastTest, MembersHearEachOther) {
  rdma_cm_id *sender = make_member(), *receiver = make_member();
  ASSERT_EQ(rdma_join_multicast(receiver, any(group), &context), 0);
  const Event joined = expect_event(RDMA_CM_EVENT_MULTICAST_JOIN);
  EXPECT_EQ(joined.id, receiver);
  EXPECT_EQ(joined.status, 0);
  EXPECT_EQ(joined.ud.private_data, &context);
  EXPECT_EQ(joined.ud.qp_num, 0xffffffu);
  EXPECT_EQ(joined.ud.qkey, 0x01234567u);
  EXPECT_EQ(joined.ud.ah_attr.is_global, 1);
  EXPECT_EQ(joined.ud.ah_attr.grh.dgid.raw[12], 239);
  EXPECT_EQ(joined.ud.ah_attr.grh.dgid.raw[15], 7);

  char in[128] = {}, out[16] = "to the group";
  ibv_mr* in_mr = rdma_reg_msgs(receiver, in, sizeof in);
  ibv_mr* out_mr = rdma_reg_msgs(sender, out, sizeof out);
  ASSERT_EQ(rdma_post_recv(receiver, nullptr, in, sizeof in, in_mr), 0);
  ibv_ah_attr route = joined.ud.ah_attr;
  ibv_ah* ah = ibv_create_ah(sender->pd, &route);
  ASSERT_NE(ah, nullptr);
  ASSERT_EQ(rdma_post_ud_send(sender, nullptr, out, sizeof out, out_mr, 0, ah, joined.ud.qp_num),
            0);
  ibv_wc wc{};
  ASSERT_EQ(rdma_get_recv_comp(receiver, &wc), 1);
  EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  EXPECT_STREQ(in + sizeof(ibv_grh), "to the group");

  EXPECT_EQ(rdma_leave_multicast(receiver, any(group)), 0);
  EXPECT_EQ(rdma_leave_multicast(receiver, any(group)), -1);
  EXPECT_EQ(errno, EADDRNOTAVAIL);
  ibv_destroy_ah(ah);
  rdma_dereg_mr(in_mr);
  rdma_dereg_mr(out_mr);
}

TEST_F(MulticastTest, SendOnlyMembersAreNotAttached) {
  rdma_cm_id* id = make_member();
  rdma_cm_join_mc_attr_ex attr{};
  attr.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;
  attr.join_flags = RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER;
  attr.addr = any(group);
  ASSERT_EQ(rdma_join_multicast_ex(id, &attr, nullptr), 0);
  const Event joined = expect_event(RDMA_CM_EVENT_MULTICAST_JOIN);
  ibv_gid gid = joined.ud.ah_attr.grh.dgid;
  EXPECT_EQ(ibv_detach_mcast(id->qp, &gid, 0), EINVAL);
  EXPECT_EQ(rdma_leave_multicast(id, any(group)), 0);
  attr.join_flags = RDMA_MC_JOIN_FLAG_RESERVED;
  EXPECT_EQ(rdma_join_multicast_ex(id, &attr, nullptr), -1);
  EXPECT_EQ(errno, EINVAL);
}

TEST_F(MulticastTest, AJoinThatIsTakenBackIsNotTold) {
  rdma_cm_id* id = make_member();
  ASSERT_EQ(rdma_join_multicast(id, any(group), nullptr), 0);
  ASSERT_EQ(rdma_leave_multicast(id, any(group)), 0);
  ASSERT_EQ(rdma_join_multicast(id, any(group), &context), 0);
  EXPECT_EQ(expect_event(RDMA_CM_EVENT_MULTICAST_JOIN).ud.private_data, &context);
  EXPECT_FALSE(has_event(0));
  EXPECT_EQ(rdma_join_multicast(id, any(group), nullptr), -1);
  EXPECT_EQ(errno, EADDRINUSE);
}

TEST_F(MulticastTest, TheQPMayGoBeforeTheMembership) {
  rdma_cm_id* id = make_member();
  ASSERT_EQ(rdma_join_multicast(id, any(group), nullptr), 0);
  expect_event(RDMA_CM_EVENT_MULTICAST_JOIN);
  rdma_destroy_qp(id);
  EXPECT_EQ(rdma_leave_multicast(id, any(group)), 0);
}

TEST_F(MulticastTest, WhatIsNoGroupOrHasNoPlace) {
  rdma_cm_id* id = make_member();
  sockaddr_in host = address("10.1.2.3", 0);
  EXPECT_EQ(rdma_join_multicast(id, any(host), nullptr), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(rdma_join_multicast(id, nullptr, nullptr), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(rdma_join_multicast(make_id(RDMA_PS_UDP), any(group), nullptr), -1);
  EXPECT_EQ(errno, ENODEV);
  EXPECT_EQ(rdma_join_multicast(make_resolved(9), any(group), nullptr), -1) << "no datagrams";
  EXPECT_EQ(errno, EINVAL);
}

}  // namespace
}  // namespace verbena::test
