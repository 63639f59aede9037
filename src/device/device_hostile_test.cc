// Nothing that arrives may crash the device or touch memory that no key allows. Random bytes and
// damaged frames, by seed; tests/fuzz/fuzz_device.cc goes on where this ends.
#include <gtest/gtest.h>

#include <array>

#include "base/prng.h"
#include "device/hostile_world.h"
#include "wire/ib/opcode.h"

namespace verbena {
namespace {

using test::HostileWorld;
using test::on_the_wire;
using test::received;
using test::Wire;

TEST(DeviceHostileTest, RandomBytes) {
  PRNG prng(1);
  for (int round = 0; round < 500; ++round) {
    std::vector<u8> input(prng.in(1, 4000));
    for (u8& byte : input) byte = static_cast<u8>(prng.next());
    HostileWorld world;
    world.run(input);
  }
}

void append_random(PRNG& prng, u64 count, std::vector<u8>& input) {
  for (; count != 0; --count) input.push_back(static_cast<u8>(prng.next()));
}

// A record that is a repaired frame of a valid OpCode: these get furthest.
void append_frame(PRNG& prng, std::vector<u8>& input) {
  Opcode opcode;
  do opcode = Opcode::from_byte(static_cast<u8>(prng.below(4 << 5)));
  while (!traits_of(opcode).valid);
  const OpcodeTraits& traits = traits_of(opcode);
  const u64 fours = traits.headers_size / 4u + (traits.payload ? prng.below(52) : 0);
  const u64 words = 2 * fours;
  input.push_back(1);
  append_random(prng, 6, input);  // which QP, address and key, traffic class
  input.push_back(prng.chance(0.9) ? 0 : static_cast<u8>(prng.next()));
  input.push_back(static_cast<u8>(words));
  input.push_back(opcode.to_byte());
  input.push_back(0);  // no pad, TVer 0
  append_random(prng, 2 * words - 2, input);
}

// A record of another kind: post, drain, time, state.
void append_something_else(PRNG& prng, std::vector<u8>& input) {
  constexpr std::array<u8, 5> kControls = {3, 4, 5, 6, 7};
  constexpr std::array<u8, 5> kOperands = {14, 7, 1, 3, 3};
  const u64 kind = prng.below(kControls.size());
  input.push_back(kControls[kind]);
  append_random(prng, kOperands[kind], input);
}

TEST(DeviceHostileTest, FramesThatGetPastTheChecks) {
  PRNG prng(2);
  EngineCounters reached;
  for (int round = 0; round < 2000; ++round) {
    std::vector<u8> input;
    while (input.size() < 4000) {
      append_frame(prng, input);
      if (prng.chance(0.5)) continue;
      append_something_else(prng, input);
    }
    HostileWorld world;
    world.run(input);
    add(reached, world.counters().transport);
  }
  EXPECT_GT(reached.rx_write_requests, 20u);
  EXPECT_GT(reached.rx_read_requests, 20u);
  EXPECT_GT(reached.rx_atomic_requests, 20u);
  EXPECT_GT(reached.duplicate_request, 20u);
  EXPECT_GT(reached.resp_remote_access_errors, 20u);
  EXPECT_GT(reached.resp_cqe_error, 20u);
  EXPECT_GT(reached.req_cqe_error, 20u);
}

// Good frames of a connection, each with a few bits of it damaged, cut short or not, and mostly
// with an ICRC that fits.
struct DamagedFrames : ::testing::TestWithParam<QPType> {
  // A SEND of 700 bytes, as it arrives at b.
  void SetUp() override {
    const SGE sge = wire.a.sge(0, 700);
    SendWR wr;
    wr.sg_list = {&sge, 1};
    wr.destination = test::path_to(test::kGIDB);
    wr.dest_qp = wire.b.number(ends.b);
    wr.q_key = test::kTestQKey;
    ASSERT_EQ(wire.a.device.post_send(ends.a, wr, wire.now), PostError::kOk);
    EgressFrame frame;
    ASSERT_TRUE(wire.a.device.poll_frame(wire.now, frame));
    good = on_the_wire(frame);
    arrival = received(frame, {});
  }
  std::vector<u8> damaged() {
    std::vector<u8> bytes = good;
    for (u64 flips = prng.in(1, 4); flips != 0; --flips)
      bytes[prng.below(prng.chance(0.7) ? 20 : bytes.size())] ^=
          static_cast<u8>(1 << prng.below(8));
    if (prng.chance(0.1)) bytes.resize(prng.in(0, bytes.size()));
    if (bytes.size() >= BTH::kSize + kICRCSize && prng.chance(0.9)) seal(bytes);
    return bytes;
  }
  void seal(std::span<u8> bytes) const {
    const u32 icrc = icrc_of({.source = arrival.source,
                              .destination = arrival.destination,
                              .udp_source_port = arrival.udp_source_port},
                             bytes.first(bytes.size() - kICRCSize));
    store_icrc(icrc, bytes.last<kICRCSize>());
  }
  // Back to RTS with a receive posted, whatever happened.
  void repair() {
    if (wire.b.state(ends.b) != QPState::kRTS) {
      ASSERT_EQ(wire.b.device.modify_qp(ends.b, test::to_state(QPState::kReset), wire.now),
                Status::kOk);
      wire.b.bring_up(ends.b, test::kGIDA, wire.a.number(ends.a));
    }
    const SGE sge = wire.b.sge(0, 800);
    static_cast<void>(
        wire.b.device.post_receive(ends.b, {.wr_id = 0, .sg_list = {&sge, 1}}, wire.now));
    while (wire.b.completion().has_value()) continue;
  }
  PRNG prng{static_cast<u64>(GetParam()) + 3};
  Wire wire;
  Wire::Ends ends = wire.connect(GetParam());
  std::vector<u8> good;
  IngressFrame arrival;
};

TEST_P(DamagedFrames, DoNoHarm) {
  constexpr u64 kFrames = 100'000;
  EgressFrame answer;
  for (u64 i = 0; i < kFrames; ++i) {
    const std::vector<u8> bytes = damaged();
    arrival.transport = bytes;
    wire.b.device.on_frame(arrival, wire.now);
    while (wire.b.device.poll_frame(wire.now, answer)) continue;
    repair();
  }
  EXPECT_EQ(wire.b.device.counters().port_rcv_packets, kFrames);
}

INSTANTIATE_TEST_SUITE_P(EveryService, DamagedFrames,
                         ::testing::Values(QPType::kRC, QPType::kUC, QPType::kUD));

}  // namespace
}  // namespace verbena
