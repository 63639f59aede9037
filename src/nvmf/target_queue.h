// TargetQueue: one queue pair of a controller at the target: an RDMA connection with receives for
// command capsules. Each receive has a task, which is free again when its response is sent.
#pragma once
#include <memory>

#include "nvmf/authentication/controller_authentication.h"
#include "nvmf/buffer_pool.h"
#include "nvmf/controller.h"

namespace verbena::nvmf {

struct Task {
  enum class State : u8 {
    kFree,
    kWaitsForBuffer,
    kFetches,   // RDMA READ of the host's data
    kInStore,   // requests of a store are outstanding
    kAnswered,  // the response waits or is sent; its acknowledgement releases the buffers
  };
  State state = State::kFree;
  nvme::Command command{};
  const Namespace* space = nullptr;
  u32 bytes = 0;                                         // of data
  std::optional<BufferPool::Buffer> buffer{}, second{};  // Compare needs two
  u8* capsule_data = nullptr;
  u32 store_requests = 0;  // outstanding
  nvme::Status status = nvme::Status::kSuccess;
  Time begin{};
};

struct TargetQueue {
  application::ConnectionId connection = 0;
  u16 qid = 0;      // as REQ says; Connect confirms it
  u16 entries = 0;  // of the submission queue
  u16 sq_head = 0;
  bool has_flow_control = true;
  bool is_closed = false;
  bool may_admit = true;                     // false: the target drains
  std::shared_ptr<Controller> controller{};  // nullptr before Connect
  const Subsystem* subsystem = nullptr;      // the target's own of that NQN; nullptr: discovery
  std::unique_ptr<ControllerAuthentication> authentication{};  // nullptr: the host needs none
  Time created{};
  Time authenticate_by = Time::never();
  application::Region capsules{}, answers{}, admin_data{};
  std::vector<Task> tasks{};
  u32 busy = 0;            // tasks that are not free
  u32 store_requests = 0;  // outstanding, of all tasks

  [[nodiscard]] bool lacks_authentication() const {
    return authentication != nullptr && !authentication->is_authenticated();
  }
  // The connection ends then, unless the host connects and authenticates itself before.
  [[nodiscard]] Time deadline(Duration connect_limit) const {
    if (is_closed) return Time::never();
    if (controller == nullptr) return created + connect_limit;
    return lacks_authentication() ? authenticate_by : Time::never();
  }
  [[nodiscard]] u32 receives() const { return static_cast<u32>(tasks.size()); }
};

}  // namespace verbena::nvmf
