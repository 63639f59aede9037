#include "coll/scripts/direct.h"

#include <algorithm>

#include "base/check.h"

namespace verbena::coll {
namespace {

using collectives::Action;
using collectives::After;
using collectives::part;
using collectives::Range;

constexpr u64 kChunksAhead = 2;  // offered before the first of them is received

// The lists of one rank.
class Writer {
 public:
  Writer(StepLists& lists, u32 rank) : lists_(lists), rank_(rank), ranks_(lists.ranks()) {}

  [[nodiscard]] u32 rank() const { return rank_; }
  [[nodiscard]] u32 ranks() const { return ranks_; }
  [[nodiscard]] u32 ahead(u32 distance) const { return (rank_ + distance) % ranks_; }
  [[nodiscard]] u32 behind(u32 distance) const { return (rank_ + ranks_ - distance) % ranks_; }

  void send(u32 lane, u32 to, const Range& range, const After& after = {}) {
    lists_.add(rank_, lane, {Action::kSend, to, range, after});
  }
  void copy(u32 lane, u32 from, const Range& range) {
    lists_.add(rank_, lane, {Action::kCopy, from, range});
  }
  void reduce(u32 lane, u32 from, const Range& range) {
    lists_.add(rank_, lane, {Action::kReduce, from, range});
  }
  void move(u32 lane, const Range& from, const Range& to) {
    send(lane, rank_, from);
    copy(lane, rank_, to);
  }
  [[nodiscard]] u64 length(u32 lane) const { return lists_.length(rank_, lane); }

 private:
  StepLists& lists_;
  u32 rank_, ranks_;
};

template <typename Write>
std::unique_ptr<StepLists> written(const DirectShape& shape, u32 lanes, Write write) {
  auto lists = std::make_unique<StepLists>(shape.ranks, lanes);
  for (u32 rank = 0; rank < shape.ranks; ++rank) {
    if (shape.only && *shape.only != rank) continue;
    write(Writer(*lists, rank));
  }
  return lists;
}

Range shifted(const Range& range, Area area) {
  return {range.offset + offset_of(area), range.length};
}

// Reduces each rank's block of the main area into `to`: lane 0. `block` gives the block of a rank
// in the main area, `to` is where the own block goes. on_chunk(i, range) after each chunk.
template <typename Block, typename OnChunk>
void reduce_blocks(Writer& w, u64 element, u64 chunks, Block block, const Range& to,
                   OnChunk on_chunk) {
  const auto offer = [&](u64 chunk) {
    for (u32 p = 1; p < w.ranks(); ++p)
      w.send(0, w.ahead(p), part(block(w.ahead(p)), chunks, chunk, element));
  };
  for (u64 chunk = 0; chunk < std::min(kChunksAhead, chunks); ++chunk) offer(chunk);
  for (u64 chunk = 0; chunk < chunks; ++chunk) {
    const Range result = part(to, chunks, chunk, element);
    w.move(0, part(block(w.rank()), chunks, chunk, element), result);
    for (u32 p = 1; p < w.ranks(); ++p) w.reduce(0, w.behind(p), result);
    if (chunk + kChunksAhead < chunks) offer(chunk + kChunksAhead);
    on_chunk(chunk, result);
  }
}

u64 chunks_of(u64 bytes, const DirectShape& shape) {
  return collectives::pieces((bytes + shape.ranks - 1) / shape.ranks, shape.chunk_bytes);
}

std::unique_ptr<StepLists> all_reduce(const Call& call, const DirectShape& shape) {
  const u64 element = size_of(call.type), chunks = chunks_of(call.bytes(), shape);
  const auto block = [&](u32 rank) { return part({0, call.bytes()}, shape.ranks, rank, element); };
  return written(shape, 2, [&](Writer w) {
    const auto pass_on = [&](u64 chunk, const Range& result) {
      const After after{.lane = 0, .steps = w.length(0)};
      for (u32 p = 1; p < w.ranks(); ++p) w.send(1, w.ahead(p), result, after);
      for (u32 p = 1; p < w.ranks(); ++p)
        w.copy(1, w.behind(p),
               part(shifted(block(w.behind(p)), Area::kOutput), chunks, chunk, element));
    };
    reduce_blocks(w, element, chunks, block, shifted(block(w.rank()), Area::kOutput), pass_on);
  });
}

std::unique_ptr<StepLists> reduce_scatter(const Call& call, const DirectShape& shape) {
  const u64 element = size_of(call.type), bytes = call.bytes();
  const u64 chunks = collectives::pieces(bytes, shape.chunk_bytes);
  return written(shape, 1, [&](Writer w) {
    reduce_blocks(
        w, element, chunks,
        [&](u32 rank) {
          return Range{rank * bytes, bytes};
        },
        in(Area::kOutput, 0, bytes), [](u64, const Range&) {});
  });
}

// The root's own part is reduced into its output, the others' into temporary memory.
std::unique_ptr<StepLists> reduce(const Call& call, const DirectShape& shape) {
  const u64 element = size_of(call.type), chunks = chunks_of(call.bytes(), shape);
  const auto block = [&](u32 rank) { return part({0, call.bytes()}, shape.ranks, rank, element); };
  return written(shape, 2, [&](Writer w) {
    const bool is_root = w.rank() == call.root;
    const auto pass_on = [&](u64 chunk, const Range& result) {
      if (!is_root) return w.send(1, call.root, result, {.lane = 0, .steps = w.length(0)});
      for (u32 p = 1; p < w.ranks(); ++p)
        w.copy(1, w.behind(p),
               part(shifted(block(w.behind(p)), Area::kOutput), chunks, chunk, element));
    };
    const Range mine = block(w.rank());
    reduce_blocks(w, element, chunks, block,
                  is_root ? shifted(mine, Area::kOutput) : in(Area::kTemporary, 0, mine.length),
                  pass_on);
  });
}

// `to(rank)`: what that rank gets of the main area; `from(rank)`: where what it sends goes. Lanes
// are distances, so that no rank is waited for before another.
template <typename To, typename From>
std::unique_ptr<StepLists> exchange(const DirectShape& shape, To to, From from) {
  return written(shape, std::max(1u, shape.ranks - 1), [&](Writer w) {
    for (u32 p = 1; p < w.ranks(); ++p) w.send(p - 1, w.ahead(p), to(w.ahead(p)));
    w.move(0, to(w.rank()), from(w.rank()));
    for (u32 p = 1; p < w.ranks(); ++p) w.copy(p - 1, w.behind(p), from(w.behind(p)));
  });
}

Range block_of(const Blocks& blocks, u32 rank, u64 element) {
  return {blocks.offsets[rank] * element, blocks.counts[rank] * element};
}

std::unique_ptr<StepLists> broadcast(const Call& call, const DirectShape& shape) {
  const Range all{0, call.bytes()};
  return written(shape, 1, [&](Writer w) {
    if (w.rank() != call.root) return w.copy(0, call.root, all);
    for (u32 p = 1; p < w.ranks(); ++p) w.send(0, w.ahead(p), all);
  });
}

std::unique_ptr<StepLists> gather(const Call& call, const DirectShape& shape) {
  const u64 bytes = call.bytes();
  return written(shape, 1, [&](Writer w) {
    if (w.rank() != call.root) return w.send(0, call.root, {0, bytes});
    w.move(0, {0, bytes}, in(Area::kOutput, w.rank() * bytes, bytes));
    for (u32 p = 1; p < w.ranks(); ++p)
      w.copy(0, w.ahead(p), in(Area::kOutput, w.ahead(p) * bytes, bytes));
  });
}

std::unique_ptr<StepLists> scatter(const Call& call, const DirectShape& shape) {
  const u64 bytes = call.bytes();
  return written(shape, 1, [&](Writer w) {
    const Range mine = in(Area::kOutput, 0, bytes);
    if (w.rank() != call.root) return w.copy(0, call.root, mine);
    for (u32 p = 1; p < w.ranks(); ++p) w.send(0, w.ahead(p), {w.ahead(p) * bytes, bytes});
    w.move(0, {w.rank() * bytes, bytes}, mine);
  });
}

}  // namespace

std::unique_ptr<StepLists> one_shot_all_reduce(const Call& call, const DirectShape& shape) {
  const Range input{0, call.bytes()}, output = in(Area::kOutput, 0, call.bytes());
  return written(shape, 1, [&](Writer w) {
    for (u32 p = 1; p < w.ranks(); ++p) w.send(0, w.ahead(p), input);
    w.send(0, w.rank(), input);
    w.copy(0, 0, output);
    for (u32 from = 1; from < w.ranks(); ++from) w.reduce(0, from, output);
  });
}

std::unique_ptr<StepLists> barrier_script(const DirectShape& shape) {
  return written(shape, 1, [&](Writer w) {
    for (u32 distance = 1; distance < w.ranks(); distance *= 2) {
      w.send(0, w.ahead(distance), {});
      w.copy(0, w.behind(distance), {});
    }
  });
}

std::unique_ptr<StepLists> direct_script(const Call& call, const DirectShape& shape) {
  const u64 element = size_of(call.type), bytes = call.bytes();
  switch (call.kind) {
    case Kind::kAllReduce: return all_reduce(call, shape);
    case Kind::kReduceScatter: return reduce_scatter(call, shape);
    case Kind::kReduce: return reduce(call, shape);
    case Kind::kBroadcast: return broadcast(call, shape);
    case Kind::kGather: return gather(call, shape);
    case Kind::kScatter: return scatter(call, shape);
    case Kind::kAllGather:
    case Kind::kShareIds:
      return exchange(
          shape,
          [&](u32) {
            return Range{0, bytes};
          },
          [&](u32 rank) { return in(Area::kOutput, rank * bytes, bytes); });
    case Kind::kAllToAll:
      return exchange(
          shape,
          [&](u32 rank) {
            return Range{rank * bytes, bytes};
          },
          [&](u32 rank) { return in(Area::kOutput, rank * bytes, bytes); });
    case Kind::kAllToAllV:
      return exchange(
          shape, [&](u32 rank) { return block_of(call.send_blocks, rank, element); },
          [&](u32 rank) {
            return shifted(block_of(call.recv_blocks, rank, element), Area::kOutput);
          });
    case Kind::kBarrier: return barrier_script(shape);
  }
  CHECK_UNREACHABLE();
}

}  // namespace verbena::coll
