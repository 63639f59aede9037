#include "jobs/live_prediction.h"

#include <cmath>
#include <memory>
#include <vector>

#include "base/check.h"
#include "coll/scripts/step_lists.h"
#include "jobs/collective_run.h"

namespace verbena::jobs {
namespace {

using collectives::Action;
using collectives::Script;
using collectives::Step;

// OwnPart: whether a message from a rank to itself is work (a copy), or the operation is in place.
enum class OwnPart : u8 { kIsInPlace, kIsCopied };

// The script with the work of each message as its length.
class WorkScript {
 public:
  WorkScript(const Script& script, OwnPart own, u64 bytes, const coll::Costs& costs)
      : script_(script), own_(own), copy_(costs.copy(bytes)), reduce_(costs.reduce(bytes)) {}

  [[nodiscard]] std::unique_ptr<coll::StepLists> make() {
    auto lists = std::make_unique<coll::StepLists>(script_.ranks(), script_.lanes());
    for (u32 rank = 0; rank < script_.ranks(); ++rank) {
      count_steps(rank);
      for (u32 lane = 0; lane < script_.lanes(); ++lane) add_lane(*lists, rank, lane);
    }
    return lists;
  }

 private:
  [[nodiscard]] bool is_work(u32 rank, const Step& step) const {
    return step.peer != rank || own_ == OwnPart::kIsCopied;
  }

  // kept_[lane][i]: how many of the first i steps stay.
  void count_steps(u32 rank) {
    kept_.assign(script_.lanes(), {0});
    for (u32 lane = 0; lane < script_.lanes(); ++lane)
      for (u64 i = 0; i < script_.steps(rank, lane); ++i)
        kept_[lane].push_back(kept_[lane].back() +
                              (is_work(rank, script_.step(rank, lane, i)) ? 1 : 0));
  }

  // A send has the length that the receiver's action gives it: the k-th one on the lane.
  [[nodiscard]] Action received_as(u32 from, u32 to, u32 lane, u64 number) const {
    for (u64 i = 0; i < script_.steps(to, lane); ++i) {
      const Step step = script_.step(to, lane, i);
      if (step.action == Action::kSend || step.peer != from) continue;
      if (number-- == 0) return step.action;
    }
    CHECK_UNREACHABLE();
  }

  void add_lane(coll::StepLists& lists, u32 rank, u32 lane) {
    std::vector<u64> sent(script_.ranks());
    for (u64 i = 0; i < script_.steps(rank, lane); ++i) {
      Step step = script_.step(rank, lane, i);
      if (!is_work(rank, step)) continue;
      const Action action = step.action == Action::kSend
                                ? received_as(rank, step.peer, lane, sent[step.peer]++)
                                : step.action;
      const double ps = action == Action::kReduce ? reduce_ : copy_;
      step.range = {
          0, static_cast<u64>(std::llround(ps * static_cast<double>(step.range.length) / 1000))};
      step.after.steps = kept_[step.after.lane][step.after.steps];
      lists.add(rank, lane, step);
    }
  }

  const Script& script_;
  const OwnPart own_;
  const double copy_, reduce_;
  std::vector<std::vector<u64>> kept_{};
};

}  // namespace

Duration predict(const coll::Call& call, u32 ranks, const coll::Choice& choice,
                 const coll::Costs& costs) {
  const coll::Topology topology{ranks, ranks};
  const coll::Algorithm algorithm = choose(call, topology, choice);
  const coll::Plan plan = make_plan(call, algorithm, topology, std::nullopt);
  const OwnPart own = call.kind == coll::Kind::kAllToAll ? OwnPart::kIsCopied : OwnPart::kIsInPlace;
  const std::unique_ptr<coll::StepLists> script =
      WorkScript(*plan.script, own, std::max<u64>(1, size_of(call, ranks)), costs).make();
  Cluster cluster{.gpus_per_node = ranks,
                  .nics = {},
                  .nvlink = {.rate = gbps(8), .latency = ns(std::llround(costs.latency_ns()))}};
  fabric::Topology network_of_nics;  // carries nothing
  const fabric::NodeIndex hub = network_of_nics.add_switch();
  for (u32 rank = 0; rank < ranks; ++rank) {
    cluster.nics.push_back(network_of_nics.add_host());
    network_of_nics.join(cluster.nics.back(), hub, {});
  }
  fabric::Network network(network_of_nics, network_for(cluster, {}));
  CollectiveRun run(*script, cluster, {}, network);
  run.start();
  network.run(Time::never());
  CHECK(run.finished());
  return run.time();
}

}  // namespace verbena::jobs
