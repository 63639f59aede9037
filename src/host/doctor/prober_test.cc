// Packets between two addresses of this host, and to ourselves.
#include "host/doctor/prober.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <thread>

#include "host/adapter.h"

namespace verbena::host {
namespace {

constexpr Duration kPatience = sec(5);

std::unique_ptr<Prober> open_prober(const char* ip) {
  auto prober = Prober::open(choose_local_addresses(ip)->front());
  EXPECT_TRUE(prober.has_value()) << (prober ? "" : prober.error().message);
  return std::move(*prober);
}

// A doctor that answers, in a thread of its own.
class Listener {
 public:
  explicit Listener(const char* ip)
      : prober_(open_prober(ip)),
        stop_(::eventfd(0, EFD_CLOEXEC)),
        thread_([this] { prober_->serve(stop_.get(), [](const GID&) {}); }) {}
  ~Listener() {
    const u64 one = 1;
    EXPECT_EQ(::write(stop_.get(), &one, sizeof(one)), static_cast<ssize_t>(sizeof(one)));
    thread_.join();
  }

 private:
  std::unique_ptr<Prober> prober_;
  Descriptor stop_;
  std::thread thread_;
};

TEST(ProberTest, ToOurselves) {
  const auto prober = open_prober("127.0.0.85");
  const GID own = *GID::parse("127.0.0.85");
  EXPECT_EQ(prober->source_for(own), own);
  const auto result = prober->exchange({.destination = own}, kPatience);
  ASSERT_TRUE(result.has_value());
  EXPECT_GT(result->round_trip, Duration());
}

TEST(ProberTest, ADoctorTellsWhatArrived) {
  const Listener listener("127.0.0.86");
  const auto prober = open_prober("127.0.0.85");
  for (const u8 mark : {u8{0}, u8{2}, u8{3}}) {
    const auto result = prober->exchange({.destination = *GID::parse("127.0.0.86"),
                                          .traffic_class = mark,
                                          .answer_traffic_class = mark,
                                          .payload_bytes = 4096},
                                         kPatience);
    ASSERT_TRUE(result.has_value());
    ASSERT_TRUE(result->note.has_value());
    EXPECT_EQ(result->note->traffic_class, mark);
    EXPECT_EQ(result->traffic_class, mark);
    EXPECT_EQ(result->note->transport_bytes, 12 + 8 + 4096 + 4);
  }
}

TEST(ProberTest, AnyDeviceAnswers) {
  const auto adapter = Adapter::open(choose_local_addresses("127.0.0.86")->front());
  ASSERT_TRUE(adapter.has_value()) << adapter.error().message;
  const auto prober = open_prober("127.0.0.85");
  const auto result = prober->exchange({.destination = *GID::parse("127.0.0.86")}, kPatience);
  ASSERT_TRUE(result.has_value());
  EXPECT_FALSE(result->note.has_value());
}

TEST(ProberTest, NobodyAnswers) {
  const auto prober = open_prober("127.0.0.85");
  EXPECT_FALSE(prober->exchange({.destination = *GID::parse("127.0.0.87")}, ms(50)).has_value());
  EXPECT_FALSE(prober->exchange({.destination = *GID::parse("::1")}, ms(50)).has_value());
}

TEST(ProberTest, SteeringBetweenTwo) {
  const auto first = open_prober("127.0.0.85"), second = open_prober("127.0.0.85");
  EXPECT_TRUE(first->is_steered_to(*second, kPatience));
  EXPECT_TRUE(second->is_steered_to(*first, kPatience));
}

}  // namespace
}  // namespace verbena::host
