// Plans: which algorithm an operation takes, by its kind, size and ranks, and the script for it.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "coll/call.h"
#include "coll/error.h"
#include "collectives/script.h"

namespace verbena::coll {

// Topology: the places of the ranks of a communicator.
struct Topology {
  u32 ranks = 1;
  u32 ranks_per_node = 1;  // 1 where nodes have different numbers of ranks, or ranks are mixed
  [[nodiscard]] bool is_one_node() const { return ranks == ranks_per_node; }
};

// Algorithm: those of this library, then those of collectives/ by their number there.
struct Algorithm {
  static constexpr u32 kOneShot = 0, kDirect = 1, kFirstSchedule = 2;
  u32 number = kDirect;
  u64 chunk_bytes = 0;
  friend bool operator==(const Algorithm&, const Algorithm&) = default;
};
inline constexpr u64 kUsualChunk = 512u << 10;
[[nodiscard]] std::string name_of(const Algorithm& algorithm);
[[nodiscard]] std::optional<u32> algorithm_number(std::string_view name);

// "KIND RANKS UP_TO_BYTES ALGORITHM CHUNK_BYTES" on each line, as `verbena coll --tune` writes
// it;
// '#' starts a comment. The first line that fits decides.
class Table {
 public:
  [[nodiscard]] static Expected<Table> read(const std::string& path);
  [[nodiscard]] std::optional<Algorithm> find(Kind kind, u32 ranks, u64 bytes) const;

 private:
  struct Line {
    Kind kind;
    u32 ranks;
    u64 up_to;
    Algorithm algorithm;
  };
  std::vector<Line> lines_{};
};

// Returns why the algorithm cannot do that operation; "" if it can.
[[nodiscard]] std::string refusal(const Call& call, const Algorithm& algorithm,
                                  const Topology& topology);

struct Choice {
  std::optional<Algorithm> forced{};  // takes all operations that it can
  Table table{};
};
[[nodiscard]] Algorithm choose(const Call& call, const Topology& topology, const Choice& choice);

// MainArea: the part of the program's memory that is the main area of a script.
enum class MainArea : u8 {
  kInput,      // with the output beside it, in the output area
  kOutput,     // the input is copied into it before
  kTemporary,  // the input is copied into it before, and the output out of it after
};
struct Plan {
  std::shared_ptr<const collectives::Script> script{};
  MainArea main = MainArea::kInput;
  u64 main_bytes = 0;       // of temporary memory, where the main area is that
  u64 temporary_bytes = 0;  // of the temporary area
  // Bytes of the main area: where the input is copied to, where the output is.
  collectives::Range input{}, output{};
};
// Precondition: refusal() is "". `rank`: the rank whose steps are needed; all ranks if it is
// nullopt.
[[nodiscard]] Plan make_plan(const Call& call, const Algorithm& algorithm, const Topology& topology,
                             std::optional<u32> rank);

// The bytes by which nccl-tests counts: the whole of a rank's larger buffer.
[[nodiscard]] u64 size_of(const Call& call, u32 ranks);

}  // namespace verbena::coll
