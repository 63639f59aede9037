#include "agent/lane.h"

#include <cerrno>
#include <cstring>

#include "base/check.h"
#include "communicator/verbs/queue_pair.h"

namespace verbena::agent {
namespace {

constexpr u32 kSendRoom = 2 * LaneSlots::kReceives;  // beside READs and WRITEs
constexpr u8 kLaneTimeout = 15;                      // 4.096 us 2^15 = 134 ms, eight times

}  // namespace

Lane::~Lane() { destroy(); }

void Lane::destroy() {
  if (qp_ != nullptr) ibv_destroy_qp(qp_);
  qp_ = nullptr;
  stream_.reset();
  sends_ = receives_ = 0;
  batch_.clear();
}

// The READs of confirm_batch() are at most as many as the requests.
u32 Lane::send_room() const { return (limits_.requests + kSendRoom) * (is_stream() ? 2 : 1); }

Expected<void> Lane::offer(u32 generation) {
  destroy();
  id_.generation = generation;
  ibv_qp_init_attr wanted{};
  wanted.send_cq = wanted.recv_cq = rail_.cq();
  wanted.qp_type = IBV_QPT_RC;
  wanted.cap.max_send_wr = send_room();
  wanted.cap.max_recv_wr = LaneSlots::kReceives;
  wanted.cap.max_send_sge = wanted.cap.max_recv_sge = 1;
  qp_ = ibv_create_qp(rail_.pd(), &wanted);
  if (qp_ == nullptr)
    return failure(VERBENA_TRANSFER_SYSTEM, std::string("ibv_create_qp: ") + std::strerror(errno));
  if (const auto ready = coll::to_init(qp_, rail_.port(), "a new lane"); !ready)
    return system_failure(ready.error());
  address_ = {.qp = rail_.address()};
  address_.qp.qp_num = qp_->qp_num;
  address_.qp.psn = (qp_->qp_num * 7919 + generation * 104729) & 0xffffff;
  if (is_stream()) {
    address_.host = rail_.host();
    address_.port = streams_.port;
    address_.work_id = id_.value();
  }
  batch_.reserve(send_room());
  elements_.resize(send_room());
  for (u64 slot = 0; slot < LaneSlots::kReceives; ++slot) post_receive(slot);
  state_ = State::kOffered;
  return {};
}

Expected<void> Lane::connect(const LaneAddress& remote, const std::string& who) {
  switch (streams_.role) {
    case LaneStreams::Role::kNone: return connect_qp(remote.qp, who);
    case LaneStreams::Role::kDials: return dial(remote, who);
    case LaneStreams::Role::kAccepts:
      state_ = State::kConnecting;
      if (stream_ != nullptr && !accept())
        return failure(VERBENA_TRANSFER_SYSTEM, who + ": " + std::strerror(errno));
      return {};
  }
  CHECK_UNREACHABLE();
}

Expected<void> Lane::dial(const LaneAddress& remote, const std::string& who) {
  auto end = streams_.connector->dial(
      {.from = rail_.host(),
       .host = remote.host,
       .port = remote.port,
       .request = {.incarnation = streams_.peer_incarnation, .lane = remote.work_id}},
      stream_queue_pair(), id_.value());
  if (!end) return failure(VERBENA_TRANSFER_SYSTEM, who + ": " + end.error().text);
  stream_ = std::move(*end);
  state_ = State::kConnecting;
  return {};
}

bool Lane::on_request(std::unique_ptr<coll::StreamEnd> end) {
  if (state_ != State::kOffered && state_ != State::kConnecting) return true;  // it is late
  stream_ = std::move(end);
  return state_ == State::kOffered || accept();
}

bool Lane::accept() { return stream_->accept(stream_queue_pair(), id_.value()); }

Expected<void> Lane::connect_qp(const coll::QPAddress& remote, const std::string& who) {
  if (const auto ready = coll::to_rtr(qp_, rail_, remote, who); !ready)
    return system_failure(ready.error());
  const auto ready = coll::to_rts(qp_,
                                  {.psn = address_.qp.psn,
                                   .reads = std::min(rail_.reads(), remote.reads),
                                   .timeout = kLaneTimeout},
                                  who);
  if (!ready) return system_failure(ready.error());
  state_ = State::kConnected;
  return {};
}

void Lane::break_off() {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_ERR;
  ibv_modify_qp(qp_, &attributes, IBV_QP_STATE);
  state_ = State::kDraining;
}

ibv_send_wr& Lane::append(u64 sequence, u64 address, u32 bytes, u32 lkey) {
  CHECK(batch_.size() < elements_.size());
  ibv_sge& element = elements_[batch_.size()];
  element = {.addr = address, .length = bytes, .lkey = lkey};
  ibv_send_wr& work = batch_.emplace_back();
  WorkId id = id_;
  id.number = sequence;
  work.wr_id = id.value();
  work.sg_list = &element;
  work.num_sge = 1;
  work.send_flags = IBV_SEND_SIGNALED;
  last_sequence_ = sequence;
  return work;
}

void Lane::confirm_batch() {
  if (!is_stream() || batch_.back().opcode == IBV_WR_RDMA_READ) return;
  ibv_send_wr& work = append(last_sequence_, 0, 0, 0);
  work.opcode = IBV_WR_RDMA_READ;
  work.num_sge = 0;
}

void Lane::add(const transfer::Request& request, u32 lkey, u32 rkey) {
  ibv_send_wr& work =
      append(request.sequence, request.copy.local, static_cast<u32>(request.copy.length), lkey);
  work.opcode =
      request.kind == transfer::Request::Kind::kRead ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE;
  work.wr.rdma.remote_addr = request.copy.remote;
  work.wr.rdma.rkey = rkey;
}

void Lane::add_message(u64 sequence, u64 slot, u32 bytes) {
  append(sequence, reinterpret_cast<u64>(slots_.send(slot)), bytes, slots_.lkey).opcode =
      IBV_WR_SEND;
}

// The requests that the device did not take stay with the flow until the lane is replaced.
bool Lane::flush() {
  if (batch_.empty()) return true;
  confirm_batch();
  for (std::size_t i = 0; i + 1 < batch_.size(); ++i) batch_[i].next = &batch_[i + 1];
  batch_.back().next = nullptr;
  ibv_send_wr* bad = nullptr;
  const int error = ibv_post_send(qp_, batch_.data(), &bad);
  const auto posted = error == 0 ? static_cast<std::ptrdiff_t>(batch_.size()) : bad - batch_.data();
  sends_ += static_cast<u32>(posted);
  batch_.clear();
  return error == 0;
}

void Lane::on_completion(const WorkId& work) { --(work.is_receive ? receives_ : sends_); }

void Lane::post_receive(u64 slot) {
  ibv_sge sge{.addr = reinterpret_cast<u64>(slots_.receive(slot)),
              .length = LaneSlots::kBytes,
              .lkey = slots_.lkey};
  ibv_recv_wr request{};
  WorkId id = id_;
  id.is_receive = true;
  id.number = slot;
  request.wr_id = id.value();
  request.sg_list = &sge;
  request.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  if (ibv_post_recv(qp_, &request, &bad) == 0) ++receives_;
}

}  // namespace verbena::agent
