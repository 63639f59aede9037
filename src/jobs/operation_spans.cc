#include "jobs/operation_spans.h"

#include <algorithm>

namespace verbena::jobs {

std::vector<OperationSpans::Task> OperationSpans::of(u32 rank) {
  std::vector<Task> result;
  std::vector<std::size_t> done(program_.communicators());
  for (const jobs::Task& task : program_.tasks_of(rank)) {
    if (task.computes()) continue;
    const u32 group = program_.communicator(task.communicator).group_of(rank);
    const std::vector<OperationSpan>& spans = of_group(task.communicator, group);
    result.push_back({task.operation, task.purpose, &spans[done[task.communicator]++]});
  }
  return result;
}

const std::vector<OperationSpan>& OperationSpans::of_group(u32 number, u32 group) {
  const auto [at, is_new] = known_.try_emplace({number, group});
  std::vector<OperationSpan>& spans = at->second;
  if (!is_new) return spans;
  const Communicator& communicator = program_.communicator(number);
  for (u32 i = 0; i < communicator.size(); ++i)
    add_member(number, communicator.member(group, i), spans);
  std::map<u32, Time> ends;  // of the last operation, by root
  std::size_t which = 0;
  for (const jobs::Task& task : program_.tasks_of(communicator.member(group, 0))) {
    if (task.computes() || task.communicator != number) continue;
    Time& before = ends[program_.shape_of(task.operation).root];
    spans[which].ready = std::max(spans[which].ready, before);
    before = std::max(before, spans[which++].end);
  }
  return spans;
}

void OperationSpans::add_member(u32 number, u32 rank, std::vector<OperationSpan>& spans) const {
  const std::vector<jobs::Task>& tasks = program_.tasks_of(rank);
  const std::vector<Span>& of_rank = timeline_.spans_of(rank);
  const u32 index = program_.communicator(number).index_of(rank);
  std::size_t which = 0;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    if (tasks[i].computes() || tasks[i].communicator != number) continue;
    if (which == spans.size()) spans.emplace_back();
    OperationSpan& span = spans[which++];
    const collectives::Shape& shape = program_.shape_of(tasks[i].operation);
    const bool has_root = shape.operation == collectives::Operation::kBroadcast;
    if (of_rank[i].begin == Time::never()) continue;  // interrupted before
    span.first = std::min(span.first, of_rank[i].begin);
    if (!has_root || index == shape.root) span.ready = std::max(span.ready, of_rank[i].begin);
    span.end = std::max(span.end, of_rank[i].end);
  }
}

}  // namespace verbena::jobs
