// Runs every collective operation of MPI-3, blocking and not, transfers between pairs of ranks and
// one-sided ones, of sizes from 1 B to 16 MiB, and checks every byte of every result.
//
//   collectives [MAX_BYTES [unsynchronized]]
//
// Rank 0 prints one line for each operation. Exit status 0: all results were right.
// "unsynchronized" sends between pairs by MPI_Isend instead of MPI_Issend.
//
// Rank r contributes text(r, 0), text(r, 1), ... The data from one rank to one other begins at an
// offset of its own, so that the test sees a block in a wrong place.
#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

namespace {

using Bytes = std::vector<unsigned char>;
using Numbers = std::vector<std::int64_t>;
using Counts = std::vector<int>;

constexpr std::size_t kSizes[] = {1, 8, 1000, 64 << 10, 1 << 20, 16 << 20};  // bytes
const MPI_Comm world = MPI_COMM_WORLD;
int rank, ranks;
bool synchronized = true;

enum class Kind { kBlocking, kNonblocking };

// Calls one of the two forms of an operation, and waits for its end.
template <typename Blocking, typename Nonblocking, typename... Arguments>
void call(Kind kind, Blocking blocking, Nonblocking nonblocking, Arguments... arguments) {
  if (kind == Kind::kBlocking) {
    blocking(arguments...);
    return;
  }
  MPI_Request request;
  nonblocking(arguments..., &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

// --- what is sent, and what must arrive ---

unsigned char text(int from, std::size_t at) {
  return static_cast<unsigned char>(static_cast<std::size_t>(from) * 37 + 11 + at * 7 +
                                    (at >> 8) * 3);
}

// Where the block from one rank to another begins.
std::size_t start_of(int from, int to) { return static_cast<std::size_t>(from * 131 + to * 17); }

void write(unsigned char* out, int size, int from, std::size_t start = 0) {
  for (int i = 0; i < size; ++i) out[i] = text(from, start + static_cast<std::size_t>(i));
}
Bytes made(int size, int from, std::size_t start = 0) {
  Bytes bytes(static_cast<std::size_t>(size));
  write(bytes.data(), size, from, start);
  return bytes;
}
bool is_right(const unsigned char* got, int size, int from, std::size_t start = 0) {
  for (int i = 0; i < size; ++i)
    if (got[i] != text(from, start + static_cast<std::size_t>(i))) return false;
  return true;
}

// Every sum of these numbers is exact.
std::int64_t number(int from, int at) { return std::int64_t{at} * 3 + from * 1000 - 5; }
Numbers my_numbers(int count) {
  Numbers numbers(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) numbers[static_cast<std::size_t>(i)] = number(rank, i);
  return numbers;
}
// The sums over the ranks before `end`, from the element `start` on.
bool are_sums(const Numbers& got, int count, int end, int start = 0) {
  for (int i = 0; i < count; ++i) {
    std::int64_t sum = 0;
    for (int r = 0; r < end; ++r) sum += number(r, start + i);
    if (got[static_cast<std::size_t>(i)] != sum) return false;
  }
  return true;
}

// The blocks of the "v" operations differ in size: those of later ranks are smaller.
struct Blocks {
  explicit Blocks(int size) : counts(static_cast<std::size_t>(ranks)), starts(counts.size()) {
    for (int r = 0; r < ranks; ++r)
      counts[static_cast<std::size_t>(r)] = size - size * r / (2 * ranks);
    std::exclusive_scan(counts.begin(), counts.end(), starts.begin(), 0);
    total = starts.back() + counts.back();
  }
  int count(int r) const { return counts[static_cast<std::size_t>(r)]; }
  int start(int r) const { return starts[static_cast<std::size_t>(r)]; }
  Counts counts, starts;
  int total;
};

Bytes room(int size) { return Bytes(static_cast<std::size_t>(size), 0xee); }
Numbers room_for_numbers(int count) { return Numbers(static_cast<std::size_t>(count), -1); }
int per_rank(int size) { return std::max(1, size / ranks); }
int numbers_in(int size) { return std::max(1, size / static_cast<int>(sizeof(std::int64_t))); }

// --- the operations: each says whether what this rank received is right ---

bool barrier(Kind kind, int) {
  call(kind, MPI_Barrier, MPI_Ibarrier, world);
  return true;
}

bool broadcast(Kind kind, int size) {
  const int root = ranks - 1;
  Bytes data = rank == root ? made(size, root) : room(size);
  call(kind, MPI_Bcast, MPI_Ibcast, data.data(), size, MPI_BYTE, root, world);
  return is_right(data.data(), size, root);
}

bool gather(Kind kind, int size) {
  const int root = ranks / 2, each = per_rank(size);
  const Bytes mine = made(each, rank);
  Bytes all = room(each * ranks);
  call(kind, MPI_Gather, MPI_Igather, mine.data(), each, MPI_BYTE, all.data(), each, MPI_BYTE, root,
       world);
  bool right = true;
  for (int r = 0; rank == root && r < ranks; ++r)
    right = right && is_right(all.data() + r * each, each, r);
  return right;
}

bool gatherv(Kind kind, int size) {
  const int root = 0;
  const Blocks blocks(per_rank(size));
  const Bytes mine = made(blocks.count(rank), rank);
  Bytes all = room(blocks.total);
  call(kind, MPI_Gatherv, MPI_Igatherv, mine.data(), blocks.count(rank), MPI_BYTE, all.data(),
       blocks.counts.data(), blocks.starts.data(), MPI_BYTE, root, world);
  bool right = true;
  for (int r = 0; rank == root && r < ranks; ++r)
    right = right && is_right(all.data() + blocks.start(r), blocks.count(r), r);
  return right;
}

bool scatter(Kind kind, int size) {
  const int root = ranks - 1, each = per_rank(size);
  Bytes all = room(each * ranks), mine = room(each);
  for (int r = 0; r < ranks; ++r) write(all.data() + r * each, each, root, start_of(root, r));
  call(kind, MPI_Scatter, MPI_Iscatter, all.data(), each, MPI_BYTE, mine.data(), each, MPI_BYTE,
       root, world);
  return is_right(mine.data(), each, root, start_of(root, rank));
}

bool scatterv(Kind kind, int size) {
  const int root = 0;
  const Blocks blocks(per_rank(size));
  Bytes all = room(blocks.total), mine = room(blocks.count(rank));
  for (int r = 0; r < ranks; ++r)
    write(all.data() + blocks.start(r), blocks.count(r), root, start_of(root, r));
  call(kind, MPI_Scatterv, MPI_Iscatterv, all.data(), blocks.counts.data(), blocks.starts.data(),
       MPI_BYTE, mine.data(), blocks.count(rank), MPI_BYTE, root, world);
  return is_right(mine.data(), blocks.count(rank), root, start_of(root, rank));
}

bool allgather(Kind kind, int size) {
  const int each = per_rank(size);
  const Bytes mine = made(each, rank);
  Bytes all = room(each * ranks);
  call(kind, MPI_Allgather, MPI_Iallgather, mine.data(), each, MPI_BYTE, all.data(), each, MPI_BYTE,
       world);
  bool right = true;
  for (int r = 0; r < ranks; ++r) right = right && is_right(all.data() + r * each, each, r);
  return right;
}

bool allgatherv(Kind kind, int size) {
  const Blocks blocks(per_rank(size));
  const Bytes mine = made(blocks.count(rank), rank);
  Bytes all = room(blocks.total);
  call(kind, MPI_Allgatherv, MPI_Iallgatherv, mine.data(), blocks.count(rank), MPI_BYTE, all.data(),
       blocks.counts.data(), blocks.starts.data(), MPI_BYTE, world);
  bool right = true;
  for (int r = 0; r < ranks; ++r)
    right = right && is_right(all.data() + blocks.start(r), blocks.count(r), r);
  return right;
}

bool alltoall(Kind kind, int size) {
  const int each = per_rank(size);
  Bytes out = room(each * ranks), in = room(each * ranks);
  for (int r = 0; r < ranks; ++r) write(out.data() + r * each, each, rank, start_of(rank, r));
  call(kind, MPI_Alltoall, MPI_Ialltoall, out.data(), each, MPI_BYTE, in.data(), each, MPI_BYTE,
       world);
  bool right = true;
  for (int r = 0; r < ranks; ++r)
    right = right && is_right(in.data() + r * each, each, r, start_of(r, rank));
  return right;
}

// To each rank as much as its own block holds; so all that this rank gets is of one size.
bool alltoallv(Kind kind, int size) {
  const Blocks out_blocks(per_rank(size));
  const int mine = out_blocks.count(rank);
  Counts in_counts(static_cast<std::size_t>(ranks), mine), in_starts(in_counts.size());
  for (int r = 0; r < ranks; ++r) in_starts[static_cast<std::size_t>(r)] = r * mine;
  Bytes out = room(out_blocks.total), in = room(mine * ranks);
  for (int r = 0; r < ranks; ++r)
    write(out.data() + out_blocks.start(r), out_blocks.count(r), rank, start_of(rank, r));
  call(kind, MPI_Alltoallv, MPI_Ialltoallv, out.data(), out_blocks.counts.data(),
       out_blocks.starts.data(), MPI_BYTE, in.data(), in_counts.data(), in_starts.data(), MPI_BYTE,
       world);
  bool right = true;
  for (int r = 0; r < ranks; ++r)
    right = right && is_right(in.data() + r * mine, mine, r, start_of(r, rank));
  return right;
}

// As alltoallv, of bytes and 16-bit words in turns.
bool alltoallw(Kind kind, int size) {
  const int words = std::max(1, per_rank(size) / 2), each = words * 2;
  const auto n = static_cast<std::size_t>(ranks);
  Counts counts(n), starts(n);
  std::vector<MPI_Datatype> types(n);
  Bytes out = room(each * ranks), in = room(each * ranks);
  for (int r = 0; r < ranks; ++r) {
    const auto i = static_cast<std::size_t>(r);
    const bool as_words = (r + rank) % 2 == 0;
    counts[i] = as_words ? words : each;
    types[i] = as_words ? MPI_UINT16_T : MPI_UINT8_T;
    starts[i] = r * each;
    write(out.data() + r * each, each, rank, start_of(rank, r));
  }
  call(kind, MPI_Alltoallw, MPI_Ialltoallw, out.data(), counts.data(), starts.data(), types.data(),
       in.data(), counts.data(), starts.data(), types.data(), world);
  bool right = true;
  for (int r = 0; r < ranks; ++r)
    right = right && is_right(in.data() + r * each, each, r, start_of(r, rank));
  return right;
}

bool reduce(Kind kind, int size) {
  const int root = ranks - 1, count = numbers_in(size);
  const Numbers mine = my_numbers(count);
  Numbers sums = room_for_numbers(count);
  call(kind, MPI_Reduce, MPI_Ireduce, mine.data(), sums.data(), count, MPI_INT64_T, MPI_SUM, root,
       world);
  return rank != root || are_sums(sums, count, ranks);
}

bool allreduce(Kind kind, int size) {
  const int count = numbers_in(size);
  const Numbers mine = my_numbers(count);
  Numbers sums = room_for_numbers(count);
  call(kind, MPI_Allreduce, MPI_Iallreduce, mine.data(), sums.data(), count, MPI_INT64_T, MPI_SUM,
       world);
  return are_sums(sums, count, ranks);
}

bool allreduce_in_place(Kind kind, int size) {
  const int count = numbers_in(size);
  Numbers greatest = my_numbers(count);
  call(kind, MPI_Allreduce, MPI_Iallreduce, MPI_IN_PLACE, greatest.data(), count, MPI_INT64_T,
       MPI_MAX, world);
  for (int i = 0; i < count; ++i)
    if (greatest[static_cast<std::size_t>(i)] != number(ranks - 1, i)) return false;
  return true;
}

bool reduce_scatter(Kind kind, int size) {
  const Blocks blocks(std::max(2 * ranks, numbers_in(size) / ranks));
  const Numbers mine = my_numbers(blocks.total);
  Numbers sums = room_for_numbers(blocks.count(rank));
  call(kind, MPI_Reduce_scatter, MPI_Ireduce_scatter, mine.data(), sums.data(),
       blocks.counts.data(), MPI_INT64_T, MPI_SUM, world);
  return are_sums(sums, blocks.count(rank), ranks, blocks.start(rank));
}

bool reduce_scatter_block(Kind kind, int size) {
  const int each = std::max(1, numbers_in(size) / ranks);
  const Numbers mine = my_numbers(each * ranks);
  Numbers sums = room_for_numbers(each);
  call(kind, MPI_Reduce_scatter_block, MPI_Ireduce_scatter_block, mine.data(), sums.data(), each,
       MPI_INT64_T, MPI_SUM, world);
  return are_sums(sums, each, ranks, rank * each);
}

bool scan(Kind kind, int size) {
  const int count = numbers_in(size);
  const Numbers mine = my_numbers(count);
  Numbers sums = room_for_numbers(count);
  call(kind, MPI_Scan, MPI_Iscan, mine.data(), sums.data(), count, MPI_INT64_T, MPI_SUM, world);
  return are_sums(sums, count, rank + 1);
}

bool exclusive_scan(Kind kind, int size) {
  const int count = numbers_in(size);
  const Numbers mine = my_numbers(count);
  Numbers sums = room_for_numbers(count);
  call(kind, MPI_Exscan, MPI_Iexscan, mine.data(), sums.data(), count, MPI_INT64_T, MPI_SUM, world);
  return rank == 0 || are_sums(sums, count, rank);
}

// Around the ring, all at once, with a tag and a size to be asked for.
bool point_to_point(Kind kind, int size) {
  constexpr int kTag = 42;
  const int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
  const Bytes out = made(size, rank);
  Bytes in = room(size + 1);
  MPI_Status status;
  if (kind == Kind::kBlocking) {
    MPI_Sendrecv(out.data(), size, MPI_BYTE, next, kTag, in.data(), size + 1, MPI_BYTE,
                 MPI_ANY_SOURCE, kTag, world, &status);
  } else {
    MPI_Request send;
    (synchronized ? MPI_Issend : MPI_Isend)(out.data(), size, MPI_BYTE, next, kTag, world, &send);
    MPI_Message message;
    MPI_Mprobe(previous, MPI_ANY_TAG, world, &message, &status);
    MPI_Mrecv(in.data(), size + 1, MPI_BYTE, &message, &status);
    MPI_Wait(&send, MPI_STATUS_IGNORE);
  }
  int received = 0;
  MPI_Get_count(&status, MPI_BYTE, &received);
  return received == size && status.MPI_SOURCE == previous && status.MPI_TAG == kTag &&
         is_right(in.data(), size, previous);
}

// Writes into the next rank's memory, reads the one before's, and counts at rank 0.
bool one_sided(Kind kind, int size) {
  const int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
  unsigned char* shared = nullptr;
  MPI_Win window;
  MPI_Win_allocate(2 * size + 8, 1, MPI_INFO_NULL, world, &shared, &window);
  std::int64_t* const counter = reinterpret_cast<std::int64_t*>(shared);
  unsigned char* const own = shared + 8;
  *counter = 0;
  write(own, size, rank);
  const Bytes out = made(size, rank, start_of(rank, next));
  Bytes in = room(size);
  const std::int64_t one = rank + 1;
  std::int64_t before = -1;
  if (kind == Kind::kBlocking) {
    MPI_Win_fence(0, window);
    MPI_Put(out.data(), size, MPI_BYTE, next, 8 + size, size, MPI_BYTE, window);
    MPI_Get(in.data(), size, MPI_BYTE, previous, 8, size, MPI_BYTE, window);
    MPI_Accumulate(&one, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, MPI_SUM, window);
    before = 0;
    MPI_Win_fence(0, window);
  } else {
    MPI_Barrier(world);
    MPI_Win_lock_all(0, window);
    MPI_Put(out.data(), size, MPI_BYTE, next, 8 + size, size, MPI_BYTE, window);
    MPI_Get(in.data(), size, MPI_BYTE, previous, 8, size, MPI_BYTE, window);
    MPI_Fetch_and_op(&one, &before, MPI_INT64_T, 0, 0, MPI_SUM, window);
    MPI_Win_flush_all(window);
    MPI_Win_unlock_all(window);
    MPI_Barrier(world);
  }
  bool right = before >= 0 && is_right(in.data(), size, previous) &&
               is_right(own + size, size, previous, start_of(previous, rank));
  right = right && (rank != 0 || *counter == std::int64_t{ranks} * (ranks + 1) / 2);
  MPI_Win_free(&window);
  return right;
}

// --- all of them ---

struct Operation {
  const char* name;
  bool (*run)(Kind, int);
};
constexpr Operation kOperations[] = {
    {"Barrier", barrier},
    {"Bcast", broadcast},
    {"Gather", gather},
    {"Gatherv", gatherv},
    {"Scatter", scatter},
    {"Scatterv", scatterv},
    {"Allgather", allgather},
    {"Allgatherv", allgatherv},
    {"Alltoall", alltoall},
    {"Alltoallv", alltoallv},
    {"Alltoallw", alltoallw},
    {"Reduce", reduce},
    {"Allreduce", allreduce},
    {"Allreduce in place", allreduce_in_place},
    {"Reduce_scatter", reduce_scatter},
    {"Reduce_scatter_block", reduce_scatter_block},
    {"Scan", scan},
    {"Exscan", exclusive_scan},
    {"point-to-point", point_to_point},
    {"one-sided", one_sided},
};

// The number of (rank, size) whose result is wrong.
int failures_of(const Operation& operation, Kind kind, std::size_t max_bytes) {
  int wrong = 0;
  for (const std::size_t size : kSizes)
    if (size <= max_bytes && !operation.run(kind, static_cast<int>(size))) ++wrong;
  int all = 0;
  MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, world);
  return all;
}

int run_all(std::size_t max_bytes) {
  int failed = 0;
  for (const Operation& operation : kOperations) {
    for (const Kind kind : {Kind::kBlocking, Kind::kNonblocking}) {
      const double started = MPI_Wtime();
      const int wrong = failures_of(operation, kind, max_bytes);
      failed += wrong;
      if (rank != 0) continue;
      std::printf("%-22s %-12s %s  (%.3f s)\n", operation.name,
                  kind == Kind::kBlocking ? "blocking" : "nonblocking", wrong == 0 ? "ok" : "WRONG",
                  MPI_Wtime() - started);
      std::fflush(stdout);
    }
  }
  return failed;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(world, &rank);
  MPI_Comm_size(world, &ranks);
  const std::size_t max_bytes =
      argc > 1 ? std::strtoull(argv[1], nullptr, 10) : std::size_t{16} << 20;
  synchronized = argc <= 2 || std::strcmp(argv[2], "unsynchronized") != 0;
  const int failed = run_all(max_bytes);
  MPI_Finalize();
  return failed == 0 ? 0 : 1;
}
