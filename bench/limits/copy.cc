// memcpy() of one size, again and again.
//
// usage: copy SIZE SECONDS
// prints: GB_PER_S US_PER_CALL
#include <cstring>
#include <memory>

#include "bench/limits/process.h"

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: copy SIZE SECONDS\n");
    return 2;
  }
  const std::size_t size = limits::number(argv[1]);
  const double seconds = static_cast<double>(limits::number(argv[2]));
  const auto from = std::make_unique<std::uint8_t[]>(size);
  const auto to = std::make_unique<std::uint8_t[]>(size);
  std::memset(from.get(), 1, size);
  std::memset(to.get(), 2, size);
  const double start = limits::now_s();
  double end = start;
  std::uint64_t calls = 0;
  while (end - start < seconds) {
    for (int i = 0; i < 16; ++i, ++calls) {
      std::memcpy(to.get(), from.get(), size);
      asm volatile("" ::"r"(to.get()) : "memory");  // somebody may read it
    }
    end = limits::now_s();
  }
  const double each = (end - start) / static_cast<double>(calls);
  std::printf("%.4f %.4f\n", static_cast<double>(size) / each * 1e-9, each * 1e6);
}
