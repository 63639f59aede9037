#include "jobs/timeline.h"

#include <algorithm>
#include <utility>

namespace verbena::jobs {
namespace {

std::size_t place_of(Purpose purpose) { return static_cast<std::size_t>(purpose); }

// Returns the purpose of the task that the rank waited for before it began `task`: the last one to
// end.
Purpose awaited(const Task& task, const std::vector<Task>& tasks, const std::vector<Span>& spans) {
  Purpose purpose = task.purpose;
  Time latest;
  for (const u32 before : task.after)
    if (spans[before].end > latest) {
      latest = spans[before].end;
      purpose = tasks[before].purpose;
    }
  return purpose;
}

Purpose last_of(const std::vector<Task>& tasks, const std::vector<Span>& spans) {
  const auto last = std::max_element(spans.begin(), spans.end(),
                                     [](const Span& a, const Span& b) { return a.end < b.end; });
  return tasks[static_cast<std::size_t>(last - spans.begin())].purpose;
}

}  // namespace

Timeline::Timeline(const Program& program) : program_(program), spans_(program.ranks()) {
  for (u32 rank = 0; rank < program.ranks(); ++rank)
    spans_[rank].resize(program.tasks_of(rank).size());
  for (u32 rank = 0; rank < program.ranks(); ++rank) samples_.push_back({rank, 1});
}

Timeline::Timeline(const Program& program, ClassSpans spans)
    : program_(program), spans_(std::move(spans.spans)), classes_(std::move(spans.class_of)) {
  std::vector<u32> place(spans_.size(), ~u32{0});
  for (u32 rank = 0; rank < program.ranks(); ++rank) {
    u32& at = place[classes_[rank]];
    if (at == ~u32{0}) {
      at = static_cast<u32>(samples_.size());
      samples_.push_back({rank, 0});
    }
    ++samples_[at].stands_for;
  }
}

void Timeline::on_step(u32 rank, u32 lane, u64 index, Time now) {
  const std::optional<Program::Mark> mark = program_.mark_at(rank, lane, index);
  if (!mark) return;
  Span& span = spans_[rank][mark->task];
  const Duration lasts = program_.tasks_of(rank)[mark->task].lasts;
  switch (mark->kind) {
    case Program::Mark::Kind::kBegins: span.begin = std::min(span.begin, now); break;
    case Program::Mark::Kind::kEnds: span.end = std::max(span.end, now); break;
    case Program::Mark::Kind::kBeginsAndEnds: span = {.begin = now - lasts, .end = now}; break;
  }
}

Duration Account::all_computing() const {
  Duration sum;
  for (const Duration part : computing) sum = sum + part;
  return sum;
}

Account account_of(const Program& program, const Timeline& timeline, u32 rank, Time begin,
                   Time end) {
  const std::vector<Task>& tasks = program.tasks_of(rank);
  const std::vector<Span>& spans = timeline.spans_of(rank);
  Account account;
  Time free = begin;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    if (!tasks[i].occupies_gpu()) continue;
    account.computing[place_of(tasks[i].purpose)] =
        account.computing[place_of(tasks[i].purpose)] + tasks[i].lasts;
    Duration& idle = account.idle[place_of(awaited(tasks[i], tasks, spans))];
    idle = idle + (spans[i].begin - free);
    free = spans[i].end;
  }
  if (end > free && !tasks.empty()) {
    Duration& idle = account.idle[place_of(last_of(tasks, spans))];
    idle = idle + (end - free);
  }
  return account;
}

}  // namespace verbena::jobs
