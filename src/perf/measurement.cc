#include "perf/measurement.h"

#include <sys/mman.h>

#include <chrono>
#include <cstring>
#include <fstream>

#include "perf/data.h"

namespace verbena::perf {
namespace {

u64 free_bytes() {
  std::ifstream file("/proc/meminfo");
  std::string name;
  u64 kib = 0;
  while (file >> name >> kib) {
    if (name == "MemAvailable:") return kib << 10;
    file.ignore(100, '\n');
  }
  return ~u64{0};
}

u8* map_memory(u64 bytes) {
  void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return nullptr;
  madvise(at, bytes, MADV_HUGEPAGE);
  return static_cast<u8*>(at);
}

std::string last_failure() { return verbena_coll_error(); }

}  // namespace

Measurement::Measurement(const Options& options, verbena_comm* comm)
    : options_(options),
      comm_(comm),
      ranks_(static_cast<u32>(verbena_coll_size(comm))),
      rank_(static_cast<u32>(verbena_coll_rank(comm))) {}

Measurement::~Measurement() {
  if (options_.registers && in_ != nullptr) {
    verbena_coll_deregister(comm_, in_);
    verbena_coll_deregister(comm_, out_);
  }
  if (in_ != nullptr) munmap(in_, bytes_);
  if (out_ != nullptr) munmap(out_, bytes_);
}

std::string Measurement::prepare(u64 most_bytes) {
  bytes_ = std::max<u64>(most_bytes, 4096);
  const u64 needed = 2 * bytes_ * ranks_;
  if (needed > free_bytes())
    return "buffers of " + std::to_string(bytes_) + " bytes for " + std::to_string(ranks_) +
           " ranks need more memory than the " + std::to_string(free_bytes()) +
           " bytes that are free here";
  in_ = map_memory(bytes_);
  out_ = map_memory(bytes_);
  if (in_ == nullptr || out_ == nullptr) return "not enough memory";
  std::memset(in_, 1, bytes_);  // else it would be the zero page, which is always in the cache
  std::memset(out_, 1, bytes_);
  if (options_.registers && (verbena_coll_register(comm_, in_, bytes_) != 0 ||
                             verbena_coll_register(comm_, out_, bytes_) != 0))
    return last_failure();
  return "";
}

u64 Measurement::elements(u64 bytes) const {
  const bool is_share = options_.test == Test::kAllGather ||
                        options_.test == Test::kReduceScatter || options_.test == Test::kAllToAll ||
                        options_.test == Test::kGather || options_.test == Test::kScatter;
  return bytes / size_of(options_.type) / (is_share ? ranks_ : 1);
}

u64 Measurement::share(u64 bytes) const { return bytes / size_of(options_.type) / ranks_; }

u8* Measurement::own(u8* buffer, u64 bytes) const {
  return buffer + share(bytes) * size_of(options_.type) * rank_;
}

// Fills the buffer in which a rank's data starts: its input, or the output in place.
void Measurement::fill_inputs(u64 bytes, Place place) {
  const u64 whole = bytes / size_of(options_.type), part = share(bytes);
  u8* const buffer = place == Place::kInPlace ? out_ : in_;
  switch (options_.test) {
    case Test::kAllGather:
    case Test::kGather:
      return fill(place == Place::kInPlace ? own(out_, bytes) : in_, part, options_.type,
                  options_.op, rank_, 0);
    case Test::kAllReduce:
    case Test::kReduceScatter:
    case Test::kReduce:
    case Test::kAllToAll:
    case Test::kScatter:
    case Test::kSendRecv:
      return fill(
          options_.test == Test::kAllToAll || options_.test == Test::kSendRecv ? in_ : buffer,
          whole, options_.type, options_.op, rank_, 0);
    case Test::kBroadcast:
      // Others have something else before.
      return fill(out_, whole, options_.type, options_.op, rank_, 0);
  }
}

u64 Measurement::count_wrong_outputs(u64 bytes, Place place) const {
  const u64 whole = bytes / size_of(options_.type), part = share(bytes);
  const coll::DataType type = options_.type;
  const coll::ReduceOp op = options_.op;
  const u32 root = static_cast<u32>(options_.root);
  switch (options_.test) {
    case Test::kAllReduce: return count_wrong_reduced(out_, whole, type, op, ranks_, 0);
    case Test::kReduce:
      return rank_ == root ? count_wrong_reduced(out_, whole, type, op, ranks_, 0) : 0;
    case Test::kReduceScatter:
      return count_wrong_reduced(place == Place::kInPlace ? own(out_, bytes) : out_, part, type, op,
                                 ranks_, rank_ * part);
    case Test::kBroadcast: return count_wrong(out_, whole, type, op, root, 0);
    case Test::kSendRecv:
      return count_wrong(out_, whole, type, op, (rank_ + ranks_ - 1) % ranks_, 0);
    case Test::kScatter:
      return count_wrong(place == Place::kInPlace && rank_ == root ? own(out_, bytes) : out_, part,
                         type, op, root, rank_ * part);
    case Test::kGather:
      if (rank_ != root) return 0;
      [[fallthrough]];
    case Test::kAllGather:
    case Test::kAllToAll: {
      u64 wrong = 0;
      for (u32 rank = 0; rank < ranks_; ++rank)
        wrong += count_wrong(out_ + rank * part * size_of(type), part, type, op, rank,
                             options_.test == Test::kAllToAll ? rank_ * part : 0);
      return wrong;
    }
  }
  return 0;
}

int Measurement::send_receive(u64 bytes) {
  const u64 count = bytes / size_of(options_.type);
  const auto type = static_cast<verbena_coll_type>(options_.type);
  const int to = static_cast<int>((rank_ + 1) % ranks_);
  const int from = static_cast<int>((rank_ + ranks_ - 1) % ranks_);
  verbena_request* receive = nullptr;
  int status = verbena_coll_recv(out_, count, type, from, 0, comm_, &receive);
  if (status == 0) status = verbena_coll_send(in_, count, type, to, 0, comm_, nullptr);
  if (status == 0) status = verbena_coll_wait(receive);
  if (receive != nullptr) verbena_coll_release(receive);
  return status;
}

int Measurement::operate(u64 bytes, Place place) {
  const u64 whole = bytes / size_of(options_.type), part = share(bytes);
  const auto type = static_cast<verbena_coll_type>(options_.type);
  const auto op = static_cast<verbena_coll_op>(options_.op);
  const bool here = place == Place::kInPlace, is_root = static_cast<int>(rank_) == options_.root;
  u8* const in = here ? out_ : in_;
  switch (options_.test) {
    case Test::kAllReduce:
      return verbena_coll_all_reduce(in, out_, whole, type, op, comm_, nullptr);
    case Test::kReduce:
      return verbena_coll_reduce(in, out_, whole, type, op, options_.root, comm_, nullptr);
    case Test::kReduceScatter:
      return verbena_coll_reduce_scatter(in, here ? own(out_, bytes) : out_, part, type, op, comm_,
                                         nullptr);
    case Test::kAllGather:
      return verbena_coll_all_gather(here ? own(out_, bytes) : in_, out_, part, type, comm_,
                                     nullptr);
    case Test::kGather:
      return verbena_coll_gather(here ? own(out_, bytes) : in_, out_, part, type, options_.root,
                                 comm_, nullptr);
    case Test::kScatter:
      return verbena_coll_scatter(in, here && is_root ? own(out_, bytes) : out_, part, type,
                                  options_.root, comm_, nullptr);
    case Test::kBroadcast:
      return verbena_coll_broadcast(out_, whole, type, options_.root, comm_, nullptr);
    case Test::kAllToAll: return verbena_coll_all_to_all(in_, out_, part, type, comm_, nullptr);
    case Test::kSendRecv: return send_receive(bytes);
  }
  return VERBENA_COLL_INVALID;
}

int Measurement::check(u64 bytes, Place place, i64& wrong) {
  fill_inputs(bytes, place);
  if (const int status = operate(bytes, place)) return status;
  wrong = static_cast<i64>(count_wrong_outputs(bytes, place));
  return verbena_coll_all_reduce(&wrong, &wrong, 1, VERBENA_INT64, VERBENA_SUM, comm_, nullptr);
}

std::string Measurement::run(u64 bytes, Place place, u32 iterations, Result& result) {
  using Clock = std::chrono::steady_clock;
  for (u32 i = 0; i < options_.warmups; ++i)
    if (operate(bytes, place) != 0) return last_failure();
  if (verbena_coll_barrier(comm_, nullptr) != 0) return last_failure();
  const Clock::time_point begin = Clock::now();
  for (u32 i = 0; i < iterations; ++i)
    if (operate(bytes, place) != 0) return last_failure();
  result.us = std::chrono::duration<double, std::micro>(Clock::now() - begin).count() / iterations;
  if (verbena_coll_all_reduce(&result.us, &result.us, 1, VERBENA_FLOAT64, VERBENA_AVERAGE, comm_,
                              nullptr) != 0)
    return last_failure();
  if (options_.checks && check(bytes, place, result.wrong) != 0) return last_failure();
  return "";
}

}  // namespace verbena::perf
