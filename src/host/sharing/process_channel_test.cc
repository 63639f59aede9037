#include "host/sharing/process_channel.h"

#include <gtest/gtest.h>

#include <thread>

#include "host/os/clock.h"
#include "host/os/random.h"

namespace verbena::host {
namespace {

constexpr u32 kBurstSize = 200;  // many times what the kernel queues

class ProcessChannelTest : public testing::Test {
 protected:
  bool send(u32 number, Time deadline) {
    std::array<u8, 4> bytes{};
    store_be32(bytes.data(), number);
    IngressFrame frame;
    frame.transport = bytes;
    return from_.send(to_.slot(), frame, deadline);
  }
  void receive_all(u32 count) {
    const Time deadline = monotonic_now() + sec(10);
    for (u32 next = 0; next < count && monotonic_now() < deadline;) {
      if (to_.receive() != ProcessChannel::Received::kFrame) continue;
      EXPECT_EQ(load_be32(to_.frame().transport.data()), next);
      ++next;
    }
  }

  ProcessChannel from_ = *ProcessChannel::claim(random_u64());
  ProcessChannel to_ = *ProcessChannel::claim(random_u64());
};

TEST_F(ProcessChannelTest, ABurstThatIsWaitedForComesWhole) {
  std::thread receiver([this] { receive_all(kBurstSize); });
  for (u32 i = 0; i < kBurstSize; ++i) EXPECT_TRUE(send(i, monotonic_now() + sec(10))) << i;
  receiver.join();
}

TEST_F(ProcessChannelTest, WaitsForNobodyForLong) {
  u32 sent = 0;
  while (send(sent, Time()) && sent < 1'000'000) ++sent;
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_FALSE(send(sent, monotonic_now() + ms(5)));
  receive_all(sent);
  EXPECT_EQ(to_.receive(), ProcessChannel::Received::kNothing);
  EXPECT_TRUE(send(0, Time()));
  to_.close();
  EXPECT_FALSE(send(0, monotonic_now() + sec(1000))) << "nobody is there";
}

}  // namespace
}  // namespace verbena::host
