#include "nvmf/target.h"

#include <set>

#include "base/check.h"

namespace verbena::nvmf {
namespace {

using application::ConnectionId;
using application::Event;
using nvme::Command;
using nvme::ConnectCommand;
using nvme::ConnectData;
using nvme::FabricsType;
using nvme::RDMAReject;

constexpr u16 kAdminEntries = 32;
// The data of a capsule begins at a multiple of this, because files may be opened with O_DIRECT.
constexpr u32 kDataAlignment = 4096;
constexpr u32 kTasksPerEntry = 2;  // the receive of a command is posted again after its response
// An I/O queue has the data of one Connect, Authentication Send or Authentication Receive at a
// time.
constexpr u32 kIOQueueDataBytes = nvme::kMaxAuthMessage;
constexpr u32 kMaxControllers = 0xffef;  // CNTLIDs from FFF0h are reserved. Fabrics 1.1a, 3.3

// Bytes before a capsule, so that its data is aligned; none where it has no data.
u32 capsule_lead(const ControllerLimits& limits) {
  return limits.in_capsule_bytes == 0 ? 0 : kDataAlignment - u32{Command::kSize};
}
u32 capsule_stride(const ControllerLimits& limits) {
  const u32 bytes = capsule_lead(limits) + u32{Command::kSize} + limits.in_capsule_bytes;
  const u32 unit = limits.in_capsule_bytes == 0 ? u32{Command::kSize} : kDataAlignment;
  return (bytes + unit - 1) / unit * unit;
}
u64 capsule_offset(const ControllerLimits& limits, u32 task) {
  return u64{task} * capsule_stride(limits) + capsule_lead(limits);
}

AdminAnswer refuse_connect(nvme::Status status, u32 at, bool in_data) {
  return {.status = status, .result = at | (in_data ? 1u << 16 : 0)};  // IPO, IATTR
}

}  // namespace

TargetCounters& TargetCounters::operator+=(const TargetCounters& other) {
  connections += other.connections;
  refused_connections += other.refused_connections;
  commands += other.commands;
  errors += other.errors;
  keep_alive_expirations += other.keep_alive_expirations;
  bytes_read += other.bytes_read;
  bytes_written += other.bytes_written;
  return *this;
}

Target::Target(application::Node& node, const TargetConfig& config,
               std::shared_ptr<ControllerRegistry> registry)
    : node_(node),
      config_(config),
      buffers_(node, config.content, config.small_buffers, config.large_buffers,
               4096u << config.limits.max_transfer_pages_log2),
      registry_(std::move(registry)) {}

Target::~Target() = default;

void Target::add_subsystem(const Subsystem& subsystem) {
  subsystems_.push_back(&subsystem);
  for (const auto& [id, space] : subsystem.namespaces()) stores_.push_back(space.store);
}

verbena::Status Target::start() {
  const u32 tasks = kTasksPerEntry * std::max(config_.limits.max_queue_entries, kAdminEntries);
  return node_.listen(config_.listen, {.sends = 2 * tasks + 8, .receives = tasks});
}

// --- connections

Target::Queue* Target::find(ConnectionId connection) {
  const auto found = queues_.find(connection);
  return found == queues_.end() ? nullptr : found->second.get();
}

void Target::on_ready() {
  for (Event event; node_.poll(event);) on_event(event);
  for (BlockStore* const store : stores_) store->flush_submissions();
  on_store();  // memory has ended its requests already
  if (registry_->ended() != ended_) close_queues_of_ended();
  if (drains_) close_if_drained();
  arm();
}

void Target::on_event(const Event& event) {
  if (event.kind == Event::Kind::kConnectRequest) return on_request(event);
  if (event.kind == Event::Kind::kAlarm) return on_alarm();
  Queue* const queue = find(event.connection);
  if (queue == nullptr || queue->is_closed) return;
  switch (event.kind) {
    case Event::Kind::kReceived: return on_capsule(*queue, event.id, event.bytes);
    case Event::Kind::kDone: {
      Task& task = queue->tasks[event.id];
      if (task.state == Task::State::kFetches) return on_fetched(*queue, event.id);
      if (task.state == Task::State::kAnswered) release(*queue, task);
      return;
    }
    case Event::Kind::kRefused:
    case Event::Kind::kClosed: return on_closed(*queue);
    case Event::Kind::kConnected:
    case Event::Kind::kConnectRequest:
    case Event::Kind::kAlarm: return;
  }
}

void Target::on_request(const Event& event) {
  const auto refuse = [&](RDMAReject reason) {
    ++counters_.refused_connections;
    node_.reject(event.connection, nvme::rdma_reject_data(reason));
  };
  const auto data = nvme::RDMARequestData::decode(event.private_data);
  const u16 most = config_.limits.max_queue_entries;
  if (drains_) return refuse(RDMAReject::kNoResources);
  if (!data) return refuse(RDMAReject::kInvalidPrivateDataLength);
  if (data->record_format != 0) return refuse(RDMAReject::kInvalidRecordFormat);
  if (data->qid > config_.limits.max_io_queues) return refuse(RDMAReject::kInvalidQueueId);
  if (data->send_queue_size == 0 ||
      data->send_queue_size >= (data->qid == 0 ? kAdminEntries : most))
    return refuse(RDMAReject::kInvalidHSQSize);
  if (data->receive_queue_size == 0 || data->receive_queue_size > most)
    return refuse(RDMAReject::kInvalidHRQSize);
  admit(event.connection, *data);
}

void Target::admit(ConnectionId connection, const nvme::RDMARequestData& data) {
  auto queue = std::make_unique<Queue>();
  queue->connection = connection;
  queue->qid = data.qid;
  queue->entries = static_cast<u16>(data.send_queue_size + 1);
  queue->created = node_.now();
  const u32 tasks = kTasksPerEntry * queue->entries;
  queue->tasks.resize(tasks);
  using application::Access;
  using application::Content;
  const auto capsules =
      node_.allocate(u64{tasks} * capsule_stride(config_.limits), Content::kBytes, Access::kLocal);
  const auto answers =
      node_.allocate(u64{tasks} * nvme::Completion::kSize, Content::kBytes, Access::kLocal);
  const auto admin_data =
      node_.allocate(data.qid == 0 ? u64{tasks} * config_.admin_data_bytes : kIOQueueDataBytes,
                     Content::kBytes, Access::kLocal);
  if (capsules) queue->capsules = *capsules;
  if (answers) queue->answers = *answers;
  if (admin_data) queue->admin_data = *admin_data;
  if (!capsules || !answers || !admin_data) {
    ++counters_.refused_connections;
    node_.reject(connection, nvme::rdma_reject_data(RDMAReject::kNoResources));
    node_.deregister(queue->capsules);
    node_.deregister(queue->answers);
    return;
  }
  Queue& kept = *queue;
  queues_[connection] = std::move(queue);
  for (u32 task = 0; task < tasks; ++task) post_capsule_receive(kept, task);
  must_arm_ = true;
  ++counters_.connections;
  node_.accept(connection, nvme::rdma_accept_data(static_cast<u16>(tasks)));
}

void Target::post_capsule_receive(const Queue& queue, u32 task) {
  node_.post_receive(
      queue.connection, task,
      {queue.capsules.address + capsule_offset(config_.limits, task),
       static_cast<u32>(Command::kSize) + config_.limits.in_capsule_bytes, queue.capsules.l_key});
}

// Its memory stays until stores have ended the requests that use it.
void Target::on_closed(Queue& queue) {
  queue.is_closed = true;
  const auto controller = std::exchange(queue.controller, nullptr);
  if (controller != nullptr && queue.qid == 0) end_controller(controller->id());
  if (controller != nullptr && queue.qid != 0) controller->remove_queue(queue.qid);
  std::erase_if(waiting_, [&](const TaskId& w) { return w.queue == queue.connection; });
  for (Task& task : queue.tasks)
    if (task.store_requests == 0) give_back_buffers(task);
  remove_if_idle(queue);
}

void Target::remove_if_idle(Queue& queue) {
  if (!queue.is_closed || queue.store_requests > 0) return;
  node_.deregister(queue.capsules);
  node_.deregister(queue.answers);
  node_.deregister(queue.admin_data);
  queues_.erase(queue.connection);
  serve_waiting();
}

void Target::end_controller(u16 id) {
  const auto found = controllers_.find(id);
  if (found == controllers_.end()) return;
  found->second->end();
  if (!found->second->is_discovery())
    past_counts_[found->second->subsystem()] += found->second->counts();
  controllers_.erase(found);
  registry_->remove(id);
  close_queues_of_ended();
}

void Target::close_queues_of_ended() {
  ended_ = registry_->ended();
  std::vector<ConnectionId> connections;
  for (const auto& [connection, queue] : queues_)
    if (queue->controller != nullptr && queue->controller->has_ended()) {
      queue->controller = nullptr;
      connections.push_back(connection);
    }
  for (const ConnectionId connection : connections) node_.disconnect(connection);
}

const Subsystem* Target::find_subsystem(std::string_view nqn) const {
  const auto found = std::ranges::find(subsystems_, nqn, &Subsystem::nqn);
  return found == subsystems_.end() ? nullptr : *found;
}

void Target::on_alarm() {
  armed_ = Time::never();
  must_arm_ = true;
  const Time now = node_.now();
  std::vector<u16> expired;
  for (const auto& [id, controller] : controllers_)
    if (controller->is_expired(now)) expired.push_back(id);
  counters_.keep_alive_expirations += expired.size();
  for (const u16 id : expired) end_controller(id);
  std::vector<ConnectionId> silent;
  for (const auto& [connection, queue] : queues_)
    if (now >= queue->deadline(config_.connect_limit)) silent.push_back(connection);
  for (const ConnectionId connection : silent) node_.disconnect(connection);
}

std::vector<SubsystemStats> Target::stats() const {
  std::vector<SubsystemStats> all;
  for (const Subsystem* const subsystem : subsystems_) {
    SubsystemStats stats{.nqn = subsystem->nqn()};
    if (const auto past = past_counts_.find(subsystem); past != past_counts_.end())
      stats.counts = past->second;
    std::set<std::string_view> hosts;
    for (const auto& [id, controller] : controllers_) {
      if (controller->subsystem() != subsystem) continue;
      stats.counts += controller->counts();
      hosts.insert(controller->host().host_nqn);
    }
    stats.hosts = hosts.size();
    all.push_back(std::move(stats));
  }
  return all;
}

// Traffic moves expirations to a later time only: the alarm that is set comes early then.
void Target::arm() {
  if (!std::exchange(must_arm_, false)) return;
  Time next = Time::never();
  for (const auto& [id, controller] : controllers_) next = std::min(next, controller->next_timer());
  for (const auto& [connection, queue] : queues_)
    next = std::min(next, queue->deadline(config_.connect_limit));
  if (next < armed_) node_.set_alarm(armed_ = next);
}

void Target::drain() {
  drains_ = true;
  for (const auto& [connection, queue] : queues_) queue->may_admit = false;
  close_if_drained();
}

// Asynchronous Event Requests of admin queues never end.
bool Target::is_drained() const {
  return drains_ && std::ranges::all_of(queues_, [](const auto& entry) {
           return entry.second->qid == 0 || entry.second->busy == 0 || entry.second->is_closed;
         });
}

void Target::close_if_drained() {
  if (!is_drained()) return;
  for (const auto& [connection, queue] : queues_) node_.disconnect(connection);
}

void Target::on_namespace_changed(const Subsystem& subsystem, u32 nsid) {
  for (const auto& [id, controller] : controllers_) {
    if (controller->subsystem() != &subsystem) continue;
    controller->on_namespace_changed(nsid);
    if (Queue* const queue = admin_queue_of(*controller)) send_events(*queue);
  }
  send_answers();
}

// --- capsules

void Target::on_capsule(Queue& queue, u32 number, u32 length) {
  Task& task = queue.tasks[number];
  if (!queue.may_admit) return;
  const u64 offset = capsule_offset(config_.limits, number);
  u8* const bytes = queue.capsules.bytes.data() + offset;
  if (length < Command::kSize) return node_.disconnect(queue.connection);
  task = {.state = Task::State::kInStore,
          .command = Command::decode(std::span<const u8, Command::kSize>(bytes, Command::kSize)),
          .capsule_data = bytes + Command::kSize,
          .begin = node_.now()};
  ++queue.busy;
  ++counters_.commands;
  queue.sq_head = static_cast<u16>((queue.sq_head + 1) % queue.entries);
  if (task.command.opcode == nvme::kFabricsOpcode) return on_fabrics(queue, number, length);
  if (queue.controller == nullptr)
    return answer(queue, number, nvme::Status::kCommandSequenceError);
  queue.controller->on_traffic(task.begin);
  if (queue.lacks_authentication())
    return answer(queue, number, nvme::Status::kAuthenticationRequired);
  if (queue.qid == 0) return on_admin(queue, number);
  on_io(queue, number, length - static_cast<u32>(Command::kSize));
}

// Sets task.capsule_data to the data, or to nullptr where the host's memory has it. nullopt: valid.
std::optional<nvme::Status> Target::find_data(Task& task, u32 capsule_bytes, u32 needed) const {
  const nvme::SGLDescriptor& sgl = task.command.sgl;
  u8* const data = std::exchange(task.capsule_data, nullptr);
  task.bytes = needed;
  switch (static_cast<nvme::SGLDescriptor::Type>(sgl.type)) {
    case nvme::SGLDescriptor::Type::kKeyedDataBlock:
      if (sgl.subtype != nvme::SGLDescriptor::kSubtypeAddress &&
          sgl.subtype != nvme::SGLDescriptor::kSubtypeInvalidateKey)
        return nvme::Status::kSGLDescriptorTypeInvalid;
      if (sgl.length != needed) return nvme::Status::kDataSGLLengthInvalid;
      return std::nullopt;
    case nvme::SGLDescriptor::Type::kDataBlock: {
      if (!nvme::may_send_data(task.command))
        return nvme::Status::kSGLDescriptorTypeInvalid;  // nothing is returned in a capsule
      if (sgl.subtype != nvme::SGLDescriptor::kSubtypeOffset)
        return nvme::Status::kSGLDescriptorTypeInvalid;
      if (sgl.length != needed) return nvme::Status::kDataSGLLengthInvalid;
      if (sgl.address > capsule_bytes || needed > capsule_bytes - sgl.address)
        return nvme::Status::kSGLOffsetInvalid;
      task.capsule_data = data + sgl.address;
      return std::nullopt;
    }
  }
  return nvme::Status::kSGLDescriptorTypeInvalid;
}

void Target::on_fabrics(Queue& queue, u32 number, u32 bytes) {
  const auto type = static_cast<FabricsType>(queue.tasks[number].command.fabrics_type());
  const Command command = queue.tasks[number].command;
  if (type == FabricsType::kConnect)
    return on_connect(queue, number, bytes - static_cast<u32>(Command::kSize));
  if (queue.controller == nullptr)
    return answer(queue, number, nvme::Status::kCommandSequenceError);
  queue.controller->on_traffic(node_.now());
  if (queue.authentication != nullptr && type == FabricsType::kAuthenticationSend)
    return on_authentication_send(queue, number, bytes - static_cast<u32>(Command::kSize));
  if (queue.authentication != nullptr && type == FabricsType::kAuthenticationReceive)
    return on_authentication_receive(queue, number);
  if (queue.lacks_authentication())
    return answer(queue, number, nvme::Status::kAuthenticationRequired);
  const bool is_property = type == FabricsType::kPropertyGet || type == FabricsType::kPropertySet;
  if (is_property && queue.qid == 0)
    return finish_admin(queue, number, queue.controller->on_property(command));
  if (type == FabricsType::kDisconnect && queue.qid != 0) {
    const ConnectionId connection = queue.connection;
    answer(queue, number, nvme::Status::kSuccess);
    Queue* const still = find(connection);
    if (still != nullptr) still->may_admit = false;  // the host closes the connection
    return;
  }
  answer(queue, number, nvme::Status::kInvalidOpcode);
}

void Target::on_connect(Queue& queue, u32 number, u32 capsule_bytes) {
  Task& task = queue.tasks[number];
  if (queue.controller != nullptr)
    return answer(queue, number, nvme::Status::kCommandSequenceError);
  if (const auto wrong = find_data(task, capsule_bytes, ConnectData::kSize))
    return answer(queue, number, *wrong);
  if (task.capsule_data != nullptr) return on_connect_data(queue, number);
  fetch_admin_data(queue, number);
}

u64 Target::admin_offset(const Queue& queue, u32 number) const {
  return queue.qid == 0 ? u64{number} * config_.admin_data_bytes : 0;
}

// Fetches the data of a Fabrics command, as many bytes as find_data() has found.
void Target::fetch_admin_data(Queue& queue, u32 number) {
  Task& task = queue.tasks[number];
  const u64 offset = admin_offset(queue, number);
  task.state = Task::State::kFetches;
  task.capsule_data = queue.admin_data.bytes.data() + offset;
  fetch(queue, number, {queue.admin_data.address + offset, task.bytes, queue.admin_data.l_key});
}

void Target::on_connect_data(Queue& queue, u32 number) {
  Task& task = queue.tasks[number];
  const auto command = ConnectCommand::from(task.command);
  if (queue.controller != nullptr)
    return answer(queue, number, nvme::Status::kCommandSequenceError);
  const auto data = ConnectData::decode(
      std::span<const u8, ConnectData::kSize>(task.capsule_data, ConnectData::kSize));
  if (command.record_format != 0)
    return answer(queue, number, nvme::Status::kConnectIncompatibleFormat);
  if (command.qid != queue.qid || command.sq_size == 0 || command.sq_size >= queue.entries)
    return finish_admin(queue, number,
                        refuse_connect(nvme::Status::kConnectInvalidParameters,
                                       command.qid != queue.qid ? 42 : 44, false));
  queue.has_flow_control = (command.attributes & ConnectCommand::kDisablesSQFlowControl) == 0;
  queue.entries = static_cast<u16>(command.sq_size + 1);
  queue.sq_head = static_cast<u16>(1 % queue.entries);
  finish_admin(
      queue, number,
      queue.qid == 0 ? connect_admin(queue, command, data) : connect_io(queue, command, data));
}

u16 Target::new_controller_id() {
  do last_controller_ = static_cast<u16>(last_controller_ % kMaxControllers + 1);
  while (controllers_.contains(last_controller_));
  return last_controller_;
}

AdminAnswer Target::connect_admin(Queue& queue, const ConnectCommand& command,
                                  const ConnectData& data) {
  using nvme::Status;
  const bool is_discovery = data.subsystem_nqn == nvme::kDiscoveryNQN;
  const Subsystem* const subsystem = find_subsystem(data.subsystem_nqn);
  if (!is_discovery && subsystem == nullptr)
    return refuse_connect(Status::kConnectInvalidParameters, ConnectData::kSubsystemAt, true);
  if (!nvme::is_nqn(data.host_nqn))
    return refuse_connect(Status::kConnectInvalidParameters, ConnectData::kHostAt, true);
  if (!is_discovery && !subsystem->allows(data.host_nqn))
    return refuse_connect(Status::kConnectInvalidHost, ConnectData::kHostAt, true);
  if (data.controller_id != nvme::kDynamicController)  // the dynamic model
    return refuse_connect(Status::kConnectInvalidParameters, ConnectData::kControllerIdAt, true);
  if (controllers_.size() == kMaxControllers) return {.status = Status::kConnectControllerBusy};
  const u16 id = new_controller_id();
  auto controller =
      std::make_shared<Controller>(is_discovery ? nullptr : subsystem, config_.limits, id, data,
                                   ms(i64{command.keep_alive_ms}), node_.now());
  queue.controller = controller;
  queue.subsystem = controller->subsystem();
  registry_->enter(controller);
  controllers_[id] = std::move(controller);
  must_arm_ = true;
  return {.result = id | begin_authentication(queue)};
}

AdminAnswer Target::connect_io(Queue& queue, const ConnectCommand& command,
                               const ConnectData& data) {
  using nvme::Status;
  const auto found = registry_->find(data.controller_id);
  if (found == nullptr)
    return refuse_connect(Status::kConnectInvalidParameters, ConnectData::kControllerIdAt, true);
  Controller& controller = *found;
  if (controller.is_discovery() || controller.subsystem()->nqn() != data.subsystem_nqn)
    return refuse_connect(Status::kConnectInvalidParameters, ConnectData::kSubsystemAt, true);
  if (controller.host().host_nqn != data.host_nqn || controller.host().host_id != data.host_id)
    return refuse_connect(Status::kConnectInvalidParameters, ConnectData::kHostAt, true);
  if (!controller.is_ready()) return {.status = Status::kCommandSequenceError};
  if (!controller.add_queue(command.qid)) return {.status = Status::kCommandSequenceError};
  queue.controller = found;
  queue.subsystem = find_subsystem(data.subsystem_nqn);
  return {.result = controller.id() | begin_authentication(queue)};
}

// --- admin commands

std::vector<nvme::DiscoveryEntry> Target::discovery_for(const std::string& host) const {
  std::vector<nvme::DiscoveryEntry> entries;
  using Entry = nvme::DiscoveryEntry;
  Entry entry;
  entry.family = config_.listen.ip.is_ipv4() ? Entry::Family::kIPv4 : Entry::Family::kIPv6;
  entry.service = std::to_string(config_.listen.port);
  entry.address = config_.address_text;
  entry.provider = config_.provider;
  for (const Subsystem* const subsystem : subsystems_) {
    if (!subsystem->allows(host)) continue;
    entry.subsystem_nqn = subsystem->nqn();
    entries.push_back(entry);
  }
  return entries;
}

void Target::on_admin(Queue& queue, u32 number) {
  Controller& controller = *queue.controller;
  const Command& command = queue.tasks[number].command;
  const AdminAnswer answer =
      controller.on_admin(command, node_.now(), discovery_for(controller.host().host_nqn));
  if (answer.aborted)
    for (u32 i = 0; i < queue.receives(); ++i)
      if (queue.tasks[i].state != Task::State::kFree && i != number &&
          queue.tasks[i].command.cid == *answer.aborted)
        this->answer(queue, i, nvme::Status::kAbortRequested);
  must_arm_ = true;  // a feature may have changed the keep-alive timer
  if (answer.is_pending) return send_events(queue);
  finish_admin(queue, number, answer);
}

void Target::finish_admin(Queue& queue, u32 number, const AdminAnswer& admin) {
  Task& task = queue.tasks[number];
  if (admin.status != nvme::Status::kSuccess || admin.data.empty())
    return answer(queue, number, admin.status, admin.result);
  const nvme::SGLDescriptor& sgl = task.command.sgl;
  if (sgl.type != static_cast<u8>(nvme::SGLDescriptor::Type::kKeyedDataBlock))
    return answer(queue, number, nvme::Status::kSGLDescriptorTypeInvalid);
  // A host may take less than all of it.
  const u32 bytes = std::min(sgl.length, static_cast<u32>(admin.data.size()));
  if (bytes > config_.admin_data_bytes) return answer(queue, number, nvme::Status::kInvalidField);
  const u64 offset = admin_offset(queue, number);
  std::copy_n(admin.data.begin(), bytes,
              queue.admin_data.bytes.begin() + static_cast<std::ptrdiff_t>(offset));
  const std::array slices{
      application::Slice{queue.admin_data.address + offset, bytes, queue.admin_data.l_key}};
  node_.post(queue.connection, {.operation = application::Operation::kWrite,
                                .local = slices,
                                .remote_address = sgl.address,
                                .r_key = sgl.key,
                                .report = application::Report::kFailureOnly});
  answer(queue, number, nvme::Status::kSuccess, admin.result);
}

Target::Queue* Target::admin_queue_of(const Controller& controller) {
  for (const auto& [connection, queue] : queues_)
    if (queue->controller.get() == &controller && queue->qid == 0) return queue.get();
  return nullptr;
}

void Target::send_events(Queue& queue) {
  while (const auto event = queue.controller->poll_async_event())
    for (u32 i = 0; i < queue.receives(); ++i) {
      const Task& task = queue.tasks[i];
      if (task.state == Task::State::kFree || task.command.cid != event->cid) continue;
      answer(queue, i, nvme::Status::kSuccess, event->result);
      break;
    }
}

}  // namespace verbena::nvmf
