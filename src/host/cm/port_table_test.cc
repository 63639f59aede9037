#include "host/cm/port_table.h"

#include <gmock/gmock.h>

namespace verbena::host {
namespace {

using ::testing::ElementsAre;

constexpr GID kHost = GID::from_ipv4(0x0a000001), kOtherHost = GID::from_ipv4(0x0a000002);

ServiceId tcp(u16 port) { return service_id_of({.space = PortSpace::kTCP, .port = port}); }

PortRecord bound(const GID& address, u16 port, u64 owner, u32 slot = 1) {
  return {.address = address, .service = tcp(port), .owner = owner, .slot = slot};
}
PortRecord at(const GID& address, u64 owner = 2) { return bound(address, 7000, owner); }

bool collide(const PortRecord& first, PortRecord second) {
  second.owner = first.owner + 1;
  return PortTable({first}).is_taken(second);
}

TEST(PortTableTest, AnAddressCollidesWithItself) {
  EXPECT_TRUE(collide(at(kHost), at(kHost)));
  EXPECT_FALSE(collide(at(kHost), at(kOtherHost)));
  EXPECT_FALSE(PortTable({at(kHost, 2)}).is_taken(at(kHost, 2))) << "one's own";
}

TEST(PortTableTest, PortSpacesAndPortsAreApart) {
  PortRecord other = at(kHost);
  other.service = service_id_of({.space = PortSpace::kUDP, .port = 7000});
  EXPECT_FALSE(collide(at(kHost), other));
  other.service = tcp(7001);
  EXPECT_FALSE(collide(at(kHost), other));
}

TEST(PortTableTest, ReusableOnesDoNotCollideUntilOneListens) {
  PortRecord one = at(kHost, 1), two = at(kHost, 2);
  one.reusable = true;
  EXPECT_TRUE(collide(one, two));
  two.reusable = true;
  EXPECT_FALSE(collide(one, two));
  PortTable table({one, two});
  EXPECT_TRUE(table.is_shared(1));
  table.release(2);
  EXPECT_FALSE(table.is_shared(1));
}

TEST(PortTableTest, FreePortsAreThoseThatNobodyHasInTheSpace) {
  PortTable table;
  for (u32 i = 0; i < PortTable::kMaxRecords; ++i)
    ASSERT_TRUE(table.add(bound(kHost, static_cast<u16>(PortTable::kFirstEphemeral + i), i)));
  EXPECT_FALSE(table.add(at(kHost))) << "bounded";
  EXPECT_EQ(table.find_free(PortSpace::kTCP, 0), PortTable::kFirstEphemeral + 16384);
  PortTable small({bound(kHost, PortTable::kFirstEphemeral, 1)});
  EXPECT_EQ(small.find_free(PortSpace::kTCP, 0), PortTable::kFirstEphemeral + 1);
  EXPECT_EQ(small.find_free(PortSpace::kUDP, 0), PortTable::kFirstEphemeral);
  constexpr u64 kPorts = PortTable::kLastEphemeral - PortTable::kFirstEphemeral + 1;
  EXPECT_EQ(small.find_free(PortSpace::kTCP, kPorts - 1), PortTable::kLastEphemeral);
}

TEST(PortTableTest, ListenersAreFoundByAddressAndPort) {
  PortTable table({bound(kHost, 7000, 1, 10), bound(kOtherHost, 7000, 2, 20)});
  EXPECT_EQ(table.listener(tcp(7000), kHost), std::nullopt) << "bound only";
  table.set_listening(1);
  EXPECT_EQ(table.listener(tcp(7000), kHost), 10u);
  EXPECT_EQ(table.listener(tcp(7000), kOtherHost), std::nullopt);
  table.set_listening(2);
  EXPECT_EQ(table.listener(tcp(7000), kOtherHost), 20u);
  EXPECT_EQ(table.listener(tcp(7001), kHost), std::nullopt);
}

TEST(PortTableTest, AProcessIsForgottenWithAllItHad) {
  PortTable table(
      {bound(kHost, 7000, 1, 10), bound(kHost, 7001, 2, 20), bound(kOtherHost, 7002, 3, 10)});
  EXPECT_THAT(table.slots(), ElementsAre(10, 20));
  EXPECT_THAT(table.slots_at(kOtherHost), ElementsAre(10));
  table.forget(10);
  EXPECT_THAT(table.slots(), ElementsAre(20));
}

}  // namespace
}  // namespace verbena::host
