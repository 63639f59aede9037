// SimulatedStore: blocks that have no contents, on a medium that takes its time.
#pragma once

#include <deque>

#include "nvmf/block_store.h"

namespace verbena::nvmf {

class SimulatedStore final : public BlockStore {
 public:
  // `clock` rings when requests end: the target's program calls on_store() then. It outlives this.
  SimulatedStore(application::Node& clock, u64 bytes, u8 block_log2, Duration latency)
      : clock_(clock), bytes_(bytes), block_log2_(block_log2), latency_(latency) {}

  [[nodiscard]] u64 bytes() const override { return bytes_; }
  [[nodiscard]] u8 block_log2() const override { return block_log2_; }
  [[nodiscard]] bool has_write_cache() const override { return false; }
  [[nodiscard]] bool is_read_only() const override { return false; }
  [[nodiscard]] std::optional<application::Region> memory() const override { return std::nullopt; }

  void submit(const Request& request) override {
    due_.push_back({clock_.now() + latency_, request.tag});
    if (due_.size() == 1) clock_.set_alarm(due_.front().at);
  }
  [[nodiscard]] bool poll(Done& out) override {
    if (due_.empty() || due_.front().at > clock_.now()) return false;
    out = {due_.front().tag, Outcome::kDone};
    due_.pop_front();
    if (!due_.empty()) clock_.set_alarm(due_.front().at);
    return true;
  }

 private:
  struct Due {
    Time at;
    u64 tag = 0;
  };
  application::Node& clock_;
  const u64 bytes_;
  const u8 block_log2_;
  const Duration latency_;
  std::deque<Due> due_;
};

}  // namespace verbena::nvmf
