// NextHop: the neighbour that takes what this host sends to an address, and whether it is there: by
// ARP (RFC 826) or neighbour discovery (RFC 4861), as the kernel's tables say. rtnetlink(7). Needs
// no privilege.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "base/time.h"
#include "host/os/error.h"
#include "host/progress/helper_thread.h"
#include "wire/eth/ethernet.h"
#include "wire/ib/gid.h"

namespace verbena::host {

enum class Presence : u8 {
  kThere,
  kAsked,     // and no answer yet
  kNotKnown,  // nobody has asked, or the link has no addresses to ask for
};

struct Neighbour {
  MAC mac;
  bool is_stale = false;  // the kernel will ask again once something goes to it
};

class NextHop {
 public:
  // `interface_index` is that of a link-local destination. Returns nullopt if the destination is
  // this host, or if the kernel does not say.
  [[nodiscard]] static std::optional<NextHop> towards(const GID& destination, u32 interface_index);

  [[nodiscard]] Presence presence() const;
  [[nodiscard]] std::optional<Neighbour> neighbour() const;  // nullopt: not there (yet)
  [[nodiscard]] u32 interface_index() const { return interface_index_; }
  [[nodiscard]] bool is_behind_router() const { return neighbour_ != destination_; }
  // Has the kernel ask, by an empty datagram to the destination's discard port. RFC 863.
  void ask() const;

 private:
  GID destination_, neighbour_;
  u32 interface_index_ = 0;
};

// Waits in a thread of its own for a neighbour that was asked for.
class NextHopWait {
 public:
  // `done`, in that thread: whether it was there in time.
  [[nodiscard]] static Expected<std::unique_ptr<NextHopWait>> start(const NextHop& hop,
                                                                    Duration patience,
                                                                    std::function<void(bool)> done);

 private:
  NextHopWait(const NextHop& hop, Time deadline, std::function<void(bool)> done)
      : hop_(hop), deadline_(deadline), done_(std::move(done)) {}
  void look();

  NextHop hop_;
  Time deadline_, next_question_;
  Duration interval_;
  std::function<void(bool)> done_;
  std::unique_ptr<HelperThread> thread_;  // last: it ends before the rest goes
};

}  // namespace verbena::host
