// SubsystemStats: what `verbena stats` shows of a running target, and its text form, in which the
// target's process answers whoever connects to the abstract Unix socket stats_socket_name():
//   verbena-nvmf 1
//   READS WRITES BYTES_READ BYTES_WRITTEN ERRORS HOSTS NQN
// with the last line once for each subsystem.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/types.h"

namespace verbena::nvmf {

struct CommandCounts {
  u64 reads = 0, writes = 0, bytes_read = 0, bytes_written = 0, errors = 0;

  CommandCounts& operator+=(const CommandCounts& other);
  friend bool operator==(const CommandCounts&, const CommandCounts&) = default;
};

struct SubsystemStats {
  std::string nqn{};
  CommandCounts counts{};  // since the target began, hosts that have left included
  u64 hosts = 0;           // connected now

  friend bool operator==(const SubsystemStats&, const SubsystemStats&) = default;
};

inline constexpr std::size_t kMaxStatsText = 64 * 1024;

[[nodiscard]] std::string stats_socket_name(int pid);
// As many subsystems as fit into kMaxStatsText.
[[nodiscard]] std::string to_text(std::span<const SubsystemStats> subsystems);
// nullopt: it is no such text, or one of another version.
[[nodiscard]] std::optional<std::vector<SubsystemStats>> parse_stats(std::string_view text);

}  // namespace verbena::nvmf
