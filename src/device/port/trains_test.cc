// Trains are the frames that they stand for: two pairs of devices with the same work and the same
// losses, of which one is asked for trains, send the same bytes, time after time.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/prng.h"
#include "device/testing.h"

namespace verbena {
namespace {

using test::config_at;
using test::kGIDA;
using test::kGIDB;
using test::Node;

constexpr u64 kIOVA = 0x10000;
constexpr u32 kSeeds = 40, kSteps = 300, kMaxFramesPerStep = 100;
constexpr u32 kMaxLength = 60000;
constexpr u32 kSmallestWindow = 8;  // packets

struct OnWire {
  std::vector<u8> bytes;
  u16 udp_source_port;
  friend bool operator==(const OnWire&, const OnWire&) = default;
};
using Sent = std::vector<OnWire>;

DeviceConfig config_of(const GID& gid, QPN first_qpn, u64 seed) {
  DeviceConfig config = config_at(gid, first_qpn);
  config.seed = seed;
  config.path.window_packets = kSmallestWindow << seed % 5;
  config.path.min_probe_timeout = us(400);
  return config;
}

struct Request {
  SendOp op;
  std::array<u32, 2> lengths{};
  u32 sge_count = 1;
  bool signaled = false, solicited = false;
};

struct Pair {
  Pair(Trains asked, u64 seed)
      : trains(asked),
        a(config_of(kGIDA, QPN{0x100}, seed)),
        b(config_of(kGIDB, QPN{0x200}, seed + 1)),
        qp_a(a.create(QPType::kRC)),
        qp_b(b.create(QPType::kRC)) {
    a.bring_up(qp_a, kGIDB, b.number(qp_b));
    b.bring_up(qp_b, kGIDA, a.number(qp_a));
    for (Node* const node : {&a, &b})
      std::ranges::generate(node->memory,
                            [n = 0u]() mutable { return static_cast<u8>(n = n * 5 + 3); });
    target = b.device.memory()
                 .register_mr(b.pd->id, b.memory.data(), b.memory.size(), kIOVA, Node::kAllAccess)
                 .value();
  }

  void post(const Request& request, Time now) {
    const std::array<SGE, 2> sges{a.sge(0, request.lengths[0]), a.sge(500, request.lengths[1])};
    SendWR wr;
    wr.op = request.op;
    wr.signaled = request.signaled;
    wr.solicited = request.solicited;
    wr.sg_list = std::span(sges).first(request.sge_count);
    wr.remote_address = kIOVA;
    wr.r_key = target.r_key;
    (void)a.device.post_send(qp_a, wr, now);  // refused by both, or by none
  }
  void post_receive(Time now) {
    const SGE sge = b.sge(0, kMaxLength);
    (void)b.device.post_receive(qp_b, {.sg_list = {&sge, 1}}, now);
  }

  Sent take(Node& from, Time now) {
    u32& longest = &from == &a ? longest_request : longest_response;
    Sent sent;
    EgressFrame frame;
    while (sent.size() < kMaxFramesPerStep && from.device.poll_frame(now, frame, trains)) {
      longest = std::max(longest, frame.packets);
      for (u32 i = 0; i < frame.packets; ++i)
        sent.push_back({test::on_the_wire(frame.frame_of(i)), frame.udp_source_port});
    }
    return sent;
  }
  static void deliver(Node& to, const GID& from, const GID& at, const Sent& frames, u64 lost,
                      Time now) {
    for (std::size_t i = 0; i < frames.size(); ++i)
      if (i != lost)
        to.device.on_frame({.source = from,
                            .destination = at,
                            .udp_source_port = frames[i].udp_source_port,
                            .transport = frames[i].bytes},
                           now);
  }

  const Trains trains;
  Node a, b;
  QueuePair *qp_a, *qp_b;
  MRKeys target;
  u32 longest_request = 0, longest_response = 0;
};

class TrainsTest : public ::testing::TestWithParam<u64> {
 protected:
  Request request() {
    constexpr std::array kOps = {SendOp::kRDMAWrite, SendOp::kSend, SendOp::kRDMARead};
    Request made{.op = kOps[prng.below(kOps.size())]};
    made.sge_count = made.op == SendOp::kRDMARead ? 1 : static_cast<u32>(prng.in(1, 2));
    for (u32& length : made.lengths)
      length = static_cast<u32>(prng.below(kMaxLength / 2 >> prng.below(4) * 2));
    made.signaled = prng.below(3) == 0;
    made.solicited = prng.below(2) == 0;
    return made;
  }

  PRNG prng{GetParam()};
};

TEST_P(TrainsTest, AreTheFramesThatTheyStandFor) {
  Pair plain(Trains::kNo, GetParam()), trains(Trains::kYes, GetParam());
  Time now = test::kStart;
  for (u32 step = 0; step < kSteps; ++step) {
    now = now + us(static_cast<i64>(prng.below(200)));
    if (prng.below(3) == 0) {
      const Request posted = request();
      for (Pair* const pair : {&plain, &trains}) pair->post(posted, now);
    }
    if (prng.below(3) == 0)
      for (Pair* const pair : {&plain, &trains}) pair->post_receive(now);
    const u64 lost = prng.below(300);  // seldom one of the frames
    const Sent requests = plain.take(plain.a, now), responses = plain.take(plain.b, now);
    ASSERT_EQ(trains.take(trains.a, now), requests) << step;
    ASSERT_EQ(trains.take(trains.b, now), responses) << step;
    for (Pair* const pair : {&plain, &trains}) {
      Pair::deliver(pair->b, kGIDA, kGIDB, requests, lost, now);
      Pair::deliver(pair->a, kGIDB, kGIDA, responses, lost, now);
      pair->a.device.on_timer(now);
      pair->b.device.on_timer(now);
    }
    ASSERT_EQ(plain.a.completion(), trains.a.completion()) << step;
    ASSERT_EQ(plain.b.completion(), trains.b.completion()) << step;
  }
  EXPECT_EQ(plain.b.memory, trains.b.memory);
  EXPECT_EQ(std::max(plain.longest_request, plain.longest_response), 1u);
  EXPECT_GT(trains.longest_request, 1u);
  const bool asks_for_short_pieces = GetParam() % 5 == 0;  // the smallest window
  EXPECT_EQ(trains.longest_response > 1, !asks_for_short_pieces);
}

INSTANTIATE_TEST_SUITE_P(Seeds, TrainsTest, ::testing::Range(u64{1}, u64{kSeeds + 1}));

}  // namespace
}  // namespace verbena
