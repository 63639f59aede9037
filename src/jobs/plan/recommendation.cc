#include "jobs/plan/recommendation.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "fabric/scenario/units.h"
#include "jobs/plan/plan_text.h"

namespace verbena::jobs {
namespace {

constexpr u64 kManyEvents = 20'000'000;  // of a run that is not to be made longer
constexpr u64 kSizeFactor = 16;

// "3 % slower", "1.4 times as fast", "as fast", of a against b.
std::string speed_text(Duration a, Duration b) {
  const double ratio = a.seconds() / b.seconds();
  if (std::abs(ratio - 1) < 0.005) return "as fast as";
  if (ratio > 2) return fmt::format("{:.1f} times as slow as", ratio);
  if (ratio < 0.5) return fmt::format("{:.1f} times as fast as", 1 / ratio);
  return fmt::format("{:.1f} % {} than", 100 * std::abs(ratio - 1),
                     ratio > 1 ? "slower" : "faster");
}

bool qualifies(const Candidate& candidate) {
  return candidate.is_done() && candidate.bill.can_be_had();
}

// Returns nullptr if no candidate ran whose parts the catalogue has.
const Candidate* choose(const std::vector<Candidate>& candidates) {
  const Candidate* best = nullptr;
  for (const Candidate& candidate : candidates)
    if (qualifies(candidate) && (best == nullptr || cost_of_work(candidate) < cost_of_work(*best)))
      best = &candidate;
  return best;
}

std::string against(const Candidate& best, const Candidate& other) {
  const double more = cost_of_work(other) / cost_of_work(best) - 1;
  return fmt::format(
      "{}{}: {} it; its network costs {:.2f} times as much, GPUs and network for the "
      "same work {:+.1f} %{}",
      other.name(), other.variant.empty() ? "" : " with " + other.variant,
      speed_text(other.measured.time, best.measured.time),
      other.bill.dollars.middle() / best.bill.dollars.middle(), 100 * more,
      more < kTie ? ": no difference, as prices go" : "");
}

// Returns a text on the price of its network at which the other would cost the same.
std::string break_even(const Candidate& best, const Candidate& other) {
  const double gpus = price_of_gpus(best.job).middle();
  const double price =
      cost_of_work(best) / other.measured.time.seconds() - price_of_gpus(other.job).middle();
  const std::string range = dollars_text(other.bill.dollars);
  if (price <= 0)
    return fmt::format(
        "{} would not be the better buy even for nothing: GPUs of {} wait longer than "
        "that is worth",
        other.name(), dollars_text(gpus));
  const bool is_inside = price >= other.bill.dollars.low && price <= other.bill.dollars.high;
  return fmt::format(
      "{} is the better buy where its network costs less than {}; the catalogue's "
      "range is {}{}",
      other.name(), dollars_text(price), range, is_inside ? ", so ask for quotes of both" : "");
}

Variant other_size(const Job& job, u64 bytes) {
  const u64 element = job.shapes.front().element_bytes;
  bytes = std::max<u64>(element, bytes / element * element);
  return {.name = fmt::format("{} instead of {}", fabric::bytes_text(bytes),
                              fabric::bytes_text(job.shapes.front().bytes)),
          .settings = {{"collective.size", std::to_string(bytes)}}};
}

Variant faster_gpus(const Job& job) {
  const GPU& gpu = *job.gpu();
  const std::string section = job.training ? "training" : "inference";
  return {.name = "GPUs twice as fast",
          .settings = {{section + ".gpu.flops", fmt::format("{:.6g}", 2 * gpu.flops)},
                       {section + ".gpu.memory",
                        fmt::format("{:.0f}Gbps", 2 * gpu.memory_bytes * 8 / 1e9)}}};
}

Variant more_cores(const Job& job) {
  const u32 cores = 2 * job.run.host_path.cores;
  return {.name = fmt::format("{} cores for each NIC and way", cores),
          .settings = {{"hosts.path.cores", std::to_string(cores)}},
          .of_tcp_only = true};
}

const Candidate* same_technology(const std::vector<Candidate>& candidates, const Candidate& like) {
  for (const Candidate& candidate : candidates)
    if (candidate.technology == like.technology && candidate.topology == like.topology)
      return &candidate;
  return nullptr;
}

}  // namespace

Recommendation recommend(const std::vector<Candidate>& candidates) {
  Recommendation result;
  const Candidate* const best = choose(candidates);
  if (best == nullptr) return result;
  result.best = best;
  result.reasons.push_back(fmt::format(
      "{}{}: {}, network {}, {}; GPUs ({}) and network for the work done cost least of all that "
      "can be had",
      best->name(), best->variant.empty() ? "" : " with " + best->variant,
      fabric::duration_text(best->measured.time), dollars_text(best->bill.dollars),
      watts_text(best->bill.watts), dollars_text(price_of_gpus(best->job))));
  for (const Candidate& candidate : candidates) {
    if (&candidate == best || !candidate.is_done()) continue;
    if (candidate.bill.can_be_had())
      result.reasons.push_back(against(*best, candidate));
    else
      result.reasons.push_back(fmt::format("{}: {} it, and not to be had: {}", candidate.name(),
                                           speed_text(candidate.measured.time, best->measured.time),
                                           candidate.bill.shortfall));
  }
  for (const Candidate& candidate : candidates)
    if (&candidate != best && qualifies(candidate))
      result.changes.push_back(break_even(*best, candidate));
  return result;
}

std::vector<Variant> variants_of(const std::vector<Candidate>& candidates, const Candidate& best) {
  std::vector<Variant> variants;
  const Job& job = best.job;
  if (job.training || job.inference) {  // traces have times of their own
    variants.push_back(faster_gpus(job));
  } else if (!job.shapes.empty()) {
    variants.push_back(other_size(job, job.shapes.front().bytes / kSizeFactor));
    if (best.measured.packets.counters.events < kManyEvents / kSizeFactor)
      variants.push_back(other_size(job, job.shapes.front().bytes * kSizeFactor));
    for (Variant& variant : variants)
      variant.settings.push_back({"collective.algorithm", best.measured.name});
  }
  variants.push_back({.name = "1 of 100,000 frames lost by each link",
                      .settings = {{"links.error_rate", "0.00001"}}});
  if (!job.shapes.empty())
    variants.back().settings.push_back({"collective.algorithm", best.measured.name});
  for (const Candidate& candidate : candidates)
    if (candidate.technology == fabric::Technology::kTCP && candidate.is_done() &&
        candidate.topology == best.topology && candidate.job.run.host_path.kind)
      variants.push_back(more_cores(candidate.job));
  return variants;
}

std::vector<std::string> lessons_of(const std::vector<Candidate>& candidates,
                                    const std::vector<Candidate>& varied, const Candidate& best) {
  std::vector<std::string> lessons;
  std::vector<std::string> names;
  for (const Candidate& candidate : varied)
    if (std::ranges::find(names, candidate.variant) == names.end())
      names.push_back(candidate.variant);
  for (const std::string& name : names) {
    std::vector<Candidate> group;
    for (const Candidate& candidate : varied)
      if (candidate.variant == name) group.push_back(candidate);
    if (group.size() == 1) {
      const Candidate* const before = same_technology(candidates, group[0]);
      if (!group[0].is_done() || before == nullptr || !before->is_done()) continue;
      std::string lesson = fmt::format("{}: {} takes {} instead of {}", name, group[0].name(),
                                       fabric::duration_text(group[0].measured.time),
                                       fabric::duration_text(before->measured.time));
      if (group[0].technology != best.technology)
        lesson += fmt::format(", and is {} {}",
                              speed_text(group[0].measured.time, best.measured.time), best.name());
      lessons.push_back(std::move(lesson));
      continue;
    }
    const Recommendation other = recommend(group);
    if (other.best == nullptr) continue;
    const bool is_same =
        other.best->technology == best.technology && other.best->topology == best.topology;
    lessons.push_back(fmt::format("{}: {} {}, with {}", name, is_same ? "still" : "instead",
                                  other.best->name(),
                                  fabric::duration_text(other.best->measured.time)));
  }
  return lessons;
}

}  // namespace verbena::jobs
