// Max-min fair rates: none can be raised without lowering one that is not higher. By progressive
// filling: all rates rise together until a resource is full; those that use it stay, the others
// rise on. D. Bertsekas and R. Gallager, "Data Networks", 2nd edition, 1992, 6.5.2.
#pragma once

#include <span>
#include <vector>

#include "base/types.h"

namespace verbena::jobs {

// Paths: the resources that each flow uses, one flow after another in one array.
class Paths {
 public:
  void begin_flow() { begin_.push_back(static_cast<u32>(resources_.size())); }
  void add(u32 resource) { resources_.push_back(resource); }  // of the flow begun last

  [[nodiscard]] u32 flows() const { return static_cast<u32>(begin_.size()); }
  [[nodiscard]] std::span<const u32> of(u32 flow) const {
    const u32 end =
        flow + 1 < begin_.size() ? begin_[flow + 1] : static_cast<u32>(resources_.size());
    return {resources_.data() + begin_[flow], end - begin_[flow]};
  }

 private:
  std::vector<u32> begin_, resources_;
};

// Returns the rate of each flow, in the unit of `capacity`. `capacity` has the capacity of each
// resource, above 0. Flows that are not `active`, and those that use no resource, have the rate 0.
[[nodiscard]] std::vector<double> max_min_rates(const Paths& paths,
                                                const std::vector<double>& capacity,
                                                const std::vector<bool>& active);

// Returns the time at which each flow ends, if all flows begin now with so many `units` and have
// their fair rates. A flow that ends leaves its share to the others.
[[nodiscard]] std::vector<double> end_times(const Paths& paths, const std::vector<double>& capacity,
                                            std::vector<double> units);

// Returns the time that the busiest resource takes for all its flows. If all flows have equal
// units, no flow ends later, and one ends then: the share of a flow is never below that of its
// fullest resource, and has that value there until the end.
[[nodiscard]] double busiest_time(const Paths& paths, const std::vector<double>& capacity,
                                  const std::vector<double>& units);

}  // namespace verbena::jobs
