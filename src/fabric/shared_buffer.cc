#include "fabric/shared_buffer.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace verbena::fabric {

SharedBuffer::SharedBuffer(const SharedBufferConfig& config, std::vector<PortConfig> ports)
    : config_(config), ports_(std::move(ports)), accounts_(ports_.size() * kPriorities) {
  u64 apart = 0;
  for (const PortConfig& port : ports_) apart += u64{port.headroom} + config_.reserve;
  pool_ = config_.size > apart ? config_.size - apart : 0;
}

u64 SharedBuffer::threshold(u32 port) const {
  const u64 left = pool_ > shared_used_ ? pool_ - shared_used_ : 0;
  return left * ports_[port].alpha / kAlphaOne;
}

bool SharedBuffer::has_room(u32 octets) const { return total_used_ + octets <= config_.size; }

SharedBuffer::Verdict SharedBuffer::admit(u32 port, u32 priority, u32 octets, bool obeys_pause) {
  Account& account = of(port, priority);
  const bool fits = account.headroom_used + octets <= ports_[port].headroom ||
                    shared_of(account) + octets <= threshold(port);
  if (!fits && (obeys_pause || !has_room(octets))) return Verdict::kRefused;
  charge(account, port, octets, fits);
  total_used_ += octets;
  if (account.paused || (account.headroom_used == 0 && shared_of(account) < threshold(port)))
    return Verdict::kAdmitted;
  account.paused = true;
  return Verdict::kAdmittedPause;
}

bool SharedBuffer::admit_lossy(u32 port, u32 priority, u32 octets) {
  Account& account = of(port, priority);
  if (shared_of(account) + octets > threshold(port) || !has_room(octets)) return false;
  charge(account, port, octets, false);
  total_used_ += octets;
  return true;
}

void SharedBuffer::charge(Account& account, u32 port, u32 octets, bool within_limits) {
  const u32 ingress = account.ingress + octets;
  if (ingress <= config_.reserve) {
    account.ingress = ingress;
    return;
  }
  const u32 shared = ingress - config_.reserve;
  if (within_limits && shared > threshold(port)) {
    account.headroom_used += octets;
  } else {
    account.ingress = ingress;
    shared_used_ += std::min(octets, shared);
  }
}

bool SharedBuffer::release(u32 port, u32 priority, u32 octets) {
  Account& account = of(port, priority);
  CHECK(account.headroom_used + account.ingress >= octets);
  const u32 from_headroom = std::min(account.headroom_used, octets);
  account.headroom_used -= from_headroom;
  const u32 rest = octets - from_headroom;
  shared_used_ -= std::min(rest, shared_of(account));
  account.ingress -= rest;
  total_used_ -= octets;
  if (!account.paused || account.headroom_used != 0) return false;
  const u32 shared = shared_of(account);
  if (shared != 0 && shared + config_.resume_offset > threshold(port)) return false;
  account.paused = false;
  return true;
}

}  // namespace verbena::fabric
