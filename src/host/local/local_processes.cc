#include "host/local/local_processes.h"

namespace verbena::host {

std::shared_ptr<ProcessMemory> LocalProcesses::at(u32 slot) {
  if (is_closed_ || !directory_ || !is_process_slot(slot)) return nullptr;
  std::shared_ptr<ProcessMemory> found = known_at(slot);
  if (found != nullptr && found->is_alive()) return found;
  const std::optional<SegmentPlace> place = directory_->find(slot);
  if (!place) return nullptr;
  found = open(*place, slot);
  if (found != nullptr) known_[slot] = found;
  return found;
}

std::shared_ptr<ProcessMemory> LocalProcesses::open(const SegmentPlace& place, u32 slot) {
  Expected<PeerSegment> segment = PeerSegment::open(place, slot);
  if (!segment) return nullptr;
  auto process = std::make_shared<ProcessMemory>(std::move(*segment), place.pid, slot_, enabled_);
  // That the process has this segment open was true after it was seen alive.
  if (!process->is_alive() || !PeerSegment::open(place, slot)) return nullptr;
  return process;
}

void LocalProcesses::abandon() {
  waker_.close();
  turn(false);
  close();
}

}  // namespace verbena::host
