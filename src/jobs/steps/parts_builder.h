// PartsBuilder: the parts of a program being put together: communicators, operations that are known
// once however often they are done, and the tasks of one role after another.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "jobs/program/program.h"

namespace verbena::jobs {

// Cutting: how operations are divided and run if a job does not specify it.
struct Cutting {
  u32 channels = 2;               // between nodes; one inside
  u64 chunk_bytes = 1024 * 1024;  // between nodes; whole blocks inside
};

class PartsBuilder {
 public:
  PartsBuilder(u32 ranks, u32 ranks_per_node, const Cutting& cutting);

  // The number of a communicator whose groups have one member: such groups exchange nothing.
  static constexpr u32 kNone = ~u32{0};
  [[nodiscard]] u32 add_communicator(std::string name, std::vector<std::vector<u32>> groups);
  // Returns the number of the operation; an equal operation has the same number. `bytes` are
  // rounded up to whole elements.
  [[nodiscard]] u32 operation(u32 communicator, collectives::Operation operation, u64 bytes,
                              u32 root = 0);

  // Tasks are those of this role, from now on.
  void begin_role() { parts_.tasks.emplace_back(); }
  u32 compute(std::string name, Purpose purpose, Duration lasts, std::vector<u32> after);
  // The task added last, to say more of it.
  [[nodiscard]] Task& last() { return parts_.tasks.back().back(); }
  u32 operate(std::string name, Purpose purpose, u32 operation, std::vector<u32> after);

  [[nodiscard]] ProgramParts take(std::vector<u32> role_of);

 private:
  u32 add(Task task);
  [[nodiscard]] collectives::Shape shape_of(const Communicator& communicator,
                                            collectives::Operation operation, u64 bytes,
                                            u32 root) const;

  const u32 ranks_per_node_;
  const Cutting cutting_;
  ProgramParts parts_;
};

}  // namespace verbena::jobs
