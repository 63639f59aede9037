// Remedies: what each technology can do about a slow run, tried one by one, so that a plan compares
// the best of one technology with the best of another, and says where the time goes:
//   routing       flows that hash to the same link: spraying, flowlets, more channels
//   control       links that idle although senders have data: PFC alone, DCTCP
//   latency       of switches: a run without it
//   losses        frames sent again: PFC under TCP
//   headers       of frames on the wire, from the technology's sizes
// A cause's share is what the run is faster without it, all else as in the file.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "jobs/plan/comparison.h"

namespace verbena::jobs {

enum class Cause : u8 { kRouting, kControl, kLatency, kLosses };
inline constexpr std::size_t kCauses = 4;
[[nodiscard]] std::string_view name_of(Cause cause);

struct Remedy {
  enum class Kind : u8 {
    kSetting,    // that can be bought or set
    kProbe,      // that cannot: it shows what a cause costs
    kAsShipped,  // NICs and switches with their makers' defaults
  };
  std::string name;
  Cause cause = Cause::kRouting;
  Kind kind = Kind::kSetting;
  std::vector<fabric::Setting> settings;
};
[[nodiscard]] std::vector<Remedy> remedies_of(const Candidate& candidate);

// Returns settings that make the job a part of itself, with fewer layers or less data, if its run
// takes too many events to be repeated. Returns no settings if the run can be repeated.
[[nodiscard]] std::vector<fabric::Setting> part_of(const Candidate& candidate);

// TwoParts: two parts of a job whose run would take `events` events, more than a plan has time for.
// The large part is twice the small one, and the whole is extrapolated from both. `steps` is how
// often the difference of both goes into the rest: time = small + steps * (large - small).
// two_parts_of() returns nullopt if the job has no such parts.
struct TwoParts {
  std::vector<fabric::Setting> small{}, large{};
  double steps = 0;
  std::string text{};  // "1 and 2 layers"
};
inline constexpr u64 kMostEventsOfAWhole = 300'000'000;
[[nodiscard]] std::optional<TwoParts> two_parts_of(const Job& job, u64 events);
[[nodiscard]] Measured extrapolated(const Measured& small, const Measured& large,
                                    const TwoParts& parts);

// A candidate with one remedy, run, or a part of it.
struct Tried {
  std::size_t of = 0;  // place among the candidates
  Remedy remedy;
  Candidate candidate;
  Duration without{};  // what the same takes without the remedy

  [[nodiscard]] bool is_done() const { return candidate.is_done() && without != Duration(); }
  [[nodiscard]] double ratio() const {  // below 1: it helps
    return candidate.measured.time.seconds() / without.seconds();
  }
};

// Returns the candidates, each with its best remedy if that is faster; `variant` names the remedy.
[[nodiscard]] std::vector<Candidate> best_of_each(const std::vector<Candidate>& candidates,
                                                  const std::vector<Tried>& tried);
// Returns a part of a plan's text: the causes of each candidate's time, its best remedy, and the
// run as shipped.
[[nodiscard]] std::string causes_text(const std::vector<Candidate>& candidates,
                                      const std::vector<Tried>& tried);

}  // namespace verbena::jobs
