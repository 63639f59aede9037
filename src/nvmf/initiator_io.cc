// Commands of an Initiator, on queues that are connected.
#include <utility>

#include "base/check.h"
#include "nvmf/initiator.h"

namespace verbena::nvmf {
namespace {

constexpr u32 kAddressInCapsule = 1 << 20;  // SGLS of Identify Controller

bool has_range(nvme::IOOpcode opcode) {
  return opcode != nvme::IOOpcode::kFlush && opcode != nvme::IOOpcode::kDatasetManagement;
}

}  // namespace

void Initiator::submit(const Request& request) {
  if (state_ == State::kFailed || state_ == State::kIdle) {
    results_.push_back({request.tag, nvme::Status::kTransientTransportError, 0});
    return;
  }
  pending_.push_back(request);
  send_pending();
}

void Initiator::submit_admin(const nvme::Command& command, const DataSlice& data, u64 tag) {
  if (state_ != State::kLive || !has_room(queues_.front())) {
    results_.push_back({tag, nvme::Status::kTransientTransportError, 0});
    return;
  }
  Slot slot{.owner = Owner::kAdminUser};
  slot.request.tag = tag;
  send(queues_.front(), command, data, slot);
}

bool Initiator::poll_result(Result& out) {
  if (results_.empty()) return false;
  out = results_.front();
  results_.pop_front();
  return true;
}

std::optional<u32> Initiator::poll_event() {
  if (events_.empty()) return std::nullopt;
  const u32 event = events_.front();
  events_.pop_front();
  return event;
}

// One entry of a submission queue stays empty, so that a full one differs from an empty one.
bool Initiator::has_room(const Queue& queue) {
  const u32 used = (queue.tail + queue.entries - queue.head) % queue.entries;
  return used + 1 < queue.entries && !queue.free.empty();
}

bool Initiator::fits_capsule(const Queue& queue, const nvme::Command& command,
                             const DataSlice& data) const {
  return queue.qid != 0 && nvme::may_send_data(command) && data.bytes <= in_capsule_bytes_ &&
         (controller_.sgls & kAddressInCapsule) != 0;
}

void Initiator::send(Queue& queue, nvme::Command command, const DataSlice& data, const Slot& slot) {
  CHECK(!queue.free.empty());
  const u16 cid = queue.free.back();
  queue.free.pop_back();
  queue.slots[cid] = slot;
  queue.tail = static_cast<u16>((queue.tail + 1) % queue.entries);
  command.cid = cid;
  const bool in_capsule = data.bytes > 0 && fits_capsule(queue, command, data);
  command.sgl = in_capsule
                    ? nvme::SGLDescriptor::in_capsule(data.bytes)
                    : nvme::SGLDescriptor::keyed(data.bytes > 0 ? data.address : 0, data.bytes,
                                                 data.bytes > 0 ? data.r_key : 0);
  const u64 offset = u64{cid} * nvme::Command::kSize;
  command.encode(std::span<u8, nvme::Command::kSize>(queue.commands.bytes.data() + offset,
                                                     nvme::Command::kSize));
  const std::array slices{
      application::Slice{queue.commands.address + offset, static_cast<u32>(nvme::Command::kSize),
                         queue.commands.l_key},
      application::Slice{data.address, data.bytes, data.l_key}};
  node_.post(queue.connection, {.operation = application::Operation::kSend,
                                .local = std::span(slices).first(in_capsule ? 2 : 1),
                                .report = application::Report::kFailureOnly});
}

void Initiator::send_pending() {
  if (state_ != State::kLive || queues_.size() < 2) return;
  const std::size_t count = queues_.size() - 1;  // without the admin queue
  std::size_t full = 0;
  while (!pending_.empty() && full < count) {
    Queue& queue = queues_[1 + next_queue_++ % count];
    if (!has_room(queue)) {
      ++full;
      continue;
    }
    full = 0;
    send_io(queue, pending_.front());
    pending_.pop_front();
  }
}

void Initiator::send_io(Queue& queue, const Request& request) {
  nvme::Command command{.opcode = static_cast<u8>(request.opcode), .nsid = request.nsid};
  if (has_range(request.opcode)) {
    command.cdw[0] = static_cast<u32>(request.lba);
    command.cdw[1] = static_cast<u32>(request.lba >> 32);
    command.cdw[2] = ((request.blocks - 1) & 0xffff) | request.cdw12_flags;
  } else if (request.opcode == nvme::IOOpcode::kDatasetManagement) {
    command.cdw[0] = request.data.bytes / 16 - 1;
    command.cdw[1] = request.cdw11;
  }
  ++outstanding_;
  send(queue, command, request.data, {.owner = Owner::kUser, .request = request});
}

void Initiator::on_response(Queue& queue, u32 receive) {
  const u64 offset = u64{receive} * nvme::Completion::kSize;
  const auto completion = nvme::Completion::decode(std::span<const u8, nvme::Completion::kSize>(
      queue.completions.bytes.data() + offset, nvme::Completion::kSize));
  node_.post_receive(queue.connection, receive,
                     {queue.completions.address + offset, static_cast<u32>(nvme::Completion::kSize),
                      queue.completions.l_key});
  const bool is_known =
      completion.cid < queue.slots.size() && queue.slots[completion.cid].owner != Owner::kFree;
  if (!is_known || completion.sq_head >= queue.entries)
    return lose("the target sent a response to no command");
  queue.head = completion.sq_head;
  finish(queue, completion.cid, completion);
}

void Initiator::finish(Queue& queue, u16 cid, const nvme::Completion& completion) {
  const Slot slot = std::exchange(queue.slots[cid], Slot{});
  queue.free.push_back(cid);
  switch (slot.owner) {
    case Owner::kFree: return;
    case Owner::kSetUp: return on_set_up(queue, completion);
    case Owner::kKeepAlive:
      keep_alive_sent_ = Time::never();
      next_keep_alive_ = node_.now() + config_.keep_alive / 2;
      return;
    case Owner::kEvent:
      if (completion.code() != nvme::Status::kSuccess) return;
      events_.push_back(static_cast<u32>(completion.result));
      return send_event_request();
    case Owner::kShutdown: return finish_disconnect();
    case Owner::kUser: --outstanding_; break;
    case Owner::kAdminUser: break;
  }
  results_.push_back({slot.request.tag, completion.code(), completion.result});
}

void Initiator::send_keep_alive() {
  next_keep_alive_ = Time::never();
  if (!has_room(queues_.front())) return;
  keep_alive_sent_ = node_.now();
  send(queues_.front(), {.opcode = static_cast<u8>(nvme::AdminOpcode::kKeepAlive)}, {},
       {.owner = Owner::kKeepAlive});
}

void Initiator::send_event_request() {
  if (has_room(queues_.front()))
    send(queues_.front(), {.opcode = static_cast<u8>(nvme::AdminOpcode::kAsyncEventRequest)}, {},
         {.owner = Owner::kEvent});
}

}  // namespace verbena::nvmf
