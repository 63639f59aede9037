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

bool SharedBuffer::has_room(u32 bytes) const { return total_used_ + bytes <= config_.size; }

SharedBuffer::Verdict SharedBuffer::admit(u32 port, u32 priority, u32 bytes, bool obeys_pause) {
  Account& account = of(port, priority);
  const bool fits = account.headroom_used + bytes <= ports_[port].headroom ||
                    shared_of(account) + bytes <= threshold(port);
  if (!fits && (obeys_pause || !has_room(bytes))) return Verdict::kRefused;
  charge(account, port, bytes, fits);
  total_used_ += bytes;
  if (account.paused || (account.headroom_used == 0 && shared_of(account) < threshold(port)))
    return Verdict::kAdmitted;
  account.paused = true;
  return Verdict::kAdmittedPause;
}

bool SharedBuffer::admit_lossy(u32 port, u32 priority, u32 bytes) {
  Account& account = of(port, priority);
  if (shared_of(account) + bytes > threshold(port) || !has_room(bytes)) return false;
  charge(account, port, bytes, false);
  total_used_ += bytes;
  return true;
}

void SharedBuffer::charge(Account& account, u32 port, u32 bytes, bool within_limits) {
  const u32 ingress = account.ingress + bytes;
  if (ingress <= config_.reserve) {
    account.ingress = ingress;
    return;
  }
  const u32 shared = ingress - config_.reserve;
  if (within_limits && shared > threshold(port)) {
    account.headroom_used += bytes;
  } else {
    account.ingress = ingress;
    shared_used_ += std::min(bytes, shared);
  }
}

bool SharedBuffer::release(u32 port, u32 priority, u32 bytes) {
  Account& account = of(port, priority);
  CHECK(account.headroom_used + account.ingress >= bytes);
  const u32 from_headroom = std::min(account.headroom_used, bytes);
  account.headroom_used -= from_headroom;
  const u32 rest = bytes - from_headroom;
  shared_used_ -= std::min(rest, shared_of(account));
  account.ingress -= rest;
  total_used_ -= bytes;
  if (!account.paused || account.headroom_used != 0) return false;
  const u32 shared = shared_of(account);
  if (shared != 0 && shared + config_.resume_offset > threshold(port)) return false;
  account.paused = false;
  return true;
}

}  // namespace verbena::fabric
