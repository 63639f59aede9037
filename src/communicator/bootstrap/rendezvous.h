// Rendezvous: the place where the ranks of a job find rank 0, read from the address forms of
// verbena/collectives.h.
#pragma once

#include <string>
#include <string_view>

#include "base/types.h"
#include "coll/error.h"

namespace verbena::coll {

struct Rendezvous {
  enum class Form : u8 { kTCP, kFile, kStore };
  Form form = Form::kTCP;
  std::string host{};  // kTCP
  u16 port = 0;
  std::string path{};  // kFile
  u32 rank = 0, ranks = 1;
  std::string job{};
};

inline constexpr u32 kMaxRanks = 1024;

// A `rank` or `ranks` of -1 is what the launcher's variables say.
[[nodiscard]] Expected<Rendezvous> read_rendezvous(std::string_view address, int rank, int ranks);

// LauncherRank: the place of this process in a job that a launcher started; unknown if ranks is -1.
struct LauncherRank {
  std::string launcher{};
  int rank = -1, ranks = -1, local_ranks = -1;
  std::string job{};
};
[[nodiscard]] LauncherRank launcher_rank();

}  // namespace verbena::coll
