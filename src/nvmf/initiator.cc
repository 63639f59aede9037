#include "nvmf/initiator.h"

#include <utility>

#include "base/check.h"
#include "nvmf/status_text.h"

namespace verbena::nvmf {
namespace {

using application::ConnectionId;
using application::Event;
using nvme::AdminOpcode;
using nvme::CNS;
using nvme::Command;
using nvme::FabricsType;

constexpr u32 kScratchBytes = 4096;
constexpr Duration kReadyPoll = ms(10);
constexpr u32 kMaxTransfer = 1 << 20;  // of a controller without a limit
constexpr u8 kMaxPagesLog2 = 19;       // 2 GiB

Command fabrics_command(FabricsType type) {
  Command command{.opcode = nvme::kFabricsOpcode};
  command.nsid = static_cast<u32>(type);
  return command;
}

Command property_get(nvme::Property property, bool is_wide) {
  Command command = fabrics_command(FabricsType::kPropertyGet);
  command.cdw[0] = is_wide ? 1 : 0;
  command.cdw[1] = static_cast<u32>(property);
  return command;
}

Command property_set(nvme::Property property, u32 value) {
  Command command = fabrics_command(FabricsType::kPropertySet);
  command.cdw[1] = static_cast<u32>(property);
  command.cdw[2] = value;
  return command;
}

Command identify_command(CNS cns, u32 nsid) {
  Command command{.opcode = static_cast<u8>(AdminOpcode::kIdentify), .nsid = nsid};
  command.cdw[0] = static_cast<u32>(cns);
  return command;
}

}  // namespace

Initiator::Initiator(application::Node& node, const InitiatorConfig& config)
    : node_(node), config_(config) {
  const auto scratch = node.allocate(kScratchBytes, application::Content::kBytes,
                                     application::Access::kRemoteReadWrite);
  CHECK(scratch.has_value());
  scratch_ = *scratch;
}

std::span<const u8, nvme::kIdentifySize> Initiator::page() const {
  return std::span<const u8, nvme::kIdentifySize>(scratch_.bytes.data(), nvme::kIdentifySize);
}

Initiator::Queue* Initiator::find(ConnectionId connection) {
  const auto found = std::ranges::find(queues_, connection, &Queue::connection);
  return found == queues_.end() ? nullptr : &*found;
}

// --- attempts and losses

void Initiator::start() {
  lost_at_ = node_.now();
  begin_attempt();
  arm();
}

void Initiator::begin_attempt() {
  state_ = State::kConnecting;
  step_ = Step::kConnect;
  step_began_ = node_.now();
  next_attempt_ = Time::never();
  controller_id_ = nvme::kDynamicController;
  if (!open_queue(0)) lose("the target's address cannot be reached");
}

bool Initiator::open_queue(u16 qid) {
  const u16 entries = qid == 0 ? config_.admin_entries : io_entries_;
  Queue queue{.qid = qid, .entries = entries};
  const auto commands = node_.allocate(u64{entries} * Command::kSize, application::Content::kBytes,
                                       application::Access::kLocal);
  const auto completions =
      node_.allocate(u64{entries} * nvme::Completion::kSize, application::Content::kBytes,
                     application::Access::kLocal);
  if (!commands || !completions) return false;
  queue.commands = *commands;
  queue.completions = *completions;
  queue.slots.resize(entries);
  for (u16 cid = entries; cid > 0; --cid) queue.free.push_back(static_cast<u16>(cid - 1));
  const nvme::RDMARequestData data{.qid = qid,
                                   .receive_queue_size = entries,
                                   .send_queue_size = static_cast<u16>(entries - 1),
                                   .controller_id = qid == 0 ? u16{0} : controller_id_};
  const auto connection =
      node_.connect(config_.target, {.sends = entries + 8u, .receives = entries}, data.encode());
  if (!connection) {
    node_.deregister(queue.commands);
    node_.deregister(queue.completions);
    return false;
  }
  queue.connection = *connection;
  for (u32 i = 0; i < entries; ++i)
    node_.post_receive(queue.connection, i,
                       {queue.completions.address + i * nvme::Completion::kSize,
                        static_cast<u32>(nvme::Completion::kSize), queue.completions.l_key});
  queues_.push_back(std::move(queue));
  return true;
}

// Requests of the user go back to the front of those that wait, in their order of submission.
void Initiator::tear_down() {
  std::vector<Request> again;
  for (Queue& queue : queues_) {
    for (const Slot& slot : queue.slots) {
      if (slot.owner == Owner::kUser) again.push_back(slot.request);
      if (slot.owner == Owner::kAdminUser)
        results_.push_back({slot.request.tag, nvme::Status::kTransientTransportError, 0});
    }
    node_.disconnect(queue.connection);
    node_.deregister(queue.commands);
    node_.deregister(queue.completions);
  }
  queues_.clear();
  authentication_.reset();
  outstanding_ = 0;
  pending_.insert(pending_.begin(), again.begin(), again.end());
}

void Initiator::fail_all() {
  state_ = State::kFailed;
  for (const Request& request : std::exchange(pending_, {}))
    results_.push_back({request.tag, nvme::Status::kTransientTransportError, 0});
}

void Initiator::lose(std::string why) {
  if (state_ == State::kFailed || state_ == State::kIdle) return;
  const Time now = node_.now();
  if (state_ == State::kLive) lost_at_ = now;
  failure_ = std::move(why);
  next_keep_alive_ = keep_alive_sent_ = next_ready_poll_ = Time::never();
  tear_down();
  const bool gives_up = now >= lost_at_ + config_.loss_timeout || is_final_;
  if (gives_up) return fail_all();
  state_ = State::kWaiting;
  next_attempt_ = std::min(now + config_.reconnect_delay, lost_at_ + config_.loss_timeout);
}

void Initiator::disconnect() {
  if (state_ == State::kLive && has_room(queues_.front()))
    send(queues_.front(),
         property_set(nvme::Property::kCC,
                      nvme::kCCFabrics | nvme::kCCEnable | 1u << 14),  // SHN: normal
         {}, {.owner = Owner::kShutdown});
  else
    finish_disconnect();
}

void Initiator::finish_disconnect() {
  tear_down();
  fail_all();
  state_ = State::kIdle;
  next_attempt_ = next_keep_alive_ = keep_alive_sent_ = next_ready_poll_ = Time::never();
}

// --- events

void Initiator::on_ready() {
  for (Event event; node_.poll(event);) on_event(event);
  send_pending();
  arm();
}

void Initiator::on_event(const Event& event) {
  if (event.kind == Event::Kind::kAlarm) return on_alarm();
  Queue* const queue = find(event.connection);
  if (queue == nullptr) return;
  switch (event.kind) {
    case Event::Kind::kConnected: return on_connected(*queue);
    case Event::Kind::kReceived:
      if (event.bytes != nvme::Completion::kSize)
        return lose("the target sent a response of " + std::to_string(event.bytes) + " bytes");
      return on_response(*queue, event.id);
    case Event::Kind::kRefused:
      return lose(event.private_data.size() >= 4 && load_le<u16>(event.private_data.data() + 2) != 0
                      ? "the target refuses the connection, reason " +
                            std::to_string(load_le<u16>(event.private_data.data() + 2))
                      : "the target does not answer, or refuses the connection");
    case Event::Kind::kClosed: return lose("the connection was lost");
    case Event::Kind::kDone:
    case Event::Kind::kConnectRequest:
    case Event::Kind::kAlarm: return;
  }
}

void Initiator::arm() {
  Time next = std::min({next_attempt_, next_keep_alive_, next_ready_poll_});
  if (state_ == State::kConnecting) next = std::min(next, step_began_ + config_.attempt_timeout);
  if (keep_alive_sent_ != Time::never())
    next = std::min(next, keep_alive_sent_ + config_.keep_alive);
  if (next == armed_) return;
  armed_ = next;
  node_.set_alarm(next);
}

void Initiator::on_alarm() {
  armed_ = Time::never();
  const Time now = node_.now();
  if (state_ == State::kWaiting && now >= next_attempt_) {
    if (now >= lost_at_ + config_.loss_timeout) return fail_all();
    return begin_attempt();
  }
  if (state_ == State::kConnecting && now >= step_began_ + config_.attempt_timeout)
    return lose("the target does not answer");
  if (keep_alive_sent_ != Time::never() && now >= keep_alive_sent_ + config_.keep_alive)
    return lose("the target did not answer a keep-alive");
  if (now >= next_ready_poll_) {
    next_ready_poll_ = Time::never();
    send_step(property_get(nvme::Property::kCSTS, false), 0);
  }
  if (now >= next_keep_alive_) send_keep_alive();
}

// --- set-up

void Initiator::on_connected(Queue& queue) {
  step_began_ = node_.now();
  send_connect(queue);
}

// The data of Connect has a place of its own in the page: only one queue connects at a time.
void Initiator::send_connect(Queue& queue) {
  nvme::ConnectData data{.host_id = config_.host_id,
                         .controller_id = controller_id_,
                         .subsystem_nqn = config_.subsystem_nqn,
                         .host_nqn = config_.host_nqn};
  data.encode(
      std::span<u8, nvme::ConnectData::kSize>(scratch_.bytes.data(), nvme::ConnectData::kSize));
  Command command;
  const i64 keep_alive_ms = config_.keep_alive.ps() / 1'000'000'000;
  nvme::ConnectCommand{.qid = queue.qid,
                       .sq_size = static_cast<u16>(queue.entries - 1),
                       .keep_alive_ms = queue.qid == 0 ? static_cast<u32>(keep_alive_ms) : 0}
      .put_into(command);
  send(queue, command, {scratch_.address, nvme::ConnectData::kSize, scratch_.l_key, scratch_.r_key},
       {.owner = Owner::kSetUp});
}

void Initiator::send_step(const Command& command, u32 bytes) {
  send(queues_.front(), command, {scratch_.address, bytes, scratch_.l_key, scratch_.r_key},
       {.owner = Owner::kSetUp});
}

void Initiator::on_set_up(Queue& queue, const nvme::Completion& completion) {
  if (completion.code() != nvme::Status::kSuccess) {
    // A target that says no for good is not asked again, unless it knew this host before.
    is_final_ = !was_live_ && (completion.status & nvme::kDoNotRetry) != 0;
    return lose((authentication_ != nullptr ? "an authentication command failed with "
                 : step_ == Step::kConnect || queue.qid != 0 ? "the target refuses Connect with "
                                                             : "a set-up command failed with ") +
                describe(completion.code()));
  }
  if (authentication_ != nullptr) return on_authentication(queue, completion);
  const bool is_connect = step_ == Step::kConnect || queue.qid != 0;
  if (step_ == Step::kConnect) controller_id_ = static_cast<u16>(completion.result);
  if (is_connect && must_authenticate(completion)) return begin_authentication(queue);
  finish_set_up(queue, completion);
}

void Initiator::finish_set_up(Queue& queue, const nvme::Completion& completion) {
  if (queue.qid == 0) return next_step(completion);
  queue.is_ready = true;
  step_began_ = node_.now();
  if (queue.qid < io_queues_) {
    if (!open_queue(static_cast<u16>(queue.qid + 1))) lose("an I/O queue cannot be connected");
    return;
  }
  become_live();
}

void Initiator::next_step(const nvme::Completion& completion) {
  const auto go = [&](Step step, const Command& command, u32 bytes) {
    step_ = step;
    step_began_ = node_.now();
    send_step(command, bytes);
  };
  switch (step_) {
    case Step::kConnect:
      return go(Step::kReadCapabilities, property_get(nvme::Property::kCAP, true), 0);
    case Step::kReadCapabilities:
      capabilities_ = completion.result;
      return go(Step::kEnable,
                property_set(nvme::Property::kCC, nvme::kCCFabrics | nvme::kCCEnable), 0);
    case Step::kEnable: return go(Step::kWaitReady, property_get(nvme::Property::kCSTS, false), 0);
    case Step::kWaitReady:
      if ((completion.result & nvme::kCSTSFatal) != 0) return lose("the controller has failed");
      if ((completion.result & nvme::kCSTSReady) == 0) {
        next_ready_poll_ = node_.now() + kReadyPoll;
        return;
      }
      return go(Step::kIdentify, identify_command(CNS::kController, 0), nvme::kIdentifySize);
    case Step::kIdentify: {
      controller_ = nvme::IdentifyController::decode(page());
      const u32 capsule = controller_.command_capsule_units * 16;
      in_capsule_bytes_ = capsule > Command::kSize ? capsule - u32{Command::kSize} : 0;
      const u8 pages_log2 = controller_.max_transfer_pages_log2;
      max_transfer_bytes_ =
          pages_log2 == 0 ? kMaxTransfer : 4096u << std::min<u8>(pages_log2, kMaxPagesLog2);
      if (controller_.type == nvme::IdentifyController::Type::kDiscovery ||
          config_.subsystem_nqn == nvme::kDiscoveryNQN)
        return become_live();
      Command command{.opcode = static_cast<u8>(AdminOpcode::kSetFeatures)};
      command.cdw[0] = 7;  // number of queues
      command.cdw[1] = (config_.io_queues - 1u) | (config_.io_queues - 1u) << 16;
      return go(Step::kAskQueues, command, 0);
    }
    case Step::kAskQueues: {
      const u32 granted = std::min(static_cast<u32>(completion.result) & 0xffff,
                                   static_cast<u32>(completion.result) >> 16) +
                          1;
      io_queues_ = static_cast<u16>(std::min<u32>(config_.io_queues, granted));
      return go(Step::kListNamespaces, identify_command(CNS::kActiveNamespaces, 0),
                nvme::kIdentifySize);
    }
    case Step::kListNamespaces:
      unidentified_.clear();
      namespaces_.clear();
      for (std::size_t at = 0; at < nvme::kIdentifySize; at += 4) {
        const u32 id = load_le<u32>(page().data() + at);
        if (id == 0) break;
        unidentified_.push_back(id);
      }
      break;
    case Step::kIdentifyNamespace:
      namespaces_[unidentified_.back()] = nvme::IdentifyNamespace::decode(page());
      unidentified_.pop_back();
      break;
    case Step::kConnectQueues:
    case Step::kLive: return;
  }
  if (!unidentified_.empty())
    return go(Step::kIdentifyNamespace, identify_command(CNS::kNamespace, unidentified_.back()),
              nvme::kIdentifySize);
  step_ = Step::kConnectQueues;
  io_entries_ =
      static_cast<u16>(std::min<u64>(config_.queue_entries, (capabilities_ & 0xffff) + 1));
  if (!open_queue(1)) lose("an I/O queue cannot be connected");
}

void Initiator::become_live() {
  step_ = Step::kLive;
  state_ = State::kLive;
  queues_.front().is_ready = true;
  if (was_live_) ++reconnects_;
  was_live_ = true;
  if (config_.keep_alive != Duration()) next_keep_alive_ = node_.now() + config_.keep_alive / 2;
  if (config_.reports_events) send_event_request();
}

}  // namespace verbena::nvmf
