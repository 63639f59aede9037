// RCEndpoint: one RC QP of an adapter with its CQ and a registered buffer, as a small verbs program
// has it.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "host/adapter.h"
#include "host/os/clock.h"

namespace verbena::host {

class RCEndpoint {
 public:
  static constexpr std::size_t kBufferSize = 1 << 16;
  static constexpr Duration kPatience = sec(20);
  static constexpr AccessFlags kAccess =
      Access::kLocalWrite | Access::kRemoteWrite | Access::kRemoteRead;

  // Peer: the facts that the other side must know, to be sent over a pipe.
  struct Peer {
    GID gid{};
    u32 qpn = 0;
    u32 r_key = 0;
    u64 address = 0;
  };

  explicit RCEndpoint(std::shared_ptr<Adapter> adapter, EventTarget* target = nullptr)
      : adapter_(std::move(adapter)), buffer_(kBufferSize) {
    Adapter::Session session = adapter_->enter();
    pd_ = *session->alloc_pd();
    cq_ = *session->create_cq(256, target);
    keys_ =
        *session->memory().register_mr(pd_->id, buffer_.data(), buffer_.size(), iova(), kAccess);
    QPInit init;
    init.pd = pd_;
    init.send_cq = init.receive_cq = cq_;
    init.send.depth = init.receive.depth = 64;
    init.send.max_sge = init.receive.max_sge = 1;
    qp_ = *session->create_qp(init);
    qpn_ = session->attributes_of(qp_).qpn.value;
  }
  ~RCEndpoint() {
    destroy();
    adapter_->wait_for_wakes();
  }
  RCEndpoint(const RCEndpoint&) = delete;
  RCEndpoint& operator=(const RCEndpoint&) = delete;

  Peer self() const {
    return {adapter_->device().config().gids[3].gid, qpn_, keys_.r_key.value, iova()};
  }
  Adapter& adapter() { return *adapter_; }
  CompletionQueue* cq() { return cq_; }
  std::vector<u8>& buffer() { return buffer_; }

  void connect(const Peer& peer, u8 retry_count = 7) {
    peer_ = peer;
    to_init();
    to_rtr();
    to_rts(retry_count);
  }
  // In place of its buffer: memory that peers may map. What self() would tell them of it.
  Peer register_common(std::span<u8> memory) {
    deregister();
    common_ = adapter_->common_memory(memory);
    Adapter::Session session = adapter_->enter();
    const u64 address = reinterpret_cast<u64>(memory.data());
    keys_ = *session->memory().register_mr(pd_->id, memory.data(), memory.size(), address, kAccess);
    if (common_) session->memory().share(keys_.l_key, common_->span);
    registered_ = true;
    Peer peer = self();
    peer.address = address;
    return peer;
  }
  void aim_at(const Peer& peer) { peer_ = peer; }
  void deregister() {
    Adapter::Session session = adapter_->enter();
    EXPECT_EQ(session->memory().deregister_mr(keys_.l_key), Status::kOk);
    registered_ = false;
  }
  void post_receive() {
    Adapter::Session session = adapter_->enter();
    const SGE sge{iova(), static_cast<u32>(kBufferSize), keys_.l_key};
    const RecvWR wr{.wr_id = 1, .sg_list = {&sge, 1}};
    EXPECT_EQ(session->post_receive(qp_, wr, session.now()), PostError::kOk);
  }
  void post(SendOp op, u32 size) {
    const Adapter::Session session = adapter_->enter();
    post_in(session, op, size);
  }
  // The last of the session.
  void post_in(const Adapter::Session& session, SendOp op, u32 size) {
    const SGE sge{iova(), size, keys_.l_key};
    SendWR wr;
    wr.wr_id = 2;
    wr.op = op;
    wr.signaled = true;
    wr.sg_list = {&sge, 1};
    wr.remote_address = peer_.address;
    wr.r_key = RKey{peer_.r_key};
    EXPECT_EQ(session->post_last_send(qp_, wr, session.now()), PostError::kOk);
  }
  // Polls until one completion is there; a default CQE of status kFlushed when it does not come in
  // time.
  CQE wait_for_completion() {
    CQE cqe;
    const Time deadline = monotonic_now() + kPatience;
    while (monotonic_now() < deadline)
      if (adapter_->poll_cq(cq_, {&cqe, 1}) == 1) return cqe;
    ADD_FAILURE() << "no completion in time";
    cqe.status = WQEStatus::kFlushed;
    return cqe;
  }

 private:
  void destroy() {
    Adapter::Session session = adapter_->enter();
    EXPECT_EQ(session->destroy_qp(qp_), Status::kOk);
    EXPECT_EQ(session->destroy_cq(cq_), Status::kOk);
    const Status deregistered = session->memory().deregister_mr(keys_.l_key);
    EXPECT_EQ(deregistered, registered_ ? Status::kOk : Status::kNotFound);
    EXPECT_EQ(session->dealloc_pd(pd_), Status::kOk);
  }
  u64 iova() const { return reinterpret_cast<u64>(buffer_.data()); }
  void modify(const QPModify& change) {
    Adapter::Session session = adapter_->enter();
    EXPECT_EQ(session->modify_qp(qp_, change, session.now()), Status::kOk);
  }
  void to_init() {
    QPModify change;
    change.set(QPField::kState).set(QPField::kPKeyIndex).set(QPField::kPort);
    change.set(QPField::kAccessFlags);
    change.state = QPState::kInit;
    change.remote_access = Access::kRemoteWrite | Access::kRemoteRead;
    modify(change);
  }
  void to_rtr() {
    QPModify change;
    change.set(QPField::kState).set(QPField::kAddressVector).set(QPField::kPathMTU);
    change.set(QPField::kDestQPN).set(QPField::kRQPSN).set(QPField::kMaxDestRdAtomic);
    change.set(QPField::kMinRNRTimer);
    change.state = QPState::kRTR;
    change.path.destination = peer_.gid;
    change.path.source_gid_index = 3;
    change.path_mtu = MTU::k4096;
    change.dest_qp = QPN{peer_.qpn};
    change.max_dest_rd_atomic = 1;
    change.min_rnr_timer = 12;
    modify(change);
  }
  void to_rts(u8 retry_count) {
    QPModify change;
    change.set(QPField::kState).set(QPField::kTimeout).set(QPField::kRetryCount);
    change.set(QPField::kRNRRetry).set(QPField::kSQPSN).set(QPField::kMaxRdAtomic);
    change.state = QPState::kRTS;
    change.ack_timeout = 12;  // 16.8 ms
    change.retry_count = retry_count;
    change.rnr_retry_count = 7;
    change.max_rd_atomic = 1;
    modify(change);
  }

  std::shared_ptr<Adapter> adapter_;
  std::vector<u8> buffer_;
  ProtectionDomain* pd_ = nullptr;
  CompletionQueue* cq_ = nullptr;
  QueuePair* qp_ = nullptr;
  MRKeys keys_;
  std::optional<CommonMemory> common_;
  bool registered_ = true;
  u32 qpn_ = 0;
  Peer peer_;
};

}  // namespace verbena::host
