// Packets with bytes on their way through a simulated network.
#include "fabric/live/live_fabric.h"

#include <gtest/gtest.h>

#include "wire/eth/ecn.h"

namespace verbena::fabric {
namespace {

constexpr u32 kAround = 14 + 20 + 8 + 4;  // MAC, IPv4, UDP, FCS

// `file`: what each file that it names has.
Scenario read(const std::string& text, const std::string& file = "") {
  const auto read_file = [&file](const std::string&) -> Parsed<std::string> { return file; };
  Parsed<Scenario> scenario = read_scenario("test", text, {}, read_file, ScenarioUse::kLiveFabric);
  EXPECT_TRUE(scenario.has_value()) << (scenario ? "" : scenario.error().message);
  return *std::move(scenario);
}

// A SEND Only of RC whose bytes are told apart by `number`.
LivePacket packet(NodeIndex from, NodeIndex to, std::size_t bytes, u8 number = 0) {
  LivePacket made;
  made.source = from;
  made.destination = to;
  made.owner = number;
  made.priority = 3;
  made.traffic_class = traffic_class_of(0, ECN::kECT0);
  made.bytes.assign(bytes, number);
  made.bytes[0] = 0x04;
  made.bytes[1] = 0;  // TVer
  return made;
}

constexpr u32 kGap = gap_bytes_of(Technology::kRoCEv2);

struct LiveFabricTest : ::testing::Test {
  Scenario star = read(
      "topology: {kind: star, hosts: 3}\nlinks: {rate: 10Gbps, delay: 1us}\n"
      "switch: {buffer: 256KiB, ecn: {enabled: on, kmin: 10KB, kmax: 20KB}}\n");
  NodeIndex host(u32 number) const { return star.plan.hosts[number]; }
};

TEST_F(LiveFabricTest, APacketTakesWhatItsLinksTakeAndKeepsItsBytes) {
  LiveFabric fabric(star);
  fabric.run(Time() + us(5));
  LivePacket sent = packet(host(0), host(1), 1000, 7);
  fabric.send(sent);
  fabric.run(Time() + us(100));
  ASSERT_EQ(fabric.arrived().size(), 1u);
  const LivePacket& got = fabric.arrived()[0];
  EXPECT_EQ(got.bytes, sent.bytes);
  EXPECT_EQ(got.source, host(0));
  EXPECT_EQ(got.given, Time() + us(5));
  constexpr Duration kSwitch = switch_latency_of(Technology::kRoCEv2);
  EXPECT_EQ(got.arrived - got.given,
            (us(1) + gbps(10).time_of(1000 + kAround + kGap)) * 2 + kSwitch);
  ASSERT_EQ(fabric.left().size(), 1u);
  EXPECT_EQ(fabric.left()[0].owner, 7u);
  EXPECT_EQ(fabric.left()[0].bytes, 1000u);
}

TEST_F(LiveFabricTest, ALinkCarriesNoMoreThanItsRateAndKeepsTheOrder) {
  LiveFabric fabric(star);
  for (u8 i = 0; i < 100; ++i) fabric.send(packet(host(0), host(1), 1000, i));
  fabric.run(Time() + ms(1));
  ASSERT_EQ(fabric.arrived().size(), 100u);
  for (u8 i = 0; i < 100; ++i) EXPECT_EQ(fabric.arrived()[i].owner, i);
  const double frame = 1000 + kAround;
  EXPECT_NEAR(fabric.figures(host(1)).received.bits_per_second(), 10e9 * frame / (frame + kGap),
              10e6);
}

TEST_F(LiveFabricTest, AnIncastMarksAndPausesAndLosesNothing) {
  LiveFabric fabric(star);
  for (u32 i = 0; i < 200; ++i)
    for (const u32 from : {0u, 1u}) fabric.send(packet(host(from), host(2), 1000));
  fabric.run(Time() + ms(2));
  EXPECT_EQ(fabric.arrived().size(), 400u);
  const LiveFigures& receiver = fabric.figures(host(2));
  EXPECT_GT(receiver.marked, 0u);
  EXPECT_LT(receiver.marked, 400u);
  EXPECT_GT(fabric.figures(host(0)).paused.pauses(), 0u);
  EXPECT_GT(fabric.figures(host(0)).paused.total(fabric.now()), Duration{});
}

TEST_F(LiveFabricTest, AcknowledgementsGoBeforeDataThatWaits) {
  LiveFabric fabric(star);
  for (u8 i = 0; i < 10; ++i) fabric.send(packet(host(0), host(1), 1000, i));
  LivePacket acknowledgement = packet(host(0), host(1), 20, 99);
  acknowledgement.kind = LivePacket::Kind::kAcknowledgement;
  fabric.send(acknowledgement);
  fabric.run(Time() + us(100));
  ASSERT_EQ(fabric.arrived().size(), 11u);
  EXPECT_EQ(fabric.arrived()[1].owner, 99u);  // behind the one that was being sent
}

TEST_F(LiveFabricTest, RulesOfLinksAreForTheseTooAndCopiesHaveTheBytes) {
  star = read(
      "topology: {kind: star, hosts: 3}\n"
      "faults: [{at_host: h1, rules: duplicate}]\n");
  LiveFabric fabric(star);
  fabric.send(packet(host(0), host(1), 500, 3));
  fabric.run(Time() + ms(1));
  ASSERT_EQ(fabric.arrived().size(), 2u);
  EXPECT_EQ(fabric.arrived()[0].bytes, fabric.arrived()[1].bytes);
}

TEST_F(LiveFabricTest, WhatIsNoPacketOfADeviceIsCarriedAsItIs) {
  star = read("topology: {kind: star, hosts: 3}\nfaults: [{at_host: h1, rules: loss}]\n");
  LiveFabric fabric(star);
  LivePacket odd = packet(host(0), host(1), 500);
  odd.bytes[1] = 0x0f;  // of no version that there is
  fabric.send(odd);
  fabric.run(Time() + ms(1));
  ASSERT_EQ(fabric.arrived().size(), 1u);
  EXPECT_EQ(fabric.arrived()[0].bytes, odd.bytes);
}

TEST_F(LiveFabricTest, NothingIsLeftToHappenWhereNothingWasSent) {
  LiveFabric fabric(star);
  EXPECT_EQ(fabric.next_event(), Time::never());
  fabric.send(packet(host(0), host(1), 500));
  EXPECT_EQ(fabric.next_event(), Time());
}

TEST_F(LiveFabricTest, ProcessesSpeakRoCEv2OrInfiniBand) {
  EXPECT_EQ(LiveFabric::mistake_in(star), "");
  EXPECT_EQ(LiveFabric::mistake_in(read("technology: infiniband\ntopology: dumbbell\n")), "");
  for (const std::string technology : {"iwarp", "tcp"}) {
    const std::string mistake =
        LiveFabric::mistake_in(read("technology: " + technology + "\ntopology: dumbbell\n"));
    EXPECT_NE(mistake.find(technology), std::string::npos) << mistake;
  }
}

// --- InfiniBand: packets go by the tables that a subnet manager has written

constexpr u16 kNone = ManagedTables::kNoPort;
constexpr u16 kGroup = kFirstMulticastLID + 1;

struct LiveSubnetTest : ::testing::Test {
  Scenario star = read(
      "technology: infiniband\ntopology: {kind: star, hosts: 3}\n"
      "links: {rate: 10Gbps, delay: 1us}\ninfiniband: {vls: 1, buffer: 8KiB}\n");
  NodeIndex host(u32 number) const { return star.plan.hosts[number]; }
  NodeIndex the_switch() const {
    for (NodeIndex node = 0; node < star.plan.topology.nodes; ++node)
      if (star.plan.topology.is_switch[node]) return node;
    return 0;
  }
  // To the LID, which is the host's number and 1.
  LivePacket to_lid(u32 from, u16 dlid, std::size_t bytes, u8 number = 0) const {
    LivePacket made = packet(host(from), host(from), bytes, number);
    made.priority = 0;
    made.slid = static_cast<u16>(from + 1);
    made.dlid = dlid;
    if (dlid < kFirstMulticastLID) made.destination = host(dlid - 1u);
    return made;
  }
};

TEST_F(LiveSubnetTest, APacketGoesWhereTheTableSaysAndNowhereElse) {
  LiveFabric fabric(star);
  fabric.send(to_lid(0, 2, 1000));
  fabric.run(Time() + us(100));
  EXPECT_TRUE(fabric.arrived().empty());  // nobody has written a table
  EXPECT_EQ(fabric.network().dropped_packets(the_switch(), 0), 1u);
  fabric.set_tables(the_switch(), {kNone, 0, 1, 2}, {});
  fabric.send(to_lid(0, 2, 1000));
  fabric.run(Time() + us(200));
  ASSERT_EQ(fabric.arrived().size(), 1u);
  EXPECT_EQ(fabric.arrived()[0].destination, host(1));
  const PacketCount sent = fabric.network().sent_packets(host(0), 0);
  EXPECT_EQ(sent.packets, 2u);
  EXPECT_EQ(sent.bytes, 2u * (1000 + 8));  // LRH, and the packet with its ICRC
}

TEST_F(LiveSubnetTest, AMulticastPacketGoesToEachPortButItsOwn) {
  LiveFabric fabric(star);
  fabric.set_tables(the_switch(), {}, {{}, {0, 1, 2}});
  for (u8 i = 0; i < 50; ++i) fabric.send(to_lid(0, kGroup, 1000, i));
  fabric.run(Time() + ms(1));
  ASSERT_EQ(fabric.arrived().size(), 100u);
  u32 at_first = 0;
  for (const LivePacket& packet : fabric.arrived()) {
    EXPECT_NE(packet.destination, host(0));
    at_first += packet.destination == host(1) ? 1 : 0;
  }
  EXPECT_EQ(at_first, 50u);
}

TEST_F(LiveSubnetTest, CreditsHoldAnIncastBackAndLoseNothing) {
  LiveFabric fabric(star);
  fabric.set_tables(the_switch(), {kNone, 0, 1, 2}, {});
  for (u32 i = 0; i < 200; ++i)
    for (const u32 from : {0u, 1u}) fabric.send(to_lid(from, 3, 1000));
  fabric.run(Time() + ms(2));
  EXPECT_EQ(fabric.arrived().size(), 400u);
  EXPECT_GT(fabric.network().waited_for_credits(host(0), 0), us(50));
}

TEST_F(LiveSubnetTest, APulledCableLosesAndALaterOneCarriesAgain) {
  LiveFabric fabric(star);
  fabric.set_tables(the_switch(), {kNone, 0, 1, 2}, {});
  fabric.set_link(1, false);
  fabric.send(to_lid(0, 2, 1000));
  fabric.run(Time() + us(100));
  EXPECT_TRUE(fabric.arrived().empty());
  fabric.set_link(1, true);
  fabric.send(to_lid(0, 2, 1000));
  fabric.run(Time() + us(200));
  EXPECT_EQ(fabric.arrived().size(), 1u);
}

// Four switches in a ring, with a host each. A manager's tables decide whether it deadlocks.
struct LiveRingTest : ::testing::Test {
  static constexpr u32 kRing = 4;
  Scenario ring = read(
      "technology: infiniband\ntopology: {kind: import, file: ring}\n"
      "links: {rate: 10Gbps, delay: 1us}\ninfiniband: {vls: 1, buffer: 8KiB, routing: up_down}\n",
      "h0 s0\nh1 s1\nh2 s2\nh3 s3\ns0 s1\ns1 s2\ns2 s3\ns3 s0\n");

  // The port of switch `at` that leads to the next one around, or to the one before. Links count in
  // the order of the file: the host's, then those of the ring.
  static u16 clockwise(u32 at) { return at == 0 ? 1 : 2; }
  static u16 counterclockwise(u32 at) { return at == 0 ? 2 : 1; }

  template <typename PortOf>
  void write_tables(LiveFabric& fabric, const PortOf& port_of) const {
    for (u32 at = 0; at < kRing; ++at) {
      std::vector<u16> table(kRing + 1, kNone);
      for (u32 to = 0; to < kRing; ++to) table[to + 1] = to == at ? u16{0} : port_of(at, to);
      const auto node = ring.plan.topology.links[at].b;
      fabric.set_tables(node, std::move(table), {});
    }
  }
  // From each host to the opposite one; how many have arrived.
  std::size_t load(LiveFabric& fabric) const {
    for (u32 i = 0; i < 200; ++i)
      for (u32 from = 0; from < kRing; ++from) {
        const u32 to = (from + 2) % kRing;
        LivePacket made = packet(ring.plan.hosts[from], ring.plan.hosts[to], 2000);
        made.priority = 0;
        made.slid = static_cast<u16>(from + 1);
        made.dlid = static_cast<u16>(to + 1);
        fabric.send(std::move(made));
      }
    fabric.run(Time() + ms(20));
    return fabric.arrived().size();
  }
};

TEST_F(LiveRingTest, TablesWithALoopOfCreditsDeadlock) {
  LiveFabric fabric(ring);
  write_tables(fabric, [](u32 at, u32) { return clockwise(at); });
  EXPECT_LT(load(fabric), 200u * kRing);
  ASSERT_TRUE(fabric.network().deadlock().has_value());
  EXPECT_EQ(fabric.network().deadlock()->cycle.size(), kRing);
  EXPECT_NE(fabric.text().find("4 queues wait for each other"), std::string::npos) << fabric.text();
}

TEST_F(LiveRingTest, TablesThatNeverCloseTheRingDoNot) {
  LiveFabric fabric(ring);
  write_tables(fabric,
               [](u32 at, u32 to) { return to > at ? clockwise(at) : counterclockwise(at); });
  EXPECT_EQ(load(fabric), 200u * kRing);
  EXPECT_FALSE(fabric.network().deadlock().has_value());
}

}  // namespace
}  // namespace verbena::fabric
