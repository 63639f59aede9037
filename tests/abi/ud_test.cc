// UD: address handles, the GRH in the receive buffer, and the way back to a sender.
#include <cerrno>
#include <cstring>

#include "tests/abi/verbs_fixture.h"

namespace verbena::test {
namespace {

constexpr std::uint32_t kGRHBytes = sizeof(ibv_grh);

class UDTest : public VerbsTest {
 protected:
  void SetUp() override {
    VerbsTest::SetUp();
    mr_ = register_all(buffer_.data(), buffer_.size());
    qp_ = make_qp(IBV_QPT_UD);
    peer_ = make_qp(IBV_QPT_UD);
    ready_ud(qp_);
    ready_ud(peer_);
    ibv_ah_attr route = loopback_route();
    ah_ = verbs.create_ah(pd, &route);
    ASSERT_NE(ah_, nullptr);
  }
  void TearDown() override {
    EXPECT_EQ(ah_ == nullptr ? 0 : verbs.destroy_ah(ah_), 0);
    VerbsTest::TearDown();
  }

  ibv_send_wr datagram(ibv_sge* sge, ibv_ah* ah, const ibv_qp* to) const {
    ibv_send_wr wr = send_wr(1, IBV_WR_SEND, sge);
    wr.wr.ud = {.ah = ah, .remote_qpn = to->qp_num, .remote_qkey = kQKey};
    return wr;
  }
  // The receive's completion; the send's is taken too.
  ibv_wc exchange(ibv_qp* from, ibv_qp* to, ibv_ah* ah) {
    ibv_sge in = sge_of(mr_, 0, 1024), out = sge_of(mr_, 2048, 100);
    EXPECT_EQ(post(to, recv_wr(2, &in)), 0);
    EXPECT_EQ(post(from, datagram(&out, ah, to)), 0);
    const ibv_wc first = wait_for_completion(), second = wait_for_completion();
    EXPECT_EQ(first.status, IBV_WC_SUCCESS);
    EXPECT_EQ(second.status, IBV_WC_SUCCESS);
    return first.opcode == IBV_WC_RECV ? first : second;
  }

  alignas(64) std::array<char, 4096> buffer_{};
  ibv_mr* mr_ = nullptr;
  ibv_qp *qp_ = nullptr, *peer_ = nullptr;
  ibv_ah* ah_ = nullptr;
};

TEST_F(UDTest, ADatagramArrivesBehindItsGRH) {
  std::memset(buffer_.data() + 2048, 'u', 100);
  const ibv_wc wc = exchange(qp_, peer_, ah_);
  EXPECT_EQ(wc.byte_len, kGRHBytes + 100);
  EXPECT_EQ(wc.src_qp, qp_->qp_num);
  EXPECT_EQ(wc.wc_flags, static_cast<unsigned>(IBV_WC_GRH));
  EXPECT_EQ(wc.sl, 10);  // RoCEv2 over IPv4, as a ConnectX says it: UCX asks
  EXPECT_EQ(buffer_[kGRHBytes], 'u');
  EXPECT_EQ(buffer_[kGRHBytes + 99], 'u');
}

TEST_F(UDTest, ACompletionLeadsBackToTheSender) {
  ibv_wc wc = exchange(qp_, peer_, ah_);
  auto* grh = reinterpret_cast<ibv_grh*>(buffer_.data());
  ibv_ah_attr attr{};
  ASSERT_EQ(verbs.init_ah_from_wc(context, 1, &wc, grh, &attr), 0);
  EXPECT_EQ(attr.is_global, 1);
  EXPECT_EQ(attr.port_num, 1);
  EXPECT_EQ(attr.sl, 0);
  const ibv_ah_attr route = loopback_route();
  EXPECT_EQ(std::memcmp(&attr.grh.dgid, &route.grh.dgid, sizeof(ibv_gid)), 0);
  ibv_ah* back = verbs.create_ah_from_wc(pd, &wc, grh, 1);
  ASSERT_NE(back, nullptr);
  EXPECT_EQ(exchange(peer_, qp_, back).src_qp, peer_->qp_num);
  EXPECT_EQ(verbs.destroy_ah(back), 0);
}

TEST_F(UDTest, AReplyKeepsTheTrafficClass) {
  ibv_ah_attr route = loopback_route();
  route.grh.traffic_class = 26 << 2;  // DSCP 26
  ibv_ah* marked = verbs.create_ah(pd, &route);
  ASSERT_NE(marked, nullptr);
  ibv_wc wc = exchange(qp_, peer_, marked);
  ibv_ah_attr reply{};
  ASSERT_EQ(
      verbs.init_ah_from_wc(context, 1, &wc, reinterpret_cast<ibv_grh*>(buffer_.data()), &reply),
      0);
  EXPECT_EQ(reply.grh.traffic_class >> 2, 26);
  EXPECT_EQ(verbs.destroy_ah(marked), 0);
}

TEST_F(UDTest, AnUnknownHeaderLeadsNowhere) {
  ibv_wc wc{};
  wc.wc_flags = IBV_WC_GRH;
  ibv_grh grh{};
  ibv_ah_attr attr{};
  EXPECT_EQ(verbs.init_ah_from_wc(context, 1, &wc, &grh, &attr), -1);
  EXPECT_EQ(errno, EPROTONOSUPPORT);
}

TEST_F(UDTest, WithoutAnAddressNothingIsSent) {
  ibv_sge sge = sge_of(mr_, 0, 8);
  EXPECT_EQ(post(qp_, datagram(&sge, nullptr, peer_)), EINVAL);
  ibv_send_wr checksum = datagram(&sge, ah_, peer_);
  checksum.send_flags |= IBV_SEND_IP_CSUM;
  EXPECT_EQ(post(qp_, checksum), EINVAL) << "device_cap_flags has no UD_IP_CSUM";
  ibv_send_wr write = datagram(&sge, ah_, peer_);
  write.opcode = IBV_WR_RDMA_WRITE;
  EXPECT_EQ(post(qp_, write), EINVAL);
}

}  // namespace
}  // namespace verbena::test
