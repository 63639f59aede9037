// Hashers: threads that compare the hashes of units with what they must be, and write what is right
// to its file.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "models/mapped_file.h"
#include "transfer/blake3.h"

namespace verbena::models {

class Hashers {
 public:
  struct Job {
    u64 unit = 0;
    std::span<const u8> bytes{};
    std::optional<transfer::Hash> expected{};  // if none, any content is right
    const MappedFile* file = nullptr;          // nullptr if the bytes are in place
    u64 offset = 0;                            // in the file
  };
  struct Verdict {
    u64 unit = 0;
    bool is_right = false;
    int write_error = 0;  // an errno
  };

  explicit Hashers(u32 threads);
  ~Hashers();
  Hashers(const Hashers&) = delete;
  Hashers& operator=(const Hashers&) = delete;

  void add(const Job& job);
  // Waits for one if `waits` and a job is outstanding.
  enum class Wait : u8 { kNo, kYes };
  [[nodiscard]] std::optional<Verdict> take(Wait wait);
  [[nodiscard]] u64 outstanding() const { return outstanding_; }

 private:
  void work();
  std::mutex lock_{};
  std::condition_variable has_job_{}, has_verdict_{};
  std::deque<Job> jobs_{};
  std::deque<Verdict> verdicts_{};
  u64 outstanding_ = 0;  // of the owner's thread
  bool is_stopping_ = false;
  std::vector<std::thread> threads_{};
};

}  // namespace verbena::models
