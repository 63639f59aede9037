// RunningPrograms: asks the programs of this user that have devices of ours open for their
// counters, QPs and other objects, as `verbena stats` does (host/stats/snapshot.h).
//
// Nothing is allocated, and no C++ runtime is needed: it runs in any program.
#pragma once

#include <sys/types.h>
#include <sys/un.h>

#include <array>
#include <optional>
#include <span>
#include <string_view>

#include "base/types.h"
#include "host/stats/snapshot.h"

namespace verbena::abi::paths {

// Which device an adapter stands for: its name, and the addresses of either family.
class DeviceIdentity {
 public:
  DeviceIdentity() = default;
  // `port`: the folder of the device's port. nullopt: the name is too long.
  [[nodiscard]] static std::optional<DeviceIdentity> of(std::string_view device,
                                                        std::string_view port);
  [[nodiscard]] bool is_of(const host::AdapterSnapshot& adapter) const;

 private:
  using Address = std::array<u8, 16>;
  host::AdapterSnapshot::Name device_{};
  std::array<Address, 2> addresses_{};
};

class RunningPrograms {
 public:
  // Answer: the content of a program's answer, which lies in the caller's buffer.
  struct Answer {
    pid_t pid;
    const host::AdapterSnapshot* adapter;
    std::span<const host::QPSnapshot> qps;
    std::span<const ObjectInfo> objects;  // of another subject
  };
  static constexpr u32 kNoQPs = 0xffffff;  // no QP has a greater number
  static constexpr std::size_t kLeastBuffer = 64 + sizeof(host::AdapterSnapshot);

  // How long a reader waits for all answers together. A program may have to wait for a core. A
  // counter is read often; a list without some of its objects is wrong.
  static constexpr i64 kPatienceForCounterMs = 500, kPatienceForListMs = 2000;

  explicit RunningPrograms(i64 patience_ms);
  ~RunningPrograms();
  RunningPrograms(const RunningPrograms&) = delete;
  RunningPrograms& operator=(const RunningPrograms&) = delete;

  // Each answers with its objects from that place on (StatsQuestion), as many as fit into an
  // answer.
  void ask_all(host::StatsSubject subject, u32 first);
  // Asks the one that gave the last answer for the objects from that place on.
  void ask_again(u32 first);
  // The next answer. nullopt: all have answered, or the time is over. `buffer` is aligned as a
  // u64, and as long as kLeastBuffer, or host::kMaxStatsAnswerSize where objects are asked for.
  [[nodiscard]] std::optional<Answer> next(std::span<u8> buffer);

 private:
  [[nodiscard]] bool ask(const sockaddr_un& to, socklen_t size, u32 first);
  [[nodiscard]] bool is_waiting() const;
  // How long it is; -1: no answer of a program of ours.
  [[nodiscard]] ssize_t receive(std::span<u8> buffer, pid_t& sender);

  int socket_;
  i64 deadline_ms_;
  u64 nonce_;
  host::StatsSubject subject_ = host::StatsSubject::kQPs;
  u32 asked_ = 0, answered_ = 0;
  sockaddr_un last_{};  // that has answered
  socklen_t last_size_ = 0;
};

}  // namespace verbena::abi::paths
