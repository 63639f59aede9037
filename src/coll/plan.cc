#include "coll/plan.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>

#include "coll/scripts/direct.h"
#include "collectives/make_schedule.h"

namespace verbena::coll {
namespace {

using collectives::Operation;
using collectives::Range;

// On one host, up to so many bytes of a rank's part, short chunks that pass the staging buffers
// are faster than reads of the program's memory. Between hosts each chunk costs messages.
constexpr u64 kStagedTotal = 1u << 20, kStagedChunk = 128u << 10;
constexpr u64 kSmall = 64u << 10;
constexpr u32 kFew = 8;  // ranks, up to which messages to all of them cost little

std::optional<Operation> operation_of(Kind kind) {
  switch (kind) {
    case Kind::kAllReduce: return Operation::kAllReduce;
    case Kind::kReduceScatter: return Operation::kReduceScatter;
    case Kind::kAllGather: return Operation::kAllGather;
    case Kind::kBroadcast: return Operation::kBroadcast;
    case Kind::kReduce:
    case Kind::kGather:
    case Kind::kScatter:
    case Kind::kAllToAll:
    case Kind::kAllToAllV:
    case Kind::kBarrier:
    case Kind::kShareIds: return std::nullopt;
  }
  return std::nullopt;
}

collectives::Algorithm schedule_of(const Algorithm& algorithm) {
  return collectives::kAlgorithms[algorithm.number - Algorithm::kFirstSchedule];
}

u32 number_of(collectives::Algorithm algorithm) {
  const auto at = std::ranges::find(collectives::kAlgorithms, algorithm);
  return Algorithm::kFirstSchedule + static_cast<u32>(at - collectives::kAlgorithms.begin());
}

collectives::Shape shape_of(const Call& call, const Algorithm& algorithm,
                            const Topology& topology) {
  return {.operation = *operation_of(call.kind),
          .algorithm = schedule_of(algorithm),
          .ranks = topology.ranks,
          .ranks_per_node = topology.ranks_per_node,
          .bytes = size_of(call, topology.ranks),
          .element_bytes = size_of(call.type),
          .channels = 1,
          .chunk_bytes = algorithm.chunk_bytes,
          .root = call.root};
}

Algorithm usual(const Call& call, const Topology& topology) {
  const u64 bytes = call.bytes();
  const bool few = topology.ranks <= kFew;
  const bool is_staged =
      topology.is_one_node() && size_of(call, topology.ranks) <= kStagedTotal * topology.ranks;
  const Algorithm direct{Algorithm::kDirect, is_staged ? kStagedChunk : kUsualChunk};
  switch (call.kind) {
    case Kind::kAllReduce:
      if (few && bytes <= kEagerBytes) return {Algorithm::kOneShot, 0};
      if (topology.is_one_node() || topology.ranks <= 4) return direct;
      if (bytes <= kSmall) return {number_of(collectives::Algorithm::kHalvingDoubling), 0};
      return {number_of(collectives::Algorithm::kRing), kUsualChunk};
    case Kind::kAllGather:
    case Kind::kReduceScatter:
      if (topology.is_one_node() || few) return direct;
      return {number_of(collectives::Algorithm::kRing), kUsualChunk};
    case Kind::kBroadcast:
      if (topology.is_one_node() || topology.ranks == 2) return direct;
      if (bytes <= kSmall)
        return few ? direct : Algorithm{number_of(collectives::Algorithm::kTree), 0};
      return {number_of(collectives::Algorithm::kRing), kUsualChunk};
    case Kind::kReduce:
    case Kind::kGather:
    case Kind::kScatter:
    case Kind::kAllToAll:
    case Kind::kAllToAllV:
    case Kind::kBarrier:
    case Kind::kShareIds: return direct;
  }
  return direct;
}

std::optional<Kind> kind_named(std::string_view name) {
  for (u8 i = 0; i <= static_cast<u8>(Kind::kBarrier); ++i)
    if (name_of(static_cast<Kind>(i)) == name) return static_cast<Kind>(i);
  return std::nullopt;
}

Plan direct_plan(const Call& call, const Algorithm& algorithm, const Topology& topology,
                 std::optional<u32> rank) {
  const DirectShape shape{topology.ranks, rank, algorithm.chunk_bytes};
  Plan plan;
  plan.script = algorithm.number == Algorithm::kOneShot ? one_shot_all_reduce(call, shape)
                                                        : direct_script(call, shape);
  if (call.kind == Kind::kBroadcast) plan.main = MainArea::kOutput;
  if (call.kind == Kind::kReduce)
    plan.temporary_bytes = call.bytes() / topology.ranks + size_of(call.type);
  return plan;
}

}  // namespace

u64 size_of(const Call& call, u32 ranks) {
  switch (call.kind) {
    case Kind::kReduceScatter:
    case Kind::kAllGather:
    case Kind::kGather:
    case Kind::kScatter:
    case Kind::kAllToAll: return call.bytes() * ranks;
    case Kind::kAllReduce:
    case Kind::kReduce:
    case Kind::kBroadcast:
    case Kind::kAllToAllV:
    case Kind::kBarrier:
    case Kind::kShareIds: return call.bytes();
  }
  return 0;
}

std::string name_of(const Algorithm& algorithm) {
  if (algorithm.number == Algorithm::kOneShot) return "one-shot";
  if (algorithm.number == Algorithm::kDirect) return "direct";
  if (algorithm.number >= Algorithm::kFirstSchedule + std::size(collectives::kAlgorithms))
    return "an unknown algorithm";
  std::string name(collectives::name_of(schedule_of(algorithm)));
  std::ranges::replace(name, ' ', '-');
  return name;
}

std::optional<u32> algorithm_number(std::string_view name) {
  if (name == "one-shot" || name == "one_shot") return Algorithm::kOneShot;
  if (name == "direct") return Algorithm::kDirect;
  const auto schedule = collectives::algorithm_named(name);
  if (!schedule) return std::nullopt;
  return number_of(*schedule);
}

Expected<Table> Table::read(const std::string& path) {
  std::ifstream file(path);
  if (!file) return failure(VERBENA_COLL_INVALID, "cannot read the table " + path);
  Table table;
  std::string line;
  for (u32 number = 1; std::getline(file, line); ++number) {
    line = line.substr(0, line.find('#'));
    std::istringstream words(line);
    std::string first, kind, algorithm;
    if (!(words >> first) || first != "choose") continue;  // other lines are of the machine
    Line entry{};
    words >> kind >> entry.ranks >> entry.up_to >> algorithm >> entry.algorithm.chunk_bytes;
    const auto known_kind = kind_named(kind);
    const auto known_algorithm = algorithm_number(algorithm);
    if (!words || !known_kind || !known_algorithm)
      return failure(VERBENA_COLL_INVALID,
                     path + ", line " + std::to_string(number) +
                         ": it is 'choose KIND RANKS UP_TO_BYTES ALGORITHM CHUNK_BYTES'");
    entry.kind = *known_kind;
    entry.algorithm.number = *known_algorithm;
    table.lines_.push_back(entry);
  }
  if (table.lines_.empty())
    return failure(
        VERBENA_COLL_INVALID,
        path + " is no table: `verbena coll --tune` writes lines that begin with choose");
  return table;
}

std::optional<Algorithm> Table::find(Kind kind, u32 ranks, u64 bytes) const {
  for (const Line& line : lines_)
    if (line.kind == kind && line.ranks == ranks && bytes <= line.up_to) return line.algorithm;
  return std::nullopt;
}

std::string refusal(const Call& call, const Algorithm& algorithm, const Topology& topology) {
  const auto no = [&] {
    return "no " + std::string(name_of(call.kind)) + " by " + name_of(algorithm);
  };
  if (algorithm.number == Algorithm::kOneShot) {
    if (call.kind != Kind::kAllReduce) return no();
    return call.bytes() <= kEagerBytes ? "" : no() + " of more than one message";
  }
  if (algorithm.number == Algorithm::kDirect) return "";
  if (!operation_of(call.kind) || schedule_of(algorithm) == collectives::Algorithm::kDirect)
    return no();
  return collectives::refusal(shape_of(call, algorithm, topology));
}

Algorithm choose(const Call& call, const Topology& topology, const Choice& choice) {
  if (choice.forced) {
    Algorithm forced = *choice.forced;
    if (forced.chunk_bytes == 0) forced.chunk_bytes = kUsualChunk;
    if (refusal(call, forced, topology).empty()) return forced;
  }
  const auto tuned = choice.table.find(call.kind, topology.ranks, size_of(call, topology.ranks));
  if (tuned && refusal(call, *tuned, topology).empty()) return *tuned;
  return usual(call, topology);
}

Plan make_plan(const Call& call, const Algorithm& algorithm, const Topology& topology,
               std::optional<u32> rank) {
  if (algorithm.number < Algorithm::kFirstSchedule)
    return direct_plan(call, algorithm, topology, rank);
  const collectives::Shape shape = shape_of(call, algorithm, topology);
  std::shared_ptr<const collectives::Schedule> schedule = collectives::make_schedule(shape);
  Plan plan;
  plan.main = MainArea::kOutput;
  plan.input = schedule->input(rank.value_or(0));
  plan.output = schedule->output(rank.value_or(0));
  // The data that a ReduceScatter receives would overwrite the program's input.
  if (call.kind == Kind::kReduceScatter) {
    plan.main = MainArea::kTemporary;
    plan.main_bytes = schedule->memory_bytes();
  }
  plan.script = std::move(schedule);
  return plan;
}

}  // namespace verbena::coll
