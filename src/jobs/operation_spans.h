// OperationSpans: when each operation of a group could begin, and when it had ended, from a
// timeline. An operation has its input when the last of its ranks is there (of a broadcast: the
// root), and the group's operation before it from the same root has ended, since those of a
// communicator follow each other. What ranks wait until then is no part of the operation's time.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "jobs/timeline.h"

namespace verbena::jobs {

struct OperationSpan {
  Time first = Time::never();  // the first of its ranks is there
  Time ready;                  // the last input is
  Time end;                    // on all ranks

  [[nodiscard]] Duration lasts() const { return end > ready ? end - ready : Duration(); }
  [[nodiscard]] Duration waiting() const { return ready > first ? ready - first : Duration(); }
};

class OperationSpans {
 public:
  // Both outlive it.
  OperationSpans(const Program& program, const Timeline& timeline)
      : program_(program), timeline_(timeline) {}

  struct Task {
    u32 operation = 0;
    Purpose purpose = Purpose::kCollective;
    const OperationSpan* span = nullptr;  // of the rank's group
  };
  // Returns all operations that the rank takes part in, in its tasks' order.
  [[nodiscard]] std::vector<Task> of(u32 rank);

 private:
  [[nodiscard]] const std::vector<OperationSpan>& of_group(u32 communicator, u32 group);
  void add_member(u32 communicator, u32 rank, std::vector<OperationSpan>& spans) const;

  const Program& program_;
  const Timeline& timeline_;
  // By communicator and group: its operations, in their order.
  std::map<std::pair<u32, u32>, std::vector<OperationSpan>> known_;
};

}  // namespace verbena::jobs
