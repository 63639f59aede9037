#include "models/hashers.h"

#include "host/os/time_slice.h"

namespace verbena::models {

Hashers::Hashers(u32 threads) {
  for (u32 i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
}

Hashers::~Hashers() {
  {
    const std::lock_guard<std::mutex> guard(lock_);
    is_stopping_ = true;
  }
  has_job_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Hashers::add(const Job& job) {
  ++outstanding_;
  {
    const std::lock_guard<std::mutex> guard(lock_);
    jobs_.push_back(job);
  }
  has_job_.notify_one();
}

std::optional<Hashers::Verdict> Hashers::take(Wait wait) {
  std::unique_lock<std::mutex> guard(lock_);
  if (wait == Wait::kYes && outstanding_ > 0)
    has_verdict_.wait(guard, [this] { return !verdicts_.empty(); });
  if (verdicts_.empty()) return std::nullopt;
  const Verdict verdict = verdicts_.front();
  verdicts_.pop_front();
  --outstanding_;
  return verdict;
}

void Hashers::work() {
  host::set_time_slice(Duration());
  std::unique_lock<std::mutex> guard(lock_);
  while (true) {
    has_job_.wait(guard, [this] { return is_stopping_ || !jobs_.empty(); });
    if (is_stopping_) return;
    const Job job = jobs_.front();
    jobs_.pop_front();
    guard.unlock();
    Verdict verdict{.unit = job.unit};
    verdict.is_right = !job.expected || transfer::blake3(job.bytes) == *job.expected;
    if (verdict.is_right && job.file != nullptr)
      verdict.write_error = job.file->write_at(job.offset, job.bytes);
    guard.lock();
    verdicts_.push_back(verdict);
    has_verdict_.notify_one();
  }
}

}  // namespace verbena::models
