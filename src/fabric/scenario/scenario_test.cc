#include "fabric/scenario/scenario.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace verbena::fabric {
namespace {

const std::map<std::string, std::string> kFiles = {
    {"links.txt", "a s\nb s 25Gbps 2us\nc t\ns t 400Gbps # between\n"},
    {"reference.txt", "3 1 2\n2\n0 2 100Gbps 1000ns 0\n1 2 100Gbps 1000ns 0\n"},
    {"sizes.txt", "# bytes percent\n100 0\n200 50\n1000 100\n"},
    {"flows.txt", "1\n0 1 3 100 5000 0.001\n"},
    {"two.txt", "host a\nhost b\na s\na t\nb s\nb t\n"},
    {"bad.txt", "a s 10\n"}};

Parsed<std::string> read_file(const std::string& name) {
  const auto file = kFiles.find(name);
  if (file == kFiles.end()) return tl::unexpected(InputError{name + ": no such file"});
  return file->second;
}

Parsed<Scenario> read(const std::string& text, const std::vector<Setting>& settings = {}) {
  return read_scenario("t.yaml", text, settings, read_file);
}

std::string mistake(const std::string& text, const std::vector<Setting>& settings = {}) {
  const Parsed<Scenario> scenario = read(text, settings);
  return scenario ? "none" : scenario.error().message;
}

const LinkConfig& first_link(const Scenario& scenario) {
  return scenario.plan.topology.links.front().config;
}

TEST(Scenario, TwoLinesAreEnough) {
  const Parsed<Scenario> scenario = read("topology: star\nworkload: incast\n");
  ASSERT_TRUE(scenario.has_value()) << scenario.error().message;
  EXPECT_EQ(scenario->plan.hosts.size(), 8u);
  EXPECT_EQ(scenario->flows.size(), 7u);
  EXPECT_EQ(first_link(*scenario).rate, gbps(100));
  EXPECT_EQ(scenario->end, Time::never());
}

DeviceConfig device_with(const std::string& hosts) {
  const Parsed<Scenario> scenario =
      read("topology: star\nhosts: {" + hosts + "}\nworkload: incast\n");
  EXPECT_TRUE(scenario.has_value()) << scenario.error().message;
  return scenario->network.host(first_link(*scenario)).device;
}

// A simulated host is a NIC: nothing of what a device does for sockets and schedulers is on.
TEST(Scenario, HostsMakeNoAllowancesForSockets) {
  const DeviceConfig device = device_with("");
  EXPECT_EQ(device.path.window_packets, PathAllowances::kNoWindow);
  EXPECT_EQ(device.path.window_bytes, ~u32{0});
  EXPECT_EQ(device.path.loss_response, LossResponse::kNone);
  EXPECT_EQ(device.path.shared_window_packets, PathAllowances::kNoSharedWindow);
  EXPECT_EQ(device.path.min_probe_timeout, std::nullopt);
  EXPECT_EQ(device.path.min_ack_timeout, Duration());
  EXPECT_EQ(device.path.ack_request_period, ms(1));
  EXPECT_EQ(device.ack_interval, 32u);
  const DeviceConfig selective = device_with("retransmission: selective_repeat");
  EXPECT_EQ(selective.path.window_packets, 1024u);
}

TEST(Scenario, HostsMakeTheAllowancesThatAreAskedFor) {
  const Parsed<Scenario> scenario = read(
      "topology: star\nworkload: incast\n"
      "hosts: {requester: {window: 256, shared_window: 4096, halve_at_loss: on, probe: 4ms,\n"
      "  ack_period: 2ms, ack_interval: 8, ack_timeout: 14, retries: 3}}\n");
  ASSERT_TRUE(scenario.has_value()) << scenario.error().message;
  const HostConfig host = scenario->network.host(first_link(*scenario));
  EXPECT_EQ(host.device.path.window_packets, 256u);
  EXPECT_EQ(host.device.path.shared_window_packets, 4096u);
  EXPECT_EQ(host.device.path.loss_response, LossResponse::kHalveWindow);
  EXPECT_EQ(host.device.path.min_probe_timeout, ms(4));
  EXPECT_EQ(host.device.path.ack_request_period, ms(2));
  EXPECT_EQ(host.device.ack_interval, 8u);
  EXPECT_EQ(host.ack_timeout, 14u);
  EXPECT_EQ(host.retry_count, 3u);
  const auto mistake_of = [](const std::string& requester) {
    return mistake("topology: star\nhosts: {requester: {" + requester + "}}\nworkload: incast\n");
  };
  EXPECT_EQ(mistake_of("window: off, shared_window: off, probe: off"), "none");
  EXPECT_EQ(mistake_of("probe: 0us"), "t.yaml:2: hosts.requester.probe: above 0, or off");
  EXPECT_THAT(mistake_of("window: many"), testing::HasSubstr("hosts.requester.window"));
  EXPECT_THAT(mistake("topology: star\nworkload: incast\n"
                      "hosts: {retransmission: selective_repeat, requester: {window: 100000}}\n"),
              testing::HasSubstr("hosts.requester.window"));
}

TEST(Scenario, HostsGoBackUnlessSelectiveRepeatIsAskedFor) {
  EXPECT_EQ(device_with("").retransmission, Retransmission::kGoBackN);
  EXPECT_EQ(device_with("retransmission: go_back_n").retransmission, Retransmission::kGoBackN);
  const DeviceConfig device =
      device_with("retransmission: {kind: selective_repeat, reordering: 32}");
  EXPECT_EQ(device.retransmission, Retransmission::kSelectiveRepeat);
  EXPECT_EQ(device.reordering_packets, 32u);
  EXPECT_THAT(mistake("topology: star\nhosts: {retransmission: sack}\nworkload: incast\n"),
              ::testing::HasSubstr("go_back_n"));
}

TEST(Scenario, SaysWhatIsSet) {
  const Parsed<Scenario> scenario = read(R"(
topology: {kind: dumbbell, left: 2, right: 3}
links: {rate: 25Gbps, delay: 500ns, fabric: {rate: 50Gbps}}
switch: {buffer: 4MiB, alpha: 1/4, headroom: 50KB, ecn: {kmin: 10KB, kmax: 20KB, pmax: 10%}}
hosts: {mtu: 1024, congestion-control: {algorithm: dcqcn, g: 1/16}}
workload:
  - {kind: flows, flows: [{from: h0, to: 4, size: 1MB, start: 3us}]}
  - {kind: incast, to: h1, from: [h2, h3], size: 5KB, stagger: 1us}
duration: 10ms
seed: 7
)");
  ASSERT_TRUE(scenario.has_value()) << scenario.error().message;
  EXPECT_EQ(scenario->plan.names[6], "s1");
  EXPECT_EQ(scenario->plan.topology.links.back().config.rate, gbps(50));
  EXPECT_EQ(scenario->plan.topology.links.back().config.delay, ns(500));
  const SwitchPortConfig port = scenario->network.switch_port(first_link(*scenario));
  EXPECT_EQ(port.buffer.alpha, SharedBuffer::kAlphaOne / 4);
  EXPECT_EQ(port.buffer.headroom, 50'000u);
  EXPECT_EQ(port.marking.k_min, 10'000u);
  EXPECT_DOUBLE_EQ(port.marking.p_max, 0.1);
  const HostConfig host = scenario->network.host(first_link(*scenario));
  EXPECT_EQ(host.device.active_mtu, MTU::k1024);
  EXPECT_DOUBLE_EQ(std::get<DCQCNParameters>(host.device.congestion.algorithm).g, 1.0 / 16);
  ASSERT_EQ(scenario->flows.size(), 3u);
  EXPECT_EQ(scenario->flows[0].start, Time() + us(3));
  EXPECT_EQ(scenario->flows[2].start, Time() + us(1));
  EXPECT_EQ(scenario->end, Time() + ms(10));
  EXPECT_EQ(scenario->network.seed, 7u);
}

TEST(Scenario, TechnologyIsRoCEv2UnlessSaidOtherwise) {
  const std::string rest = "topology: star\nworkload: incast\n";
  EXPECT_EQ(read(rest)->network.technology, Technology::kRoCEv2);
  EXPECT_EQ(read(rest + "technology: rocev2\n")->network.technology, Technology::kRoCEv2);
  EXPECT_EQ(read(rest + "technology: iwarp\n")->network.technology, Technology::kIWARP);
  EXPECT_EQ(mistake(rest + "technology: infinibund\n"),
            "t.yaml:3: technology: 'infinibund' is not known; did you mean infiniband?");
}

TEST(Scenario, TCPHasSettingsOfItsOwn) {
  const std::string rest = "topology: star\nworkload: incast\n";
  const Parsed<Scenario> usual = read(rest + "technology: tcp\n");
  EXPECT_FALSE(usual->network.switches.pfc.enabled);
  EXPECT_EQ(usual->network.tcp.framing, TCPHostConfig::Framing::kStream);
  EXPECT_EQ(usual->network.tcp.tcp.control, tcp::ControlKind::kCUBIC);
  EXPECT_FALSE(usual->network.tcp.tcp.ecn);
  const Parsed<Scenario> own =
      read(rest +
           "technology: iwarp\nswitch: {pfc: on}\nhosts: {pcie: {posting: 1us}}\n"
           "tcp: {congestion_control: dctcp, mss: 1460, rto_min: 10ms, window: 1MiB, rack: off, "
           "delayed_ack: {segments: 4, timeout: 1ms}, initial_window: 4}\n");
  ASSERT_TRUE(own.has_value()) << own.error().message;
  EXPECT_TRUE(own->network.switches.pfc.enabled);
  const TCPHostConfig& host = own->network.tcp;
  EXPECT_EQ(host.framing, TCPHostConfig::Framing::kIWARP);
  EXPECT_EQ(host.posting, us(1));
  EXPECT_EQ(host.tcp.control, tcp::ControlKind::kDCTCP);
  EXPECT_TRUE(host.tcp.ecn);
  EXPECT_EQ(host.tcp.mss, 1460u);
  EXPECT_EQ(host.tcp.segments_per_ack, 4u);
  EXPECT_FALSE(host.tcp.rack);
  EXPECT_EQ(read(rest + "technology: tcp\ntcp: reno\n")->network.tcp.tcp.control,
            tcp::ControlKind::kReno);
}

TEST(Scenario, MistakesInTCPAreOneLine) {
  const std::string rest = "topology: star\nworkload: incast\ntechnology: tcp\n";
  EXPECT_EQ(
      mistake(rest + "tcp: {congestion_control: vegas}\n"),
      "t.yaml:4: tcp.congestion_control: 'vegas' is not known; there are reno, cubic or dctcp");
  EXPECT_EQ(mistake(rest + "tcp: {congestion_control: dctcp, ecn: off}\n"),
            "t.yaml:4: tcp.ecn: DCTCP needs it");
  EXPECT_EQ(mistake(rest + "tcp: {window: 1GiB}\n"), "t.yaml:4: tcp.window: less than 64 MiB");
  EXPECT_EQ(mistake(rest + "tcp: {rto_min: 0}\n"), "t.yaml:4: tcp.rto_min: from 1 us to 60 s");
}

TEST(Scenario, MarkingFollowsTheRateOfTheLink) {
  const Parsed<Scenario> scenario = read("topology: star\nworkload: incast\n");
  EXPECT_EQ(scenario->network.switch_port({.rate = gbps(400)}).marking.k_min, 1'600'000u);
  EXPECT_EQ(scenario->network.switch_port({.rate = gbps(25)}).marking.k_max, 400'000u);
}

TEST(Scenario, TopologiesFromFiles) {
  const Parsed<Scenario> list =
      read("topology: {kind: import, file: links.txt}\nworkload: {kind: incast, to: c}\n");
  ASSERT_TRUE(list.has_value()) << list.error().message;
  EXPECT_EQ(list->plan.hosts.size(), 3u);
  EXPECT_EQ(list->plan.topology.links[1].config.delay, us(2));
  EXPECT_EQ(list->plan.names[list->flows[0].destination], "c");
  const Parsed<Scenario> reference = read(
      "topology: {kind: import, file: reference.txt}\nworkload: {kind: flows, file: flows.txt}\n");
  ASSERT_TRUE(reference.has_value()) << reference.error().message;
  EXPECT_EQ(reference->flows[0].bytes, 5000u);
}

TEST(Scenario, FatTreeLeafSpineAndRails) {
  const Parsed<Scenario> tree = read("topology: {kind: fat-tree, k: 4}\nworkload: permutation\n");
  EXPECT_EQ(tree->plan.topology.nodes, 16u + 20u);
  EXPECT_EQ(tree->plan.topology.links.size(), 48u);
  const Parsed<Scenario> spine = read(
      "topology: {kind: leaf-spine, leaves: 2, hosts-per-leaf: 8, oversubscription: 2}\n"
      "workload: permutation\n");
  EXPECT_EQ(spine->plan.topology.nodes, 16u + 2 + 4);
  const Parsed<Scenario> scaled = read(
      "topology: {kind: leaf-spine, leaves: 2, hosts-per-leaf: 8, spines: 2, oversubscription: 4}\n"
      "workload: permutation\n");
  EXPECT_EQ(scaled->plan.topology.links.back().config.rate, gbps(100));
  const Parsed<Scenario> rails = read(
      "topology: {kind: rail-optimized, nodes: 4, rails: 2, spines: 0}\nworkload: all-to-all\n");
  EXPECT_EQ(rails->flows.size(), 2u * 4 * 3);  // within a rail
}

u32 links_of(const Plan& plan, const std::string& name) {
  const NodeIndex node =
      static_cast<NodeIndex>(std::ranges::find(plan.names, name) - plan.names.begin());
  EXPECT_LT(node, plan.topology.nodes) << name;
  return static_cast<u32>(std::ranges::count_if(
      plan.topology.links, [node](const TopologyLink& l) { return l.a == node || l.b == node; }));
}

// 8 nodes of 2 NICs with 2 ports: 8 pairs of ToRs, each with 4 NICs below it.
TEST(Scenario, DualToR) {
  const Parsed<Scenario> planes = read(
      "topology: {kind: dual-tor, segments: 2, hosts-per-segment: 4, rails: 2, "
      "spines-per-plane: 2, oversubscription: 2}\nworkload: permutation\n");
  ASSERT_TRUE(planes.has_value()) << planes.error().message;
  const Plan& plan = planes->plan;
  EXPECT_EQ(plan.hosts.size(), 16u);
  EXPECT_EQ(plan.topology.nodes, 16u + 8 + 4);
  EXPECT_EQ(links_of(plan, "n7.g1"), 2u);
  EXPECT_EQ(links_of(plan, "tor1.1.A"), 4u + 2);
  EXPECT_EQ(links_of(plan, "spineB1"), 4u);
  EXPECT_EQ(plan.topology.links.back().config.rate, gbps(100));
  EXPECT_TRUE(plan.link_named("n0.g0-tor0.0.B").has_value());
  EXPECT_TRUE(plan.link_named("tor1.0.B-spineB0").has_value());
  EXPECT_FALSE(plan.link_named("tor1.0.B-spineA0").has_value());
  const Parsed<Scenario> one = read(
      "topology: {kind: dual-tor, planes: 1, pods: 2, spines-per-plane: 3, cores-per-plane: 5}\n"
      "workload: permutation\n");
  ASSERT_TRUE(one.has_value()) << one.error().message;
  EXPECT_EQ(one->plan.hosts.size(), 32u);
  EXPECT_EQ(links_of(one->plan, "pod1.spineA2"), 4u + 5);
  EXPECT_EQ(links_of(one->plan, "coreA4"), 6u);
}

TEST(Scenario, AListMayHaveHostsOfSeveralLinks) {
  const Parsed<Scenario> list = read(
      "topology: {kind: import, file: two.txt}\nworkload: {kind: incast, to: a}\n"
      "faults: {stuck_pause: a, at: 1ms}\n");
  ASSERT_TRUE(list.has_value()) << list.error().message;
  EXPECT_EQ(list->plan.hosts.size(), 2u);
  EXPECT_EQ(list->network.faults.stuck_pauses.size(), 2u);
}

TEST(Scenario, RulesAreOfHostsAndOfLinks) {
  const std::string star = "topology: star\nworkload: incast\nfaults: ";
  const Parsed<Scenario> scenario = read(
      star + "[{at_host: h3, rules: loss 1%; mark}, {at_link: s0-h1, rules: [delay by=1us]}]\n");
  ASSERT_TRUE(scenario.has_value()) << scenario.error().message;
  const std::vector<LinkRules>& rules = scenario->network.faults.rules;
  ASSERT_EQ(rules.size(), 2u);
  EXPECT_EQ(rules[0].rules.size(), 2u);
  EXPECT_EQ(rules[0].node, scenario->plan.host_named("h3"));
  EXPECT_EQ(scenario->plan.names[rules[1].node], "s0");
  EXPECT_NE(mistake(star + "{at_host: h9, rules: loss}\n").find("there is no host 'h9'"),
            std::string::npos);
  EXPECT_NE(mistake(star + "{at_link: h1-s0, rules: los}\n").find("faults.rules"),
            std::string::npos);
  EXPECT_NE(mistake(star + "{at_host: h1, rules: rnr}\n").find("a link answers nothing"),
            std::string::npos);
  EXPECT_NE(mistake(star + "{at_host: h1}\n").find("what happens to packets?"), std::string::npos);
}

// 1 us at 100 Gb/s are 12,500 bytes.
TEST(Scenario, HeadroomHasRoomForWhatIsInTheSwitch) {
  const std::string star = "topology: star\nworkload: incast\n";
  const Parsed<Scenario> at_once = read(star + "switch: {forwarding: {latency: 0}}\n");
  const Parsed<Scenario> later = read(star + "switch: {forwarding: {latency: 1us}}\n");
  ASSERT_TRUE(at_once.has_value() && later.has_value());
  const auto headroom = [](const Scenario& scenario) {
    return scenario.network.switch_port(first_link(scenario)).buffer.headroom;
  };
  EXPECT_EQ(headroom(*later), headroom(*at_once) + 12'500);
}

// As tests/reference/micro/incast2_dcqcn has it.
TEST(Scenario, CompatFollowsTheModel) {
  const Parsed<Scenario> scenario = read(
      "topology: {kind: star, hosts: 3}\nworkload: incast\ncompat: hpcc-ns3\n"
      "switch: {headroom: 1000, ecn: {at: enqueue}}\n");
  ASSERT_TRUE(scenario.has_value()) << scenario.error().message;
  const HostConfig host = scenario->network.host(first_link(*scenario));
  EXPECT_EQ(host.device.packet_bytes, 1000u);
  EXPECT_EQ(host.notification, Notification::kInAcknowledgement);
  EXPECT_EQ(std::get<DCQCNParameters>(host.device.congestion.algorithm).fast_recovery, 1u);
  const SwitchPortConfig port = scenario->network.switch_port(first_link(*scenario));
  EXPECT_EQ(port.buffer.headroom, 1000u);
  EXPECT_EQ(port.marking.k_min, 400'000u);
  EXPECT_EQ(scenario->network.clock, Clock::kNanoseconds);
  EXPECT_EQ(scenario->network.switches.mark_at, MarkAt::kEnqueue);
  const std::string swift =
      "topology: star\nworkload: incast\ncompat: hpcc-ns3\n"
      "hosts: {congestion_control: swift}\n";
  EXPECT_NE(mistake(swift).find("has no swift"), std::string::npos);
  EXPECT_NE(mistake("topology: star\nworkload: incast\ncompat: ns2\n").find("'ns2' is not known"),
            std::string::npos);
}

TEST(Scenario, SettingsReplaceValues) {
  const std::string text =
      "topology: star\nswitch: {ecn: on}\nworkload: {kind: incast, size: 1MB}\n";
  const Parsed<Scenario> scenario =
      read(text, {{"kmin", "50k"}, {"topology.hosts", "5"}, {"size", "2MB"}, {"seed", "9"}});
  ASSERT_TRUE(scenario.has_value()) << scenario.error().message;
  EXPECT_EQ(scenario->network.switch_port({}).marking.k_min, 50'000u);
  EXPECT_EQ(scenario->flows.size(), 4u);
  EXPECT_EQ(scenario->flows[0].bytes, 2'000'000u);
  EXPECT_EQ(scenario->network.seed, 9u);
  EXPECT_EQ(mistake(text, {{"kmim", "50k"}}),
            "kmim: this scenario has no such key; did you mean kmin?");
  EXPECT_EQ(mistake(text, {{"enabled", "on"}}),
            "enabled may be switch.pfc.enabled, switch.pfc.watchdog.enabled or switch.ecn.enabled: "
            "give the whole path");
}

// A bare value is that of the section's first key.
TEST(Scenario, SettingsFindTheirPlaceInShortForms) {
  const std::string text = "topology: star\nworkload: incast\nswitch: {ecn: on}\n";
  const Parsed<Scenario> scenario =
      read(text, {{"senders", "3"}, {"topology.hosts", "5"}, {"kmin", "50k"}});
  ASSERT_TRUE(scenario.has_value()) << scenario.error().message;
  EXPECT_EQ(scenario->flows.size(), 3u);
  EXPECT_EQ(scenario->network.switch_port({}).marking.k_min, 50'000u);
  const Parsed<Scenario> other = read(text, {{"workload.kind", "permutation"}});
  ASSERT_TRUE(other.has_value()) << other.error().message;
  EXPECT_EQ(other->flows.size(), 8u);
  EXPECT_EQ(mistake("topology: star\nworkload: [incast, incast]\n", {{"workload.1.senders", "0"}}),
            "t.yaml: workload.1.senders: '0' is none of 1 .. 7");
}

TEST(Scenario, SettingsMayBeListsAndMappings) {
  const std::string text = "topology: star\nworkload: incast\nfaults: [{stuck_pause: h1}]\n";
  const Parsed<Scenario> list =
      read(text, {{"faults", "[{down: h1-s0, at: 1ms, for: 10us}, {stuck_pause: h2}]"}});
  ASSERT_TRUE(list.has_value()) << list.error().message;
  ASSERT_EQ(list->network.faults.outages.size(), 1u);
  EXPECT_EQ(list->network.faults.outages[0].up, Time() + ms(1) + us(10));
  EXPECT_EQ(list->network.faults.stuck_pauses.size(), 1u) << "instead of those of the file";
  const Parsed<Scenario> mapping = read(text, {{"workload", "{kind: incast, senders: 3}"}});
  ASSERT_TRUE(mapping.has_value()) << mapping.error().message;
  EXPECT_EQ(mapping->flows.size(), 3u);
  EXPECT_EQ(mistake(text, {{"faults", "[{down: h1-h2}]"}}),
            "t.yaml: faults.0.down: there is no link 'h1-h2'; links are named as h0-s0");
  EXPECT_THAT(mistake(text, {{"faults", "[{down: h1-s0"}}),
              ::testing::StartsWith("faults: '[{down: h1-s0' is no list and no mapping: "));
}

TEST(Scenario, MistakesNameLineKeyAndFix) {
  const std::string rest = "workload: incast\n";
  EXPECT_EQ(mistake("topology: star\nswitch:\n  ecn: {kmni: 5}\n" + rest),
            "t.yaml:3: switch.ecn.kmni: no such key; did you mean kmin?");
  EXPECT_EQ(mistake("topology: star\nkmin: 5\n" + rest),
            "t.yaml:2: kmin: no such key; there is switch.ecn.kmin");
  EXPECT_EQ(mistake("topology: star\nlinks: {rate: 100}\n" + rest),
            "t.yaml:2: links.rate: '100' is no rate; write it as 100Gbps");
  EXPECT_EQ(mistake("topology: star\nlinks: {delay: 1}\n" + rest),
            "t.yaml:2: links.delay: '1' is no time; write it as 1us, 250ns or 10ms");
  EXPECT_EQ(mistake("topology: {kind: fat-tree, k: 5}\n" + rest),
            "t.yaml:1: topology.k: 5 is odd; a fat tree's switches have 2, 4, 6, ... ports");
  EXPECT_EQ(mistake("topology: sta\n" + rest),
            "t.yaml:1: topology.kind: 'sta' is not known; did you mean star?");
  EXPECT_EQ(mistake("topology: {hosts: 3}\nworkload: incast\n").find("t.yaml:1: topology.kind: of"),
            0u);
  EXPECT_EQ(mistake("topology: star\nworkload: {flows: []}\n").find("t.yaml:2: workload.kind: of"),
            0u);
  EXPECT_EQ(
      mistake("topology: star\nworkload: {kind: incast, to: h9}\n"),
      "t.yaml:2: workload.to: there is no host 'h9'; hosts are h0 .. h7, or by number 0 .. 7");
  EXPECT_EQ(mistake("topology: star\nswitch: {ecn: {kmin: 9k, kmax: 5k}}\n" + rest),
            "t.yaml:2: switch.ecn.kmin: 9000 is above kmax, 5000");
  EXPECT_EQ(mistake("topology: star\nswitch: {forwarding: cut}\n" + rest),
            "t.yaml:2: switch.forwarding.mode: 'cut' is not known; there are store_and_forward or "
            "cut_through");
  EXPECT_EQ(
      mistake("topology: star\nfaults: {slow_receiver: h0, buffer: 1k, pause_above: 2k}\n" + rest),
      "t.yaml:2: faults.pause_above: it is above buffer");
  EXPECT_EQ(mistake("topology: star\nhosts: {mtu: 1500}\n" + rest),
            "t.yaml:2: hosts.mtu: 1500 is no path MTU; there are 256, 512, 1024, 2048 and 4096");
  EXPECT_EQ(mistake("topology: star\nhosts: {functions: {hosts: h99, rate: 1Gbps}}\n" + rest),
            "t.yaml:2: hosts.functions.hosts: there is no host 'h99'");
  EXPECT_EQ(
      mistake("topology: star\nhosts: {encryption: rot13}\n" + rest),
      "t.yaml:2: hosts.encryption.preset: 'rot13' is not known; there are off, psp_nic or psp_cpu");
  EXPECT_EQ(
      mistake("topology: star\ntechnology: infiniband\nhosts: {encryption: psp_nic}\n" + rest),
      "t.yaml:3: hosts.encryption: it is of rocev2 alone");
  EXPECT_EQ(mistake("topology: star\nseed: 1\nseed: 2\n" + rest),
            "t.yaml:3: seed: is given twice; leave one out");
  EXPECT_EQ(mistake("topology: star\n"),
            "t.yaml:1: workload: what do hosts send? workload: incast");
  EXPECT_EQ(mistake("topology: [star]\n" + rest),
            "t.yaml:1: topology: expected keys and their values, as `key: value`");
  EXPECT_EQ(mistake("topology: {kind: import, file: bad.txt}\n" + rest),
            "t.yaml:1: topology.file: bad.txt:1: '10' is no rate; write it as 100Gbps");
  EXPECT_EQ(
      mistake("topology: star\nswitch: {buffer: 100KB}\n" + rest),
      "t.yaml:2: switch.buffer: headroom and reserve of the ports of s0 are 376.5 kB of 100 kB; "
      "raise buffer, or lower headroom");
}

TEST(Scenario, CongestionControlOutOfRangeNamesKeyLineAndRange) {
  const auto mistake_of = [](const std::string& setting) {
    return mistake("topology: star\nworkload: incast\nhosts:\n  congestion_control:\n    " +
                   setting + "\n");
  };
  const std::string where = "t.yaml:6: hosts.congestion_control.";
  EXPECT_EQ(mistake_of("algorithm: dcqcn\n    g: 5"),
            where + "g: '5' is no number of 0.0009765625 .. 1");
  EXPECT_EQ(mistake_of("algorithm: dcqcn\n    min_rate: 400Gbps"),
            where + "min_rate: it is 1 kb/s .. 100 Gb/s, the line's rate");
  EXPECT_EQ(mistake_of("algorithm: dcqcn\n    alpha_interval: 0"),
            where + "alpha_interval: it is 1 ns .. 1 s");
  EXPECT_EQ(mistake_of("algorithm: dcqcn\n    hyper_increase: 1kbps"),
            where + "hyper_increase: it is 1 Mb/s at least");
  EXPECT_EQ(mistake_of("algorithm: timely\n    t_low: 1s"), where + "t_low: it is 0 ps .. 500 us");
  EXPECT_EQ(mistake_of("algorithm: hpcc\n    base_rtt: 0"), where + "base_rtt: it is 1 ns .. 10 s");
  EXPECT_EQ(mistake_of("algorithm: window\n    window: 1GB"),
            where + "window: it is 1 B .. 100 MB");
}

TEST(Scenario, TooManyFlowsAreRefusedBeforeTheyAreMade) {
  EXPECT_EQ(
      mistake("topology: {kind: star, hosts: 64}\nlinks: {rate: 400Gbps}\n"
              "workload: {kind: poisson, load: 0.9, duration: 1000s, sizes: 100}\n"),
      "t.yaml:3: workload.duration: about 2.88e+07 million flows begin, and 20 million are the "
      "most: make it shorter, or the load smaller");
}

TEST(Scenario, GarbageIsAMistake) {
  for (const char* const text :
       {"", "a", "- 1", "{", "a: [", "\t", "topology: {kind: {a: b}}", "topology: {? [a] : b}",
        "workload: [1, [2]]", "topology: star\nworkload: [[incast]]",
        "topology: star\nworkload: {kind: flows, flows: [1]}", "*x", "%YAML 9.9\n---\na: b"})
    EXPECT_NE(mistake(text), "none") << text;
}

// Every prefix of a scenario is read, or refused with the file's name.
TEST(Scenario, CutOffAnywhere) {
  const std::string text =
      "topology: {kind: star, hosts: 4}\nlinks: {rate: 100Gbps}\nworkload: {kind: incast, size: "
      "1MB}\n";
  for (std::size_t n = 0; n < text.size(); ++n) {
    const std::string wrong = mistake(text.substr(0, n));
    EXPECT_TRUE(wrong == "none" || wrong.starts_with("t.yaml")) << wrong;
  }
}

TEST(Scenario, Outages) {
  const Parsed<Scenario> scenario = read(
      "topology: star\nworkload: incast\nfaults:\n  - {down: h1-s0, at: 1ms, for: 10us}\n"
      "  - {stuck_pause: h2}\n");
  ASSERT_TRUE(scenario.has_value()) << scenario.error().message;
  const NetworkFaults& faults = scenario->network.faults;
  ASSERT_EQ(faults.outages.size(), 1u);
  EXPECT_EQ(faults.outages[0].link, 1u);
  EXPECT_EQ(faults.outages[0].up, Time() + ms(1) + us(10));
  EXPECT_EQ(mistake("topology: star\nworkload: incast\nfaults: {down: h1-h2}\n"),
            "t.yaml:3: faults.down: there is no link 'h1-h2'; links are named as h0-s0");
}

}  // namespace
}  // namespace verbena::fabric
