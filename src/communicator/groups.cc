#include "communicator/groups.h"

#include <algorithm>
#include <span>

namespace verbena::coll {
namespace {

struct Wish {
  i32 color = -1, key = 0;
};

// FNV-1a. The same on all ranks; 0 and 1 are not given.
u32 number_for(std::span<const u32> words) {
  u32 hash = 2166136261;
  for (const u32 word : words)
    for (u32 shift = 0; shift < 32; shift += 8) hash = (hash ^ (word >> shift & 0xff)) * 16777619;
  return hash | 2;
}

std::vector<u8> view_of(const std::vector<bool>& lost) {
  std::vector<u8> view(lost.size());
  for (std::size_t i = 0; i < lost.size(); ++i) view[i] = lost[i] ? 1 : 0;
  return view;
}

// The view of `rank` in that round, if it is there.
const std::vector<u8>* find_view(Communicator& comm, u32 rank, u64 round) {
  for (const Communicator::View& view : comm.views()[rank])
    if (view.round == round) return &view.lost;
  return nullptr;
}

bool has_all_views(Communicator& comm, u64 round) {
  for (u32 rank = 0; rank < comm.size(); ++rank)
    if (rank != comm.rank() && !comm.lost()[rank] && find_view(comm, rank, round) == nullptr)
      return false;
  return true;
}

// Returns whether all ranks that are left have the same view as this one; else takes theirs over.
bool agree(Communicator& comm, u64 round, const std::vector<u8>& mine) {
  bool same = view_of(comm.lost()) == mine;
  for (u32 rank = 0; rank < comm.size(); ++rank) {
    if (rank == comm.rank() || comm.lost()[rank]) continue;
    const std::vector<u8>& view = *find_view(comm, rank, round);
    same = same && view == mine;
    for (u32 other = 0; other < comm.size() && other < view.size(); ++other)
      if (view[other] != 0) comm.mark_lost(other);
  }
  return same;
}

}  // namespace

Expected<std::shared_ptr<Communicator>> split(World& world, Communicator& comm, int color,
                                              int key) {
  const Wish mine{color, key};
  std::vector<Wish> wishes(comm.size());
  World::Guard guard(world);
  const u32 number = comm.next_split();
  const auto sharing = comm.call(
      {.kind = Kind::kShareIds, .count = sizeof mine, .send = &mine, .recv = wishes.data()});
  if (Error error = world.wait(guard, *sharing); error.status != VERBENA_COLL_OK)
    return tl::unexpected(std::move(error));
  if (color < 0) return std::shared_ptr<Communicator>();
  std::vector<u32> ranks;
  for (u32 rank = 0; rank < comm.size(); ++rank)
    if (wishes[rank].color == color) ranks.push_back(rank);
  std::ranges::stable_sort(ranks, {}, [&](u32 rank) { return wishes[rank].key; });
  for (u32& rank : ranks) rank = comm.world_rank(rank);
  const u32 id = number_for(std::array{comm.id(), number, static_cast<u32>(color)});
  return world.make_communicator(id, std::move(ranks));
}

Expected<std::shared_ptr<Communicator>> shrink(World& world, Communicator& comm) {
  for (u64 round = 0;; ++round) {
    std::vector<u8> mine;
    {
      const World::Guard guard(world);
      mine = view_of(comm.lost());
      for (u32 rank = 0; rank < comm.size(); ++rank)
        if (rank != comm.rank() && !comm.lost()[rank])
          world.tell(comm.world_rank(rank),
                     {.kind = Header::Kind::kShrink, .comm = comm.id(), .operation = round}, mine);
    }
    const i64 deadline = now_ns() + static_cast<i64>(comm.timeout_s * 1e9);
    const bool in_time = world.wait_until(std::max(deadline, now_ns() + kSecond),
                                          [&] { return has_all_views(comm, round); });
    const World::Guard guard(world);
    if (!in_time)
      for (u32 rank = 0; rank < comm.size(); ++rank)
        if (rank != comm.rank() && find_view(comm, rank, round) == nullptr) comm.mark_lost(rank);
    if (!agree(comm, round, mine)) continue;
    std::vector<u32> members, words{comm.id(), ~u32{0}};
    for (u32 rank = 0; rank < comm.size(); ++rank)
      if (!comm.lost()[rank]) members.push_back(comm.world_rank(rank));
    words.insert(words.end(), members.begin(), members.end());
    return world.make_communicator(number_for(words), std::move(members));
  }
}

}  // namespace verbena::coll
