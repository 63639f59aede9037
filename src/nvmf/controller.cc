#include "nvmf/controller.h"

#include "base/check.h"

namespace verbena::nvmf {
namespace {

using nvme::AdminOpcode;
using nvme::CNS;
using nvme::Command;
using nvme::Status;

constexpr std::size_t kMaxEventRequests = 4;  // AERL + 1
constexpr std::size_t kMaxEvents = 16;
constexpr std::size_t kErrorEntries = 64;  // ELPE + 1
constexpr u16 kKeepAliveUnit_ms = 100;
constexpr u32 kNamespaceEvents = 1 << 8, kDiscoveryEvents = 1u << 31;  // OAES and feature 0Bh
constexpr u32 kTrafficBasedKeepAlive = 1 << 4;                         // CTRATT

enum class Feature : u8 {
  kArbitration = 0x01,
  kPowerManagement = 0x02,
  kTemperatureThreshold = 0x04,
  kErrorRecovery = 0x05,
  kVolatileWriteCache = 0x06,
  kQueues = 0x07,
  kWriteAtomicity = 0x0a,
  kAsyncEvents = 0x0b,
  kKeepAlive = 0x0f,
  kHostIdentifier = 0x81,
};
enum class LogPage : u8 {
  kSupported = 0x00,
  kErrors = 0x01,
  kSMART = 0x02,
  kFirmware = 0x03,
  kChangedNamespaces = 0x04,
  kEffects = 0x05,
  kDiscovery = 0x70,
};

AdminAnswer refuse(Status status) { return {.status = status}; }

std::vector<u8> page() { return std::vector<u8>(nvme::kIdentifySize); }
std::span<u8, nvme::kIdentifySize> whole(std::vector<u8>& page) {
  return std::span<u8, nvme::kIdentifySize>(page);
}

// Commands supported: CSUPP, and for writes LBCC. Base 2.0, 5.16.1.6.
std::vector<u8> effects_log() {
  std::vector<u8> log(4096);
  for (const std::size_t opcode : {0x02, 0x06, 0x08, 0x09, 0x0a, 0x0c, 0x18}) log[4 * opcode] = 1;
  for (const std::size_t opcode : {0x00, 0x01, 0x02, 0x05, 0x08, 0x09}) {
    const bool writes = opcode == 0x01 || opcode == 0x08 || opcode == 0x09;
    log[1024 + 4 * opcode] = writes ? 3 : 1;
  }
  return log;
}

std::vector<u8> firmware_log() {
  std::vector<u8> log(512);
  log[0] = 1;  // slot 1 is active
  LEWriter<512>(std::span<u8, 512>(log)).text<8, 8>("1.0", ' ');
  return log;
}

std::vector<u8> supported_logs(bool is_discovery) {
  std::vector<u8> log(1024);
  for (const LogPage id : {LogPage::kSupported, LogPage::kErrors, LogPage::kSMART,
                           LogPage::kFirmware, LogPage::kChangedNamespaces, LogPage::kEffects})
    log[4 * static_cast<std::size_t>(id)] = is_discovery ? 0 : 1;
  log[0] = 1;
  log[4 * static_cast<std::size_t>(LogPage::kDiscovery)] = is_discovery ? 1 : 0;
  return log;
}

}  // namespace

Controller::Controller(const Subsystem* subsystem, const ControllerLimits& limits, u16 id,
                       const nvme::ConnectData& host, Duration keep_alive, Time now)
    : subsystem_(subsystem),
      limits_(limits),
      id_(id),
      host_(host),
      created_(now),
      keep_alive_(keep_alive),
      last_traffic_(now) {
  for (const Feature feature :
       {Feature::kArbitration, Feature::kPowerManagement, Feature::kTemperatureThreshold,
        Feature::kErrorRecovery, Feature::kVolatileWriteCache, Feature::kWriteAtomicity,
        Feature::kAsyncEvents})
    features_[static_cast<u8>(feature)] = 0;
  features_[static_cast<u8>(Feature::kVolatileWriteCache)] = 1;
  features_[static_cast<u8>(Feature::kTemperatureThreshold)] = 343;
  // A host that asks for no events gets none; all are configured at first.
  features_[static_cast<u8>(Feature::kAsyncEvents)] =
      is_discovery() ? kDiscoveryEvents : kNamespaceEvents;
}

Time Controller::next_timer() const {
  if (keep_alive_ == Duration()) return Time::never();
  return last_traffic_.load(std::memory_order_relaxed) + keep_alive_ + ms(kKeepAliveUnit_ms);
}

// --- properties

u64 Controller::capabilities() const {
  constexpr u64 kContiguousQueues = u64{1} << 16, kNVMCommandSet = u64{1} << 37;
  constexpr u64 kTimeout = u64{15} << 24;  // 7.5 s
  return (limits_.max_queue_entries - 1) | kContiguousQueues | kTimeout | kNVMCommandSet;
}

void Controller::set_configuration(u32 value) {
  const bool is_enabled = (value & nvme::kCCEnable) != 0;
  const bool shuts_down = (value & nvme::kCCShutdownMask) != 0;
  configuration_ = value;
  status_ = (is_enabled ? nvme::kCSTSReady : 0) | (shuts_down ? nvme::kCSTSShutdownDone : 0);
  if (!is_enabled) event_requests_.clear();
}

AdminAnswer Controller::on_property(const Command& command) {
  const bool is_wide = (command.cdw[0] & 7) == 1;  // 8 bytes
  const auto property = static_cast<nvme::Property>(command.cdw[1]);
  if (command.fabrics_type() == static_cast<u8>(nvme::FabricsType::kPropertySet)) {
    if (property != nvme::Property::kCC || is_wide) return refuse(Status::kInvalidField);
    set_configuration(command.cdw[2]);
    return {};
  }
  switch (property) {
    case nvme::Property::kCAP:
      if (!is_wide) break;
      return {.result = capabilities()};
    case nvme::Property::kVS:
      if (is_wide) break;
      return {.result = nvme::kVersion};
    case nvme::Property::kCC:
      if (is_wide) break;
      return {.result = configuration_};
    case nvme::Property::kCSTS:
      if (is_wide) break;
      return {.result = status_};
    case nvme::Property::kNSSR: break;
  }
  return refuse(Status::kInvalidField);
}

// --- admin commands

AdminAnswer Controller::on_admin(const Command& command, Time now,
                                 std::span<const nvme::DiscoveryEntry> discovery) {
  if (!is_ready()) return refuse(Status::kCommandSequenceError);
  switch (static_cast<AdminOpcode>(command.opcode)) {
    case AdminOpcode::kIdentify: return identify(command);
    case AdminOpcode::kGetLogPage: return get_log(command, now, discovery);
    case AdminOpcode::kKeepAlive: return {};
    case AdminOpcode::kSetFeatures: return set_features(command);
    case AdminOpcode::kGetFeatures: return get_features(command);
    case AdminOpcode::kAbort: return abort(command);
    case AdminOpcode::kAsyncEventRequest:
      if (event_requests_.size() == kMaxEventRequests)
        return refuse(Status::kAsyncEventLimitExceeded);
      event_requests_.push_back(command.cid);
      return {.is_pending = true};
  }
  return refuse(Status::kInvalidOpcode);
}

// Only an Asynchronous Event Request can be aborted: other commands end soon. Base 2.0, 5.1.
AdminAnswer Controller::abort(const Command& command) {
  const u16 sq_id = static_cast<u16>(command.cdw10()),
            cid = static_cast<u16>(command.cdw10() >> 16);
  const auto found = std::ranges::find(event_requests_, cid);
  if (sq_id != 0 || found == event_requests_.end()) return {.result = 1};
  event_requests_.erase(found);
  return {.aborted = cid};
}

std::vector<u8> Controller::identify_controller() const {
  nvme::IdentifyController c;
  c.model = "Verbena NVMe over Fabrics";
  c.firmware = "1.0";
  c.controller_id = id_;
  c.max_transfer_pages_log2 = limits_.max_transfer_pages_log2;
  c.attributes = kTrafficBasedKeepAlive;
  c.keep_alive_granularity = 1;
  c.max_commands = limits_.max_queue_entries;
  c.command_capsule_units = (u32{Command::kSize} + limits_.in_capsule_bytes) / 16;
  if (is_discovery()) {
    c.type = nvme::IdentifyController::Type::kDiscovery;
    c.subsystem_nqn = nvme::kDiscoveryNQN;
    c.serial = "discovery";
    c.optional_events = kDiscoveryEvents;
  } else {
    c.subsystem_nqn = subsystem_->nqn();
    c.serial = subsystem_->serial();
    c.optional_events = kNamespaceEvents;
    const auto& namespaces = subsystem_->namespaces();
    c.namespaces = namespaces.empty() ? 1 : namespaces.rbegin()->first;
    c.optional_commands = nvme::IdentifyController::kCompare |
                          nvme::IdentifyController::kDatasetManagement |
                          nvme::IdentifyController::kWriteZeroes;
    c.has_write_cache = std::ranges::any_of(
        namespaces, [](const auto& entry) { return entry.second.store->has_write_cache(); });
  }
  std::vector<u8> out = page();
  c.encode(whole(out));
  return out;
}

AdminAnswer Controller::identify_namespace(const Command& command) const {
  const Namespace* const found = subsystem_->find(command.nsid);
  AdminAnswer answer{.data = page()};
  const auto cns = static_cast<CNS>(command.cdw10());
  if (found == nullptr) {
    const bool is_common = cns == CNS::kNamespace && command.nsid == nvme::kAllNamespaces;
    const bool is_inactive = command.nsid != 0 && command.nsid != nvme::kAllNamespaces &&
                             command.nsid <= subsystem_->namespaces().size();
    if (!is_common && !is_inactive) return refuse(Status::kInvalidNamespace);
    if (is_common) nvme::IdentifyNamespace{}.encode(whole(answer.data));
    return answer;
  }
  if (cns == CNS::kNamespace) found->identify().encode(whole(answer.data));
  if (cns == CNS::kNamespaceDescriptors)
    nvme::encode_descriptors(found->identify(), found->uuid, whole(answer.data));
  if (cns == CNS::kIndependentNamespace) {
    answer.data[1] = 1;                                     // NMIC
    answer.data[3] = found->store->is_read_only() ? 1 : 0;  // NSATTR
    answer.data[14] = 1;                                    // NSTAT: ready
  }
  return answer;
}

AdminAnswer Controller::identify(const Command& command) const {
  AdminAnswer answer;
  const auto cns = static_cast<CNS>(command.cdw10() & 0xff);
  const bool is_nvm_command_set = (command.cdw11() >> 24) == 0;
  if (cns == CNS::kController) {
    answer.data = identify_controller();
    return answer;
  }
  if (is_discovery()) return refuse(Status::kInvalidField);
  std::vector<u32> ids;
  switch (cns) {
    case CNS::kController: break;
    case CNS::kCommandSetNamespace:
      if (!is_nvm_command_set) break;
      [[fallthrough]];
    case CNS::kNamespace:
    case CNS::kNamespaceDescriptors:
    case CNS::kIndependentNamespace: return identify_namespace(command);
    case CNS::kCommandSetActiveNamespaces:
      if (!is_nvm_command_set) break;
      [[fallthrough]];
    case CNS::kActiveNamespaces:
      if (command.nsid >= 0xfffffffe) return refuse(Status::kInvalidNamespace);
      for (const auto& [id, entry] : subsystem_->namespaces()) ids.push_back(id);
      answer.data = page();
      nvme::encode_namespace_list(ids, command.nsid, whole(answer.data));
      return answer;
    case CNS::kCommandSetController:
      if (!is_nvm_command_set) break;
      answer.data = page();  // no limits beside MDTS
      return answer;
    case CNS::kControllerList:
      answer.data = page();
      if (id_ >= (command.cdw10() >> 16)) {
        store_le<u16>(answer.data.data(), 1);
        store_le<u16>(answer.data.data() + 2, id_);
      }
      return answer;
    case CNS::kCommandSets:
      answer.data = page();
      answer.data[0] = 1;  // combination 0: the NVM command set
      return answer;
  }
  return refuse(Status::kInvalidField);
}

// --- logs

std::vector<u8> Controller::smart_log(Time now) const {
  std::vector<u8> log(512);
  const LEWriter<512> w{std::span<u8, 512>(log)};
  constexpr u64 kUnit = 512 * 1000;  // bytes
  w.put<u16, 1>(310);                // kelvins
  log[3] = 100;                      // available spare, and its threshold
  log[4] = 10;
  const CommandCounts counts = this->counts();
  w.put<u64, 32>((counts.bytes_read + kUnit - 1) / kUnit);
  w.put<u64, 48>((counts.bytes_written + kUnit - 1) / kUnit);
  w.put<u64, 64>(counts.reads);
  w.put<u64, 80>(counts.writes);
  w.put<u64, 128>(static_cast<u64>((now - created_).ps() / 1'000'000'000'000 / 3600));
  w.put<u64, 176>(counts.errors);  // error log entries
  return log;
}

std::vector<u8> Controller::error_log() const {
  std::vector<u8> log(kErrorEntries * 64);
  u8* at = log.data();
  const std::lock_guard lock(mutex_);
  for (auto entry = errors_.rbegin(); entry != errors_.rend(); ++entry, at += 64) {
    const LEWriter<64> w{std::span<u8, 64>(at, 64)};
    w.put<u64, 0>(entry->count);
    w.put<u16, 8>(entry->sq_id);
    w.put<u16, 10>(entry->cid);
    w.put<u16, 12>(static_cast<u16>(entry->status << 1));
    w.put<u16, 14>(0xffff);  // no field of the command in particular
    w.put<u64, 16>(entry->lba);
    w.put<u32, 24>(entry->nsid);
  }
  return log;
}

std::vector<u8> Controller::discovery_log(std::span<const nvme::DiscoveryEntry> entries) const {
  std::vector<u8> log((entries.size() + 1) * nvme::DiscoveryEntry::kSize);
  const nvme::DiscoveryHeader header{kDiscoveryGeneration, entries.size()};
  header.encode(std::span<u8, nvme::DiscoveryHeader::kSize>(log.data(), 1024));
  u8* at = log.data() + nvme::DiscoveryHeader::kSize;
  for (const nvme::DiscoveryEntry& entry : entries) {
    entry.encode(std::span<u8, nvme::DiscoveryEntry::kSize>(at, 1024));
    at += nvme::DiscoveryEntry::kSize;
  }
  return log;
}

AdminAnswer Controller::get_log(const Command& command, Time now,
                                std::span<const nvme::DiscoveryEntry> discovery) {
  const auto id = static_cast<LogPage>(command.cdw10() & 0xff);
  const bool retains_event = (command.cdw10() & 1 << 15) != 0;
  const u64 bytes = (u64{(command.cdw10() >> 16) | (command.cdw11() & 0xffff) << 16} + 1) * 4;
  const u64 offset = u64{command.cdw[3]} << 32 | command.cdw12();
  constexpr u64 kMaxBytes = 1 << 20;
  if (bytes > kMaxBytes || offset % 4 != 0) return refuse(Status::kInvalidField);
  std::vector<u8> log;
  if (is_discovery() && id != LogPage::kDiscovery && id != LogPage::kSupported)
    return refuse(Status::kInvalidLogPage);
  switch (id) {
    case LogPage::kSupported: log = supported_logs(is_discovery()); break;
    case LogPage::kErrors: log = error_log(); break;
    case LogPage::kSMART: log = smart_log(now); break;
    case LogPage::kFirmware: log = firmware_log(); break;
    case LogPage::kEffects: log = effects_log(); break;
    case LogPage::kChangedNamespaces:
      log.resize(4096);
      for (std::size_t i = 0; i < changed_namespaces_.size(); ++i)
        store_le<u32>(log.data() + 4 * i, changed_namespaces_[i]);
      if (!retains_event) changed_namespaces_.clear();
      break;
    case LogPage::kDiscovery:
      if (!is_discovery()) return refuse(Status::kInvalidLogPage);
      log = discovery_log(discovery);
      break;
  }
  if (log.empty()) return refuse(Status::kInvalidLogPage);
  if (offset > log.size()) return refuse(Status::kInvalidField);
  if (!retains_event && id == LogPage::kChangedNamespaces) masked_events_ &= ~kNamespaceEvents;
  if (!retains_event && id == LogPage::kDiscovery) masked_events_ &= ~kDiscoveryEvents;
  AdminAnswer answer;
  answer.data.assign(log.begin() + static_cast<std::ptrdiff_t>(offset), log.end());
  answer.data.resize(bytes);
  return answer;
}

CommandCounts Controller::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

bool Controller::add_queue(u16 qid) {
  const std::lock_guard lock(mutex_);
  if (std::ranges::find(queues_, qid) != queues_.end()) return false;
  queues_.push_back(qid);
  return true;
}

void Controller::remove_queue(u16 qid) {
  const std::lock_guard lock(mutex_);
  std::erase(queues_, qid);
}

bool Controller::has_queues() const {
  const std::lock_guard lock(mutex_);
  return !queues_.empty();
}

void Controller::note_success(const CommandCounts& command) {
  const std::lock_guard lock(mutex_);
  counts_ += command;
}

void Controller::note_error(u16 sq_id, const Command& command, Status status) {
  const std::lock_guard lock(mutex_);
  ++counts_.errors;
  if (errors_.size() == kErrorEntries) errors_.pop_front();
  errors_.push_back({.count = counts_.errors,
                     .lba = sq_id == 0 ? 0 : command.slba(),
                     .sq_id = sq_id,
                     .cid = command.cid,
                     .status = static_cast<u16>(status),
                     .nsid = command.nsid});
}

// --- features

AdminAnswer Controller::set_features(const Command& command) {
  const u8 id = static_cast<u8>(command.cdw10());
  if ((command.cdw10() >> 31) != 0) return refuse(Status::kFeatureNotSaveable);
  switch (static_cast<Feature>(id)) {
    case Feature::kQueues: {
      const u32 sqs = command.cdw11() & 0xffff, cqs = command.cdw11() >> 16;
      if (sqs == 0xffff || cqs == 0xffff) return refuse(Status::kInvalidField);
      if (has_queues()) return refuse(Status::kCommandSequenceError);
      const u32 granted = std::min<u32>(std::min(sqs, cqs), limits_.max_io_queues - 1u);
      return {.result = granted | granted << 16};
    }
    case Feature::kKeepAlive: keep_alive_ = ms(i64{command.cdw11()}); return {};
    case Feature::kHostIdentifier: return refuse(Status::kCommandSequenceError);  // Connect has it
    default: break;
  }
  const auto found = features_.find(id);
  if (found == features_.end()) return refuse(Status::kInvalidField);
  found->second = command.cdw11();
  return {};
}

AdminAnswer Controller::get_features(const Command& command) const {
  const u8 id = static_cast<u8>(command.cdw10());
  switch (static_cast<Feature>(id)) {
    case Feature::kQueues: {
      const u32 granted = limits_.max_io_queues - 1u;
      return {.result = granted | granted << 16};
    }
    case Feature::kKeepAlive: return {.result = static_cast<u64>(keep_alive_.ps() / 1'000'000'000)};
    case Feature::kHostIdentifier: {
      const bool is_extended = (command.cdw11() & 1) != 0;
      if (!is_extended) return refuse(Status::kInvalidField);  // Fabrics has the long one only
      return {.data = {host_.host_id.begin(), host_.host_id.end()}};
    }
    default: break;
  }
  const auto found = features_.find(id);
  if (found == features_.end()) return refuse(Status::kInvalidField);
  return {.result = found->second};
}

// --- events

void Controller::raise(const Event& event) {
  const u32 enabled = features_.at(static_cast<u8>(Feature::kAsyncEvents));
  if ((enabled & event.bit) == 0 || (masked_events_ & event.bit) != 0) return;
  if (events_.size() == kMaxEvents) return;
  masked_events_ |= event.bit;
  events_.push_back(event);
}

void Controller::on_namespace_changed(u32 nsid) {
  if (std::ranges::find(changed_namespaces_, nsid) == changed_namespaces_.end())
    changed_namespaces_.push_back(nsid);
  raise({.type = 2,
         .info = 0,
         .log = static_cast<u8>(LogPage::kChangedNamespaces),
         .bit = kNamespaceEvents});
}

void Controller::on_discovery_changed() {
  raise({.type = 2,
         .info = 0xf0,
         .log = static_cast<u8>(LogPage::kDiscovery),
         .bit = kDiscoveryEvents});
}

std::optional<Controller::AsyncEvent> Controller::poll_async_event() {
  if (events_.empty() || event_requests_.empty()) return std::nullopt;
  const Event event = events_.front();
  const AsyncEvent answer{event_requests_.front(),
                          u32{event.type} | u32{event.info} << 8 | u32{event.log} << 16};
  events_.pop_front();
  event_requests_.pop_front();
  return answer;
}

}  // namespace verbena::nvmf
