#include "tests/abi/rc_ends.h"

#include <chrono>
#include <cstring>

namespace verbena::test {

// --- set up

void RCEnds::SetUp() {
  VerbsTest::SetUp();
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer's memcpy holds signals back: a fault in it never ends";
#endif
  const bool on_gpu = memory_ == Memory::kOfAGPU;
  if (on_gpu) {
    ASSERT_EQ(cuda().ctx_create(&gpu_context_, 0, 0), 0);
  }
  here.emplace(on_gpu ? Memory::kOfAGPU : Memory::kPrivate);
  there.emplace(memory_);
  other_pd_ = verbs.alloc_pd(context);
  local_mr_ = register_all(here->data(), kSize, kAll);
  remote_mr_ = register_all(there->data(), kSize, kAll);
  make_qps();
  reconnect({});
}

void RCEnds::make_qps() {
  peer_cq_ = make_cq();
  ibv_qp_init_attr attr = qp_attributes(IBV_QPT_RC);
  attr.cap.max_inline_data = 8;
  qp_ = verbs.create_qp(pd, &attr);
  attr.send_cq = attr.recv_cq = peer_cq_;
  if (way_.takes_from_an_srq) {
    ibv_srq_init_attr srq{.srq_context = nullptr,
                          .attr = {.max_wr = 16, .max_sge = 4, .srq_limit = 0}};
    attr.srq = srq_ = verbs.create_srq(pd, &srq);
  }
  peer_ = verbs.create_qp(pd, &attr);
  ASSERT_NE(peer_, nullptr);
}

void RCEnds::TearDown() {
  if (late_poster_.joinable()) late_poster_.join();
  VerbsTest::TearDown();
  here.reset();
  there.reset();
  if (memory_ == Memory::kOfAGPU) (void)cuda().ctx_set_current(nullptr);
}

// --- connections

void RCEnds::set_state(ibv_qp* of, ibv_qp_state state) const {
  ibv_qp_attr attr{};
  attr.qp_state = state;
  ASSERT_EQ(verbs.modify_qp(of, &attr, IBV_QP_STATE), 0);
}

void RCEnds::to_rtr_of(ibv_qp* of, const ibv_qp* to, const Attributes& attributes) const {
  const bool is_peer = of == peer_;
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = is_peer ? attributes.peer_mtu : IBV_MTU_1024;
  attr.dest_qp_num = is_peer && attributes.peers_peer ? attributes.peers_peer->qp_num : to->qp_num;
  attr.rq_psn = 100;
  attr.max_dest_rd_atomic = attributes.max_dest_rd_atomic;
  attr.min_rnr_timer = 1;
  attr.ah_attr = loopback_route();
  if (is_peer && attributes.peers_last_byte != 0)
    attr.ah_attr.grh.dgid.raw[15] = attributes.peers_last_byte;
  ASSERT_EQ(verbs.modify_qp(of, &attr,
                            IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
            0);
}

void RCEnds::connect_one(ibv_qp* of, const ibv_qp* to, const Attributes& attributes,
                         ibv_qp_state last) const {
  set_state(of, IBV_QPS_RESET);
  if (last == IBV_QPS_RESET) return;
  ASSERT_EQ(to_init(of), 0);
  if (last == IBV_QPS_INIT) return;
  to_rtr_of(of, to, attributes);
  if (last == IBV_QPS_RTR) return;
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTS;
  attr.sq_psn = of == qp_ ? attributes.sq_psn : 100;
  attr.timeout = attributes.timeout;
  attr.retry_cnt = attributes.retry_cnt;
  attr.rnr_retry = attributes.rnr_retry;
  attr.max_rd_atomic = 4;
  ASSERT_EQ(verbs.modify_qp(of, &attr,
                            IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC),
            0);
  if (last != IBV_QPS_RTS) set_state(of, last);
}

void RCEnds::reconnect_peer(const Attributes& to) { connect_one(peer_, qp_, to, to.peer_state); }

void RCEnds::reconnect(const Attributes& to) {
  connect_one(qp_, peer_, to, IBV_QPS_RTS);
  reconnect_peer(to);
}

void RCEnds::change_rights_of_peer(unsigned access) const {
  ibv_qp_attr attr{};
  attr.qp_access_flags = access;
  ASSERT_EQ(verbs.modify_qp(peer_, &attr, IBV_QP_ACCESS_FLAGS), 0);
}

void RCEnds::destroy_peer() {
  ASSERT_EQ(verbs.destroy_qp(peer_), 0);
  peer_ = nullptr;
}

void RCEnds::exchange_a_message() {
  post_receive(nullptr, 7);
  ASSERT_EQ(post(qp_, send_wr(7, IBV_WR_SEND, nullptr)), 0);
  ASSERT_EQ(wait_for_completion().status, IBV_WC_SUCCESS);
  ASSERT_EQ(wait_for_completion(peer_cq_).status, IBV_WC_SUCCESS);
}

// Returns a QP that is connected to another one, and to neither end.
ibv_qp* RCEnds::another_qp() {
  ibv_qp_init_attr attr = qp_attributes(IBV_QPT_RC);
  attr.send_cq = attr.recv_cq = peer_cq_;
  ibv_qp *const one = verbs.create_qp(pd, &attr), *const other = verbs.create_qp(pd, &attr);
  connect(one, other);
  return one;
}

// --- regions

void RCEnds::aim_at_region() {
  ASSERT_NE(remote_mr_, nullptr);
  r_key = remote_mr_->rkey;
  receive_key = remote_mr_->lkey;
}

void RCEnds::replace_target_in(ibv_pd* domain, int access) {
  deregister_target();
  remote_mr_ = verbs.reg_mr(domain, there->data(), kSize, access);
  aim_at_region();
}

void RCEnds::replace_own_in(ibv_pd* domain, int access) {
  deregister_own();
  local_mr_ = verbs.reg_mr(domain, here->data(), kSize, access);
  ASSERT_NE(local_mr_, nullptr);
  sge.lkey = local_mr_->lkey;
}

void RCEnds::reregister_target(int flags, ibv_pd* domain, std::size_t length, int access) {
  ASSERT_EQ(verbs.rereg_mr(remote_mr_, flags, domain, there->data(), length, access), 0);
  aim_at_region();
}

void RCEnds::change_rights_of_target(int access) {
  reregister_target(IBV_REREG_MR_CHANGE_ACCESS, nullptr, 0, access);
}

void RCEnds::change_domain_of_target() {
  reregister_target(IBV_REREG_MR_CHANGE_PD, other_pd_, 0, 0);
}

void RCEnds::halve_target() {
  reregister_target(IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, kSize / 2, 0);
}

// --- windows

void RCEnds::open_window(const Window& window) {
  binder_ = window.is_of_another_qp ? another_qp() : peer_;
  mw_ = ibv_alloc_mw(pd, window.type);
  ASSERT_NE(mw_, nullptr);
  const ibv_mw_bind_info info{.mr = remote_mr_,
                              .addr = there->address() + window.offset,
                              .length = window.length,
                              .mw_access_flags = static_cast<unsigned>(window.access)};
  if (window.type == IBV_MW_TYPE_1) {
    ibv_mw_bind bind{.wr_id = 8, .send_flags = IBV_SEND_SIGNALED, .bind_info = info};
    ASSERT_EQ(ibv_bind_mw(binder_, mw_, &bind), 0);
  } else {
    ibv_send_wr wr = send_wr(8, IBV_WR_BIND_MW, nullptr);
    wr.bind_mw = {.mw = mw_, .rkey = ibv_inc_rkey(mw_->rkey), .bind_info = info};
    ASSERT_EQ(post(binder_, wr), 0);
  }
  ASSERT_EQ(wait_for_completion(peer_cq_).status, IBV_WC_SUCCESS);
  r_key = mw_->rkey;
}

// The request keeps the key of the window.
void RCEnds::close_window() {
  if (mw_->type == IBV_MW_TYPE_1) {
    ibv_mw_bind bind{.wr_id = 8, .send_flags = IBV_SEND_SIGNALED, .bind_info = {}};
    ASSERT_EQ(ibv_bind_mw(binder_, mw_, &bind), 0);
  } else {
    ibv_send_wr wr = send_wr(8, IBV_WR_LOCAL_INV, nullptr);
    wr.invalidate_rkey = r_key;
    ASSERT_EQ(post(binder_, wr), 0);
  }
  ASSERT_EQ(wait_for_completion(peer_cq_).status, IBV_WC_SUCCESS);
}

// --- pages

void RCEnds::protect_last_page_of_target(int protection) const {
  constexpr std::uint64_t kPage = 4096;
  const std::uint64_t last = (target + way_.length - 1) / kPage * kPage;
  there->protect(protection, last - there->address(), kPage);
}

void RCEnds::fill_both(char own, char targets) {
  here->fill(own);
  there->fill(targets);
  std::memset(&content_of_target_, targets, sizeof content_of_target_);
}

// --- requests

ibv_send_wr RCEnds::request(std::uint64_t wr_id) {
  const auto count = static_cast<std::uint32_t>(way_.pieces);
  pieces_.assign(count, sge);
  for (std::uint32_t i = 0, done = 0; i < count; ++i) {
    const std::uint32_t length = i + 1 < count ? sge.length / count : sge.length - done;
    pieces_[i].addr += done;
    pieces_[i].length = length;
    done += length;
  }
  ibv_send_wr wr = send_wr(wr_id, way_.opcode, pieces_.data());
  wr.num_sge = way_.pieces;
  wr.send_flags |= way_.flags;
  if (is_atomic(way_))
    wr.wr.atomic = {
        .remote_addr = target, .compare_add = content_of_target_, .swap = 0, .rkey = r_key};
  else
    wr.wr.rdma = {.remote_addr = target, .rkey = r_key};
  return wr;
}

void RCEnds::post_receive(ibv_sge* room, std::uint64_t wr_id) const {
  ibv_recv_wr wr = recv_wr(wr_id, room), *bad = nullptr;
  ASSERT_EQ(srq_ != nullptr ? ibv_post_srq_recv(srq_, &wr, &bad) : ibv_post_recv(peer_, &wr, &bad),
            0);
}

void RCEnds::post_receives(int count) const {
  ibv_sge room{.addr = target, .length = receive_length, .lkey = receive_key};
  for (int i = 0; i < count && takes_receive(way_); ++i) post_receive(&room, 9);
}

void RCEnds::post_receives_late() {
  receives = 0;
  late_poster_ = std::thread([this] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    post_receives(2);
  });
}

ibv_qp_state RCEnds::state_of(ibv_qp* of) const {
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  EXPECT_EQ(verbs.query_qp(of, &attr, IBV_QP_STATE, &init), 0);
  return attr.qp_state;
}

void RCEnds::do_without_refusal() {
  fill_both('a', 'b');
  sge = {.addr = here->address(), .length = way_.length, .lkey = local_mr_->lkey};
  target = there->address() + way_.shift;
  aim_at_region();
  receive_length = way_.length;
  post_receives(1);
  ASSERT_EQ(post(qp_, request(1)), 0);
  ASSERT_EQ(wait_for_completion().status, IBV_WC_SUCCESS);
  ASSERT_TRUE(!takes_receive(way_) || wait_for_completion(peer_cq_).status == IBV_WC_SUCCESS);
  const bool is_copied =
      std::memcmp(here->content().data(), there->content().data() + way_.shift, way_.length) == 0;
  EXPECT_NE(is_copied, is_atomic(way_));
  fill_both('c', 'd');
}

}  // namespace verbena::test
