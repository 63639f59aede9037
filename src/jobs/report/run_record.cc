#include "jobs/report/run_record.h"

#include <algorithm>

namespace verbena::jobs {

MessageLog::MessageLog(u32 ranks)
    : most_of_rank_(std::max(kLeastOfRank, kMostMessages / ranks)),
      slowest_of_rank_(std::clamp(kMostSlowest / ranks, kLeastSlowestOfRank, kMostSlowestOfRank)),
      ranks_(ranks) {}

void MessageLog::add(u32 rank, const ArrivedMessage& message, Time now) {
  Rank& log = ranks_[rank];
  keep_if_slow(log, {.what = message, .took = now - message.posted});
  if (log.seen++ % log.every != 0) return;
  if (log.kept.size() == most_of_rank_) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < log.kept.size(); i += 2) log.kept[kept++] = log.kept[i];
    log.kept.resize(kept);
    log.every *= 2;
    if ((log.seen - 1) % log.every != 0) return;
  }
  log.kept.push_back({.what = message, .took = now - message.posted});
}

// Keeps the first of equally slow messages.
void MessageLog::keep_if_slow(Rank& log, const Message& message) const {
  const auto is_slower = [](const Message& a, const Message& b) { return a.lost() > b.lost(); };
  if (log.slowest.size() == slowest_of_rank_) {
    if (!is_slower(message, log.slowest.front())) return;
    std::ranges::pop_heap(log.slowest, is_slower);
    log.slowest.pop_back();
  }
  log.slowest.push_back(message);
  std::ranges::push_heap(log.slowest, is_slower);
}

ProgressLog::ProgressLog(const collectives::Script& script) : lanes_(script.lanes()) {
  for (u32 rank = 0; rank < script.ranks(); ++rank)
    for (u32 lane = 0; lane < lanes_; ++lane) steps_.push_back(script.steps(rank, lane));
  reached_.resize(steps_.size() * kParts, Time::never());
}

void ProgressLog::add(u32 rank, u32 lane, u64 index, Time now) {
  const u64 steps = steps_[std::size_t{rank} * lanes_ + lane];
  const u64 before = index * kParts / steps, part = (index + 1) * kParts / steps;
  if (part != before) reached_[place_of(rank, lane) + part - 1] = now;
}

RunRecord::RunRecord(const collectives::Script& script, const fabric::Topology& topology,
                     std::size_t most_points, StepObserver* next)
    : ranks_(script.ranks()),
      lanes_(script.lanes()),
      next_(next),
      network_(topology, 0, most_points),
      messages_(script.ranks()),
      progress_(script) {}

void RunRecord::on_step(u32 rank, u32 lane, u64 index, Time now) {
  progress_.add(rank, lane, index, now);
  if (next_ != nullptr) next_->on_step(rank, lane, index, now);
}

void RunRecord::finish(const fabric::Network& network, Time now, std::vector<LanePath> paths) {
  paths_ = std::move(paths);
  network_.finish(now);
  totals_ = network_.totals(network, now);
}

}  // namespace verbena::jobs
