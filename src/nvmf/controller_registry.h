// ControllerRegistry: the controllers of all Targets that serve one address, each on a thread of
// its own. Admin queues are one target's, which enters and removes controllers; I/O queues of the
// same controllers may be others'. Thread-safe.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>

#include "nvmf/controller.h"

namespace verbena::nvmf {

class ControllerRegistry {
 public:
  void enter(std::shared_ptr<Controller> controller) {
    const std::lock_guard lock(mutex_);
    controllers_[controller->id()] = std::move(controller);
  }
  void remove(u16 id) {
    const std::lock_guard lock(mutex_);
    controllers_.erase(id);
    ++ended_;
  }
  [[nodiscard]] std::shared_ptr<Controller> find(u16 id) const {
    const std::lock_guard lock(mutex_);
    const auto found = controllers_.find(id);
    return found == controllers_.end() ? nullptr : found->second;
  }
  // How many have ended. Who sees another number than before closes their queues.
  [[nodiscard]] u64 ended() const { return ended_; }

 private:
  mutable std::mutex mutex_;
  std::map<u16, std::shared_ptr<Controller>> controllers_;
  std::atomic<u64> ended_{0};
};

}  // namespace verbena::nvmf
