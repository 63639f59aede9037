#include "bench/micro/allocations.h"

#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<std::uint64_t> count{0}, bytes{0};

void* allocate(std::size_t size) {
  void* const at = std::malloc(size);
  if (at == nullptr) std::abort();
  count.fetch_add(1, std::memory_order_relaxed);
  bytes.fetch_add(malloc_usable_size(at), std::memory_order_relaxed);
  return at;
}

void release(void* at) {
  bytes.fetch_sub(malloc_usable_size(at), std::memory_order_relaxed);
  std::free(at);
}

}  // namespace

namespace bench {

std::uint64_t allocations() { return count.load(std::memory_order_relaxed); }
std::uint64_t bytes_in_use() { return bytes.load(std::memory_order_relaxed); }

}  // namespace bench

void* operator new(std::size_t size) { return allocate(size); }
void* operator new[](std::size_t size) { return allocate(size); }
void operator delete(void* at) noexcept { release(at); }
void operator delete[](void* at) noexcept { release(at); }
void operator delete(void* at, std::size_t) noexcept { release(at); }
void operator delete[](void* at, std::size_t) noexcept { release(at); }
