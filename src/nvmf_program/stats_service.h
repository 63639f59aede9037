// StatsService: answers `verbena stats` about this process's target (nvmf/target_stats.h). Only
// processes of the same user, and of root, get an answer.
#pragma once

#include "nvmf/target_stats.h"

namespace verbena::nvmf_program {

class StatsService {
 public:
  StatsService();
  ~StatsService();
  StatsService(const StatsService&) = delete;
  StatsService& operator=(const StatsService&) = delete;

  // Readable when somebody asks; -1: the socket could not be made.
  [[nodiscard]] int descriptor() const { return fd_; }
  // Accepts one connection. Returns it, or -1: nobody asks, or somebody who may not.
  [[nodiscard]] int take_question() const;
  static void answer(int question, std::span<const nvmf::SubsystemStats> subsystems);

 private:
  int fd_ = -1;
};

}  // namespace verbena::nvmf_program
