// The cost of one packet in the core: requester, responder and completer of RC, through both
// devices, with encoding, decoding, ICRC on both sides and one copy of each frame. "frames/s"
// counts requests and responses; "allocations" are those of one frame, and must be 0.
#include <benchmark/benchmark.h>

#include "bench/micro/allocations.h"
#include "bench/micro/device_pair.h"

namespace {

using namespace verbena;

void run(benchmark::State& state, SendOp op) {
  bench::DevicePair pair;
  const auto length = static_cast<u32>(state.range(0));
  const SGE sge = pair.local(length);
  const SendWR wr = pair.one_sided(op, sge);
  pair.complete(wr);  // tables are warm, and have their size
  u64 frames = 0;
  const u64 before = bench::allocations();
  for (auto _ : state) frames += pair.complete(wr);
  const u64 allocated = bench::allocations() - before;
  state.SetBytesProcessed(state.iterations() * length);
  state.counters["frames"] =
      benchmark::Counter(static_cast<double>(frames), benchmark::Counter::kIsRate);
  state.counters["per frame"] = benchmark::Counter(
      static_cast<double>(frames), benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  state.counters["allocations"] = static_cast<double>(allocated) / static_cast<double>(frames);
}

void rdma_write(benchmark::State& state) { run(state, SendOp::kRDMAWrite); }
void rdma_read(benchmark::State& state) { run(state, SendOp::kRDMARead); }

// The same with other QPs, which take turns.
void rdma_write_of_many_qps(benchmark::State& state) {
  constexpr u32 kLength = 8;
  bench::DevicePair pair;
  for (i64 i = 1; i < state.range(0); ++i) pair.connect(64);
  const SGE sge = pair.local(kLength);
  const SendWR wr = pair.one_sided(SendOp::kRDMAWrite, sge);
  for (i64 i = 0; i < state.range(0); ++i) pair.complete(wr);
  u64 frames = 0;
  for (auto _ : state) frames += pair.complete(wr);
  state.counters["per frame"] = benchmark::Counter(
      static_cast<double>(frames), benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

BENCHMARK(rdma_write)->Arg(8)->Arg(4096)->Arg(65536)->Arg(1 << 20);
BENCHMARK(rdma_write_of_many_qps)->Arg(1)->Arg(16)->Arg(1000);
BENCHMARK(rdma_read)->Arg(8)->Arg(4096)->Arg(65536)->Arg(1 << 20);

}  // namespace
