// I/O commands of a Target: checks, data transfers, requests of stores, responses. NVM Command Set
// 1.0, 3.
#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "nvmf/target.h"

namespace verbena::nvmf {
namespace {

using application::Operation;
using application::Report;
using application::Slice;
using nvme::Command;
using nvme::IOOpcode;

constexpr u32 kForceUnitAccess = 1 << 30;     // CDW12
constexpr u32 kDeallocateAttribute = 1 << 2;  // CDW11 of Dataset Management
constexpr std::size_t kRangeBytes = 16;
// The host begins with its responses while the target sends the next data.
constexpr std::size_t kMaxAnswersTogether = 8;
constexpr u32 kMaxBytesTogether = 64 * 1024;

bool is_keyed(const Command& command) {
  return command.sgl.type == static_cast<u8>(nvme::SGLDescriptor::Type::kKeyedDataBlock);
}
u64 offset_of(const Task& task) { return task.command.slba() << task.space->store->block_log2(); }

}  // namespace

nvme::Status Target::check_io(Queue& queue, Task& task, u32 capsule_bytes) const {
  const Command& command = task.command;
  const auto opcode = static_cast<IOOpcode>(command.opcode);
  if (queue.subsystem == nullptr) return nvme::Status::kInvalidOpcode;
  const Subsystem& subsystem = *queue.subsystem;
  if (opcode == IOOpcode::kFlush && command.nsid == nvme::kAllNamespaces)
    return nvme::Status::kSuccess;
  task.space = subsystem.find(command.nsid);
  if (task.space == nullptr) return nvme::Status::kInvalidNamespace;
  const BlockStore& store = *task.space->store;
  const bool writes = opcode == IOOpcode::kWrite || opcode == IOOpcode::kWriteZeroes ||
                      opcode == IOOpcode::kDatasetManagement;
  if (writes && store.is_read_only()) return nvme::Status::kNamespaceWriteProtected;
  const u64 blocks = task.space->blocks();
  const auto needs_data = [&](u64 bytes) {
    if (bytes > (u64{4096} << config_.limits.max_transfer_pages_log2))
      return nvme::Status::kInvalidField;
    return find_data(task, capsule_bytes, static_cast<u32>(bytes)).value_or(nvme::Status::kSuccess);
  };
  switch (opcode) {
    case IOOpcode::kFlush: return nvme::Status::kSuccess;
    case IOOpcode::kDatasetManagement:
      return needs_data(((command.cdw10() & 0xff) + 1) * kRangeBytes);
    case IOOpcode::kWrite:
    case IOOpcode::kRead:
    case IOOpcode::kCompare:
    case IOOpcode::kWriteZeroes:
      if (command.slba() >= blocks || command.blocks() > blocks - command.slba())
        return nvme::Status::kLBAOutOfRange;
      if (opcode == IOOpcode::kWriteZeroes) return nvme::Status::kSuccess;
      return needs_data(u64{command.blocks()} << store.block_log2());
  }
  return nvme::Status::kInvalidOpcode;
}

void Target::on_io(Queue& queue, u32 number, u32 capsule_bytes) {
  Task& task = queue.tasks[number];
  if (!queue.controller->is_ready())
    return answer(queue, number, nvme::Status::kCommandSequenceError);
  const nvme::Status status = check_io(queue, task, capsule_bytes);
  if (status != nvme::Status::kSuccess) return answer(queue, number, status);
  begin_io(queue, number);
}

// Takes buffers, if the command needs some and memory of the namespace does not serve it.
void Target::begin_io(Queue& queue, u32 number) {
  Task& task = queue.tasks[number];
  const auto opcode = static_cast<IOOpcode>(task.command.opcode);
  const bool is_compare = opcode == IOOpcode::kCompare;
  const bool has_data = task.bytes > 0;
  const bool is_direct = has_data && task.space->store->memory().has_value() && !is_compare &&
                         opcode != IOOpcode::kDatasetManagement;
  if (!has_data || is_direct) return begin_transfer(queue, number);
  const bool needs_transfer_buffer = task.capsule_data == nullptr;
  if (needs_transfer_buffer && !task.buffer) task.buffer = buffers_.take(task.bytes);
  if (is_compare && !task.second) task.second = buffers_.take(task.bytes);
  const bool lacks = (needs_transfer_buffer && !task.buffer) || (is_compare && !task.second);
  if (!lacks) return begin_transfer(queue, number);
  give_back_buffers(task);  // two commands never wait for each other's buffers
  task.state = Task::State::kWaitsForBuffer;
  waiting_.push_back({queue.connection, number});
}

// Fetches the host's data where it is not in the capsule.
void Target::begin_transfer(Queue& queue, u32 number) {
  Task& task = queue.tasks[number];
  const bool fetches = task.bytes > 0 && task.capsule_data == nullptr &&
                       static_cast<IOOpcode>(task.command.opcode) != IOOpcode::kRead;
  if (!fetches) return begin_store(queue, number);
  Slice into{0, task.bytes, 0};
  if (task.buffer) {
    into.address = task.buffer->address;
    into.l_key = task.buffer->l_key;
  } else {
    const application::Region memory = *task.space->store->memory();
    into.address = memory.address + offset_of(task);
    into.l_key = memory.l_key;
  }
  task.state = Task::State::kFetches;
  fetch(queue, number, into);
}

void Target::fetch(Queue& queue, u32 number, const Slice& into) {
  const nvme::SGLDescriptor& sgl = queue.tasks[number].command.sgl;
  const std::array slices{into};
  node_.post(queue.connection, {.operation = Operation::kRead,
                                .id = number,
                                .local = slices,
                                .remote_address = sgl.address,
                                .r_key = sgl.key});
}

void Target::on_fetched(Queue& queue, u32 number) {
  Task& task = queue.tasks[number];
  task.state = Task::State::kInStore;
  const bool is_connect =
      task.command.fabrics_type() == static_cast<u8>(nvme::FabricsType::kConnect);
  if (task.command.opcode == nvme::kFabricsOpcode)
    return is_connect ? on_connect_data(queue, number) : on_authentication_message(queue, number);
  if (task.buffer) return begin_store(queue, number);
  counters_.bytes_written += task.bytes;  // it is in the namespace's memory
  answer(queue, number, nvme::Status::kSuccess);
}

std::span<const u8> Target::data_of(const Task& task) const {
  const u8* const bytes = task.capsule_data != nullptr ? task.capsule_data
                          : task.buffer                ? task.buffer->bytes
                                                       : nullptr;
  return {bytes, bytes == nullptr ? 0 : task.bytes};
}

void Target::submit(Queue& queue, u32 number, const BlockStore::Request& request) {
  if (free_store_requests_.empty()) {
    free_store_requests_.push_back(static_cast<u32>(store_requests_.size()));
    store_requests_.emplace_back();
  }
  const u32 tag = free_store_requests_.back();
  free_store_requests_.pop_back();
  store_requests_[tag] = {queue.connection, number, request.kind};
  ++queue.tasks[number].store_requests;
  ++queue.store_requests;
  BlockStore::Request tagged = request;
  tagged.tag = tag;
  queue.tasks[number].space->store->submit(tagged);
}

void Target::begin_store(Queue& queue, u32 number) {
  using Kind = BlockStore::Kind;
  Task& task = queue.tasks[number];
  task.state = Task::State::kInStore;
  const Command& command = task.command;
  if (task.space == nullptr) {  // Flush of all namespaces
    for (const auto& [id, space] : queue.subsystem->namespaces()) {
      task.space = &space;
      submit(queue, number, {.kind = Kind::kFlush});
    }
    if (task.store_requests == 0) answer(queue, number, nvme::Status::kSuccess);
    return;
  }
  BlockStore::Request request{.offset = offset_of(task), .length = task.bytes};
  const bool is_durable = (command.cdw12() & kForceUnitAccess) != 0;
  switch (static_cast<IOOpcode>(command.opcode)) {
    case IOOpcode::kFlush: return submit(queue, number, {.kind = Kind::kFlush});
    case IOOpcode::kRead:
      if (task.space->store->memory()) return send_data_and_answer(queue, number);
      request.kind = Kind::kRead;
      request.bytes = task.buffer->bytes;
      return submit(queue, number, request);
    case IOOpcode::kCompare:
      request.kind = Kind::kRead;
      request.bytes = task.second->bytes;
      return submit(queue, number, request);
    case IOOpcode::kWrite:
      request.kind = is_durable ? Kind::kDurableWrite : Kind::kWrite;
      request.bytes = const_cast<u8*>(data_of(task).data());  // a store only reads it
      return submit(queue, number, request);
    case IOOpcode::kWriteZeroes:
      request.kind = Kind::kWriteZeroes;
      request.length = u64{command.blocks()} << task.space->store->block_log2();
      return submit(queue, number, request);
    case IOOpcode::kDatasetManagement: return begin_dataset_management(queue, number);
  }
  CHECK_UNREACHABLE();  // check_io() refuses others
}

// Deallocates its ranges; other attributes are hints, and nothing is done for them.
void Target::begin_dataset_management(Queue& queue, u32 number) {
  Task& task = queue.tasks[number];
  const std::span<const u8> ranges = data_of(task);
  const bool deallocates = (task.command.cdw11() & kDeallocateAttribute) != 0;
  const u64 blocks = task.space->blocks();
  std::vector<BlockStore::Request> requests;
  for (std::size_t at = 0; at + kRangeBytes <= ranges.size(); at += kRangeBytes) {
    const u64 length = load_le<u32>(ranges.data() + at + 4);
    const u64 first = load_le<u64>(ranges.data() + at + 8);
    if (first > blocks || length > blocks - first)
      return answer(queue, number, nvme::Status::kLBAOutOfRange);
    const u8 log2 = task.space->store->block_log2();
    if (length > 0)
      requests.push_back({.kind = BlockStore::Kind::kDeallocate,
                          .offset = first << log2,
                          .length = length << log2});
  }
  if (!deallocates || requests.empty()) return answer(queue, number, nvme::Status::kSuccess);
  for (const BlockStore::Request& request : requests) submit(queue, number, request);
}

// --- results of stores

void Target::on_store() {
  for (BlockStore* const store : stores_) poll_store(*store);
  send_answers();
}

void Target::poll_store(BlockStore& store) {
  for (BlockStore::Done done; store.poll(done);) {
    const StoreRequest request = store_requests_[done.tag];
    free_store_requests_.push_back(static_cast<u32>(done.tag));
    Queue* const queue = find(request.queue);
    CHECK(queue != nullptr);  // it waits for its requests
    Task& task = queue->tasks[request.task];
    --task.store_requests;
    --queue->store_requests;
    const nvme::Status status = status_of(request.kind, done.outcome);
    if (status != nvme::Status::kSuccess) task.status = status;
    if (task.store_requests > 0) continue;
    if (queue->is_closed) {
      give_back_buffers(task);
      remove_if_idle(*queue);
      continue;
    }
    finish_store(*queue, request.task);
  }
}

void Target::finish_store(Queue& queue, u32 number) {
  Task& task = queue.tasks[number];
  if (task.status != nvme::Status::kSuccess) return answer(queue, number, task.status);
  const auto opcode = static_cast<IOOpcode>(task.command.opcode);
  if (opcode == IOOpcode::kRead) return send_data_and_answer(queue, number);
  if (opcode == IOOpcode::kWrite) counters_.bytes_written += task.bytes;
  if (opcode == IOOpcode::kCompare) {
    const std::span<const u8> wanted = data_of(task);
    const bool is_equal = wanted.empty() || task.second->bytes == nullptr ||
                          std::memcmp(wanted.data(), task.second->bytes, wanted.size()) == 0;
    if (!is_equal) return answer(queue, number, nvme::Status::kCompareFailure);
  }
  answer(queue, number, nvme::Status::kSuccess);
}

// --- responses

void Target::send_data_and_answer(Queue& queue, u32 number) {
  Task& task = queue.tasks[number];
  Slice from{0, task.bytes, 0};
  if (task.buffer) {
    from.address = task.buffer->address;
    from.l_key = task.buffer->l_key;
  } else {
    const application::Region memory = *task.space->store->memory();
    from.address = memory.address + offset_of(task);
    from.l_key = memory.l_key;
  }
  const std::array slices{from};
  node_.post(queue.connection, {.operation = Operation::kWrite,
                                .local = slices,
                                .remote_address = task.command.sgl.address,
                                .r_key = task.command.sgl.key,
                                .report = Report::kFailureOnly});
  counters_.bytes_read += task.bytes;
  unanswered_bytes_ += task.bytes;
  answer(queue, number, nvme::Status::kSuccess);
}

void Target::answer(Queue& queue, u32 number, nvme::Status status, u64 result) {
  Task& task = queue.tasks[number];
  if (status != nvme::Status::kSuccess) {
    ++counters_.errors;
    if (queue.controller != nullptr) queue.controller->note_error(queue.qid, task.command, status);
  } else if (queue.controller != nullptr && queue.qid != 0) {
    const bool reads = static_cast<IOOpcode>(task.command.opcode) == IOOpcode::kRead;
    const bool writes = static_cast<IOOpcode>(task.command.opcode) == IOOpcode::kWrite;
    if (reads || writes)
      queue.controller->note_success({.reads = reads,
                                      .writes = writes,
                                      .bytes_read = reads ? task.bytes : 0,
                                      .bytes_written = writes ? task.bytes : 0});
  }
  queue_answer(queue, number, status, result);
}

// Faults of a command itself come again; those of the medium or the moment may not.
void Target::queue_answer(Queue& queue, u32 number, nvme::Status status, u64 result) {
  Task& task = queue.tasks[number];
  const bool may_retry =
      status == nvme::Status::kSuccess || status == nvme::Status::kAbortRequested ||
      status == nvme::Status::kConnectControllerBusy ||
      status == nvme::Status::kUnrecoveredReadError || status == nvme::Status::kWriteFault;
  const nvme::Completion completion{
      .result = result,
      .sq_head = queue.has_flow_control ? queue.sq_head : u16{0xffff},
      .sq_id = queue.qid,
      .cid = task.command.cid,
      .status = static_cast<u16>(static_cast<u16>(status) | (may_retry ? 0 : nvme::kDoNotRetry))};
  completion.encode(std::span<u8, nvme::Completion::kSize>(
      queue.answers.bytes.data() + u64{number} * nvme::Completion::kSize, nvme::Completion::kSize));
  task.state = Task::State::kAnswered;
  answers_.push_back({queue.connection, number});
  if (answers_.size() >= kMaxAnswersTogether || unanswered_bytes_ >= kMaxBytesTogether)
    send_answers();
}

// send_answer() may release a buffer and so lead to further answers.
void Target::send_answers() {
  unanswered_bytes_ = 0;
  while (!answers_.empty()) {
    const TaskId next = answers_.front();
    answers_.pop_front();
    Queue* const queue = find(next.queue);
    if (queue != nullptr && !queue->is_closed) send_answer(*queue, next.task);
  }
}

void Target::send_answer(Queue& queue, u32 number) {
  Task& task = queue.tasks[number];
  const std::array slices{Slice{queue.answers.address + u64{number} * nvme::Completion::kSize,
                                static_cast<u32>(nvme::Completion::kSize), queue.answers.l_key}};
  const bool invalidates = is_keyed(task.command) &&
                           task.command.sgl.subtype == nvme::SGLDescriptor::kSubtypeInvalidateKey;
  const bool holds_buffers = task.buffer.has_value();
  node_.post(queue.connection,
             {.operation = Operation::kSend,
              .id = number,
              .local = slices,
              .invalidate = invalidates ? std::optional(task.command.sgl.key) : std::nullopt,
              .report = holds_buffers ? Report::kAlways : Report::kFailureOnly});
  if (!holds_buffers) release(queue, task);
}

void Target::release(Queue& queue, Task& task) {
  give_back_buffers(task);
  const u32 number = static_cast<u32>(&task - queue.tasks.data());
  task.state = Task::State::kFree;
  --queue.busy;
  post_capsule_receive(queue, number);
  serve_waiting();
}

void Target::give_back_buffers(Task& task) {
  if (task.buffer) buffers_.give_back(*std::exchange(task.buffer, std::nullopt));
  if (task.second) buffers_.give_back(*std::exchange(task.second, std::nullopt));
}

// Each that waits is tried once.
void Target::serve_waiting() {
  if (serves_waiting_) return;  // begin_io() may release a task
  serves_waiting_ = true;
  for (std::size_t left = waiting_.size(); left > 0 && !waiting_.empty(); --left) {
    const TaskId next = waiting_.front();
    waiting_.pop_front();
    Queue* const queue = find(next.queue);
    if (queue != nullptr && !queue->is_closed) begin_io(*queue, next.task);
  }
  serves_waiting_ = false;
}

}  // namespace verbena::nvmf
