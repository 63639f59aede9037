#include "host/nic/nic_function.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "host/links/raw/raw_link.h"
#include "host/os/random.h"
#include "host/sharing/qpn_slot.h"

namespace verbena::host {
namespace {

std::vector<PKey> p_keys_of(const NICFunctionConfig& config) {
  std::vector<PKey> keys;
  for (const u16 key : config.p_keys) keys.push_back(PKey{key});
  return keys;
}

// Its size cannot be changed: a program that cut it would make the NIC fault.
Expected<Descriptor> make_ring_memory() {
  Descriptor memory(::memfd_create("verbena-nic", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory.is_open() || ::ftruncate(memory.get(), sizeof(NICRings)) != 0 ||
      ::fcntl(memory.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return failure(errno, std::string("cannot make shared rings: ") + std::strerror(errno));
  return memory;
}

Expected<void> open_doorbells(NICFunction::Program& program) {
  std::array<int, 2> ends{-1, -1};
  program.doorbell_of_nic = Descriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!program.doorbell_of_nic.is_open() || ::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0)
    return failure(errno, std::string("cannot make doorbells: ") + std::strerror(errno));
  program.heard_by_program = Descriptor(ends[0]);
  program.doorbell_of_program = Descriptor(ends[1]);
  return {};
}

u32 overhead_of(const NICFunctionConfig& config, bool is_encrypted) {
  if (is_encrypted) return kPSPOverheadBytes + (config.vni ? PSPHeader::kCookieSize : 0);
  return config.vni ? kVXLANOverheadBytes : 0;
}

}  // namespace

Expected<NICFunction> NICFunction::open(const NICFunctionConfig& config, NICStreamHost& host) {
  const auto addresses = choose_local_addresses(config.address);
  if (!addresses)
    return failure(addresses.error().error,
                   "function " + config.name + ": " + addresses.error().message);
  return NICFunction(config, addresses->front(), host);
}

NICFilter NICFunction::filter_of(const NICFunctionConfig& config) const {
  return NICFilter(addresses_, p_keys_of(config),
                   config.has_multicast ? NICGroups::kAll : NICGroups::kNone);
}

void NICFunction::set_rates() {
  max_ = TokenBucket(config_.max_bps, config_.burst_bytes);
  guaranteed_ = TokenBucket(config_.guaranteed_bps, config_.burst_bytes);
  connections_ = TokenBucket::of_requests(config_.connections_per_second);
  for (u32 i = 0; i < kTrafficClasses; ++i)
    max_of_class_[i] = TokenBucket(config_.classes.max_bps[i], config_.burst_bytes);
}

void NICFunction::reconfigure(const NICFunctionConfig& config) {
  const bool had_multicast = config_.has_multicast;
  config_ = config;
  filter_ = filter_of(config);
  set_rates();
  for (const auto& program : programs_) program->from_program->set_classes(config_.classes.of_dscp);
  if (had_multicast != config_.has_multicast) apply_multicast();
}

// The programs stay in their groups as they know it; their links receive from them or do not.
void NICFunction::apply_multicast() {
  for (const auto& program : programs_)
    for (const GID& group : program->groups)
      if (config_.has_multicast)
        (void)program->link->join_multicast(group);
      else
        program->link->leave_multicast(group);
}

bool NICFunction::admits(uid_t user, gid_t group) const {
  if (config_.user && *config_.user == user) return true;
  if (config_.group && *config_.group == group) return true;
  return !config_.user && !config_.group && user == ::geteuid();
}

bool NICFunction::is_called(const std::string& wanted) const {
  if (wanted == config_.name || wanted == config_.address) return true;
  const std::optional<GID> gid = GID::parse(wanted);
  return gid && has_address(*gid);
}

Expected<NICFunction::Program*> NICFunction::attach(
    Descriptor& socket, const ucred& who, u32 wanted_slot,
    const std::optional<EncryptionSettings>& encryption) {
  if (Expected<void> has_room = refuse_if_full(); !has_room)
    return tl::unexpected(has_room.error());
  auto program = std::make_unique<Program>();
  const u64 begin = is_process_slot(wanted_slot) ? wanted_slot - kFirstSlot : random_u64();
  if (Expected<void> opened = open_link(*program, begin, encryption); !opened)
    return tl::unexpected(opened.error());
  Expected<Descriptor> memory = make_ring_memory();
  if (!memory) return tl::unexpected(memory.error());
  Expected<Mapping> rings =
      Mapping::of_file(memory->get(), 0, sizeof(NICRings), MapAccess::kReadWrite);
  if (!rings) return tl::unexpected(rings.error());
  if (Expected<void> opened = open_doorbells(*program); !opened)
    return tl::unexpected(opened.error());
  program->socket = std::move(socket);
  program->pid = who.pid;
  program->user = who.uid;
  program->memory = std::move(*memory);
  program->rings = std::move(*rings);
  program->from_program.emplace(program->shared());
  program->from_program->set_classes(config_.classes.of_dscp);
  program->to_program.emplace(program->shared().to_program);
  program->from_program->watch();
  ++counters_.attached;
  programs_.push_back(std::move(program));
  share_management();
  return programs_.back().get();
}

Expected<void> NICFunction::refuse_if_full() {
  if (!is_full()) return {};
  ++counters_.refused_programs;
  return failure(EUSERS, "function " + config_.name + " has " +
                             std::to_string(config_.max_programs) + " programs already");
}

// TCP goes by the host's network, which is not the function's.
Expected<void> NICFunction::admit_streams() {
  if (config_.vni || config_.vlan)
    return failure(EOPNOTSUPP, "function " + config_.name + " has a " +
                                   (config_.vni ? "vni" : "vlan") +
                                   ", by which iWARP's TCP does not go");
  if (config_.max_streams == 0u)
    return failure(EACCES, "function " + config_.name + " has no iWARP: streams is 0");
  return refuse_if_full();
}

void NICFunction::limit_streams(u32 max_streams) {
  streams_->set_limits(config_.max_streams.value_or(max_streams), config_.connections_per_second);
}

Expected<void> NICFunction::open_link(Program& program, u64 random,
                                      const std::optional<EncryptionSettings>& encryption) const {
  Expected<std::unique_ptr<UDPLink>> link =
      config_.vlan  ? UDPLink::open_for_vlan(address_, random)
      : config_.vni ? UDPLink::open_in_network(address_, random, *config_.vni, encryption)
                    : UDPLink::open(address_, random, encryption);
  if (!link) return tl::unexpected(link.error());
  program.udp = link->get();
  if (!config_.vlan) return use_link(program, std::move(*link));
  Expected<std::unique_ptr<VLANLink>> tagged =
      VLANLink::on(std::move(*link), address_, *config_.vlan);
  if (!tagged) return tl::unexpected(tagged.error());
  program.vlan = tagged->get();
  program.link = std::move(*tagged);
  return {};
}

Expected<void> NICFunction::use_link(Program& program, std::unique_ptr<UDPLink> link) const {
  if (port_ != nullptr) {
    program.link = RawLink::on_shared(std::move(link), address_, port_->for_link());
    return {};
  }
  Expected<std::unique_ptr<Link>> on_wire = RawLink::on(std::move(link), address_, config_.link);
  if (!on_wire) return tl::unexpected(on_wire.error());
  program.link = std::move(*on_wire);
  return {};
}

// In a VLAN the first program takes packets to QP 1, and forwards those for others.
void NICFunction::share_management() {
  if (!programs_.empty() && programs_.front()->vlan != nullptr)
    programs_.front()->vlan->take_management();
}

void NICFunction::detach(const Program& program) {
  ++counters_.detached;
  add_refused(program.link->counters(), refused_by_gone_);
  std::erase_if(programs_, [&](const auto& p) { return p.get() == &program; });
  share_management();
}

// --- multicast

Expected<void> NICFunction::join(Program& program, const GID& group) {
  if (std::ranges::find(program.groups, group) != program.groups.end()) return {};
  const auto refuse = [&](int error, const std::string& why) {
    ++counters_.refused_joins;
    return failure(error, "function " + config_.name + ": " + why);
  };
  if (!config_.has_multicast) return refuse(EOPNOTSUPP, "it has no multicast");
  if (!group.is_multicast()) return refuse(EINVAL, group.to_string() + " is no multicast group");
  if (program.groups.size() >= config_.max_groups)
    return refuse(ENOMEM, "a program has " + std::to_string(config_.max_groups) + " groups");
  if (Expected<void> joined = program.link->join_multicast(group); !joined)
    return refuse(joined.error().error, joined.error().message);
  program.groups.push_back(group);
  return {};
}

void NICFunction::leave(Program& program, const GID& group) {
  if (std::erase(program.groups, group) != 0 && config_.has_multicast)
    program.link->leave_multicast(group);
}

NICAttached NICFunction::description_of(const Program* program,
                                        const std::optional<EncryptionSettings>& encryption) const {
  NICAttached out{.slot = program == nullptr ? 0 : program->udp->slot(),
                  .p_key_count = 0,
                  .max_qp = config_.max_qp,
                  .max_mr = config_.max_mr,
                  .max_cqe = config_.max_cqe,
                  .is_encrypted = encryption ? 1u : 0u,
                  .max_registered_bytes = config_.max_registered_bytes,
                  .max_groups = config_.has_multicast ? config_.max_groups : 0,
                  .packet_overhead = overhead_of(config_, encryption.has_value()),
                  .receive_buffer_bytes = program == nullptr ? 0
                                          : program->vlan != nullptr
                                              ? program->vlan->receive_buffer_bytes()
                                              : program->udp->receive_buffer_bytes()};
  for (const u16 key : config_.p_keys)
    if (out.p_key_count < NICAttached::kMaxPKeysOfFunction) out.p_keys[out.p_key_count++] = key;
  put_text(out.address, config_.address);
  return out;
}

}  // namespace verbena::host
