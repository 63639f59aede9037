// EndMemory: the memory of one end of a transfer, of one of the kinds that requests take different
// ways to. kOfAGPU: on the stand-in for the CUDA driver, in the context that is current.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include "tests/support/standin_cuda.h"

namespace verbena::test {

class EndMemory {
 public:
  enum class Kind { kPrivate, kOfAFile, kOfAGPU };
  static constexpr std::uint32_t kSize = 256 << 10;  // bytes

  explicit EndMemory(Kind kind) : kind_(kind), data_(make(kind)) { EXPECT_NE(data_, nullptr); }
  ~EndMemory() {
    if (is_on_gpu())
      (void)cuda().mem_free(gpu_pointer());
    else
      ::munmap(data_, kSize);
  }
  EndMemory(const EndMemory&) = delete;
  EndMemory& operator=(const EndMemory&) = delete;

  [[nodiscard]] char* data() const { return data_; }
  [[nodiscard]] std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(data_); }
  [[nodiscard]] bool is_on_gpu() const { return kind_ == Kind::kOfAGPU; }
  [[nodiscard]] bool is_there() const { return is_there_; }

  void fill(char value) const {
    const std::vector<char> all(kSize, value);
    if (!is_on_gpu()) {
      std::memcpy(data_, all.data(), kSize);
    } else {
      ASSERT_EQ(cuda().to_device(gpu_pointer(), all.data(), kSize), 0);
    }
  }
  [[nodiscard]] std::vector<char> content() const {
    if (!is_on_gpu()) return {data_, data_ + kSize};
    std::vector<char> all(kSize);
    EXPECT_EQ(cuda().to_host(all.data(), gpu_pointer(), kSize), 0);
    return all;
  }

  // Protects pages; a GPU's memory has no protection.
  void protect(int protection, std::uint64_t offset = 0, std::uint64_t length = kSize) const {
    ASSERT_EQ(::mprotect(data_ + offset, length, protection), 0);
    std::this_thread::sleep_for(kUntilPeersNotice);
  }
  // Nothing else comes to lie there: a mapping without access stands for the hole.
  void unmap() {
    is_there_ = false;
    if (is_on_gpu()) {
      ASSERT_EQ(cuda().mem_free(gpu_pointer()), 0);
      return;
    }
    ASSERT_EQ(::mmap(data_, kSize, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
              data_);
    std::this_thread::sleep_for(kUntilPeersNotice);
  }
  // Fails unless all bytes are `value`, whatever the protection of the pages was.
  void expect_all(char value) const {
    if (!is_there_) return;
    if (!is_on_gpu()) {
      ASSERT_EQ(::mprotect(data_, kSize, PROT_READ), 0);
    }
    EXPECT_EQ(content(), std::vector<char>(kSize, value));
  }

 private:
  // A peer that has mapped the memory notices within 10 ms (host/local/peer_mappings.h).
  static constexpr std::chrono::milliseconds kUntilPeersNotice{20};

  static char* make(Kind kind) {
    StandinCuda::Pointer gpu = 0;
    if (kind == Kind::kOfAGPU)
      return cuda().mem_alloc(&gpu, kSize) == 0 ? reinterpret_cast<char*>(gpu) : nullptr;
    const bool is_private = kind == Kind::kPrivate;
    const int file = is_private ? -1 : ::memfd_create("program", MFD_CLOEXEC);
    if (!is_private && ::ftruncate(file, kSize) != 0) return nullptr;
    void* const memory = ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE,
                                is_private ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, file, 0);
    if (!is_private) ::close(file);
    return memory == MAP_FAILED ? nullptr : static_cast<char*>(memory);
  }
  [[nodiscard]] StandinCuda::Pointer gpu_pointer() const {
    return reinterpret_cast<StandinCuda::Pointer>(data_);
  }

  const Kind kind_;
  char* const data_;
  bool is_there_ = true;
};

}  // namespace verbena::test
