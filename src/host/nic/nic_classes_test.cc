// Tests the traffic classes of a virtual function: which packet goes first, and the rate of a
// class.
#include <numeric>

#include "host/nic/nic_server_for_test.h"
#include "wire/eth/ecn.h"

namespace verbena::host {
namespace {

constexpr u8 kExpedited = 46 << 2;   // EF, of class 5 (RFC 3246)
constexpr u8 kControl = 56 << 2;     // CS7
constexpr u32 kPacketBytes = 1000;   // of the packets below, ICRC included
constexpr u64 kSlowBps = 8'000'000;  // such a packet takes 1 ms

class NICClassesTest : public NICServerTest {
 protected:
  // One of the burst goes at once, the others at the function's rate.
  void limit_red() {
    config_.functions[0].max_bps = kSlowBps;
    config_.functions[0].burst_bytes = kPacketBytes;
  }
  static std::vector<u8> packet_of(const Tenant& to, std::size_t bytes = kPacketBytes) {
    std::vector<u8> packet = packet_to(to.qpn(), 0x8001);
    packet.resize(bytes - kICRCSize);
    return packet;
  }
  // Returns how many packets arrive before one of `traffic_class`, at most `most`.
  static u32 before(Tenant& receiver, u8 traffic_class, u32 most) {
    FrameRingReader::Record record;
    for (u32 i = 0; i < most; ++i)
      if (!receives(receiver, record) || record.header.traffic_class == traffic_class) return i;
    return most;
  }
  u64 of_class(const std::string& function, u32 traffic_class, const std::string& value) const {
    const std::string status = *status_of_nic(path_);
    std::size_t at = status.find("\"name\": \"" + function);
    at = status.find("{\"class\": " + std::to_string(traffic_class) + ",", at);
    at = status.find("\"" + value + "\": ", at);
    return std::stoull(status.substr(at + value.size() + 4));
  }
};

TEST_F(NICClassesTest, AHigherClassOvertakesWaitingPackets) {
  limit_red();
  start();
  const auto red = attach("red"), other = attach("red"), blue = attach("blue");
  const FrameRing::Addresses addresses{red->address, blue->address};
  for (u32 i = 0; i < 100; ++i) red->add(addresses, packet_of(*blue));
  red->send(addresses, packet_of(*blue));
  sleep_for(ms(10));
  red->send(addresses, packet_of(*blue), kExpedited);
  EXPECT_LT(before(*blue, kExpedited, 101), 50u);
  for (u32 i = 0; i < 50; ++i) other->add(addresses, packet_of(*blue), kExpedited);
  other->send(addresses, packet_of(*blue), kControl);  // of another program, behind its own others
  EXPECT_LT(before(*blue, kControl, 150), 50u);
}

TEST_F(NICClassesTest, PacketsAreCountedByClass) {
  config_.functions[0].classes.of_dscp[46] = 6;
  start();
  const auto red = attach("red"), blue = attach("blue");
  const FrameRing::Addresses addresses{red->address, blue->address};
  red->send(addresses, packet_of(*blue), kExpedited);
  red->send(addresses, packet_of(*blue), kControl | 3);  // ECN's bits say nothing of it
  EXPECT_EQ(counter("red", "sent_packets", 2), 2u);
  EXPECT_EQ(of_class("red", 6, "packets"), 1u);
  EXPECT_EQ(of_class("red", 7, "bytes"), u64{kPacketBytes});
  EXPECT_EQ(of_class("red", 5, "packets"), 0u);
}

TEST_F(NICClassesTest, ClassesChangeWhileProgramsStay) {
  start();
  const auto red = attach("red"), blue = attach("blue");
  const FrameRing::Addresses addresses{red->address, blue->address};
  config_.functions[0].classes.of_dscp[46] = 1;
  reconfigure();
  ASSERT_TRUE(reloaded_.has_value()) << reloaded_.error().message;
  EXPECT_EQ(red->rings().class_of_dscp[46], 1);
  red->send(addresses, packet_of(*blue), kExpedited);
  EXPECT_EQ(counter("red", "sent_packets", 1), 1u);
  EXPECT_EQ(of_class("red", 1, "packets"), 1u);
}

// A packet in the ring of another class is no way around the rate of its own.
TEST_F(NICClassesTest, TheRateOfAClassHoldsInEachRing) {
  config_.functions[0].classes.max_bps[7] = 8;  // a byte in a second
  config_.functions[0].burst_bytes = 1;
  start();
  const auto red = attach("red"), blue = attach("blue");
  const FrameRing::Addresses addresses{red->address, blue->address};
  red->rings().class_of_dscp[56] = 2;
  for (u32 i = 0; i < 3; ++i) red->send(addresses, packet_of(*blue), kControl);
  EXPECT_EQ(counter("red", "sent_refused_traffic_class", 2), 2u);
  EXPECT_EQ(of_class("red", 7, "packets"), 1u);
  red->send(addresses, packet_of(*blue), kExpedited);
  EXPECT_EQ(counter("red", "sent_packets", 2), 2u);
}

// Neither keeps the NIC awake, nor a function of lower priority from sending.
TEST_F(NICClassesTest, APacketThatWaitsForItsClassHoldsUpNobodyElse) {
  config_.functions[0].classes.max_bps[7] = 8;
  config_.functions[0].burst_bytes = 1;
  config_.functions[0].priority = kMaxNICPriority;
  start();
  const auto red = attach("red"), blue = attach("blue");
  for (u32 i = 0; i < 2; ++i) red->send({red->address, blue->address}, packet_of(*blue), kControl);
  EXPECT_EQ(counter("red", "sent_packets", 1), 1u);
  blue->send({blue->address, blue->address}, packet_of(*blue));
  EXPECT_EQ(counter("blue", "sent_packets", 1), 1u);
  red->send({red->address, blue->address}, packet_of(*blue));
  EXPECT_EQ(counter("red", "sent_packets", 2), 2u);
  EXPECT_LT(computes_in(ms(200)), ms(50));
}

#ifndef __SANITIZE_THREAD__
// The higher class gets its rate, and the lower one what is left.
TEST_F(NICClassesTest, AMaximumLeavesTheRestToLowerClasses) {
  constexpr u64 kOfFunction = 16'000'000, kOfControl = 4'000'000;
  config_.functions[0].max_bps = kOfFunction;
  config_.functions[0].classes.max_bps[7] = kOfControl;
  start();
  const auto red = attach("red"), blue = attach("blue");
  std::array<u64, 2> sent{};
  const auto flood = [&](Duration time) {
    const std::vector<u8> packet = packet_of(*blue, 4000);
    for (const Time end = monotonic_now() + time; monotonic_now() < end; sleep_for(ms(1))) {
      for (const u8 traffic_class : {u8{0}, kControl})
        while (u8* const out =
                   red->writer.add(traffic_class, {red->address, blue->address}, 4000)) {
          std::copy(packet.begin(), packet.end(), out);
          red->writer.last().traffic_class = traffic_class;
        }
      (void)red->writer.publish();
      ring_doorbell(red->attachment.doorbell_of_nic.get());
    }
    sent = {of_class("red", 0, "bytes"), of_class("red", 7, "bytes")};
  };
  flood(ms(200));
  const auto before = sent;
  flood(sec(1));
  EXPECT_NEAR(static_cast<double>(sent[1] - before[1]) * 8, kOfControl, kOfControl / 4);
  EXPECT_NEAR(static_cast<double>(sent[0] - before[0]) * 8, kOfFunction - kOfControl,
              (kOfFunction - kOfControl) / 4);
}
#endif

}  // namespace
}  // namespace verbena::host
