#include "tests/sim/arena.h"

#include <algorithm>
#include <cstring>

namespace verbena::sim {

u64 Arena::carve(u64 length) {
  CHECK(actual_.empty());
  const u64 offset = size_;
  size_ = (size_ + length + kGuard + 63) / 64 * 64;
  return offset;
}

void Arena::seal() {
  actual_.resize(size_);
  for (u64 at = 0; at < size_; at += sizeof(u64)) {
    const u64 random = prng_.next();
    std::memcpy(actual_.data() + at, &random, sizeof random);
  }
  expected_ = actual_;
}

MRKeys Arena::open(u64 offset, u64 length, AccessFlags access) {
  if (has_late_memory_ && prng_.chance(0.8)) return open_late(offset, length, access);
  const Result<MRKeys> keys = device_.memory().register_mr(pd_->id, actual_.data() + offset, length,
                                                           address(offset), access);
  CHECK(keys.has_value());
  keys_.push_back(keys->l_key);
  return *keys;
}

MRKeys Arena::open_late(u64 offset, u64 length, AccessFlags access) {
  const MutableBytes bytes = MutableBytes(actual_).subspan(offset, length);
  late_.push_back(std::make_shared<test::LateMemory>(bytes, prng_.fork()));
  const Result<MRKeys> keys = device_.memory().register_far(
      pd_->id, late_.back(), static_cast<u32>(reinterpret_cast<std::uintptr_t>(bytes.data()) % 8),
      length, address(offset), access);
  CHECK(keys.has_value());
  keys_.push_back(keys->l_key);
  return *keys;
}

void Arena::use_late_memory() {
  has_late_memory_ = true;
  device_.memory().copies().use_staging(std::shared_ptr<u8[]>(new u8[CopyQueue::kStagingBytes]));
}

void Arena::close() {
  for (const LKey key : keys_) CHECK(device_.memory().deregister_mr(key) == Status::kOk);
  keys_.clear();
  for (const auto& memory : late_) memory->finish();
}

u64 Arena::expected_word(u64 offset) const {
  u64 value;
  std::memcpy(&value, expected_.data() + offset, sizeof value);
  return value;
}

void Arena::expect(u64 offset, Bytes bytes) {
  CHECK(offset + bytes.size() <= size_);
  if (!bytes.empty()) std::memmove(expected_.data() + offset, bytes.data(), bytes.size());
}

void Arena::expect_word(u64 offset, u64 value) {
  std::memcpy(expected_.data() + offset, &value, sizeof value);
}

std::optional<std::string> Arena::difference() const {
  if (actual_ == expected_) return std::nullopt;  // memcmp(): the loops below are not optimized
  const auto count = std::ranges::count_if(
      actual_, [i = std::size_t{0}, this](u8 byte) mutable { return byte != expected_[i++]; });
  return "memory differs in " + std::to_string(count) + " bytes, the first at offset " +
         std::to_string(std::ranges::mismatch(actual_, expected_).in1 - actual_.begin());
}

}  // namespace verbena::sim
