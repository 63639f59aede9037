#include "abi/rdmacm/rsocket/datagram_port.h"

#include <rdma/rdma_cma.h>

#include <array>
#include <numeric>

namespace verbena::rdmacm::rsocket {
namespace {

constexpr u32 kGRH = 40;            // bytes before what a UD QP receives
constexpr u32 kSpareReceives = 16;  // slots for what comes by UDP
constexpr u32 kMostBatches = 64;    // of completions, at one look
constexpr u64 kReceive = 1ULL << 63;

u32 bytes_of(MTU mtu) { return 128U << static_cast<unsigned>(mtu); }

}  // namespace

DatagramPort::~DatagramPort() {
  if (qp_ != nullptr) ibv_destroy_qp(qp_);
}

int DatagramPort::open(OpenDevice& device, const GID& address, const Settings& settings) {
  device_ = &device;
  address_ = address;
  sends_ = std::clamp(settings.send_bytes / kSlot, 1U, settings.send_queue);
  receives_ = std::clamp(settings.receive_bytes / kSlot, 1U, settings.receive_queue);
  inline_bytes_ = settings.inline_bytes;
  longest_ = std::min(kSlot, bytes_of(device.identity().mtu));
  const std::size_t receive_bytes = std::size_t{receives_ + kSpareReceives} * (kGRH + kSlot);
  if (completions_.open(device.verbs, sends_ + receives_) != 0 || make_qp() != 0 ||
      send_.open(device.pd, std::size_t{sends_} * kSlot, IBV_ACCESS_LOCAL_WRITE) != 0 ||
      receive_.open(device.pd, receive_bytes, IBV_ACCESS_LOCAL_WRITE) != 0 || start_qp() != 0)
    return -1;
  free_sends_.resize(sends_);
  std::iota(free_sends_.begin(), free_sends_.end(), 0U);
  spare_receives_.resize(kSpareReceives);
  std::iota(spare_receives_.begin(), spare_receives_.end(), receives_);
  for (u32 slot = 0; slot < receives_; ++slot) post_receive(slot);
  return completions_.arm() == 0 ? 0 : -1;
}

int DatagramPort::make_qp() {
  ibv_qp_init_attr attr{};
  attr.send_cq = attr.recv_cq = completions_.cq();
  attr.qp_type = IBV_QPT_UD;
  attr.sq_sig_all = 1;
  attr.cap = {.max_send_wr = sends_,
              .max_recv_wr = receives_,
              .max_send_sge = 1,
              .max_recv_sge = 1,
              .max_inline_data = inline_bytes_};
  qp_ = ibv_create_qp(device_->pd, &attr);
  inline_bytes_ = attr.cap.max_inline_data;
  return qp_ != nullptr ? 0 : -1;
}

int DatagramPort::start_qp() {
  struct Step {
    ibv_qp_state state;
    int mask;
  };
  constexpr std::array kSteps = {Step{IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY},
                                 Step{IBV_QPS_RTR, 0}, Step{IBV_QPS_RTS, IBV_QP_SQ_PSN}};
  ibv_qp_attr attr{};
  attr.port_num = kPort;
  attr.qkey = RDMA_UDP_QKEY;
  for (const Step& step : kSteps) {
    attr.qp_state = step.state;
    if (const int error = ibv_modify_qp(qp_, &attr, IBV_QP_STATE | step.mask))
      return result_of(error);
  }
  return 0;
}

u8* DatagramPort::receive_slot(u32 slot) const {
  return receive_.bytes() + std::size_t{slot} * (kGRH + kSlot);
}

void DatagramPort::post_receive(u32 slot) {
  ibv_sge to{.addr = reinterpret_cast<u64>(receive_slot(slot)),
             .length = kGRH + kSlot,
             .lkey = receive_.lkey()};
  ibv_recv_wr request{};
  request.wr_id = kReceive | slot;
  request.sg_list = &to;
  request.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  (void)ibv_post_recv(qp_, &request, &bad);  // fails with the device: nothing comes any more
}

bool DatagramPort::progress() {
  bool any = false;
  for (u32 i = 0; i < kMostBatches; ++i) {
    const int count = ibv_poll_cq(completions_.cq(), kBatch, done_.data());
    if (count <= 0) break;
    any = true;
    for (const ibv_wc& wc : std::span(done_).first(static_cast<std::size_t>(count)))
      on_completion(wc);
    if (count < kBatch) break;
  }
  return any;
}

void DatagramPort::on_completion(const ibv_wc& wc) {
  const u32 slot = static_cast<u32>(wc.wr_id);
  if ((wc.wr_id & kReceive) == 0)
    free_sends_.push_back(slot);
  else if (wc.status == IBV_WC_SUCCESS && wc.byte_len > kGRH)
    received_.push_back({.slot = slot, .length = wc.byte_len - kGRH});
  else
    post_receive(slot);
}

int DatagramPort::send(const HeaderBytes& header, IOCursor& data, ibv_ah* to, QPN qpn) {
  const u32 slot = free_sends_.back();
  u8* const at = send_slot(slot);
  const std::size_t length = data.left();
  std::memcpy(at, header.bytes.data(), header.size);
  data.read(at + header.size, length);
  ibv_sge from{.addr = reinterpret_cast<u64>(at),
               .length = static_cast<u32>(header.size + length),
               .lkey = send_.lkey()};
  ibv_send_wr request{};
  request.wr_id = slot;
  request.sg_list = &from;
  request.num_sge = 1;
  request.opcode = IBV_WR_SEND;
  request.send_flags = from.length <= inline_bytes_ ? IBV_SEND_INLINE : 0;
  request.wr.ud.ah = to;
  request.wr.ud.remote_qpn = qpn.value;
  request.wr.ud.remote_qkey = RDMA_UDP_QKEY;
  ibv_send_wr* bad = nullptr;
  if (const int error = ibv_post_send(qp_, &request, &bad)) return fail(error);
  free_sends_.pop_back();
  return 0;
}

std::span<const u8> DatagramPort::received() const {
  if (received_.empty()) return {};
  const Received& oldest = received_.front();
  return {receive_slot(oldest.slot) + kGRH, oldest.length};
}

void DatagramPort::drop_received() {
  const u32 slot = received_.front().slot;
  received_.pop_front();
  if (slot >= receives_)
    spare_receives_.push_back(slot);
  else
    post_receive(slot);
}

void DatagramPort::take_in(const HeaderBytes& header, std::span<const u8> data) {
  if (spare_receives_.empty() || header.size + data.size() > kSlot) return;
  const u32 slot = spare_receives_.back();
  spare_receives_.pop_back();
  u8* const at = receive_slot(slot) + kGRH;
  std::memcpy(at, header.bytes.data(), header.size);
  std::ranges::copy(data, at + header.size);
  received_.push_back({.slot = slot, .length = static_cast<u32>(header.size + data.size())});
}

}  // namespace verbena::rdmacm::rsocket
