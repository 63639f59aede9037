// The timeline of a step in Google's Trace Event Format.
#include <algorithm>

#include <nlohmann/json.hpp>

#include "jobs/step_report.h"

namespace verbena::jobs {
namespace {

using nlohmann::json;

json named(const char* what, u32 process, u32 thread, std::string name) {
  return {{"ph", "M"},
          {"name", what},
          {"pid", process},
          {"tid", thread},
          {"args", {{"name", std::move(name)}}}};
}

double microseconds(Duration time) { return time.seconds() * 1e6; }

// Threads of a GPU: one that computes, one for each communicator, and its CPU's.
struct Threads {
  u32 of_gpu;
  [[nodiscard]] u32 place_of(const Task& task) const {
    if (!task.computes()) return task.communicator + 1;
    return task.unit == Task::Unit::kGPU ? 0 : of_gpu - 1;
  }
  [[nodiscard]] u32 of(u32 local, const Task& task) const {
    return local * of_gpu + place_of(task);
  }
};

}  // namespace

std::string trace_of(const Job& job, const StepResult& result) {
  const Program& program = *result.program;
  const u32 in_node = job.cluster.gpus_per_node;
  const Threads threads{.of_gpu = program.communicators() + 2};
  json events = json::array();
  for (u32 rank = 0; rank < std::min(program.ranks(), kTracedGPUs); ++rank) {
    const u32 node = rank / in_node, local = rank % in_node;
    if (local == 0)
      events.push_back(named("process_name", node, 0, "node " + std::to_string(node)));
    const std::string gpu = "GPU " + std::to_string(rank);
    events.push_back(named("thread_name", node, local * threads.of_gpu, gpu));
    for (u32 i = 0; i < program.communicators(); ++i)
      if (program.communicator(i).group_of(rank) != Communicator::kNone)
        events.push_back(named("thread_name", node, local * threads.of_gpu + i + 1,
                               gpu + " " + program.communicator(i).name()));
    const std::vector<Task>& tasks = program.tasks_of(rank);
    if (std::ranges::any_of(tasks, [](const Task& task) { return task.unit == Task::Unit::kCPU; }))
      events.push_back(
          named("thread_name", node, local * threads.of_gpu + threads.of_gpu - 1, gpu + " CPU"));
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      const Span& span = result.timeline->spans_of(rank)[i];
      if (span.end <= span.begin) continue;
      events.push_back({{"ph", "X"},
                        {"name", tasks[i].name},
                        {"cat", std::string(name_of(tasks[i].purpose))},
                        {"pid", node},
                        {"tid", threads.of(local, tasks[i])},
                        {"ts", microseconds(span.begin - result.begin)},
                        {"dur", microseconds(span.end - span.begin)}});
    }
  }
  return json{{"displayTimeUnit", "ns"}, {"traceEvents", std::move(events)}}.dump();
}

}  // namespace verbena::jobs
