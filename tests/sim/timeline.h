// Timeline: everything that happened, as a hash of all of it and as text of the last of it.
#pragma once

#include <deque>
#include <string>

#include "device/objects/async_event.h"
#include "tests/sim/link.h"
#include "transport/cqe.h"

namespace verbena::sim {

[[nodiscard]] const char* name_of(WQEStatus status);
[[nodiscard]] const char* name_of(CompletionOp op);
[[nodiscard]] const char* name_of(AsyncEventType type);
[[nodiscard]] std::string to_string(const CQE& cqe);
// "RC RDMA WRITE First psn 10 qp 0x101 A len 4096 | 1024 bytes"
[[nodiscard]] std::string describe(Bytes transport);

class Timeline {
 public:
  void sent(Time at, u32 node, const IngressFrame& frame, Fate fate);
  void completed(Time at, u32 node, const CQE& cqe);
  void event(Time at, u32 node, AsyncEventType type);
  void note(Time at, u32 node, const std::string& text);

  // Returns a hash of every frame, CQE and event with its time: equal for equal runs.
  [[nodiscard]] u64 hash() const { return hash_; }
  [[nodiscard]] std::string last(std::size_t entries = 100) const;

 private:
  static constexpr std::size_t kKept = 200;
  static constexpr std::size_t kHeadersKept = 64;
  enum class Kind : u8 { kFrame, kCQE, kEvent, kNote };
  struct Entry {
    Time at;
    u32 node = 0;
    Kind kind = Kind::kNote;
    Fate fate = Fate::kSent;
    AsyncEventType event{};
    CQE cqe{};
    std::size_t frame_bytes = 0;
    std::vector<u8> headers{};
    std::string text{};
  };
  Entry& add(Time at, u32 node, Kind kind);
  void mix(u64 value);
  static std::string to_string(const Entry& entry);

  std::deque<Entry> entries_;
  u64 hash_ = 0x9e3779b97f4a7c15;
};

}  // namespace verbena::sim
