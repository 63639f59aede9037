#include "management/subnet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/prng.h"
#include "management/mad_agents.h"

namespace verbena::management {
namespace {

using testing::ElementsAreArray;

constexpr u16 kManagerLID = 1, kSwitchLID = 2, kOtherLID = 3;
constexpr u64 kNodeGUID = 0x0256450000000100;

// A manager's host, a switch (ports 1 and 2) and another host.
class SubnetTest : public testing::Test {
 protected:
  SubnetTest() {
    manager_ = {subnet_.add_node({.guid = kNodeGUID, .description = "h0"}), 1};
    other_ = {subnet_.add_node({.guid = kNodeGUID + 0x100, .description = "h1"}), 1};
    switch_ = subnet_.add_node(
        {.type = NodeType::kSwitch, .guid = kNodeGUID + 0x200, .description = "s", .ports = 2});
    subnet_.join(manager_, {switch_, 1}, link_kind_of(100'000'000'000));
    subnet_.join(other_, {switch_, 2}, link_kind_of(100'000'000'000));
    while (subnet_.poll_event()) {
    }
    (void)subnet_.take_changed();
  }

  // An SMP along these ports; the answer, or nothing.
  std::optional<Datagram> ask(MADMethod method, SMPAttribute attribute, u32 modifier,
                              const std::vector<u8>& path, const Attribute& data = {},
                              u64 m_key = 0) {
    Datagram out = smp(method, attribute, modifier, data, m_key);
    out.mad[1] = static_cast<u8>(MgmtClass::kSubnDirectedRoute);
    out.mad[7] = static_cast<u8>(path.size());
    std::ranges::fill(out.mad.begin() + 32, out.mad.begin() + 36, 0xff);
    std::ranges::copy(path, out.mad.begin() + 129);
    subnet_.send(manager_, out, now_);
    return take();
  }
  std::optional<Datagram> ask_lid(MADMethod method, SMPAttribute attribute, u32 modifier, u16 lid) {
    Datagram out = smp(method, attribute, modifier, {}, 0);
    out.dlid = lid;
    subnet_.send(manager_, out, now_);
    return take();
  }
  static Datagram smp(MADMethod method, SMPAttribute attribute, u32 modifier, const Attribute& data,
                      u64 m_key) {
    Datagram out;
    out.mad.resize(kMADSize);
    const MADHeader header{.mgmt_class = MgmtClass::kSubnLIDRouted,
                           .class_version = 1,
                           .method = method,
                           .transaction_id = 0x1122334455667788,
                           .attribute_id = static_cast<u16>(attribute),
                           .attribute_modifier = modifier};
    header.encode(std::span(out.mad).first<MADHeader::kSize>());
    store_be64(&out.mad[24], m_key);
    std::ranges::copy(data, out.mad.begin() + 64);
    return out;
  }
  std::optional<Datagram> take() {
    std::optional<Delivery> delivery = subnet_.poll_delivery();
    if (!delivery) return std::nullopt;
    EXPECT_EQ(delivery->at, manager_);
    return delivery->datagram;
  }
  static u16 status_of(const std::optional<Datagram>& answer) {
    return answer ? load_be16(&answer->mad[4]) & 0x7fff : 0xffff;
  }
  static std::span<const u8> data_of(const std::optional<Datagram>& answer) {
    return std::span(answer->mad).subspan(64, 64);
  }
  u16 set_port(u32 modifier, const std::vector<u8>& path,
               std::initializer_list<std::pair<Component, u64>> values) {
    Attribute data{};
    for (const auto& [component, value] : values) put(data, component, value);
    return status_of(ask(MADMethod::kSet, SMPAttribute::kPortInfo, modifier, path, data));
  }
  // As a subnet manager's first sweep leaves it.
  void sweep() {
    using namespace port_info;
    ASSERT_EQ(set_port(0, {}, {{kLID, kManagerLID}, {kMasterSMLID, kManagerLID}}), 0);
    ASSERT_EQ(set_port(0, {1}, {{kLID, kSwitchLID}, {kMasterSMLID, kManagerLID}}), 0);
    ASSERT_EQ(set_port(0, {1, 2}, {{kLID, kOtherLID}, {kMasterSMLID, kManagerLID}}), 0);
    Attribute table;
    table.fill(0xff);
    table[kManagerLID] = 1;
    table[kSwitchLID] = 0;
    table[kOtherLID] = 2;
    ASSERT_EQ(status_of(ask(MADMethod::kSet, SMPAttribute::kLinearForwardingTable, 0, {1}, table)),
              0);
    for (const PortState state : {PortState::kArmed, PortState::kActive})
      for (const auto& [port, path] :
           {std::pair<u32, std::vector<u8>>{0, {}}, {1, {1}}, {2, {1}}, {0, {1, 2}}})
        ASSERT_EQ(set_port(port, path,
                           {{kPortState, static_cast<u64>(state)},
                            {kLID, port != 0          ? 0
                                   : path.size() == 0 ? kManagerLID
                                                      : kOtherLID},
                            {kMasterSMLID, kManagerLID}}),
                  0);
    while (subnet_.poll_event()) {
    }
  }

  Subnet subnet_;
  PortPlace manager_, other_;
  u32 switch_ = 0;
  Time now_ = Time() + sec(1);
};

// IBTA Vol 1, 14.2.5.3, field by field; the return path says the ports by which it came.
TEST_F(SubnetTest, NodeInfoByADirectedRoute) {
  const auto answer = ask(MADMethod::kGet, SMPAttribute::kNodeInfo, 0, {1, 2});
  ASSERT_TRUE(answer);
  EXPECT_THAT(std::span(answer->mad).first(24),
              ElementsAreArray<u8>({0x01, 0x81, 0x01, 0x81, 0x80, 0x00, 0x00, 0x02,
                                    0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88,
                                    0x00, 0x11, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00}));
  EXPECT_THAT(data_of(answer).first(40),
              ElementsAreArray<u8>({0x01, 0x01, 0x01, 0x01,                          // a CA, a port
                                    0x02, 0x56, 0x45, 0x00, 0x00, 0x00, 0x02, 0x00,  // system
                                    0x02, 0x56, 0x45, 0x00, 0x00, 0x00, 0x02, 0x00,  // node
                                    0x02, 0x56, 0x45, 0x00, 0x00, 0x00, 0x02, 0x01,  // port
                                    0x00, 0x40, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01,
                                    0x01, 0x00, 0x00, 0x00}));
  EXPECT_EQ(answer->mad[193], 1);
  EXPECT_EQ(answer->mad[194], 1);
}

TEST_F(SubnetTest, APathThatLeadsNowhereHasNoAnswer) {
  EXPECT_FALSE(ask(MADMethod::kGet, SMPAttribute::kNodeInfo, 0, {1, 3}));
  EXPECT_FALSE(ask(MADMethod::kGet, SMPAttribute::kNodeInfo, 0, {1, 2, 1}));  // a CA forwards none
  EXPECT_FALSE(ask(MADMethod::kGet, SMPAttribute::kNodeInfo, 0, {2}));
}

TEST_F(SubnetTest, APortIsInitUntilItIsArmedAndActive) {
  using namespace port_info;
  EXPECT_EQ(subnet_.port(other_).state(), PortState::kInit);
  EXPECT_EQ(set_port(2, {1}, {{kPortState, 4}}), 0x1c);  // not from Init
  EXPECT_EQ(set_port(2, {1}, {{kPortState, 3}}), 0);
  EXPECT_EQ(subnet_.port({switch_, 2}).state(), PortState::kArmed);
  EXPECT_EQ(set_port(2, {1}, {{kPortState, 4}}), 0);
  EXPECT_EQ(set_port(2, {1}, {{kPortState, 3}}), 0x1c);  // not back
  EXPECT_EQ(set_port(2, {1}, {{kPortState, 1}}), 0);     // Down: trained anew, at both ends
  EXPECT_EQ(subnet_.port({switch_, 2}).state(), PortState::kInit);
  EXPECT_EQ(subnet_.port(other_).state(), PortState::kInit);
}

TEST_F(SubnetTest, ADisabledPortIsDownAtBothEnds) {
  using namespace port_info;
  EXPECT_EQ(set_port(2, {1}, {{kPortPhysicalState, 3}}), 0);
  EXPECT_EQ(subnet_.port({switch_, 2}).physical_state(), PhysicalState::kDisabled);
  EXPECT_EQ(subnet_.port(other_).state(), PortState::kDown);
  EXPECT_FALSE(ask(MADMethod::kGet, SMPAttribute::kNodeInfo, 0, {1, 2}));
  EXPECT_EQ(set_port(2, {1}, {{kPortPhysicalState, 2}}), 0);
  EXPECT_EQ(subnet_.port(other_).state(), PortState::kInit);
}

TEST_F(SubnetTest, LIDRoutedSMPsFollowTheForwardingTable) {
  EXPECT_FALSE(ask_lid(MADMethod::kGet, SMPAttribute::kNodeInfo, 0, kOtherLID));
  sweep();
  EXPECT_TRUE(subnet_.take_changed());
  const auto answer = ask_lid(MADMethod::kGet, SMPAttribute::kNodeInfo, 0, kOtherLID);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->slid, kOtherLID);
  EXPECT_EQ(get(data_of(answer), node_info::kPortGUID), kNodeGUID + 0x101);
  EXPECT_FALSE(ask_lid(MADMethod::kGet, SMPAttribute::kNodeInfo, 0, 4));
}

TEST_F(SubnetTest, ProgramsHearOfWhatAManagerSets) {
  using namespace port_info;
  ASSERT_EQ(set_port(0, {1, 2}, {{kLID, 3}, {kMasterSMLID, 1}, {kClientReregister, 1}}), 0);
  const auto event = subnet_.poll_event();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->at, other_);
  EXPECT_TRUE(event->changes.lid && event->changes.sm && event->changes.client_reregister);
  EXPECT_FALSE(event->changes.state || event->changes.p_keys);
}

TEST_F(SubnetTest, WhatIsOutOfRangeIsAnInvalidField) {
  using namespace port_info;
  EXPECT_EQ(set_port(0, {1, 2}, {{kLID, 0xc000}}), 0x1c);
  EXPECT_EQ(set_port(0, {1, 2}, {{kLID, 3}, {kLMC, 1}}), 0x1c);  // the low bits of a LID are 0
  EXPECT_EQ(set_port(0, {1, 2}, {{kLID, 3}, {kNeighborMTU, 6}}), 0x1c);
  EXPECT_EQ(set_port(3, {1}, {}), 0x1c);
  EXPECT_EQ(status_of(ask(MADMethod::kGet, SMPAttribute::kSwitchInfo, 0, {})), 0x0c);
  EXPECT_EQ(status_of(ask(MADMethod::kGet, SMPAttribute::kPKeyTable, 2, {})), 0x1c);
  EXPECT_EQ(status_of(ask(MADMethod::kGet, SMPAttribute::kLinearForwardingTable, 768, {1})), 0x1c);
  EXPECT_EQ(status_of(ask(MADMethod::kGet, SMPAttribute::kMulticastForwardingTable, 32, {1})),
            0x1c);
  EXPECT_EQ(status_of(ask(MADMethod::kGet, SMPAttribute{0x7777}, 0, {1})), 0x0c);
}

// IBTA Vol 1, 14.2.4: without the key nothing is set, and the manager hears of it.
TEST_F(SubnetTest, AWrongMKeyIsDroppedAndTrapped) {
  using namespace port_info;
  sweep();
  Attribute data{};
  put(data, kMKey, 7);
  put(data, kLID, kOtherLID);
  put(data, kMasterSMLID, kManagerLID);
  put(data, kMKeyProtectBits, 2);
  ASSERT_EQ(status_of(ask(MADMethod::kSet, SMPAttribute::kPortInfo, 0, {1, 2}, data)), 0);
  const auto trap = ask(MADMethod::kGet, SMPAttribute::kNodeInfo, 0, {1, 2}, {}, 8);
  ASSERT_TRUE(trap);
  EXPECT_EQ(static_cast<MADMethod>(trap->mad[3]), MADMethod::kTrap);
  EXPECT_EQ(get(data_of(trap), notice::kTrapNumber), 256u);
  EXPECT_EQ(get(data_of(trap), notice::kTrap256MKey), 8u);
  EXPECT_EQ(subnet_.port(other_)[kMKeyViolations], 1u);
  EXPECT_EQ(status_of(ask(MADMethod::kGet, SMPAttribute::kNodeInfo, 0, {1, 2}, {}, 7)), 0);
}

// Trap 128, again and again until the manager represses it. 13.4.9
TEST_F(SubnetTest, APulledCableIsTrappedUntilTheTrapIsRepressed) {
  sweep();
  subnet_.set_plugged(other_, false, now_);
  const auto trap = take();
  ASSERT_TRUE(trap);
  EXPECT_THAT(data_of(trap).first(12),
              ElementsAreArray<u8>({0x81, 0x00, 0x00, 0x02, 0x00, 0x80,  // generic, urgent, switch
                                    0x00, 0x02, 0x00, 0x00, 0x00, 0x02}));
  EXPECT_EQ(subnet_.port(other_).state(), PortState::kDown);
  now_ = subnet_.next_timer();
  ASSERT_NE(now_, Time::never());
  subnet_.on_timer(now_);
  EXPECT_TRUE(take());
  Datagram repress = *trap;
  repress.mad[3] = static_cast<u8>(MADMethod::kTrapRepress);
  repress.dlid = kSwitchLID;
  subnet_.send(manager_, repress, now_);
  EXPECT_EQ(subnet_.next_timer(), Time::never());
}

// A flood of packets with a wrong P_Key is no flood of traps.
TEST_F(SubnetTest, SecurityTrapsAreOneAnInterval) {
  sweep();
  const auto violate = [this] { subnet_.on_p_key_violation(other_, 0x1234, 1, 2, 3, now_); };
  violate();
  const auto trap = take();
  ASSERT_TRUE(trap);
  EXPECT_THAT(data_of(trap).first(32),
              ElementsAreArray<u8>({0x82, 0x00, 0x00, 0x01, 0x01, 0x01, 0x00, 0x03,  // 257, a CA
                                    0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0x03,
                                    0x00, 0x00, 0x12, 0x34, 0x00, 0x00, 0x00, 0x02,
                                    0x00, 0x00, 0x00, 0x03, 0x00, 0x00, 0x00, 0x00}));
  Datagram repress = *trap;
  repress.mad[3] = static_cast<u8>(MADMethod::kTrapRepress);
  repress.dlid = kOtherLID;
  subnet_.send(manager_, repress, now_);
  for (u32 i = 0; i < 100; ++i) violate();
  EXPECT_FALSE(take());
  EXPECT_EQ(subnet_.port(other_)[port_info::kPKeyViolations], 101u);
  now_ = subnet_.next_timer();
  subnet_.on_timer(now_);
  EXPECT_FALSE(take());
  violate();
  EXPECT_TRUE(take());
}

// Its host has no manager yet when a manager starts on it: the trap waits until the sweep is over.
TEST_F(SubnetTest, ATrapWithoutAManagerWaitsForTheEndOfTheSweep) {
  subnet_.set_manager(manager_, true, now_);
  EXPECT_FALSE(take());
  EXPECT_EQ(subnet_.next_timer(), Time::never());
  sweep();
  EXPECT_EQ(subnet_.next_timer(), now_ + Subnet::kQuiet);
  now_ = now_ + ms(900);
  subnet_.on_timer(now_);
  ASSERT_EQ(
      set_port(0, {1, 2}, {{port_info::kLID, kOtherLID}, {port_info::kMasterSMLID, kManagerLID}}),
      0);
  EXPECT_EQ(subnet_.next_timer(), now_ + Subnet::kQuiet);
  now_ = subnet_.next_timer();
  subnet_.on_timer(now_);
  const auto trap = take();
  ASSERT_TRUE(trap);
  EXPECT_EQ(trap->mad[3], static_cast<u8>(MADMethod::kTrap));
  EXPECT_EQ(load_be16(&trap->mad[64 + 4]), 144u);
}

// LocalPhyErrors is the threshold; the trap names the port of the switch, and comes once an
// interval.
TEST_F(SubnetTest, ErrorsBeyondTheThresholdOfAPortCauseTrap129) {
  sweep();
  while (take()) {
  }
  const PortPlace at{switch_, 2};
  const u64 threshold = subnet_.port(at)[port_info::kLocalPhyErrors];
  subnet_.on_link_errors(at, threshold, now_);
  EXPECT_FALSE(take());
  subnet_.on_link_errors(at, 1, now_);
  const auto trap = take();
  ASSERT_TRUE(trap);
  const std::span<const u8> details = data_of(trap);
  EXPECT_EQ(load_be16(&details[4]), 129u);
  EXPECT_EQ(load_be16(&details[12]), kSwitchLID);
  EXPECT_EQ(details[14], 2u);
  Datagram repress = *trap;
  repress.mad[3] = static_cast<u8>(MADMethod::kTrapRepress);
  repress.dlid = kSwitchLID;
  subnet_.send(manager_, repress, now_);
  subnet_.on_link_errors(at, threshold + 1, now_);
  EXPECT_FALSE(take());
  EXPECT_EQ(subnet_.port(at).traffic.local_link_integrity_errors, 2u);
  now_ = subnet_.next_timer();
  subnet_.on_timer(now_);
  subnet_.on_link_errors(at, threshold + 1, now_);
  EXPECT_TRUE(take());
}

// Both are counted at the port (16.1.3.5), trapped once an interval, and nothing on a link that is
// down.
TEST_F(SubnetTest, ErrorsOfFlowControlCauseTraps130And131) {
  sweep();
  while (take()) {
  }
  const PortPlace at{switch_, 2};
  for (u32 i = 0; i < 2; ++i) {
    subnet_.on_buffer_overrun(at, now_);
    subnet_.on_flow_control_timeout(at, now_);
  }
  for (const u16 number : {u16{130}, u16{131}}) {
    const auto trap = take();
    ASSERT_TRUE(trap);
    const std::span<const u8> details = data_of(trap);
    EXPECT_EQ(load_be16(&details[4]), number);
    EXPECT_EQ(load_be16(&details[12]), kSwitchLID);
    EXPECT_EQ(details[14], 2u);
  }
  EXPECT_FALSE(take());
  EXPECT_EQ(subnet_.port(at).state(), PortState::kActive);
  EXPECT_EQ(subnet_.port(at).traffic.excessive_buffer_overrun_errors, 2u);
  EXPECT_EQ(subnet_.port(at).traffic.link_error_recovery, 2u);
  subnet_.set_plugged(at, false, now_);
  subnet_.on_buffer_overrun(at, now_);
  EXPECT_EQ(subnet_.port(at).traffic.excessive_buffer_overrun_errors, 2u);
}

TEST_F(SubnetTest, ASwitchThatWasWithoutPowerKnowsNothing) {
  sweep();
  EXPECT_EQ(subnet_.node(switch_).output_for(kOtherLID), 2);
  subnet_.set_power(switch_, false, now_);
  EXPECT_EQ(subnet_.port(manager_).state(), PortState::kDown);
  EXPECT_EQ(subnet_.port({switch_, 2}).state(), PortState::kDown);
  EXPECT_EQ(subnet_.node(switch_).output_for(kOtherLID), Node::kNoPort);
  EXPECT_EQ(subnet_.port({switch_, 0}).lid(), 0u);
  subnet_.set_power(switch_, true, now_);
  EXPECT_EQ(subnet_.port(manager_).state(), PortState::kInit);
  EXPECT_EQ(subnet_.port({switch_, 2}).state(), PortState::kInit);
  EXPECT_EQ(subnet_.port(manager_)[port_info::kNeighborMTU], 5u);
  EXPECT_EQ(subnet_.port(manager_).lid(), kManagerLID);  // its own memory
}

TEST_F(SubnetTest, CountersAreReadAndCleared) {
  sweep();
  subnet_.set_traffic(other_, {.sent_bytes = 4000, .sent_packets = 10, .transmit_wait = 99});
  Datagram query;
  query.mad.resize(kMADSize);
  const MADHeader header{.mgmt_class = MgmtClass::kPerf,
                         .class_version = 1,
                         .method = MADMethod::kSet,
                         .attribute_id = static_cast<u16>(PerfAttribute::kPortCounters)};
  query.dlid = kOtherLID;
  header.encode(std::span(query.mad).first<MADHeader::kSize>());
  query.mad[65] = 1;     // PortSelect
  query.mad[66] = 0x40;  // CounterSelect: PortXmitPkts
  subnet_.send(manager_, query, now_);
  const auto answer = take();
  ASSERT_TRUE(answer);
  EXPECT_EQ(load_be32(&answer->mad[64 + 24]), 1000u);  // words of PortXmitData
  EXPECT_EQ(load_be32(&answer->mad[64 + 32]), 0u);     // PortXmitPkts: cleared before it is read
  EXPECT_EQ(load_be32(&answer->mad[64 + 40]), 99u);    // PortXmitWait
}

TEST_F(SubnetTest, UnicastAndMulticastPacketsAreCountedAndClearedApart) {
  sweep();
  subnet_.set_traffic(other_, {.sent_packets = 10,
                               .sent_unicast = 7,
                               .received_unicast = 2,
                               .sent_multicast = 3,
                               .received_multicast = 5});
  Datagram query;
  query.mad.resize(kMADSize);
  const MADHeader header{.mgmt_class = MgmtClass::kPerf,
                         .class_version = 1,
                         .method = MADMethod::kSet,
                         .attribute_id = static_cast<u16>(PerfAttribute::kPortCountersExtended)};
  query.dlid = kOtherLID;
  header.encode(std::span(query.mad).first<MADHeader::kSize>());
  query.mad[65] = 1;     // PortSelect
  query.mad[67] = 0x10;  // CounterSelect: PortUnicastXmitPkts
  subnet_.send(manager_, query, now_);
  const auto answer = take();
  ASSERT_TRUE(answer);
  // IBTA 16.1.4.11: PortXmitPkts, PortRcvPkts, unicast and multicast ones, sent before received.
  std::vector<u64> values;
  for (std::size_t at = 64 + 24; at < 64 + 72; at += 8)
    values.push_back(load_be64(&answer->mad[at]));
  EXPECT_EQ(values, (std::vector<u64>{10, 0, 0, 2, 3, 5}));
}

TEST_F(SubnetTest, AnSMPOfAnySizeOfPathIsAnsweredOrDropped) {
  for (u32 hops = 0; hops < 256; ++hops) {
    Datagram out = smp(MADMethod::kGet, SMPAttribute::kNodeInfo, 0, {}, 0);
    out.mad[1] = static_cast<u8>(MgmtClass::kSubnDirectedRoute);
    out.mad[6] = static_cast<u8>(hops % 3);
    out.mad[7] = static_cast<u8>(hops);
    std::ranges::fill(out.mad.begin() + 32, out.mad.begin() + 36, 0xff);
    std::ranges::fill(out.mad.begin() + 128, out.mad.end(), u8{1});
    for (const u8 direction : {u8{0x00}, u8{0x80}}) {
      out.mad[4] = direction;
      subnet_.send(manager_, out, now_);
      while (subnet_.poll_delivery()) {
      }
    }
  }
}

class MADAgentsTest : public testing::Test {
 protected:
  static constexpr PortPlace kHere{0, 1}, kThere{1, 1};
  static Datagram request(MgmtClass mgmt_class, MADMethod method, u64 id) {
    Datagram out;
    out.mad.resize(kMADSize);
    const MADHeader header{
        .mgmt_class = mgmt_class, .class_version = 2, .method = method, .transaction_id = id};
    header.encode(std::span(out.mad).first<MADHeader::kSize>());
    return out;
  }
  static AgentConfig taking(MgmtClass mgmt_class, MADMethod method) {
    return {.mgmt_class = static_cast<u8>(mgmt_class),
            .class_version = 2,
            .method_mask = {u64{1} << static_cast<u8>(method), 0}};
  }
  MADAgents agents_;
  Time now_ = Time() + sec(1);
};

TEST_F(MADAgentsTest, AnAnswerComesToTheAgentThatAsked) {
  const u32 client = agents_.open(kHere), other = agents_.open(kHere);
  ASSERT_EQ(agents_.add(client, 0, {.mgmt_class = 3}), MADAgents::Registration::kDone);
  ASSERT_EQ(agents_.add(other, 0, {.mgmt_class = 3}), MADAgents::Registration::kDone);
  agents_.send(other, 0, request(MgmtClass::kSubnAdm, MADMethod::kGet, 5), ms(100), 0, now_);
  auto sent = agents_.poll_to_send();
  ASSERT_TRUE(sent);
  sent->datagram.mad[3] = static_cast<u8>(MADMethod::kGetResp);
  agents_.deliver(*sent, now_);
  const auto received = agents_.poll_received();
  ASSERT_TRUE(received);
  EXPECT_EQ(received->client, other);
  EXPECT_EQ(load_be32(&received->datagram.mad[12]), 5u);
  agents_.deliver(*sent, now_);  // a second answer is nobody's
  EXPECT_FALSE(agents_.poll_received());
  EXPECT_EQ(agents_.next_timer(), Time::never());
}

TEST_F(MADAgentsTest, ARequestIsRepeatedAndThenComesBack) {
  const u32 client = agents_.open(kHere);
  ASSERT_EQ(agents_.add(client, 4, {.mgmt_class = 3}), MADAgents::Registration::kDone);
  agents_.send(client, 4, request(MgmtClass::kSubnAdm, MADMethod::kGet, 5), ms(100), 2, now_);
  for (u32 i = 0; i < 3; ++i) {
    EXPECT_TRUE(agents_.poll_to_send()) << i;
    EXPECT_FALSE(agents_.poll_received()) << i;
    now_ = agents_.next_timer();
    agents_.on_timer(now_);
  }
  EXPECT_FALSE(agents_.poll_to_send());
  const auto received = agents_.poll_received();
  ASSERT_TRUE(received);
  EXPECT_EQ(received->agent, 4u);
  EXPECT_EQ(received->status, ReceivedMAD::Status::kTimedOut);
}

// As its first sending did: in segments, each of which is acknowledged.
TEST_F(MADAgentsTest, ARequestOfManySegmentsIsRepeatedInSegments) {
  constexpr std::size_t kRequestBytes = 56 + 3 * 200;
  const u32 client = agents_.open(kHere), manager = agents_.open(kThere);
  ASSERT_EQ(agents_.add(client, 0, {.mgmt_class = 3}), MADAgents::Registration::kDone);
  ASSERT_EQ(agents_.add(manager, 0, taking(MgmtClass::kSubnAdm, MADMethod::kGet)),
            MADAgents::Registration::kDone);
  Datagram multi = request(MgmtClass::kSubnAdm, MADMethod::kGet, 5);
  multi.mad.resize(kRequestBytes);
  multi.message_bytes = kRequestBytes;
  RMPPHeader{}.encode(multi.mad);
  agents_.send(client, 0, std::move(multi), ms(100), 1, now_);
  u32 requests = 0;
  const auto carry = [&] {
    while (auto sent = agents_.poll_to_send()) {
      EXPECT_EQ(sent->datagram.mad.size(), kMADSize);
      sent->at = sent->at == kHere ? kThere : kHere;
      agents_.deliver(*sent, now_);
    }
    while (const auto received = agents_.poll_received()) {
      if (received->status == ReceivedMAD::Status::kOk) ++requests;
    }
  };
  agents_.on_timer(now_ = now_ + ms(200));  // no segment has come yet: nothing to repeat
  carry();
  EXPECT_EQ(requests, 1u);
  agents_.on_timer(now_ = now_ + ms(200));
  carry();  // the manager acknowledges what it has already
  EXPECT_EQ(requests, 1u);
  agents_.on_timer(now_ = now_ + RMPPTransfers::kIdleTimeout);
  EXPECT_EQ(agents_.next_timer(), Time::never());
}

// A table is answered in segments; the agent that asked gets it whole, and its request is not
// repeated while they come.
TEST_F(MADAgentsTest, AMessageOfManySegmentsArrivesWhole) {
  constexpr std::size_t kTableBytes = 56 + 150 * 112;
  const u32 client = agents_.open(kHere), manager = agents_.open(kThere);
  ASSERT_EQ(agents_.add(client, 0, {.mgmt_class = 3}), MADAgents::Registration::kDone);
  ASSERT_EQ(agents_.add(manager, 0, taking(MgmtClass::kSubnAdm, MADMethod::kGet)),
            MADAgents::Registration::kDone);
  agents_.send(client, 0, request(MgmtClass::kSubnAdm, MADMethod::kGet, 5), ms(100), 3, now_);
  auto asked = agents_.poll_to_send();
  ASSERT_TRUE(asked);
  Datagram table = asked->datagram;
  table.mad[3] = 0x92;  // GetTableResp
  table.mad.resize(kTableBytes);
  table.message_bytes = kTableBytes;
  RMPPHeader{}.encode(table.mad);
  table.mad.back() = 99;
  agents_.send(manager, 0, std::move(table), {}, 0, now_);
  u32 segments = 0, acknowledgements = 0;
  while (auto sent = agents_.poll_to_send()) {
    const bool is_data = sent->at == kThere;
    ++(is_data ? segments : acknowledgements);
    agents_.deliver({is_data ? kHere : kThere, std::move(sent->datagram)}, now_);
    EXPECT_GT(agents_.next_timer(), now_ + ms(99));
  }
  EXPECT_EQ(segments, 84u);         // of 200 bytes
  EXPECT_EQ(acknowledgements, 3u);  // of the first one, of a window of 64, of the last one
  const auto received = agents_.poll_received();
  ASSERT_TRUE(received);
  EXPECT_EQ(received->client, client);
  ASSERT_EQ(received->datagram.message_bytes, kTableBytes);
  EXPECT_EQ(received->datagram.mad.back(), 99);
}

TEST_F(MADAgentsTest, ARequestComesToWhoHasRegisteredForIt) {
  const u32 client = agents_.open(kHere), elsewhere = agents_.open(kThere);
  const AgentConfig config = taking(MgmtClass::kSubnAdm, MADMethod::kGet);
  ASSERT_EQ(agents_.add(client, 0, config), MADAgents::Registration::kDone);
  EXPECT_EQ(agents_.add(client, 1, config), MADAgents::Registration::kTaken);
  EXPECT_EQ(agents_.add(elsewhere, 0, config), MADAgents::Registration::kDone);
  agents_.deliver({kHere, request(MgmtClass::kSubnAdm, MADMethod::kGet, 5)}, now_);
  agents_.deliver({kHere, request(MgmtClass::kSubnAdm, MADMethod::kSet, 6)}, now_);
  const auto received = agents_.poll_received();
  ASSERT_TRUE(received);
  EXPECT_EQ(received->client, client);
  EXPECT_FALSE(agents_.poll_received());
  agents_.close(client);
  agents_.deliver({kHere, request(MgmtClass::kSubnAdm, MADMethod::kGet, 7)}, now_);
  EXPECT_FALSE(agents_.poll_received());
}

// A manager leaves links as they are whose MTU is already what both ends can have. OpenSM takes
// others down to set it, so that traps 128 interrupt the first sweep of a large subnet.
TEST(SubnetLinkTest, ALinkBeginsWithTheMTUOfBothEnds) {
  Subnet subnet;
  const PortPlace a{subnet.add_node({.guid = 0x100, .description = "a", .mtu = 5}), 1};
  const PortPlace b{subnet.add_node({.guid = 0x200, .description = "b", .mtu = 3}), 1};
  const PortPlace c{subnet.add_node({.guid = 0x300, .description = "c", .mtu = 5}), 1};
  EXPECT_EQ(subnet.port(c)[port_info::kNeighborMTU], 5u);
  subnet.join(a, b, link_kind_of(100'000'000'000));
  EXPECT_EQ(subnet.port(a)[port_info::kNeighborMTU], 3u);
  EXPECT_EQ(subnet.port(b)[port_info::kNeighborMTU], 3u);
}

// Each MAD that programs of a host send is answered once or dropped, and the subnet goes on.
TEST_F(SubnetTest, MADsOfAnyBytesAreAnsweredOrDropped) {
  sweep();
  PRNG prng(7);
  constexpr std::array<u8, 6> kClasses = {0x01, 0x81, 0x03, 0x04, 0x32, 0x99};
  for (u32 i = 0; i < 20'000; ++i) {
    Datagram out;
    out.mad.resize(kMADSize);
    for (u8& byte : out.mad) byte = static_cast<u8>(prng.next());
    out.mad[0] = 1;
    out.mad[1] = kClasses[i % kClasses.size()];
    out.mad[2] = 1;
    out.mad[3] = static_cast<u8>(i / 7 % 2 == 0 ? 1 : prng.next());  // half of them: Get
    out.mad[6] = 0;                                                  // HopPointer
    out.mad[7] = static_cast<u8>(prng.next() % 4);                   // HopCount
    store_be16(&out.mad[16], static_cast<u16>(0x10 + prng.next() % 0x14));
    std::ranges::fill(out.mad.begin() + 32, out.mad.begin() + 36, u8{0xff});
    for (u32 hop = 1; hop < 4; ++hop) out.mad[128 + hop] = static_cast<u8>(prng.next() % 4);
    out.dlid = static_cast<u16>(prng.next() % 5);
    subnet_.send(other_, out, now_);
    u32 deliveries = 0;
    while (subnet_.poll_delivery()) ++deliveries;
    EXPECT_LE(deliveries, 2u) << i;  // an answer, and a trap 256 perhaps
    now_ = now_ + us(10);
    subnet_.on_timer(now_);
    while (subnet_.poll_delivery()) {
    }
  }
  EXPECT_EQ(subnet_.node(manager_.node).config.guid, kNodeGUID);
}

// The port's key is not the program's: nothing is read or written, and the manager hears of it.
TEST_F(SubnetTest, AFloodWithAWrongMKeyChangesNothing) {
  sweep();
  while (take()) {
  }
  ASSERT_EQ(set_port(0, {1, 2},
                     {{port_info::kLID, kOtherLID},
                      {port_info::kMasterSMLID, kManagerLID},
                      {port_info::kMKey, 0x1234},
                      {port_info::kMKeyProtectBits, 2}}),
            0);
  u32 traps = 0;
  for (u32 i = 0; i < 1000; ++i) {
    Attribute data{};
    put(data, port_info::kLID, 77);
    const auto answer = ask(MADMethod::kSet, SMPAttribute::kPortInfo, 0, {1, 2}, data, 0x9999);
    if (answer && answer->mad[3] == static_cast<u8>(MADMethod::kTrap)) ++traps;
    while (take()) {
    }
  }
  EXPECT_EQ(traps, 1u);
  EXPECT_EQ(subnet_.port(other_).lid(), kOtherLID);
  EXPECT_EQ(subnet_.port(other_)[port_info::kMKeyViolations], 1000u);
}

TEST(ComponentTest, BitsLieWhereTheStandardCountsThem) {
  std::array<u8, 8> data{};
  put(data, {4, 4}, 0xa);
  put(data, {12, 12}, 0xbcd);
  EXPECT_THAT(data, ElementsAreArray<u8>({0x0a, 0x0b, 0xcd, 0, 0, 0, 0, 0}));
  EXPECT_EQ(get(data, {4, 4}), 0xau);
  EXPECT_EQ(get(data, {12, 12}), 0xbcdu);
  put(data, {0, 64}, 0x0102030405060708);
  EXPECT_EQ(get(data, {0, 64}), 0x0102030405060708u);
}

}  // namespace
}  // namespace verbena::management
