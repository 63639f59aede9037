// Tests the adapter on a link whose frames arrive later than the kernel's: in this thread's poll,
// without waiting for the helper.
#include "host/live_adapter.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "host/os/clock.h"

namespace verbena::host {
namespace {

// No frame of it is for the device.
class EmptyLink : public Link {
 public:
  void append(const EgressFrame&) override {}
  void flush() override {}
  [[nodiscard]] bool receive(Look) override { return false; }
  [[nodiscard]] bool poll_frame(IngressFrame&, Time) override { return false; }
  [[nodiscard]] std::span<const int> descriptors() const override { return {}; }
  [[nodiscard]] Expected<void> join_multicast(const GID&) override { return {}; }
  void leave_multicast(const GID&) override {}
  void leave() override {}
  void abandon() override {}
  [[nodiscard]] const LinkCounters& counters() const override { return counters_; }

 private:
  LinkCounters counters_;
};

// Counts what the thread that made it does.
class SilentLink final : public EmptyLink {
 public:
  Time due = Time::never();
  u32 flushes = 0, looks = 0;

  void flush() override {
    if (is_ours()) ++flushes;  // the test's thread alone counts: it reads without the lock
  }
  [[nodiscard]] bool poll_frame(IngressFrame&, Time) override {
    if (is_ours()) ++looks;
    return false;
  }
  [[nodiscard]] Time next_timer() const override { return due; }

 private:
  [[nodiscard]] bool is_ours() const { return std::this_thread::get_id() == owner_; }
  const std::thread::id owner_ = std::this_thread::get_id();
};

// Has so many frames for which no descriptor wakes the helper.
class FullLink final : public EmptyLink {
 public:
  std::atomic<u32> left = 0, announcements = 0;  // that a thread sleeps on it

  [[nodiscard]] bool receive(Look) override { return left != 0 && left-- != 0; }
  [[nodiscard]] bool on_listening(Listening listening) override {
    if (listening == Listening::kYes) ++announcements;
    return listening == Listening::kYes && left != 0;
  }
};

TEST(LiveAdapterTest, AHelperThatHasMoreToReceiveAnnouncesNoSleep) {
  constexpr u32 kFrames = 1000;
  auto owned = std::make_unique<FullLink>();
  FullLink& link = *owned;
  DeviceConfig config;
  config.gids.push_back({.gid = GID::from_ipv4(0x7f000001)});
  const std::shared_ptr<LiveAdapter> adapter = *LiveAdapter::start(config, std::move(owned));
  CompletionQueue* const cq = *adapter->enter()->create_cq(4, nullptr);
  link.left = kFrames;
  adapter->request_notification(cq, NotifyOn::kAnyCompletion);
  const Time deadline = monotonic_now() + sec(20);
  while (link.left != 0 && monotonic_now() < deadline) sleep_for(ms(1));
  EXPECT_EQ(link.left, 0u);
  EXPECT_LT(link.announcements, kFrames / 10);
}

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
