// A fixed amount of the core's work, to be counted in instructions (callgrind): RC requests of one
// size between two devices, as bench/micro/device.cc times them.
//
// usage: count_frames write|read SIZE COUNT
// prints: how many frames went
#include <cstdio>
#include <cstring>

#include "bench/limits/process.h"
#include "bench/micro/device_pair.h"

int main(int argc, char** argv) {
  using verbena::SendOp;
  if (argc != 4) {
    std::fprintf(stderr, "usage: count_frames write|read SIZE COUNT\n");
    return 2;
  }
  const SendOp op = std::strcmp(argv[1], "write") == 0 ? SendOp::kRDMAWrite : SendOp::kRDMARead;
  bench::DevicePair pair;
  const verbena::SGE sge = pair.local(static_cast<verbena::u32>(limits::number(argv[2])));
  const verbena::SendWR wr = pair.one_sided(op, sge);
  unsigned long long frames = 0;
  for (std::size_t i = limits::number(argv[3]); i > 0; --i) frames += pair.complete(wr);
  std::printf("%llu\n", frames);
}
