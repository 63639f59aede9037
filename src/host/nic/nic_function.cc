#include "host/nic/nic_function.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "host/links/raw/raw_link.h"
#include "host/os/clock.h"
#include "host/os/random.h"
#include "host/sharing/qpn_slot.h"

namespace verbena::host {
namespace {

constexpr u64 kPerConnection = 1;  // in the bucket of connections a "byte" is a request
constexpr u64 kBitsOfConnection = 8;
constexpr u64 kLeastOfTurn = 256;  // a turn of a stream costs the NIC as much time as so many bytes
constexpr u32 kBatchOfReceive = 256;  // frames of one program in a round

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

// Lets a request go with the acknowledgement before it in one datagram call, as in-process.
Urgency urgency_of(std::span<const u8> transport) {
  constexpr Opcode kAcknowledgement{Service::kRC, Op::kAcknowledge};
  const std::optional<BTH> bth = BTH::decode(transport);
  return bth && bth->opcode == kAcknowledgement ? Urgency::kWithReply : Urgency::kNow;
}

// Adds the packets that a link refused before the NIC saw them.
void add_refused(const LinkCounters& of_link, LinkCounters& sum) {
  sum.refused_unencrypted += of_link.refused_unencrypted;
  sum.refused_spi += of_link.refused_spi;
  sum.refused_source += of_link.refused_source;
  sum.refused_icv += of_link.refused_icv;
  sum.refused_replay += of_link.refused_replay;
  sum.refused_vni += of_link.refused_vni;
  sum.refused_vlan += of_link.refused_vlan;
}

// The lowest class of a set that is not empty.
u32 lowest_of(u32 classes) { return static_cast<u32>(std::countr_zero(classes)); }

std::string groups_text(const std::vector<GID>& groups) {
  std::string out;
  for (const GID& group : groups) out += (out.empty() ? "\"" : ", \"") + group.to_string() + "\"";
  return "[" + out + "]";
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
  connections_ = TokenBucket(config_.connections_per_second * kBitsOfConnection,
                             config_.connections_per_second);
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

// --- from the programs

u64 NICFunction::send(u64 bytes, Time now, NICVLANs& vlans) {
  u64 sent = 0;
  for (u32 left = pending(); left != 0 && sent < bytes;) {
    const u32 highest = static_cast<u32>(std::bit_width(left)) - 1;
    sent += send_of_class(highest, bytes - sent, now, vlans);
    left &= ~(1u << highest);
  }
  return sent;
}

// Their packets have the DSCP 0.
u32 NICFunction::class_of_streams() const { return config_.classes.class_of(0); }

u64 NICFunction::send_streams(u64 bytes, Time now) {
  u64 sent = 0;
  TokenBucket& max_of_class = max_of_class_[class_of_streams()];
  while (sent < bytes && max_.may_send(now) && max_of_class.may_send(now) && streams_->can_send()) {
    const u64 moved = streams_->send(bytes - sent, now);
    max_.on_sent(moved);
    max_of_class.on_sent(moved);
    guaranteed_.on_sent(moved);
    sent += std::max(moved, kLeastOfTurn);
  }
  return sent;
}

// The streams have a turn as one of the programs has.
u64 NICFunction::send_of_class(u32 traffic_class, u64 bytes, Time now, NICVLANs& vlans) {
  u64 sent = 0;
  for (std::size_t i = 0; i <= programs_.size() && sent < bytes; ++i) {
    next_program_ = (next_program_ + 1) % (programs_.size() + 1);
    if (next_program_ < programs_.size())
      sent += send_of(*programs_[next_program_], traffic_class, bytes - sent, now, vlans);
    else if (traffic_class == class_of_streams())
      sent += send_streams(bytes - sent, now);
  }
  return sent;
}

u64 NICFunction::send_of(Program& program, u32 traffic_class, u64 bytes, Time now,
                         NICVLANs& vlans) {
  u64 sent = 0;
  FrameRingReader::Record record;
  while (sent < bytes && max_.may_send(now) && max_of_class_[traffic_class].may_send(now) &&
         program.from_program->poll_and_keep(traffic_class, record))
    sent += send_record(program, traffic_class, record, now, vlans);
  return sent;
}

// The head of the packet is copied before it is looked at. The rest is sent from the ring: a
// program that changes it meanwhile sends a packet with a wrong ICRC, as it could anyway. Bytes are
// counted for those that are refused, too: they cost the NIC time. The class is the packet's,
// whichever ring the program has chosen: so no program exceeds the rate of a class.
u64 NICFunction::send_record(Program& program, u32 traffic_class,
                             const FrameRingReader::Record& record, Time now, NICVLANs& vlans) {
  const std::size_t size = record.body.size();
  if (size < BTH::kSize + kICRCSize || size > FrameRing::kMaxBody) {
    ++counters_.refused_sent[static_cast<std::size_t>(NICRefusal::kMalformed)];
    return FrameRing::kMaxBody;
  }
  const bool is_whole = size <= kWholeBytes || config_.vlan;  // in a VLAN others here may get it
  const std::size_t copied = is_whole ? size : kHeadBytes;
  if (kStaging - staged_ < copied) flush();
  const std::span<u8> copy = std::span(*staging_).subspan(staged_, copied);
  std::ranges::copy(record.body.first(copied), copy.begin());
  const Bytes transport = is_whole ? copy.first(size - kICRCSize) : Bytes(copy);
  const auto& [source, destination] = record.addresses;
  const GID from = source, to = destination;
  const NICRefusal refusal = filter_.check_sent(from, to, transport, program.udp->slot());
  if (refusal != NICRefusal::kNone) {
    ++counters_.refused_sent[static_cast<std::size_t>(refusal)];
    return size;
  }
  const u32 own_class = config_.classes.class_of(record.header.traffic_class);
  if (own_class != traffic_class && !max_of_class_[own_class].may_send(now)) {
    ++counters_.refused_sent[static_cast<std::size_t>(NICRefusal::kTrafficClass)];
    return size;
  }
  if (asks_for_connection(transport)) {
    if (!connections_.may_send(now)) {
      ++counters_.refused_connections;
      return size;
    }
    connections_.on_sent(kPerConnection);
  }
  EgressFrame frame;
  frame.source = from;
  frame.destination = to;
  frame.udp_source_port = record.header.udp_source_port;
  frame.traffic_class = record.header.traffic_class;
  frame.hop_limit = record.header.hop_limit;
  frame.urgency = urgency_of(transport);
  frame.headers_size = BTH::kSize;
  std::ranges::copy(transport.first(BTH::kSize), frame.headers.begin());
  frame.payload.add(transport.subspan(BTH::kSize));
  if (!is_whole) frame.payload.add(record.body.first(size - kICRCSize).subspan(copied));
  if (NICFunction* const receiver = on_this_nic(to, vlans))
    receiver->receive_here({.source = from,
                            .destination = to,
                            .udp_source_port = frame.udp_source_port,
                            .traffic_class = frame.traffic_class,
                            .hop_limit = frame.hop_limit,
                            .transport = copy,
                            .authenticated = true},
                           now);
  else
    program.link->append(frame);
  staged_ += copied;
  max_.on_sent(size);
  guaranteed_.on_sent(size);
  max_of_class_[own_class].on_sent(size);
  ++counters_.sent_packets;
  counters_.sent_bytes += size;
  if (to.is_multicast()) ++counters_.sent_to_groups;
  ++counters_.sent_packets_of_class[own_class];
  counters_.sent_bytes_of_class[own_class] += size;
  return size;
}

NICFunction* NICFunction::on_this_nic(const GID& destination, NICVLANs& vlans) const {
  return config_.vlan ? vlans.function_at(*config_.vlan, destination) : nullptr;
}

void NICFunction::flush() {
  for (const auto& program : programs_) program->link->flush();
  staged_ = 0;
}

u32 NICFunction::pending() {
  u32 pending = streams_->can_send() ? 1u << class_of_streams() : 0;
  for (const auto& program : programs_) pending |= program->from_program->pending();
  return pending;
}

bool NICFunction::may_send(Time now) {
  if (!max_.may_send(now)) return false;
  for (u32 left = pending(); left != 0; left &= left - 1)
    if (max_of_class_[lowest_of(left)].may_send(now)) return true;
  return false;
}

Time NICFunction::next_due(Time now, const TokenBucket& of_all) {
  Time of_class = Time::never();
  for (u32 left = pending(); left != 0; left &= left - 1)
    of_class = std::min(of_class, max_of_class_[lowest_of(left)].ready_at(now));
  if (of_class == Time::never()) return of_class;
  return std::max({of_class, max_.ready_at(now), of_all.ready_at(now)});
}

// --- to the programs

bool NICFunction::receive(Look look, Time now) {
  bool any = streams_->receive(now);
  for (const auto& program : programs_) any = receive_of(*program, look, now) || any;
  return any;
}

bool NICFunction::receive_of(Program& program, Look look, Time now) {
  const bool came = program.link->receive(look) || program.link->next_timer() <= now;
  IngressFrame frame;
  u32 taken = 0;
  while (program.link->poll_frame(frame, now)) {
    ++taken;
    check_and_deliver(program, frame);
  }
  if (taken != 0) publish(program);
  return came && taken != 0;
}

bool NICFunction::has_address(const GID& address) const {
  return std::ranges::find(addresses_, address) != addresses_.end();
}

NICFunction::Program* NICFunction::take(const IngressFrame& frame, Time now) {
  if (programs_.empty() || frame.transport.size() < BTH::kSize) {
    ++counters_.receive_dropped;
    return nullptr;
  }
  const u32 slot = slot_of(load_be24(frame.transport.data() + BTH::kDestQPAt));
  const auto owner = std::ranges::find_if(
      programs_, [&](const auto& program) { return program->udp->slot() == slot; });
  Program& program = owner == programs_.end() ? *programs_.front() : **owner;
  if (!program.udp->is_for_our_device(frame, now)) return nullptr;  // handed on, or kept for later
  check_and_deliver(program, frame);
  return &program;
}

void NICFunction::receive_here(const IngressFrame& frame, Time now) {
  if (Program* const program = take(frame, now)) publish(*program);
}

void NICFunction::check_and_deliver(Program& program, const IngressFrame& frame) {
  const NICRefusal refusal = filter_.check_received(frame, program.seen);
  if (refusal == NICRefusal::kNone)
    deliver(program, frame);
  else
    ++counters_.refused_received[static_cast<std::size_t>(refusal)];
}

void NICFunction::publish(Program& program) {
  if (program.to_program->publish() && !program.to_program->is_watched())
    ring_doorbell(program.doorbell_of_program.get());
}

void NICFunction::deliver(Program& program, const IngressFrame& frame) {
  const std::size_t size = frame.transport.size();
  u8* const out =
      size <= FrameRing::kMaxBody
          ? program.to_program->add({frame.source, frame.destination}, static_cast<u32>(size))
          : nullptr;
  if (out == nullptr) {
    ++counters_.receive_dropped;
    return;
  }
  FrameRing::Header& header = program.to_program->last();
  header.udp_source_port = frame.udp_source_port;
  header.traffic_class = frame.traffic_class;
  header.hop_limit = frame.hop_limit;
  std::memcpy(out, frame.transport.data(), size);
  ++counters_.received_packets;
  if (frame.destination.is_multicast()) ++counters_.received_from_groups;
  counters_.received_bytes += size;
}

void NICFunction::watch() {
  for (const auto& program : programs_) program->from_program->watch();
}

void NICFunction::unwatch() {
  for (const auto& program : programs_) program->from_program->unwatch();
}

// --- what is told of it

std::string NICFunction::text() const {
  std::string out = "{\"name\": \"" + config_.name + "\", \"address\": \"" + config_.address +
                    "\", \"programs\": [";
  const char* separator = "";
  for (const auto& program : programs_)
    out += std::exchange(separator, ", ") + std::string("{\"pid\": ") +
           std::to_string(program->pid) + ", \"user\": " + std::to_string(program->user) +
           ", \"slot\": " + std::to_string(program->udp->slot()) +
           ", \"groups\": " + groups_text(program->groups) + "}";
  for (const NICStreams::Program& program : streams_->programs())
    out += std::exchange(separator, ", ") + std::string("{\"pid\": ") +
           std::to_string(program.pid) + ", \"user\": " + std::to_string(program.user) +
           ", \"link\": \"iwarp\"}";
  out += "], \"streams\": " + std::to_string(streams_->streams()) +
         ", \"listeners\": " + std::to_string(streams_->listeners()) + ", \"counters\": {";
  const auto add = [&](const std::string& name, u64 value) {
    out += "\"" + name + "\": " + std::to_string(value) + ", ";
  };
  add("sent_packets", counters_.sent_packets);
  add("sent_bytes", counters_.sent_bytes);
  add("received_packets", counters_.received_packets);
  add("received_bytes", counters_.received_bytes);
  add("receive_dropped", counters_.receive_dropped);
  add("sent_to_groups", counters_.sent_to_groups);
  add("received_from_groups", counters_.received_from_groups);
  add("refused_joins", counters_.refused_joins);
  add("refused_connections", counters_.refused_connections);
  add("broken_rings", counters_.broken_rings);
  add("refused_programs", counters_.refused_programs);
  for (std::size_t i = 1; i < kNICRefusals; ++i) {
    add(std::string("sent_") + name_of(static_cast<NICRefusal>(i)), counters_.refused_sent[i]);
    add(std::string("received_") + name_of(static_cast<NICRefusal>(i)),
        counters_.refused_received[i]);
  }
  LinkCounters refused = refused_by_gone_;
  for (const auto& program : programs_) add_refused(program->link->counters(), refused);
  add("received_refused_unencrypted", refused.refused_unencrypted);
  add("received_refused_spi", refused.refused_spi);
  add("received_refused_association", refused.refused_source);
  add("received_refused_icv", refused.refused_icv);
  add("received_refused_replay", refused.refused_replay);
  add("received_refused_vni", refused.refused_vni);
  add("received_refused_vlan", refused.refused_vlan);
  streams_->for_each_counter(add);
  add("attached", counters_.attached);
  out += "\"detached\": " + std::to_string(counters_.detached) + "}, \"sent_by_class\": [";
  for (u32 i = 0; i < kTrafficClasses; ++i)
    out += (i == 0 ? "" : ", ") + std::string("{\"class\": ") + std::to_string(i) +
           ", \"packets\": " + std::to_string(counters_.sent_packets_of_class[i]) +
           ", \"bytes\": " + std::to_string(counters_.sent_bytes_of_class[i]) + "}";
  return out + "]}";
}

}  // namespace verbena::host
