// Tests the adapter on a link whose frames arrive later than the kernel's: in this thread's poll,
// without waiting for the helper.
#include "host/live_adapter.h"

#include <gtest/gtest.h>

#include <thread>

namespace verbena::host {
namespace {

// Nothing is on it; counts what the thread that made it does.
class SilentLink final : public Link {
 public:
  Time due = Time::never();
  u32 flushes = 0, looks = 0;

  void append(const EgressFrame&) override {}
  void flush() override {
    if (is_ours()) ++flushes;  // the test's thread alone counts: it reads without the lock
  }
  [[nodiscard]] bool receive(Look) override { return false; }
  [[nodiscard]] bool poll_frame(IngressFrame&, Time) override {
    if (is_ours()) ++looks;
    return false;
  }
  [[nodiscard]] Time next_timer() const override { return due; }
  [[nodiscard]] std::span<const int> descriptors() const override { return {}; }
  [[nodiscard]] Expected<void> join_multicast(const GID&) override { return {}; }
  void leave_multicast(const GID&) override {}
  void leave() override {}
  void abandon() override {}
  [[nodiscard]] const LinkCounters& counters() const override { return counters_; }

 private:
  [[nodiscard]] bool is_ours() const { return std::this_thread::get_id() == owner_; }
  const std::thread::id owner_ = std::this_thread::get_id();
  LinkCounters counters_;
};

TEST(LiveAdapterTest, APollSeesWhatTheLinkHeldBack) {
  auto owned = std::make_unique<SilentLink>();
  SilentLink& link = *owned;
  DeviceConfig config;
  config.gids.push_back({.gid = GID::from_ipv4(0x7f000001)});
  const std::shared_ptr<LiveAdapter> adapter = *LiveAdapter::start(config, std::move(owned));
  CompletionQueue* const cq = *adapter->enter()->create_cq(4, nullptr);
  std::array<CQE, 1> cqes;

  EXPECT_EQ(adapter->poll_cq(cq, cqes), 0u);
  EXPECT_EQ(link.looks, 0u) << "nothing is due";
  const u32 flushes = link.flushes;
  {
    const Adapter::Session session = adapter->enter();
    link.due = session.now();
  }
  EXPECT_EQ(adapter->poll_cq(cq, cqes), 0u);
  EXPECT_GT(link.looks, 0u) << "frames that arrive";
  EXPECT_GT(link.flushes, flushes) << "frames that leave";
  const Adapter::Session session = adapter->enter();
  link.due = Time::never();
}

}  // namespace
}  // namespace verbena::host
