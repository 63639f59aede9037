#include "host/local/local_path.h"

#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>
#include <string_view>

#include "host/local/huge_pages.h"
#include "host/local/stream_peer.h"
#include "host/os/clock.h"
#include "host/sharing/directory.h"

namespace verbena::host {
namespace {

// A peer copies 1 MiB at most at a time. One that takes longer is descheduled, or stopped, or dead.
constexpr Duration kLongCopy = ms(2);
constexpr Duration kPeerLookInterval = ms(1);
constexpr Duration kPatience = sec(2);  // with one that is stopped in the middle

Expected<bool> turned_on(const char* variable, const char* otherwise) {
  const char* const text = std::getenv(variable);
  const std::string_view choice(text == nullptr ? otherwise : text);
  if (choice == "on" || choice == "off") return choice == "on";
  return failure(EINVAL, std::string(variable) + " is neither on nor off: " + text);
}

Expected<LocalChoices> choices_from_environment() {
  const Expected<bool> share = turned_on("VERBENA_SHARE", "off");
  if (!share) return tl::unexpected(share.error());
  const Expected<bool> huge = turned_on("VERBENA_HUGE", "on");
  if (!huge) return tl::unexpected(huge.error());
  return LocalChoices{*share ? Sharing::kReplace : Sharing::kAsFound, *huge};
}

}  // namespace

Expected<std::unique_ptr<LocalPath>> LocalPath::open(u32 slot, std::span<const GIDEntry> gids) {
  const Expected<bool> local = turned_on("VERBENA_LOCAL", "on");
  if (!local) return tl::unexpected(local.error());
  const Expected<LocalChoices> choices = choices_from_environment();
  if (!choices) return tl::unexpected(choices.error());
  Expected<OwnSegment> segment = OwnSegment::create(slot, gids);
  if (!segment) return nullptr;
  std::optional<SegmentDirectory> directory;
  if (*local)
    if (Expected<SegmentDirectory> opened = SegmentDirectory::open())
      directory = std::move(*opened);
  return std::unique_ptr<LocalPath>(
      new LocalPath(slot, std::move(*segment), std::move(directory), *choices));
}

LocalPath::LocalPath(u32 slot, OwnSegment segment, std::optional<SegmentDirectory> directory,
                     const LocalChoices& choices)
    : processes_(slot, std::move(directory)),
      segment_(std::move(segment)),
      choices_(choices),
      keys_(layout().device.keys),
      qps_(layout().device.qps) {}

void LocalPath::start() {
  layout().header.life.wait_until_held();
  turn_on();
  if (SegmentDirectory* const directory = processes_.directory(); directory != nullptr)
    (void)directory->set(processes_.slot(), place().segment);
}

LocalPorts LocalPath::ports() {
  if (!processes_.has_directory()) return {.keys = &keys_};
  return {.keys = &keys_,
          .qps = &qps_,
          .progress = &layout().device.progress,
          .peers = this,
          .counts = &layout().shared.counts,
          .packets = &outgoing_};
}

ExportPlace LocalPath::place() const {
  return {.segment = {.pid = static_cast<u32>(::getpid()),
                      .fd = static_cast<u32>(segment_.fd()),
                      .nonce = layout().header.nonce},
          .slot = processes_.slot(),
          .network = network_namespace()};
}

void LocalPath::turn_on() {
  if (processes_.is_closed() || !processes_.has_directory()) return;
  processes_.turn(true);
  layout().header.open.store(1, std::memory_order_release);
}

void LocalPath::turn_off() {
  processes_.turn(false);
  if (processes_.is_closed() || layout().header.open.exchange(0, std::memory_order_seq_cst) == 0)
    return;
  wait_for_gates();
}

void LocalPath::close() {
  turn_off();
  processes_.close();
}

void LocalPath::abandon() {
  segment_.keep_copy();
  processes_.abandon();
}

void LocalPath::wait_for_gates() {
  if (processes_.is_closed()) return;
  wait_for_gates(layout().shared.gates);
  wait_for_gates(layout().shared.late_gates);
}

void LocalPath::wait_for_gates(AccessGates& gates) {
  gates.on_withdrawn();
  if (!gates.has_visitors()) return;
  for (u32 slot = kFirstSlot; slot <= kLastSlot; ++slot)
    if (const u32 look = gates.look(slot); AccessGates::is_open(look))
      wait_for_gate(gates, slot, look);
}

void LocalPath::wait_for_gate(AccessGates& gates, u32 slot, u32 look) {
  const Time start = monotonic_now();
  while (gates.look(slot) == look) {
    const Duration waited = monotonic_now() - start;
    if (waited < kLongCopy) {
      ::sched_yield();
      continue;
    }
    if (!ProcessChannel::is_alive(slot) || waited >= kPatience)
      return gates.pass_out(slot, look);  // in its place
    sleep_for(kPeerLookInterval);
  }
}

// So that they let go of it even if they never use the path again.
void LocalPath::tell_mappers() {
  layout().shared.mappers.take([this](u32 slot) {
    const std::shared_ptr<ProcessMemory> mapper = processes_.at(slot);
    if (mapper != nullptr && mapper->doorbells().ring(processes_.slot())) processes_.wake(slot);
  });
}

void LocalPath::on_withdrawn_by(u32 slot) {
  if (const std::shared_ptr<ProcessMemory> known = processes_.known_at(slot))
    known->drop_withdrawn();
}

std::optional<CommonMemory> LocalPath::common_memory(std::span<const u8> memory) const {
  if (!processes_.has_directory()) return std::nullopt;
  std::optional<CommonMemory> common = common_memory_of(memory, choices_.sharing);
  if (!common && choices_.gives_huge_pages) give_huge_pages_soon(memory);
  return common;
}

// In any order with take(): a ring after it wakes us again.
void LocalPath::sleep_until_withdrawn() { doorbells().sleep(); }

void LocalPath::on_woken() {
  doorbells().sleep();
  Doorbells::Rung rung{};
  if (!doorbells().take(rung)) return;
  for (u32 slot = kFirstSlot; slot <= kLastSlot; ++slot)
    if ((rung[slot / 64] >> slot % 64 & 1) != 0) on_withdrawn_by(slot);
}

void LocalPath::announce(const TCPTuple& end, QPN qpn) {
  if (!processes_.is_on()) return;
  if (!streams_) {
    Expected<StreamDirectory> opened = StreamDirectory::open();
    if (!opened) return;
    streams_ = std::move(*opened);
  }
  (void)streams_->set(end, qpn);
}

std::shared_ptr<PeerMemory> LocalPath::find_stream(const QPAttributes& qp) {
  const std::optional<QPN> qpn = streams_ ? streams_->find(qp.tcp.reversed()) : std::nullopt;
  if (!qpn) return nullptr;
  std::shared_ptr<ProcessMemory> process = processes_.at(slot_of(qpn->value));
  QPAttributes asker = qp;
  asker.dest_qp = *qpn;
  if (process == nullptr || !process->accepts_from(asker)) return nullptr;
  return std::make_shared<StreamPeer>(std::move(process), *qpn);
}

std::shared_ptr<PeerMemory> LocalPath::find(const QPAttributes& qp) {
  if (qp.tcp.is_connected()) return find_stream(qp);
  std::shared_ptr<ProcessMemory> found = processes_.at(slot_of(qp.dest_qp.value));
  if (found == nullptr || !found->has(qp.path.destination)) return nullptr;
  return found;
}

Expected<std::shared_ptr<ProcessMemory>> LocalPath::exporter_at(const ExportPlace& place) {
  if (place.network != network_namespace())
    return failure(EXDEV, "the exporter is in another network namespace");
  std::erase_if(exporters_, [](const auto& known) { return known.second.expired(); });
  for (const auto& [nonce, known] : exporters_)
    if (std::shared_ptr<ProcessMemory> exporter = known.lock();
        nonce == place.segment.nonce && exporter->is_alive())
      return exporter;
  std::shared_ptr<ProcessMemory> exporter = processes_.open(place.segment, place.slot);
  if (exporter == nullptr) return failure(ESRCH, "the exporter has ended");
  if (const int error = exporter->refusal(); error != 0)
    return failure(error, "the kernel keeps the exporter's memory from us");
  exporters_.emplace_back(place.segment.nonce, exporter);
  return exporter;
}

}  // namespace verbena::host
