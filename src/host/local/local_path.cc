#include "host/local/local_path.h"

#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>
#include <string_view>

#include "host/clock.h"
#include "host/process_channel.h"

namespace verbena::host {
namespace {

constexpr const char* kVariable = "VERBENA_LOCAL";

// A peer copies 1 MiB at most at a time. One that takes longer is descheduled, or stopped, or dead.
constexpr Duration kLongCopy = ms(2);
constexpr Duration kLookInterval = ms(1);
constexpr Duration kPatience = sec(2);  // with one that is stopped in the middle

void sleep_for(Duration pause) {
  const timespec time = to_timespec(Time() + pause);
  ::nanosleep(&time, nullptr);
}

}  // namespace

Expected<std::unique_ptr<LocalPath>> LocalPath::open(u32 slot, std::span<const GIDEntry> gids) {
  const char* const text = std::getenv(kVariable);
  const std::string_view choice(text == nullptr ? "on" : text);
  if (choice == "off") return nullptr;
  if (choice != "on")
    return failure(EINVAL, std::string(kVariable) + " is neither on nor off: " + text);
  Expected<OwnSegment> segment = OwnSegment::create(slot, gids);
  Expected<SegmentDirectory> directory = SegmentDirectory::open();
  if (!segment || !directory) return nullptr;
  return std::unique_ptr<LocalPath>(
      new LocalPath(slot, std::move(*segment), std::move(*directory)));
}

LocalPath::LocalPath(u32 slot, OwnSegment segment, SegmentDirectory directory)
    : slot_(slot),
      segment_(std::move(segment)),
      directory_(std::move(directory)),
      keys_(layout().device.keys),
      qps_(layout().device.qps) {}

void LocalPath::start() {
  layout().header.life.wait_until_held();
  turn_on();
  (void)directory_.set(slot_, {.pid = static_cast<u32>(::getpid()),
                               .fd = static_cast<u32>(segment_.fd()),
                               .nonce = layout().header.nonce});
}

void LocalPath::turn_on() {
  if (abandoned_) return;
  enabled_.store(true, std::memory_order_relaxed);
  layout().header.open.store(1, std::memory_order_release);
}

void LocalPath::turn_off() {
  enabled_.store(false, std::memory_order_relaxed);
  if (abandoned_ || layout().header.open.exchange(0, std::memory_order_seq_cst) == 0) return;
  wait_for_gates();
}

void LocalPath::close() {
  turn_off();
  abandoned_ = true;
}

void LocalPath::abandon() {
  abandoned_ = true;
  enabled_.store(false, std::memory_order_relaxed);
}

void LocalPath::wait_for_peers() {
  const bool keys = keys_.take_withdrawn(), qps = qps_.take_withdrawn();
  if ((keys || qps) && !abandoned_) wait_for_gates();
}

void LocalPath::wait_for_gates() {
  AccessGates& gates = layout().shared.gates;
  gates.on_withdrawn();
  for (u32 slot = kFirstSlot; slot <= kLastSlot; ++slot)
    if (const u32 look = gates.look(slot); AccessGates::is_open(look)) wait_for_gate(slot, look);
}

void LocalPath::wait_for_gate(u32 slot, u32 look) {
  AccessGates& gates = layout().shared.gates;
  const Time start = monotonic_now();
  while (gates.look(slot) == look) {
    const Duration waited = monotonic_now() - start;
    if (waited < kLongCopy) {
      ::sched_yield();
      continue;
    }
    if (!ProcessChannel::is_alive(slot) || waited >= kPatience) return gates.shut(slot);
    sleep_for(kLookInterval);
  }
}

std::shared_ptr<PeerMemory> LocalPath::find(const QPAttributes& qp) {
  const u32 slot = slot_of(qp.dest_qp.value);
  if (abandoned_ || !is_process_slot(slot)) return nullptr;
  std::shared_ptr<ProcessMemory> peer = peers_[slot].lock();
  if (peer == nullptr || !peer->is_alive()) peer = open_peer(slot);
  if (peer == nullptr || !peer->has(qp.path.destination)) return nullptr;
  return peer;
}

std::shared_ptr<ProcessMemory> LocalPath::open_peer(u32 slot) {
  const std::optional<SegmentPlace> place = directory_.find(slot);
  if (!place) return nullptr;
  Expected<PeerSegment> segment = PeerSegment::open(*place, slot);
  if (!segment) return nullptr;
  auto peer = std::make_shared<ProcessMemory>(std::move(*segment), place->pid, slot_, enabled_);
  // That the process has this segment open was true after it was seen alive.
  if (!peer->is_alive() || !PeerSegment::open(*place, slot)) return nullptr;
  peers_[slot] = peer;
  return peer;
}

}  // namespace verbena::host
