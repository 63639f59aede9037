// RankClasses: which ranks of a program do the same at the same time: those that have the same
// tasks, and whose groups, in each communicator, are of the same classes in the same order. The
// coarsest such partition, by refinement from the roles.
#pragma once

#include <vector>

#include "jobs/program/program.h"

namespace verbena::jobs {

class RankClasses {
 public:
  explicit RankClasses(const Program& program);

  [[nodiscard]] u32 size() const { return static_cast<u32>(representative_.size()); }
  [[nodiscard]] const std::vector<u32>& class_of() const { return class_of_; }  // by rank
  [[nodiscard]] u32 representative(u32 number) const { return representative_[number]; }

 private:
  [[nodiscard]] std::vector<std::vector<u32>> patterns(const Program& program,
                                                       u32 communicator) const;
  bool refine(const Program& program);

  std::vector<u32> class_of_;
  std::vector<u32> representative_;  // the first rank of each class
};

}  // namespace verbena::jobs
