// Trace: what one rank of a job has done, or is to do, as MLCommons Chakra's execution traces have
// it (Sridharan et al., Chakra: Advancing Performance Benchmarking and Co-design using Standardized
// Execution Traces, 2023): nodes, and which of them each one comes after. docs/jobs.md says what is
// made of them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "collectives/operation.h"
#include "fabric/hpcc_ns3/words.h"
#include "jobs/chakra/process_groups.h"

namespace verbena::jobs::chakra {

// The limits of a trace.
inline constexpr u64 kMostNodes = u64{1} << 22;
inline constexpr u64 kMostBytes = u64{1} << 30;

struct Node {
  enum class Kind : u8 {
    kNothing,  // takes no time; others come after it
    kComputes,
    kMemory,  // loads or stores what is not in the GPU's memory
    kSends,
    kReceives,
    kOperates,  // takes part in a collective operation
  };

  u64 id = 0;
  std::string name;
  Kind kind = Kind::kNothing;
  bool is_of_cpu = false;
  std::vector<u64> after;  // ids
  Duration lasts{};        // 0: not told
  u64 operations = 0;      // floating-point operations, kComputes
  u64 tensor_bytes = 0;    // read and written, kComputes and kMemory
  // --- of communication
  std::optional<collectives::Operation> operation;  // kOperates
  u64 bytes = 0;                                    // that the rank begins with
  u64 peer = 0;                                     // a rank, of kSends and kReceives
  u64 tag = 0;
  std::string group;        // of kOperates; "": all ranks
  std::optional<u64> root;  // a rank
};

struct Trace {
  std::string file;
  std::vector<Node> nodes;
  ProcessGroups groups;  // those that PyTorch's trace tells of
};

// Dependencies: the dependencies that count. Converted traces of PyTorch have the caller of an
// operation as its control dependency, and the caller is often not in the trace. The converter sets
// data dependencies for nodes that have to wait, and Chakra's feeder for simulators reads only
// those.
enum class Dependencies : u8 { kData, kDataAndControl };

// `bytes`: the bytes of the file. `rank`: the rank of the trace. The error names the file, and the
// node if it is the error of one.
[[nodiscard]] fabric::Parsed<Trace> read_trace(std::string file, const std::string& bytes, u32 rank,
                                               Dependencies which);

// "prefix.3.et: node 17 (all_reduce): " for what is wrong with it.
[[nodiscard]] std::string place_of(const Trace& trace, const Node& node);

}  // namespace verbena::jobs::chakra
