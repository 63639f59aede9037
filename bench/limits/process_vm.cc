// One copy between two processes by the kernel: process_vm_writev() and process_vm_readv(), as a
// same-host RDMA WRITE and READ of private memory must do it.
//
// usage: process_vm write|read SIZE SECONDS [huge] [shift N]
// prints: GB_PER_S US_PER_CALL; `huge` backs the other process's memory with transparent huge
// pages; with `shift` what is written lies N bytes further in its page than what is read.
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>

#include "bench/limits/process.h"

namespace {

constexpr std::size_t kHugePage = 2u << 20;

// Reserves whole huge pages of address space, without memory.
std::uint8_t* reserve(std::size_t size) {
  void* at = mmap(nullptr, size + 2 * kHugePage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  limits::require(at != MAP_FAILED, "mmap");
  const auto address = (reinterpret_cast<std::uintptr_t>(at) + kHugePage - 1) & ~(kHugePage - 1);
  return reinterpret_cast<std::uint8_t*>(address);
}

// Fresh pages: those that fork() has made common are never huge again once they are written.
void fill(std::uint8_t* at, std::size_t size, bool huge) {
  const std::size_t room = (size + kHugePage - 1) & ~(kHugePage - 1);
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
  limits::require(mmap(at, room, PROT_READ | PROT_WRITE, flags, -1, 0) == at, "mmap");
  madvise(at, room, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  std::memset(at, 1, size);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: process_vm write|read SIZE SECONDS [huge] [shift N]\n");
    return 2;
  }
  const bool huge = argc > 4 && std::strcmp(argv[4], "huge") == 0;
  const bool shifted = argc > 5 && std::strcmp(argv[argc - 2], "shift") == 0;
  const std::size_t shift = shifted ? limits::number(argv[argc - 1]) : 0;
  const bool write = std::strcmp(argv[1], "write") == 0;
  const std::size_t size = limits::number(argv[2]);
  const double seconds = static_cast<double>(limits::number(argv[3]));
  std::uint8_t* theirs = reserve(size + shift);
  const pid_t other = fork();  // the same address is its own copy there
  limits::require(other >= 0, "fork");
  if (other == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    fill(theirs, size + shift, huge);
    pause();
    _exit(0);
  }
  usleep(200'000);  // until it has written its own
  std::uint8_t* ours = reserve(size + shift);
  fill(ours, size + shift, false);
  (write ? theirs : ours) += shift;
  const iovec local{ours, size}, remote{theirs, size};
  const double start = limits::now_s();
  double end = start;
  std::uint64_t calls = 0;
  while (end - start < seconds) {
    for (int i = 0; i < 16; ++i, ++calls) {
      const ssize_t moved = write ? process_vm_writev(other, &local, 1, &remote, 1, 0)
                                  : process_vm_readv(other, &local, 1, &remote, 1, 0);
      limits::require(moved == static_cast<ssize_t>(size), "process_vm");
    }
    end = limits::now_s();
  }
  kill(other, SIGKILL);
  waitpid(other, nullptr, 0);
  const double each = (end - start) / static_cast<double>(calls);
  std::printf("%.4f %.4f\n", static_cast<double>(size) / each * 1e-9, each * 1e6);
}
