#include "host/links/burst_assembler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/prng.h"
#include "device/testing.h"
#include "host/links/vxlan_stage.h"

namespace verbena::host {
namespace {

constexpr u16 kUDPSourcePort = 50000;
constexpr u32 kMaxSegment = 9000;

struct BurstAssemblerTest : ::testing::Test {
  // A SEND whose payload has parts of these sizes.
  EgressFrame frame_of(std::span<const u32> sizes, Urgency urgency = Urgency::kNow) {
    EgressFrame frame;
    frame.source = test::kGIDA;
    frame.destination = test::kGIDB;
    frame.udp_source_port = kUDPSourcePort;
    frame.urgency = urgency;
    for (const u32 size : sizes) frame.payload.add({memory.data() + prng.below(100), size});
    PacketHeaders headers;
    headers.bth.opcode = {Service::kRC, Op::kSendOnly};
    headers.bth.psn = PSN{psn++ & kMask24};
    headers.bth.becn = prng.below(2) == 0;
    headers.bth.pad_count = frame.pad_count = static_cast<u8>(-frame.payload.size_bytes & 3);
    headers.encode(frame.headers);
    frame.headers_size = static_cast<u8>(headers.size());
    return frame;
  }
  void append(const EgressFrame& frame, Encapsulation* around = nullptr) {
    u32 done = 0;
    ASSERT_EQ(assembler.append(frame, nullptr, kMaxSegment, done, around),
              BurstAssembler::Append::kAdded);
    ASSERT_EQ(done, frame.packets);
  }
  static std::vector<u8> bytes_of(const Burst& burst) {
    std::vector<u8> bytes;
    for (const iovec& iov : burst.iovs) {
      EXPECT_NE(iov.iov_len, 0u);
      const u8* const at = static_cast<const u8*>(iov.iov_base);
      bytes.insert(bytes.end(), at, at + iov.iov_len);
    }
    return bytes;
  }
  // Returns the bytes of the frames on the wire, in that order, in one burst.
  static std::vector<u8> expected(std::span<const EgressFrame> frames) {
    std::vector<u8> bytes;
    for (std::size_t i = 0; i < frames.size(); ++i) {
      const std::vector<u8> one = test::on_the_wire(frames[i], static_cast<u16>(i));
      bytes.insert(bytes.end(), one.begin(), one.end());
    }
    return bytes;
  }

  PRNG prng{1};
  std::vector<u8> memory = [this] {
    std::vector<u8> bytes(1 << 14);
    std::ranges::generate(bytes, [this] { return static_cast<u8>(prng.next()); });
    return bytes;
  }();
  u32 psn = 0;
  BurstAssembler assembler;
};

TEST_F(BurstAssemblerTest, SmallFramesAreOnePiece) {
  std::vector<EgressFrame> frames;
  for (u32 i = 0; i < BurstAssembler::kMaxSegments; ++i)
    append(frames.emplace_back(frame_of(std::array<u32, 2>{40, 23})));
  ASSERT_EQ(assembler.bursts().size(), 1u);
  EXPECT_EQ(assembler.bursts()[0].iovs.size(), 1u);
  EXPECT_EQ(bytes_of(assembler.bursts()[0]), expected(frames));
}

// Large parts stay in place, others are copied, in any order.
TEST_F(BurstAssemblerTest, PartsOfAnySize) {
  constexpr std::array<u32, 4> kSizes = {1, 61, BurstAssembler::kMinGatherBytes, 1501};
  for (int round = 0; round < 500; ++round) {
    std::vector<u32> sizes;
    for (u64 i = prng.below(5); i > 0; --i) sizes.push_back(kSizes[prng.below(kSizes.size())]);
    std::vector<EgressFrame> frames;
    for (u64 i = prng.in(1, 3); i > 0; --i) append(frames.emplace_back(frame_of(sizes)));
    ASSERT_EQ(assembler.bursts().size(), 1u);
    EXPECT_EQ(bytes_of(assembler.bursts()[0]), expected(frames)) << round;
    assembler.clear();
  }
}

// A train is the frames that it stands for, however many of them one burst takes; behind a longer
// frame, as a message's first packet is, one.
TEST_F(BurstAssemblerTest, Trains) {
  memory.resize(kLongestTrain * 4096 + 200);
  std::vector<EgressFrame> sent;
  const auto check_and_clear = [&] {
    std::size_t taken = 0;
    for (const Burst& burst : assembler.bursts()) {
      ASSERT_LE(taken + burst.segments, sent.size());
      EXPECT_EQ(bytes_of(burst), expected(std::span(sent).subspan(taken, burst.segments)));
      taken += burst.segments;
    }
    EXPECT_EQ(taken, sent.size());
    assembler.clear();
    sent.clear();
  };
  for (int round = 0; round < 300; ++round) {
    const u32 size = 256u << 2 * prng.below(3);
    const bool is_first = prng.below(2) == 0;
    const u32 packets = is_first ? 1 : static_cast<u32>(prng.in(1, kLongestTrain));
    psn = round % 2 == 0 ? psn : kMask24 - 5;  // they wrap around, too
    EgressFrame train = frame_of(std::array<u32, 1>{packets * size + (is_first ? 16 : 0)});
    train.packets = packets;
    train.payload_is_stable = prng.below(4) != 0;
    psn += packets - 1;
    for (u32 done = 0; done < packets;) {
      const u32 before = done;
      if (assembler.append(train, nullptr, kMaxSegment, done) == BurstAssembler::Append::kFull)
        check_and_clear();
      for (u32 i = before; i < done; ++i) sent.push_back(train.frame_of(i));
    }
  }
  check_and_clear();
}

TEST_F(BurstAssemblerTest, ARequestOvertakesAnAcknowledgement) {
  const EgressFrame ack = frame_of({}, Urgency::kWithReply);
  const EgressFrame request = frame_of(std::array<u32, 1>{64});
  append(ack);
  append(request);
  ASSERT_EQ(assembler.bursts().size(), 1u);
  EXPECT_EQ(assembler.bursts()[0].iovs.size(), 1u);
  EXPECT_EQ(bytes_of(assembler.bursts()[0]), expected(std::array{request, ack}));
}

// Encapsulated packets do not depend on their place: the packet that is overtaken stays as it is.
TEST_F(BurstAssemblerTest, AnEncapsulatedRequestOvertakesAnAcknowledgement) {
  for (const bool is_ipv4 : {true, false}) {
    VXLANStage stage(5001);
    EgressFrame ack = frame_of({}, Urgency::kWithReply);
    EgressFrame request = frame_of(std::array<u32, 1>{64});
    if (!is_ipv4) {
      ack.source = request.source = *GID::parse("fd00::1");
      ack.destination = request.destination = *GID::parse("fd00::2");
    }
    std::vector<u8> each[2];
    for (std::size_t i = 0; i < 2; ++i) {
      append(i == 0 ? request : ack, stage.sender_for(ack));
      each[i] = bytes_of(assembler.bursts()[0]);
      assembler.clear();
    }
    append(ack, stage.sender_for(ack));
    append(request, stage.sender_for(request));
    ASSERT_EQ(assembler.bursts().size(), 1u);
    EXPECT_EQ(assembler.bursts()[0].segment_size, each[0].size());
    EXPECT_EQ(assembler.bursts()[0].segments, 2u);
    each[0].insert(each[0].end(), each[1].begin(), each[1].end());
    EXPECT_EQ(bytes_of(assembler.bursts()[0]), each[0]);
    assembler.clear();
  }
}

TEST_F(BurstAssemblerTest, AWrongICRCStaysWrongWhereARequestOvertakes) {
  EgressFrame ack = frame_of({}, Urgency::kWithReply);
  ack.icrc_flip = 0x1000;
  const EgressFrame request = frame_of(std::array<u32, 1>{64});
  append(ack);
  append(request);
  std::vector<u8> bytes = expected(std::array{request, ack});
  bytes[bytes.size() - 3] ^= 0x10;
  EXPECT_EQ(bytes_of(assembler.bursts()[0]), bytes);
}

}  // namespace
}  // namespace verbena::host
