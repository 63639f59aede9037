#include "device/port/frame_check.h"

#include <gtest/gtest.h>

#include <vector>

#include "wire/ib/lid_address.h"
#include "wire/ib/lrh.h"
#include "wire/roce/icrc.h"

namespace verbena {
namespace {

constexpr u16 kIdentification = 0xa7c3;

struct FrameCheckTest : ::testing::Test {
  // A frame of 12 bytes BTH and `payload` more, sent with kIdentification.
  IngressFrame frame(GID source, GID destination, std::size_t payload,
                     u16 identification = kIdentification) {
    bytes.assign(BTH::kSize + payload, 0x5a);
    const u32 icrc = icrc_of({.source = source,
                              .destination = destination,
                              .udp_source_port = 50000,
                              .identification = identification},
                             bytes);
    bytes.resize(bytes.size() + kICRCSize);
    store_icrc(icrc, std::span(bytes).last<kICRCSize>());
    IngressFrame result;
    result.source = source;
    result.destination = destination;
    result.udp_source_port = 50000;
    result.transport = bytes;
    return result;
  }
  IngressFrame ipv4_frame() {
    return frame(GID::from_ipv4(0x0a000001), GID::from_ipv4(0x0a000002), 100);
  }
  IngressFrame ipv6_frame() { return frame(*GID::parse("fe80::1"), *GID::parse("fe80::2"), 100); }
  std::vector<u8> bytes;
};

// The ICRC of a local packet covers the LRH but for its lane. IBTA Vol 1, 7.8.1
TEST_F(FrameCheckTest, LocalPacketsAreCheckedWithTheirLRH) {
  bytes.assign(BTH::kSize + 100, 0x5a);
  const LRH lrh{.service_level = 2, .dlid = 7, .packet_words = (8 + 112 + 4) / 4, .slid = 9};
  const u32 icrc = icrc_of_local(lrh, bytes);
  bytes.resize(bytes.size() + kICRCSize);
  store_icrc(icrc, std::span(bytes).last<kICRCSize>());
  IngressFrame local;
  local.source = address_of_lid(9);
  local.destination = *GID::parse("fe80::1");
  local.type = GIDType::kInfiniBand;
  local.traffic_class = traffic_class_of_sl(2);
  local.dlid = 7;
  local.transport = bytes;
  EXPECT_EQ(check_frame(local), FrameFault::kNone);
  IngressFrame other = local;
  other.dlid = 8;
  EXPECT_EQ(check_frame(other), FrameFault::kICRC);
  other = local;
  other.source = address_of_lid(10);
  EXPECT_EQ(check_frame(other), FrameFault::kICRC);
  bytes[20] ^= 1;
  EXPECT_EQ(check_frame(local), FrameFault::kICRC);
}

TEST_F(FrameCheckTest, RightGuess) {
  IngressFrame f = ipv4_frame();
  f.identification = kIdentification;
  EXPECT_EQ(check_frame(f), FrameFault::kNone);
  f.identification_known = true;
  EXPECT_EQ(check_frame(f), FrameFault::kNone);
}

TEST_F(FrameCheckTest, AWrongGuessIsSolvedButAWrongFactIsNot) {
  IngressFrame f = ipv4_frame();
  for (const u16 guess : {u16{0}, u16{1}, u16{0xffff}}) {
    f.identification = guess;
    f.identification_known = false;
    EXPECT_EQ(check_frame(f), FrameFault::kNone) << guess;
    f.identification_known = true;
    EXPECT_EQ(check_frame(f), FrameFault::kICRC) << guess;
  }
}

// A sender has 0 with each datagram, or counts them. What is guessed right has all 32 bits tested.
TEST_F(FrameCheckTest, IdentificationsAreGuessedFromThoseBefore) {
  SeenFrames seen;
  const GID source = GID::from_ipv4(0x0a000001), destination = GID::from_ipv4(0x0a000002);
  const auto arrives = [&](u16 identification, u16 place) {
    IngressFrame f = frame(source, destination, 100, identification);
    f.identification = place;
    const bool is_guessed = seen.sender_of(f).guess(place) == identification;
    EXPECT_EQ(check_frame(f, seen), FrameFault::kNone);
    return is_guessed;
  };
  EXPECT_TRUE(arrives(0, 0));  // the first guess, and as often as it is sent
  EXPECT_TRUE(arrives(1, 1));
  EXPECT_TRUE(arrives(0, 0));
  EXPECT_FALSE(arrives(0xfffe, 0));  // it begins to count
  EXPECT_TRUE(arrives(0xffff, 0));
  EXPECT_TRUE(arrives(0, 1));
  EXPECT_TRUE(arrives(1, 2));
  EXPECT_TRUE(arrives(0, 0));
  EXPECT_FALSE(arrives(7, 0));  // some were lost, or went elsewhere
  EXPECT_TRUE(arrives(8, 0));
  EXPECT_FALSE(arrives(0, 0));  // and does so no more
  EXPECT_FALSE(arrives(0, 0));
  EXPECT_TRUE(arrives(0, 0));
}

// Linux joins packets whose Identifications count up, or are all the same.
TEST_F(FrameCheckTest, OneOfTwoThatItMayBe) {
  IngressFrame f = ipv4_frame();
  f.identification_known = true;
  f.identification = kIdentification + 3;
  f.other_identification = kIdentification;
  EXPECT_EQ(check_frame(f), FrameFault::kNone);
  f.other_identification = kIdentification + 1;
  EXPECT_EQ(check_frame(f), FrameFault::kICRC);
}

// Its ICRC has the GRH, and neither UDP ports nor an Identification.
TEST_F(FrameCheckTest, RoCEv1HasAnICRCOfItsOwn) {
  IngressFrame f = ipv4_frame();
  f.type = GIDType::kRoCEv1;
  EXPECT_EQ(check_frame(f), FrameFault::kICRC);
  const std::span<u8> transport = std::span(bytes).first(bytes.size() - kICRCSize);
  store_icrc(icrc_of_v1({.payload_length = static_cast<u16>(bytes.size()),
                         .sgid = f.source,
                         .dgid = f.destination},
                        transport),
             std::span(bytes).last<kICRCSize>());
  EXPECT_EQ(check_frame(f), FrameFault::kNone);
  f.destination = f.source;
  EXPECT_EQ(check_frame(f), FrameFault::kICRC);
}

// Some Identification fits a random ICRC once in 65536: all of these single-bit errors are found.
TEST_F(FrameCheckTest, EverySingleBitErrorIsFound) {
  for (const bool known : {false, true}) {
    IngressFrame f = ipv4_frame();
    f.identification = kIdentification;
    f.identification_known = known;
    for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
      if (bit / 8 == 4) continue;  // FECN, BECN and reserved: routers may change them
      bytes[bit / 8] ^= static_cast<u8>(1 << (bit % 8));
      EXPECT_EQ(check_frame(f), FrameFault::kICRC) << bit;
      bytes[bit / 8] ^= static_cast<u8>(1 << (bit % 8));
    }
  }
}

TEST_F(FrameCheckTest, TheAddressesAreCovered) {
  IngressFrame f = ipv6_frame();
  EXPECT_EQ(check_frame(f), FrameFault::kNone);
  f.source = *GID::parse("fe80::3");
  EXPECT_EQ(check_frame(f), FrameFault::kICRC);
  f.source = GID::from_ipv4(1);
  EXPECT_EQ(check_frame(f), FrameFault::kAddresses);
}

TEST_F(FrameCheckTest, Sizes) {
  IngressFrame f = ipv6_frame();
  const std::vector<u8> large(65536);
  for (std::size_t size = 0; size < BTH::kSize + kICRCSize; ++size) {
    f.transport = std::span(large).first(size);
    EXPECT_EQ(check_frame(f), FrameFault::kSize) << size;
  }
  f.transport = std::span(large).first(44 + 4096 + 4);
  EXPECT_EQ(check_frame(f), FrameFault::kICRC);
  f.transport = std::span(large).first(44 + 4096 + 5);
  EXPECT_EQ(check_frame(f), FrameFault::kSize);
  f.transport = large;
  EXPECT_EQ(check_frame(f), FrameFault::kSize);
}

}  // namespace
}  // namespace verbena
