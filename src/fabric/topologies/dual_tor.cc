#include "fabric/topologies/dual_tor.h"

#include <fmt/format.h>

namespace verbena::fabric {
namespace {

constexpr u32 kToRs = 2;  // of a pair
constexpr char letter(u32 number) { return static_cast<char>('A' + number); }

class DualTorPlan {
 public:
  DualTorPlan(const DualTor& shape, const PlanLinks& links)
      : shape_(shape), links_(links), segments_(shape.pods * shape.segments) {}

  Plan make() {
    add_hosts();
    add_tors();
    for (u32 plane = 0; plane < shape_.planes; ++plane) add_plane(plane);
    return std::move(plan_);
  }

 private:
  void add_hosts() {
    for (u32 node = 0; node < segments_ * shape_.hosts_per_segment; ++node)
      for (u32 rail = 0; rail < shape_.rails; ++rail)
        plan_.add_host(fmt::format("n{}.g{}", node, rail));
  }

  void add_tors() {
    for (u32 segment = 0; segment < segments_; ++segment)
      for (u32 rail = 0; rail < shape_.rails; ++rail)
        for (u32 tor = 0; tor < kToRs; ++tor)
          tors_.push_back(plan_.add_switch(fmt::format("tor{}.{}.{}", segment, rail, letter(tor))));
    for (u32 i = 0; i < plan_.hosts.size(); ++i) {
      const u32 segment = i / shape_.rails / shape_.hosts_per_segment, rail = i % shape_.rails;
      for (u32 tor = 0; tor < kToRs; ++tor)
        plan_.topology.join(plan_.hosts[i], tors_[(segment * shape_.rails + rail) * kToRs + tor],
                            links_.host);
    }
  }

  // ToRs of a plane are every second one, or all.
  void add_plane(u32 plane) {
    std::vector<NodeIndex> spines;
    const u32 tors_of_pod = shape_.segments * shape_.rails * kToRs;
    for (u32 pod = 0; pod < shape_.pods; ++pod)
      for (u32 i = 0; i < shape_.spines_per_plane; ++i) {
        const std::string name = fmt::format("spine{}{}", letter(plane), i);
        spines.push_back(
            plan_.add_switch(shape_.pods == 1 ? name : fmt::format("pod{}.{}", pod, name)));
        for (u32 tor = plane; tor < tors_of_pod; tor += shape_.planes)
          plan_.topology.join(tors_[pod * tors_of_pod + tor], spines.back(), links_.fabric);
      }
    for (u32 i = 0; i < shape_.cores_per_plane; ++i) {
      const NodeIndex core = plan_.add_switch(fmt::format("core{}{}", letter(plane), i));
      for (const NodeIndex spine : spines) plan_.topology.join(spine, core, links_.fabric);
    }
  }

  const DualTor& shape_;
  const PlanLinks& links_;
  const u32 segments_;
  Plan plan_;
  std::vector<NodeIndex> tors_;
};

}  // namespace

Plan dual_tor(const DualTor& shape, const PlanLinks& links) {
  return DualTorPlan(shape, links).make();
}

}  // namespace verbena::fabric
