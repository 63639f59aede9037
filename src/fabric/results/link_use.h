// LinkUse: how each link of a network was used over time, for the drawing of report.html: load,
// queue, marks and pauses of each direction in equal stretches of time. There are as many stretches
// as one page can hold: LinkUse chooses their number by the number of directions, and data()
// joins neighbours until the values are few enough. docs/viewer.md has the format.
#pragma once

#include <array>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "base/rate.h"
#include "base/time.h"
#include "base/types.h"

namespace verbena::fabric {

class LinkUse {
 public:
  static constexpr std::size_t kMostPoints = 240, kFewestPoints = 15;
  static constexpr std::size_t kMostCells = 4'000'000;  // directions times points, of one quantity
  static constexpr std::size_t kMostValues = 250'000;   // in the page

  // `rates`: of each direction, as PortMap numbers them. Samples were taken each `interval`; a
  // stretch is a whole number of them.
  LinkUse(std::vector<Rate> rates, Duration end, Duration interval);

  // In the order of time for each direction. `bytes` wait from then on.
  void note_queue(u32 direction, Time at, u64 bytes);
  // Bytes sent, and marks, in the time before `at`; for marks that time is at most one interval.
  void note_sent(u32 direction, Time at, Duration since, u64 bytes);
  void note_marks(u32 direction, Time at, u64 marks);
  // Paused, or without credits.
  void note_held(u32 direction, Time from, Time until, Duration held);

  // Call once.
  [[nodiscard]] nlohmann::ordered_json data();

 private:
  enum Quantity : u8 { kLoad, kQueue, kMarks, kHeld, kQuantities };
  struct Level {
    u64 bytes = 0;
    std::size_t from = 0;  // point
  };
  using Series = std::vector<double>;  // a value for each point; empty: 0

  [[nodiscard]] std::size_t point_of(Time time) const;
  Series& series(Quantity quantity, u32 direction);
  void spread(Quantity quantity, u32 direction, Time from, Time until, double amount);
  void hold_level(u32 direction, std::size_t to);
  [[nodiscard]] double shown(Quantity quantity, u32 direction, double value) const;
  [[nodiscard]] std::size_t changes() const;
  void halve();

  const std::vector<Rate> rates_;
  const Duration end_, interval_;
  i64 stretch_ps_ = 1;
  std::size_t points_ = 1;
  std::array<std::vector<Series>, kQuantities> all_;
  std::vector<Level> levels_;
};

}  // namespace verbena::fabric
