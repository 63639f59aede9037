#include "tests/abi/verbs_fixture.h"

#include <chrono>
#include <cstdlib>

namespace verbena::test {

void VerbsTest::SetUp() {
  setenv("VERBENA_ADDRESS", "127.0.0.1", 1);
  ibv_device** devices = verbs.get_device_list(nullptr);
  ASSERT_NE(devices, nullptr);
  context = verbs.open_device(devices[0]);
  verbs.free_device_list(devices);
  ASSERT_NE(context, nullptr);
  pd = verbs.alloc_pd(context);
  ASSERT_NE(pd, nullptr);
  cq = make_cq();
  ASSERT_NE(cq, nullptr);
}

// The objects that a test leaves are destroyed with the context.
void VerbsTest::TearDown() { EXPECT_EQ(context == nullptr ? 0 : verbs.close_device(context), 0); }

ibv_mr* VerbsTest::register_all(void* address, std::size_t length, int access) {
  ibv_mr* mr = verbs.reg_mr(pd, address, length, access);
  EXPECT_NE(mr, nullptr);
  return mr;
}

ibv_cq* VerbsTest::make_cq(int depth, ibv_comp_channel* channel) {
  ibv_cq* made = verbs.create_cq(context, depth, this, channel, 0);
  EXPECT_NE(made, nullptr);
  return made;
}

ibv_qp_init_attr VerbsTest::qp_attributes(ibv_qp_type type) const {
  ibv_qp_init_attr attr{};
  attr.send_cq = attr.recv_cq = cq;
  attr.cap = {.max_send_wr = 16,
              .max_recv_wr = 16,
              .max_send_sge = 4,
              .max_recv_sge = 4,
              .max_inline_data = 64};
  attr.qp_type = type;
  return attr;
}

ibv_qp* VerbsTest::make_qp(ibv_qp_type type) {
  ibv_qp_init_attr attr = qp_attributes(type);
  ibv_qp* qp = verbs.create_qp(pd, &attr);
  EXPECT_NE(qp, nullptr);
  return qp;
}

ibv_ah_attr VerbsTest::loopback_route() const {
  ibv_ah_attr attr{};
  EXPECT_EQ(verbs.query_gid(context, 1, kGIDIndex, &attr.grh.dgid), 0);
  attr.grh.sgid_index = kGIDIndex;
  attr.grh.hop_limit = 64;
  attr.is_global = 1;
  attr.port_num = 1;
  return attr;
}

int VerbsTest::to_init(ibv_qp* qp) const {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  attr.qp_access_flags = kAllAccess;
  attr.qkey = kQKey;
  return verbs.modify_qp(qp, &attr,
                         IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                             (qp->qp_type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
}

int VerbsTest::to_rtr(ibv_qp* qp, std::uint32_t dest_qp_num) const {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = IBV_MTU_1024;
  attr.dest_qp_num = dest_qp_num;
  attr.rq_psn = 100;
  attr.max_dest_rd_atomic = 4;
  attr.min_rnr_timer = 1;
  attr.ah_attr = loopback_route();
  return verbs.modify_qp(qp, &attr,
                         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                             IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

int VerbsTest::to_rts(ibv_qp* qp) const {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTS;
  attr.sq_psn = 100;
  attr.timeout = 14;
  attr.retry_cnt = 7;
  attr.rnr_retry = 7;
  attr.max_rd_atomic = 4;
  return verbs.modify_qp(qp, &attr,
                         IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                             IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC);
}

void VerbsTest::connect(ibv_qp* a, ibv_qp* b) const {
  for (ibv_qp* qp : {a, b}) {
    ASSERT_EQ(to_init(qp), 0);
    ASSERT_EQ(to_rtr(qp, qp == a ? b->qp_num : a->qp_num), 0);
    ASSERT_EQ(to_rts(qp), 0);
  }
}

void VerbsTest::ready_ud(ibv_qp* qp) const {
  ASSERT_EQ(to_init(qp), 0);
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTR;
  ASSERT_EQ(verbs.modify_qp(qp, &attr, IBV_QP_STATE), 0);
  attr.qp_state = IBV_QPS_RTS;
  ASSERT_EQ(verbs.modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
}

ibv_wc VerbsTest::wait_for_completion(ibv_cq* from) const {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point give_up = Clock::now() + std::chrono::seconds(30);
  ibv_wc wc{};
  while (Clock::now() < give_up)
    if (ibv_poll_cq(from, 1, &wc) == 1) return wc;
  ADD_FAILURE() << "no completion in 30 s";
  wc.status = IBV_WC_GENERAL_ERR;
  return wc;
}

ibv_sge sge_of(const ibv_mr* mr, std::uint64_t offset, std::uint32_t length) {
  return {.addr = reinterpret_cast<std::uint64_t>(mr->addr) + offset,
          .length = length,
          .lkey = mr->lkey};
}

ibv_send_wr send_wr(std::uint64_t wr_id, ibv_wr_opcode opcode, ibv_sge* sge) {
  ibv_send_wr wr{};
  wr.wr_id = wr_id;
  wr.sg_list = sge;
  wr.num_sge = sge == nullptr ? 0 : 1;
  wr.opcode = opcode;
  wr.send_flags = IBV_SEND_SIGNALED;
  return wr;
}

ibv_recv_wr recv_wr(std::uint64_t wr_id, ibv_sge* sge) {
  return {.wr_id = wr_id, .next = nullptr, .sg_list = sge, .num_sge = sge == nullptr ? 0 : 1};
}

int post(ibv_qp* qp, ibv_send_wr wr) {
  ibv_send_wr* bad = nullptr;
  const int error = ibv_post_send(qp, &wr, &bad);
  EXPECT_EQ(bad, error == 0 ? nullptr : &wr);
  return error;
}

int post(ibv_qp* qp, ibv_recv_wr wr) {
  ibv_recv_wr* bad = nullptr;
  const int error = ibv_post_recv(qp, &wr, &bad);
  EXPECT_EQ(bad, error == 0 ? nullptr : &wr);
  return error;
}

}  // namespace verbena::test
