// Fetcher: reads the units of a plan from several sources, checks each unit's hash, and repeats
// what is wrong. A whole chunk that is right is offered to others at once.
//
// Units of memory are read straight into place. Those of files are read into slots, from which the
// thread that has checked the hash writes them: that takes less time than the faults of a mapping
// that is written, and no wrong byte gets into a file.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "models/hashers.h"
#include "models/mapped_file.h"
#include "models/plan.h"
#include "models/server.h"

namespace verbena::models {

struct FetchSettings {
  bool verifies = true;
  double timeout_s = 30;  // without any progress
  u32 in_flight = 4;      // units
};

class Fetcher {
 public:
  // `server` offers the chunks; with nullptr nobody gets them. Targets are those of the plan.
  Fetcher(Sources& sources, const transfer::Manifest& manifest, Plan plan,
          std::vector<MappedFile>& targets, Server* server, const FetchSettings& settings);

  // Checks first the data of earlier attempts in targets that `had` marks.
  void check_existing(const std::vector<bool>& had);
  [[nodiscard]] Expected<void> run(const std::function<void(u64 done_bytes)>& on_progress);
  [[nodiscard]] u64 total_bytes() const { return total_bytes_; }
  [[nodiscard]] u64 kept_bytes() const { return kept_bytes_; }  // of earlier attempts

 private:
  struct Flight {
    u64 unit = 0;
    Source* source = nullptr;
    TransferPtr transfer{};
  };
  struct Progress {
    u8 wrong = 0;                   // times that its hash did not match
    bool is_check = false;          // of what was there before
    Source* last_source = nullptr;  // that delivered it
    std::optional<u64> question{};  // for its hash
    u8* slot = nullptr;             // of a unit in flight or at the hashers, for a file
  };

  [[nodiscard]] Expected<void> add_regions();
  [[nodiscard]] Expected<void> start_flights();
  [[nodiscard]] Source* choose_source(const Unit& unit);
  [[nodiscard]] Expected<bool> start_flight(u64 unit, Source& source);
  [[nodiscard]] Expected<bool> land_flights();
  [[nodiscard]] Expected<void> ask_for_hash(u64 unit, const Source& source);
  [[nodiscard]] Expected<bool> take_hashes();
  [[nodiscard]] Expected<bool> take_verdicts(Hashers::Wait wait);
  [[nodiscard]] Expected<void> on_wrong(u64 unit);
  void verify(u64 unit);
  void check_in_place(u64 unit);
  void free_slot(u64 unit);
  void on_right(u64 unit);
  void lose(Source& source, const std::string& why);
  [[nodiscard]] std::string why_no_source() const;
  void refresh_sources();
  void meet_others();
  void look_for_others();

  Sources& sources_;
  const transfer::Manifest& manifest_;
  Plan plan_;
  std::vector<MappedFile>& targets_;
  Server* server_;
  FetchSettings settings_;
  std::vector<u8> slots_{};  // of units that go to files
  std::vector<u8*> free_slots_{};
  u64 slots_region_ = 0;
  std::vector<u64> regions_{};  // of targets in memory
  std::vector<Progress> progress_{};
  std::deque<u64> waiting_{};  // units that no source delivers now
  std::deque<Flight> flights_{};
  std::set<std::string> tried_{};  // addresses of other fetchers
  std::vector<u64> landed_{};      // without a hash to compare with yet
  std::vector<u64> to_check_{};
  u64 total_bytes_ = 0, done_bytes_ = 0, kept_bytes_ = 0, done_units_ = 0;
  double refreshed_at_ = 0, looked_at_ = 0;
  Hashers hashers_;
};

}  // namespace verbena::models
