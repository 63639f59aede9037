// StatsPort: the port where an adapter answers questions about its counters: a Unix datagram socket
// of its own, so that no question comes near the data path; the helper thread sleeps on it. The
// kernel names the asking user: this user and root get an answer, no others. Costs nothing while
// nobody asks.
// Not thread-safe; the adapter's lock guards it.
#pragma once

#include <sys/un.h>

#include <optional>

#include "device/device.h"
#include "host/network/local_address.h"
#include "host/os/descriptor.h"
#include "host/stats/snapshot.h"

namespace verbena::host {

class StatsPort {
 public:
  // Returns nullopt if no socket is available, or the name is taken; the adapter then has no such
  // port.
  [[nodiscard]] static std::optional<StatsPort> open(const LocalAddress& address, u32 slot);

  [[nodiscard]] int fd() const { return socket_.get(); }
  void close() { socket_.reset(); }

  // Answers pending questions, at most kMaxQuestions.
  void serve(const Device& device, const LinkCounters& link, u32 contexts, Time now);

 private:
  static constexpr u32 kMaxQuestions = 16;

  StatsPort(Descriptor socket, const AdapterSnapshot& identity)
      : socket_(std::move(socket)), identity_(identity) {}
  bool receive();  // false: nothing waits

  Descriptor socket_;
  AdapterSnapshot identity_;               // what the device does not know
  std::optional<StatsQuestion> question_;  // received last; nullopt: it was none, or not allowed
  sockaddr_un asker_{};
  socklen_t asker_size_ = 0;
};

// The device as it is now, with the objects that the question is about.
[[nodiscard]] StatsAnswer take_snapshot(const AdapterSnapshot& identity, const Device& device,
                                        const LinkCounters& link, const StatsQuestion& question,
                                        Time now);

}  // namespace verbena::host
