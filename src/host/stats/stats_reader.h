// StatsReader: asks the adapters of this host and network namespace for their counters: those of
// this user, or for root those of all. Nothing of theirs is touched but their StatsPort.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/time.h"
#include "host/os/descriptor.h"
#include "host/os/error.h"
#include "host/stats/snapshot.h"
#include "host/stats/stats_name.h"

namespace verbena::host {

struct ObservedAdapter {
  pid_t pid = 0;  // as the kernel says it; 0: of another PID namespace
  StatsName name;
  AdapterSnapshot adapter;
  std::vector<QPSnapshot> qps;  // all
};

struct Observation {
  std::vector<ObservedAdapter> adapters;  // by process, then device
  std::vector<StatsName> silent;          // did not answer in time, or not understandably
};

// The names of all that this user may ask, in the text of /proc/net/unix; no name twice.
[[nodiscard]] std::vector<StatsName> stats_names_in(std::string_view proc_net_unix, uid_t user);

class StatsReader {
 public:
  [[nodiscard]] static Expected<StatsReader> open();
  [[nodiscard]] Expected<Observation> observe();  // bounded in time

 private:
  // A program may wait for a core that others use. One that was silent is stopped, most likely.
  static constexpr Duration kPatience = sec(2), kPatienceWithSilent = ms(100);
  static constexpr std::size_t kMaxInFlight = 8;  // answers that the kernel holds for a socket

  struct Query {
    ObservedAdapter found;
    u64 nonce = 0;
    u32 first = 0;
    bool done = false;
    bool gone = false;           // its process has ended
    bool was_silent = false;     // at the last look
    bool other_version = false;  // has answered, and is not understood
  };
  explicit StatsReader(Descriptor socket);
  void ask_until_done(std::vector<Query*> queries);
  bool ask(Query& query);
  void receive(std::vector<Query*>& waiting);
  void take(Query& query, std::optional<StatsAnswer> answer, pid_t sender);

  Descriptor socket_;
  std::vector<u8> buffer_;
  std::vector<StatsName> silent_;  // at the last look
};

// The name of a process, printable; "?": it is gone.
[[nodiscard]] std::string process_name(pid_t pid);

}  // namespace verbena::host
