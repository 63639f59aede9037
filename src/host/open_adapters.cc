#include "host/adapter.h"

#include <pthread.h>

#include <cstdlib>
#include <map>
#include <mutex>
#include <vector>

#include "host/live_adapter.h"
#include "host/os/memory_faults.h"

namespace verbena::host {
namespace {

// The open adapters of this process, by what they stand on. Never destroyed: exit handlers use it.
struct Registry {
  std::mutex mutex;
  std::map<std::string, std::weak_ptr<LiveAdapter>> open;
  std::vector<std::shared_ptr<LiveAdapter>> held_for_fork;

  std::vector<std::shared_ptr<LiveAdapter>> live() const {
    std::vector<std::shared_ptr<LiveAdapter>> adapters;
    for (const auto& [name, weak] : open)
      if (auto adapter = weak.lock()) adapters.push_back(std::move(adapter));
    return adapters;
  }
};

Registry& registry() {
  static Registry* const instance = new Registry;
  return *instance;
}

std::string name_of(const LocalAddress& address) {
  std::string name = address.interface;
  for (const GID& gid : address.all()) name.append(1, ',').append(gid.to_string());
  return name;
}

// With all locks held, what the child gets is in order.
void before_fork() {
  registry().mutex.lock();
  registry().held_for_fork = registry().live();
  for (const auto& adapter : registry().held_for_fork) adapter->lock_for_fork();
}

void after_fork() {
  std::vector<std::shared_ptr<LiveAdapter>> held = std::move(registry().held_for_fork);
  registry().held_for_fork.clear();
  for (const auto& adapter : held) adapter->unlock_after_fork();
  registry().mutex.unlock();
}

// The child has no helper thread and must not hold the parent's sockets: they would stay in the
// kernel's group after the parent has closed them. What it opens anew is its own.
void in_child_of_fork() {
  for (const auto& adapter : registry().held_for_fork) adapter->abandon_in_child();
  registry().open.clear();
  after_fork();
}

// A program may end without ibv_close_device; the other processes' traffic should not suffer.
void at_exit() {
  const std::unique_lock lock(registry().mutex, std::try_to_lock);
  if (!lock.owns_lock()) return;
  for (const auto& adapter : registry().live()) adapter->leave_at_exit();
}

void install_handlers() {
  pthread_atfork(before_fork, after_fork, in_child_of_fork);
  std::atexit(at_exit);
}

}  // namespace

tl::expected<std::shared_ptr<Adapter>, AdapterError> Adapter::open(const LocalAddress& address) {
  static std::once_flag installed;
  std::call_once(installed, install_handlers);
  survive_memory_faults();
  const std::lock_guard lock(registry().mutex);
  std::weak_ptr<LiveAdapter>& known = registry().open[name_of(address)];
  if (std::shared_ptr<LiveAdapter> adapter = known.lock()) return adapter;
  Expected<std::shared_ptr<LiveAdapter>> adapter = LiveAdapter::open(address);
  if (!adapter) return tl::unexpected(adapter.error());
  known = *adapter;
  return *adapter;
}

}  // namespace verbena::host
