// One flow, or flows that share a link: serialization, propagation, store and forward, switches'
// latency, headers, windows, credits, shares of a link, queues.
#include "base/prng.h"
#include "tests/physics/physics.h"

namespace verbena::physics {
namespace links {

std::string star(u32 hosts, double gigabits, double delay_ns, const Wire& wire,
                 const std::string& rest) {
  return fmt::format(
      "topology: {{kind: star, hosts: {}}}\nlinks: {{rate: {}Gbps, delay: {}ns}}\n{}{}", hosts,
      gigabits, delay_ns, wire.settings, rest);
}

std::string flow(double bytes, const std::string& from = "h1", const std::string& to = "h0") {
  return fmt::format("workload: {{kind: flows, flows: [{{from: {}, to: {}, size: {:.0f}}}]}}\n",
                     from, to, bytes);
}

// From the first byte to the last acknowledgement over `switches`: all packets once, the last of
// them (or its head) again at each switch.
double alone(const Wire& wire, double bytes, double bps, double delay, u32 switches) {
  const double last = wire.packets(bytes) > 1 ? wire.full_packet() : wire.bytes(bytes);
  const double again = wire.cuts_through ? 8 : last;
  const double ack = wire.cuts_through ? 8 : wire.acknowledgement + wire.gap;
  const double one_way = (switches + 1) * delay + switches * wire.switch_latency;
  return (wire.bytes(bytes) + switches * again) * 8 / bps +
         ((wire.acknowledgement + wire.gap) + switches * ack) * 8 / bps + 2 * one_way;
}

TEST(Links, AFlowTakesItsPacketsTime) {
  for (const Wire& wire : {rocev2(), infiniband()})
    for (const double gigabits : {25.0, 100.0, 400.0})
      expect_close(run(star(2, gigabits, 100, wire, flow(20e6))).seconds.front(),
                   alone(wire, 20e6, gigabits * 1e9, 100e-9, 1),
                   fmt::format("{} at {}", wire.name, gigabits));
}

// TCP's window grows from ten segments; a long flow on a short link has the line's rate all the
// same.
TEST(Links, AStreamOfTCPTakesItsSegmentsTime) {
  for (const Wire& wire : {tcp(), iwarp()})
    for (const double gigabits : {25.0, 100.0})
      expect_close(run(star(2, gigabits, 100, wire, flow(100e6))).seconds.front(),
                   alone(wire, 100e6, gigabits * 1e9, 100e-9, 1),
                   fmt::format("{} at {}", wire.name, gigabits));
}

TEST(Links, ALongWayIsItsPropagation) {
  for (const Wire& wire : all_wires())
    expect_close(run(star(2, 100, 500'000, wire, flow(64))).seconds.front(), 4 * 500e-6, wire.name);
}

TEST(Links, HeadersAndGapsTakeTheirShare) {
  for (const double mtu : {256.0, 1024.0, 4096.0}) {
    const std::string text = fmt::format(
        "topology: {{kind: star, hosts: 2}}\nlinks: {{rate: 100Gbps, delay: 100ns}}\n"
        "hosts: {{mtu: {}, congestion_control: off}}\n{}",
        mtu, flow(20e6));
    const Ran ran = run(text);
    expect_close(20e6 * 8 / ran.seconds.front() / 100e9, mtu / (mtu + 82),
                 fmt::format("MTU {}", mtu), 0.003);
  }
}

// Over five switches each but the first hop waits for the whole frame, or for its head.
TEST(Links, StoreAndForwardTakesAFrameAtEachSwitch) {
  const auto seconds = [](const std::string& mode) {
    return run("topology: {kind: fat_tree, k: 4}\nlinks: {rate: 10Gbps, delay: 100ns}\n"
               "hosts: {congestion_control: off}\nswitch: {forwarding: " +
               mode + "}\n" + flow(4096, "h0", "h15"))
        .seconds.front();
  };
  const double frame = 4096 + 62 + 16 + 20, head = 64 + 20, ack = 66 + 20, bps = 10e9;
  const double ways = 2 * (6 * 100e-9 + 5 * 425e-9);
  expect_close(seconds("store_and_forward"), (6 * frame + 6 * ack) * 8 / bps + ways, "stored");
  expect_close(seconds("cut_through"), (frame + 5 * head + ack + 5 * head) * 8 / bps + ways, "cut",
               0.03);
}

// `verbena sim --sweep technology`: with default latencies InfiniBand is the faster one over five
// switches, as it is in fact.
TEST(Links, SwitchesOfEachTechnologyHaveTheirLatency) {
  double before = 1;
  for (const Wire& wire : {rocev2(), infiniband()}) {
    const double measured = run("topology: {kind: fat_tree, k: 4}\n"
                                "links: {rate: 100Gbps, delay: 100ns}\n" +
                                wire.settings + flow(64, "h0", "h15"))
                                .seconds.front();
    expect_close(measured, alone(wire, 64, 100e9, 100e-9, 5), wire.name);
    EXPECT_LT(measured, before);
    before = measured;
  }
}

// A window in each round trip.
TEST(Links, AWindowIsWhatARoundTripCarries) {
  constexpr double kRoundTrip = 4 * 100e-6 + 2 * 425e-9;
  const Ran rc =
      run("topology: {kind: star, hosts: 2}\nlinks: {rate: 100Gbps, delay: 100us}\n"
          "hosts: {congestion_control: off, requester: {window: 64, ack_interval: 1}}\n" +
          flow(20e6));
  const double of_packet = 2 * 4178 * 8 / 100e9;
  expect_close(20e6 / rc.seconds.front(), 64 * 4096 / (kRoundTrip + of_packet), "RC");
  const Ran stream = run(
      "topology: {kind: star, hosts: 2}\nlinks: {rate: 100Gbps, delay: 100us}\ntechnology: tcp\n"
      "tcp: {window: 256KiB, initial_window: 30, delayed_ack: off}\n" +
      flow(50e6));
  expect_close(50e6 / stream.seconds.front(), 256 * 1024 / kRoundTrip, "TCP", 0.04);
}

// InfiniBand's credits: what the buffer holds goes in each round trip of the link.
TEST(Links, CreditsCarryTheirBufferInARoundTrip) {
  for (const double kib : {32.0, 64.0, 128.0}) {
    const double delay = 100e-6;
    const Ran ran = run(
        fmt::format("topology: {{kind: star, hosts: 2}}\nlinks: {{rate: 100Gbps, delay: 100us}}\n"
                    "technology: infiniband\ninfiniband: {{buffer: {}KiB, credit_update: 64}}\n{}",
                    kib, flow(2e6)));
    const double packets = std::floor(kib * 1024 / (4096 + 26));
    const double rate = packets * 4096 / (2 * delay + 2 * 4122 * 8 / 100e9);
    expect_close(2e6 / (ran.seconds.front() - 4 * delay), rate, fmt::format("{} KiB", kib), 0.06);
  }
}

// K senders to one host share its link to the byte, whatever holds them back.
TEST(Links, AnIncastTakesTheSumOfItsFlows) {
  for (const Wire& wire : {rocev2(), infiniband()})
    for (const u32 senders : {2u, 8u, 16u}) {
      const Ran ran =
          run(star(senders + 1, 100, 500, wire, "workload: {kind: incast, size: 2MB}\n"));
      expect_close(ran.summary.fct_max->seconds(), senders * wire.bytes(2e6) * 8 / 100e9 + 3e-6,
                   fmt::format("{} x {}", senders, wire.name));
      EXPECT_GT(*ran.summary.fairness, 0.99);
      EXPECT_EQ(ran.summary.drops, 0u);
    }
}

// Two flows of one host, and two to one host: each has half of a link, and the largest share that
// leaves no one else less.
TEST(Links, SharesAreMaxMinFair) {
  for (const Wire& wire : {rocev2(), infiniband()}) {
    const Ran ran = run(star(4, 100, 200, wire,
                             "workload: {kind: flows, flows: [{from: h1, to: h0, size: 10MB}, "
                             "{from: h1, to: h2, size: 10MB}]}\n"));
    for (const double seconds : ran.seconds)
      expect_close(seconds, 2 * wire.bytes(10e6) * 8 / 100e9, wire.name);
  }
}

// Eight hosts of a leaf send through an uplink with half of their rate. (With credits packets for
// one host wait behind those for another in the leaf's input buffer, so that the uplink idles.)
TEST(Links, OversubscriptionDividesTheRate) {
  std::string flows;
  for (u32 i = 0; i < 8; ++i)
    flows += fmt::format("{}{{from: h{}, to: h{}, size: 4MB}}", i == 0 ? "" : ", ", i, i + 8);
  const auto seconds = [&](const Wire& wire) {
    return run("topology: {kind: leaf_spine, leaves: 2, hosts_per_leaf: 8, spines: 1}\n"
               "links: {rate: 100Gbps, delay: 200ns, fabric: {rate: 400Gbps, delay: 200ns}}\n" +
               wire.settings + "workload: {kind: flows, flows: [" + flows + "]}\n")
        .seconds;
  };
  const double closed_form = 8 * rocev2().bytes(4e6) * 8 / 400e9 + 4e-6;
  for (const double one : seconds(rocev2())) expect_close(one, closed_form, "rocev2");
  for (const double one : seconds(infiniband())) {
    EXPECT_GT(one, 8 * infiniband().bytes(4e6) * 8 / 400e9);
    EXPECT_LT(one, 1.25 * closed_form);
  }
}

// Packets of Poisson arrivals at a NIC wait as in an M/D/1 queue: load * service / 2 (1 - load).
// L. Kleinrock, Queueing Systems, volume 1, 5.7. The mean of 60,000 packets has an error of 2 %.
TEST(Links, APoissonStreamWaitsAsInAnMD1Queue) {
  const double service = (4096 + 78 + 20) * 8 / 100e9;
  for (const double load : {0.3, 0.6}) {
    PRNG prng(7);
    constexpr u32 kFlows = 60'000;
    std::string flows = fmt::format("{}\n", kFlows);
    double at = 0;
    for (u32 i = 0; i < kFlows; ++i) {
      const double chance = static_cast<double>((prng.next() >> 11) + 1) * 0x1.0p-53;
      at -= service / load * std::log(chance);
      flows += fmt::format("1 0 3 100 4096 {:.12f}\n", at);
    }
    const Ran ran =
        run("topology: {kind: star, hosts: 2}\nlinks: {rate: 100Gbps, delay: 1us}\n"
            "hosts: {congestion_control: off}\nworkload: {kind: flows, file: flow.txt}\n",
            flows);
    double sum = 0, least = 1;
    for (const double seconds : ran.seconds) {
      sum += seconds;
      least = std::min(least, seconds);
    }
    const double wait = load * service / (2 * (1 - load));
    expect_close(sum / kFlows, least + wait, fmt::format("load {}", load));
    expect_close(sum / kFlows - least, wait, fmt::format("wait at load {}", load), 0.05);
  }
}

// A pause in time: the headroom of IEEE 802.1Q, annex N, is enough, and half of it is not.
TEST(Links, HeadroomIsWhatIsUnderWay) {
  for (const double delay_us : {1.0, 5.0}) {
    const double under_way = 2 * delay_us * 1e-6 * 100e9 / 8;
    const auto drops = [&](double part) {
      return run(fmt::format(
                     "topology: {{kind: star, hosts: 9}}\nlinks: {{rate: 100Gbps, delay: {}us}}\n"
                     "hosts: {{congestion_control: off}}\nswitch: {{ecn: off, buffer: 4MB, "
                     "headroom: {:.0f}}}\nworkload: {{kind: incast, size: 4MB}}\n",
                     delay_us, part * (under_way + 20'000)))
          .summary.drops;
    };
    EXPECT_EQ(drops(1), 0u) << delay_us;
    EXPECT_GT(drops(0.5), 0u) << delay_us;
  }
}

// A program that reads at 10 Gb/s has 10 MB after 8 ms.
TEST(Links, AReaderHasTheBytesWhenItHasReadThem) {
  const Ran ran =
      run("topology: {kind: star, hosts: 2}\ntechnology: tcp\n"
          "faults: [{slow_receiver: h0, drain: 10Gbps}]\n" +
          flow(10e6));
  expect_close(ran.seconds.front(), 10e6 * 8 / 10e9, "TCP");
}

}  // namespace links
}  // namespace verbena::physics
