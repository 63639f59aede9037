// Tests multicast on virtual functions: who receives what is sent to a group, and who may join.
#include <sys/socket.h>

#include "base/bytes.h"
#include "host/nic/nic_server_for_test.h"
#include "wire/ib/deth.h"

namespace verbena::host {
namespace {

class NICMulticastTest : public NICServerTest {
 protected:
  void SetUp() override {
    NICServerTest::SetUp();
    for (NICFunctionConfig& function : config_.functions) function.has_multicast = true;
  }
  static Expected<void> join(const Tenant& tenant, const GID& group) {
    return join_group_on_nic("test", tenant.attachment.socket, group);
  }
  static std::vector<u8> datagram_of(const Tenant& from, u16 p_key = 0x8001) {
    std::vector<u8> packet(BTH::kSize + DETH::kSize);
    BTH{.opcode = {Service::kUD, Op::kSendOnly}, .p_key = PKey{p_key}, .dest_qp = kMulticastQPN}
        .encode(std::span(packet).first<BTH::kSize>());
    DETH{.source_qp = QPN{from.qpn()}}.encode(
        std::span(packet).subspan<BTH::kSize>().first<DETH::kSize>());
    return packet;
  }
  void send_to_group(Tenant& from, const GID& group) {
    from.send({from.address, group}, datagram_of(from));
  }
  static bool receives_nothing(Tenant& tenant) {
    FrameRingReader::Record record;
    sleep_for(ms(20));
    return !tenant.reader.poll(record);
  }

  // The process ID keeps it apart from the groups of other tests.
  const GID group_ = GID::from_ipv4(0xef580000 | (static_cast<u32>(::getpid()) & 0x7fff) << 1);
  const GID other_group_ = GID::from_ipv4(group_.ipv4() | 1);
};

// The sender need not be a member.
TEST_F(NICMulticastTest, WhatIsSentToAGroupReachesItsMembersAlone) {
  start();
  const auto red = attach("red"), blue = attach("blue"), second = attach("red");
  for (const Tenant* const member : {blue.get(), second.get()})
    ASSERT_TRUE(join(*member, group_).has_value());
  send_to_group(*red, group_);
  for (Tenant* const member : {blue.get(), second.get()}) {
    FrameRingReader::Record record;
    ASSERT_TRUE(receives(*member, record));
    EXPECT_EQ(record.addresses.source, red->address);
    EXPECT_EQ(record.addresses.destination, group_);
    EXPECT_EQ(BTH::decode(record.body)->dest_qp, kMulticastQPN);
  }
  EXPECT_TRUE(receives_nothing(*red));
  send_to_group(*red, other_group_);
  EXPECT_EQ(counter("red", "sent_to_groups", 2), 2u);
  EXPECT_TRUE(receives_nothing(*blue));
  EXPECT_EQ(counter("blue", "received_from_groups", 1), 1u);
}

TEST_F(NICMulticastTest, AMemberThatLeavesOrEndsIsNoMember) {
  start();
  const auto red = attach("red"), blue = attach("blue");
  auto second = attach("blue");
  for (const Tenant* const member : {blue.get(), second.get()})
    for (u32 i = 0; i < 2; ++i) ASSERT_TRUE(join(*member, group_).has_value());  // once
  leave_group_on_nic(blue->attachment.socket, group_);
  EXPECT_TRUE(join(*blue, other_group_).has_value());  // when it is answered, the NIC has left
  send_to_group(*red, group_);
  FrameRingReader::Record record;
  EXPECT_TRUE(receives(*second, record));
  EXPECT_TRUE(receives_nothing(*blue));
  second.reset();
  EXPECT_EQ(counter("blue", "detached", 1), 1u);
  send_to_group(*red, group_);
  EXPECT_EQ(counter("red", "sent_to_groups", 2), 2u);
  EXPECT_EQ(counter("blue", "received_from_groups", 1), 1u);
  EXPECT_EQ(status_of_nic(path_)->find(group_.to_string()), std::string::npos);
}

TEST_F(NICMulticastTest, AProgramHasSoManyGroups) {
  config_.functions[0].max_groups = 1;
  start();
  const auto red = attach("red");
  EXPECT_EQ(red->attachment.attached.max_groups, 1u);
  ASSERT_TRUE(join(*red, group_).has_value());
  EXPECT_EQ(join(*red, other_group_).error().error, ENOMEM);
  leave_group_on_nic(red->attachment.socket, group_);
  EXPECT_TRUE(join(*red, other_group_).has_value());
  EXPECT_EQ(counter("red", "refused_joins", 1), 1u);
}

TEST_F(NICMulticastTest, AFunctionWithoutMulticastNeitherJoinsNorSends) {
  config_.functions[0].has_multicast = false;
  start();
  const auto red = attach("red");
  EXPECT_EQ(red->attachment.attached.max_groups, 0u);
  EXPECT_EQ(join(*red, group_).error().error, EOPNOTSUPP);
  EXPECT_EQ(counter("red", "refused_joins", 1), 1u);
  send_to_group(*red, group_);
  EXPECT_EQ(counter("red", "sent_refused_destination", 1), 1u);
}

// Nothing but datagrams to QP 0xffffff goes to a group, and an address is none.
TEST_F(NICMulticastTest, AGroupGetsNoOtherPackets) {
  start();
  const auto red = attach("red"), blue = attach("blue");
  EXPECT_EQ(join(*red, blue->address).error().error, EINVAL);
  red->send({red->address, group_}, packet_to(0xffffff, 0x8001));
  std::vector<u8> datagram = datagram_of(*red);
  store_be24(datagram.data() + BTH::kDestQPAt, blue->qpn());
  red->send({red->address, group_}, datagram);
  EXPECT_EQ(counter("red", "sent_refused_destination", 2), 2u);
}

TEST_F(NICMulticastTest, AMemberOfAnotherPartitionReceivesNothing) {
  config_.functions[1].p_keys = {0x8002};
  start();
  const auto red = attach("red"), blue = attach("blue");
  ASSERT_TRUE(join(*blue, group_).has_value());
  send_to_group(*red, group_);
  EXPECT_EQ(counter("blue", "received_refused_p_key", 1), 1u);
  EXPECT_TRUE(receives_nothing(*blue));
}

TEST_F(NICMulticastTest, MulticastEndsAndBeginsWhileProgramsStay) {
  start();
  const auto red = attach("red"), blue = attach("blue");
  ASSERT_TRUE(join(*blue, group_).has_value());
  FrameRingReader::Record record;
  for (const bool has_it : {false, true}) {
    config_.functions[1].has_multicast = has_it;
    reconfigure();
    ASSERT_TRUE(reloaded_.has_value()) << reloaded_.error().message;
    send_to_group(*red, group_);
    EXPECT_EQ(has_it ? receives(*blue, record) : !receives_nothing(*blue), has_it);
  }
}

// A program that writes other messages gets no answer, and keeps the NIC from no sleep.
TEST_F(NICMulticastTest, RubbishRequestsAreIgnored) {
  start();
  const auto red = attach("red");
  const int socket = red->attachment.socket.get();
  const std::vector<u8> rubbish(1000, 0xee);
  for (const std::size_t size : {std::size_t{1}, sizeof(NICGroupRequest), rubbish.size()})
    ASSERT_EQ(::send(socket, rubbish.data(), size, MSG_NOSIGNAL), static_cast<ssize_t>(size));
  const NICGroupRequest unknown{.request = static_cast<NICRequest>(99), .group = group_};
  ASSERT_EQ(::send(socket, &unknown, sizeof(unknown), MSG_NOSIGNAL), ssize_t{sizeof(unknown)});
  EXPECT_TRUE(join(*red, group_).has_value());
  EXPECT_LT(computes_in(ms(200)), ms(50));
  EXPECT_EQ(counter("red", "detached", 0), 0u);
}

}  // namespace
}  // namespace verbena::host
