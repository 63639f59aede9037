// Adapter: a Device joined to real time, real links and this process's threads. abi/ and cli/ use
// it.
//
// One adapter per process and address; every ibv_open_device of that address shares it.
// Thread-safe. Progress (docs/architecture/progress.md): post_send transmits from the
// caller's thread; poll receives in the caller's thread; a helper thread sleeps on the same
// descriptors and serves the device only while no application thread does. An idle adapter wakes
// nobody.
#pragma once

#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <string>

#include "device/device.h"
#include "faults/filter.h"
#include "host/cm/connection_manager.h"
#include "host/events/event_target.h"
#include "host/local/common_memory.h"
#include "host/local/process_memory.h"
#include "host/network/local_address.h"
#include "host/os/error.h"
#include "host/progress/waiter_sleep.h"

namespace verbena::host {

struct FabricPortAttributes;  // host/links/fabric/fabric_protocol.h

using AdapterError = Error;

class Adapter {
 public:
  // Opens the adapter of this process for `address`, or joins the open one.
  [[nodiscard]] static tl::expected<std::shared_ptr<Adapter>, AdapterError> open(
      const LocalAddress& address);
  virtual ~Adapter() = default;

  // The time of a session: now; or, where it matters little, as it was last read.
  enum class Clock { kNow, kLast };

  // Exclusive use of the device. On destruction, frames are sent, notifications delivered, and the
  // helper learns of new timers. Keep it short; do not nest.
  class Session {
   public:
    explicit Session(Adapter& adapter, Clock clock = Clock::kNow)
        : adapter_(adapter), real_now_(adapter.lock(clock)), now_(adapter.device_now(real_now_)) {}
    // If memory is missing, the remaining output leaves the device with a later call.
    ~Session() {
      try {
        end();
      } catch (const std::bad_alloc&) {
        return;
      }
    }
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;
    Device* operator->() const { return &adapter_.device(); }
    Device& operator*() const { return adapter_.device(); }
    // The caller knows that its work needs none of these steps on destruction.
    void end_quietly() { needs_ = Needs::kNothing; }
    // Only requests were posted, and the device has no output: all went to peers of this host.
    void end_sent() { needs_ = Needs::kPublishing; }
    Time now() const { return now_; }            // by the device's clock
    Time real_now() const { return real_now_; }  // by the host's; another in a simulated fabric
    [[nodiscard]] faults::FaultFilter* faults() const { return adapter_.faults(); }

   private:
    enum class Needs : u8 { kNothing, kPublishing, kAll };
    void end() {
      switch (needs_) {
        case Needs::kNothing: return adapter_.unlock(real_now_);
        case Needs::kPublishing: return adapter_.publish_and_unlock(real_now_);
        case Needs::kAll: return adapter_.flush_and_unlock(real_now_);
      }
    }
    Adapter& adapter_;
    Time real_now_, now_;
    Needs needs_ = Needs::kAll;
  };
  [[nodiscard]] Session enter(Clock clock = Clock::kNow) { return Session(*this, clock); }

  // The data path's poll: takes the CQEs that are there. If there are none, and now and then when
  // there are some, it receives from the link and runs due timers in this thread, then looks again.
  [[nodiscard]] virtual u32 poll_cq(CompletionQueue* cq, std::span<CQE> out) = 0;
  // Arms the CQ, and the helper thread, since the caller is about to sleep.
  virtual void request_notification(CompletionQueue* cq, NotifyOn on) = 0;
  // A thread waits for an event (host/events/event_wait.h). How it goes on:
  enum class Wait : u8 {
    kOver,      // the event is there
    kForLink,   // it receives, for all that wait
    kForEvent,  // another thread receives: it sleeps until its event
  };
  [[nodiscard]] virtual Wait begin_wait() = 0;
  // From kForLink: receives until `has_event`, asked with the adapter locked, or until it is time
  // to sleep. If the result is kForLink again, sleep_in_wait() comes next, and then this.
  [[nodiscard]] virtual Wait receive_in_wait(const std::function<bool()>& has_event) = 0;
  [[nodiscard]] virtual Woken sleep_in_wait(int event) = 0;  // as WaiterSleep::sleep()
  virtual void end_wait(Wait from) = 0;                      // unless it is over

  // Processes the packets that have arrived so far and sends the answers, held ones included, as a
  // card has done by now. Call it before a QP is destroyed or changes to a state in which they
  // would be dropped, and before keys that they may name become invalid. Not inside a Session.
  virtual void receive_arrived() = 0;

  // Returns when no thread uses the descriptors of events of CQs that were destroyed before the
  // call. Then their EventTargets may go. Not inside a Session.
  virtual void wait_for_wakes() = 0;

  // Attaches a UD QP to a group, which the port joins on the network with the first, and leaves
  // with the last. Errors as Device's; kNoMemory also where the host lets it join no more groups.
  [[nodiscard]] virtual Status attach_multicast(QueuePair* qp, const GID& group) = 0;
  [[nodiscard]] virtual Status detach_multicast(QueuePair* qp, const GID& group) = 0;
  virtual void detach_from_all(QueuePair* qp) = 0;

  // Hears of port events (GID change, port up and down). Events of objects go to their own target.
  virtual void add_port_listener(EventTarget* listener) = 0;
  virtual void remove_port_listener(EventTarget* listener) = 0;

  // Injected faults from now on, in place of those before; none: a device without faults. What
  // those before still held back is lost. Takes the lock itself.
  // EINVAL: a rule has no meaning on this device.
  [[nodiscard]] virtual Expected<void> set_faults(std::vector<faults::Rule> rules, u64 seed) = 0;
  [[nodiscard]] virtual faults::FaultFilter* faults() = 0;  // inside a Session; nullptr: none

  // For regions and domains that other processes import, and we from them (LocalPath). Both take
  // the lock themselves. nullopt, EOPNOTSUPP: the host does not let us.
  [[nodiscard]] virtual std::optional<ExportPlace> export_place() = 0;
  [[nodiscard]] virtual Expected<std::shared_ptr<ProcessMemory>> exporter_at(
      const ExportPlace& place) = 0;

  // Call it before registering memory that peers may reach. Returns the part of it that they can
  // map, which it makes mappable if the user asks for it (host/local/common_memory.h), or nullopt
  // if there is none. Not inside a Session.
  [[nodiscard]] virtual std::optional<CommonMemory> common_memory(std::span<const u8> memory) = 0;

  [[nodiscard]] virtual ConnectionManager& connections() = 0;  // takes the lock itself

  // Returns the port as the manager of an InfiniBand subnet has left it, or nullptr if it is on no
  // subnet. Call it inside a Session; the result is valid until the Session ends.
  [[nodiscard]] virtual const FabricPortAttributes* subnet_port() { return nullptr; }

  [[nodiscard]] virtual Device& device() = 0;  // only inside a Session, or for its config()

 protected:
  [[nodiscard]] virtual Time lock(Clock clock) = 0;
  [[nodiscard]] virtual Time device_now(Time real) = 0;
  virtual void flush_and_unlock(Time now) = 0;
  virtual void publish_and_unlock(Time now) = 0;
  virtual void unlock(Time now) = 0;
  friend class Session;
};

}  // namespace verbena::host
