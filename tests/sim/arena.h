// Arena: the memory of one simulated host, and beside it what that memory should hold. Whoever
// expects an operation to write says so with expect(); at the end every byte of both must agree,
// guards between the pieces included.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/prng.h"
#include "device/device.h"
#include "memory/late_memory_for_test.h"

namespace verbena::sim {

class Arena {
 public:
  // Bytes are named by offsets in here, and by SGEs and RETHs as `iova` + offset.
  Arena(Device& device, ProtectionDomain* pd, u64 iova, PRNG prng)
      : device_(device), pd_(pd), iova_(iova), prng_(prng) {}

  // A piece of its own, random bytes in it and around it, aligned to 64. Before seal().
  u64 carve(u64 length);
  // Most regions become memory whose copies end late (memory/late_memory_for_test.h). Before
  // open().
  void use_late_memory();
  // Memory exists from here on.
  void seal();
  MRKeys open(u64 offset, u64 length, AccessFlags access);  // registers; ends the test on failure
  void close();                                             // deregisters all

  u64 address(u64 offset) const { return iova_ + offset; }
  const u8* host_pointer(u64 offset) const { return actual_.data() + offset; }
  Bytes actual(u64 offset, u64 length) const { return Bytes(actual_).subspan(offset, length); }
  Bytes expected(u64 offset, u64 length) const { return Bytes(expected_).subspan(offset, length); }
  u64 expected_word(u64 offset) const;
  void expect(u64 offset, Bytes bytes);
  void expect_word(u64 offset, u64 value);
  // Makes the present bytes the expected ones, whatever they are.
  void accept(u64 offset, u64 length) { expect(offset, actual(offset, length)); }

  // Returns nullopt if all bytes are as expected.
  std::optional<std::string> difference() const;

 private:
  static constexpr u64 kGuard = 64;
  MRKeys open_late(u64 offset, u64 length, AccessFlags access);

  Device& device_;
  ProtectionDomain* pd_;
  u64 iova_;
  PRNG prng_;
  u64 size_ = kGuard;
  std::vector<u8> actual_, expected_;
  std::vector<LKey> keys_;
  bool has_late_memory_ = false;
  std::vector<std::shared_ptr<test::LateMemory>> late_;
};

}  // namespace verbena::sim
