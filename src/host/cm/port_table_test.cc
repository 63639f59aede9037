#include "host/cm/port_table.h"

#include <gmock/gmock.h>

namespace verbena::host {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr GID kHere = GID::from_ipv4(0x0a000001), kThere = GID::from_ipv4(0x0a000002);
const GID kIPv6 = *GID::parse("2001:db8::1");

ServiceId tcp(u16 port) { return service_id_of({.space = PortSpace::kTCP, .port = port}); }

PortRecord bound(const GID& address, u16 port, u64 owner, ListenFamily family,
                 u32 slot = 1) {
  return {.address = address,
          .service = tcp(port),
          .owner = owner,
          .slot = slot,
          .family = family};
}
PortRecord at(const GID& address, u64 owner = 2) {
  return bound(address, 7000, owner,
               address.is_ipv4() ? ListenFamily::kIPv4 : ListenFamily::kIPv6);
}
PortRecord any(ListenFamily family, u64 owner = 2) { return bound({}, 7000, owner, family); }

bool collide(const PortRecord& first, PortRecord second) {
  second.owner = first.owner + 1;
  const PortTable table({first});
  return table.find_conflict(second) != nullptr;
}

TEST(PortTableTest, AnAddressCollidesWithItselfAndWithAny) {
  EXPECT_TRUE(collide(at(kHere), at(kHere)));
  EXPECT_FALSE(collide(at(kHere), at(kThere)));
  EXPECT_TRUE(collide(at(kHere), any(ListenFamily::kIPv4)));
  EXPECT_TRUE(collide(any(ListenFamily::kIPv4), at(kHere)));
  EXPECT_TRUE(collide(any(ListenFamily::kIPv4), any(ListenFamily::kIPv4)));
}

TEST(PortTableTest, FamiliesAreApartUnlessOneTakesBoth) {
  EXPECT_FALSE(collide(at(kIPv6), any(ListenFamily::kIPv4)));
  EXPECT_FALSE(collide(any(ListenFamily::kIPv6), any(ListenFamily::kIPv4)));
  EXPECT_TRUE(collide(any(ListenFamily::kAny), any(ListenFamily::kIPv4)));
  EXPECT_TRUE(collide(any(ListenFamily::kAny), at(kIPv6)));
  EXPECT_TRUE(collide(at(kHere), any(ListenFamily::kAny)));
}

TEST(PortTableTest, PortSpacesAndPortsAreApart) {
  PortRecord other = at(kHere);
  other.service = service_id_of({.space = PortSpace::kUDP, .port = 7000});
  EXPECT_FALSE(collide(at(kHere), other));
  other.service = tcp(7001);
  EXPECT_FALSE(collide(at(kHere), other));
}

TEST(PortTableTest, ReusableOnesDoNotCollideUntilOneListens) {
  PortRecord one = at(kHere, 1), two = at(kHere, 2);
  one.reusable = true;
  EXPECT_TRUE(collide(one, two));
  two.reusable = true;
  EXPECT_FALSE(collide(one, two));
  PortTable table({one, two});
  EXPECT_NE(table.find_listen_conflict(1), nullptr);
  table.release(2);
  EXPECT_EQ(table.find_listen_conflict(1), nullptr);
}

TEST(PortTableTest, FreePortsAreThoseThatNobodyHasInTheSpace) {
  PortTable table;
  for (u32 i = 0; i < PortTable::kMaxRecords; ++i)
    ASSERT_TRUE(table.add(bound(kHere, static_cast<u16>(PortTable::kFirstEphemeral + i), i,
                                ListenFamily::kIPv4)));
  EXPECT_FALSE(table.add(at(kHere))) << "bounded";
  EXPECT_EQ(table.find_free(PortSpace::kTCP, 0), PortTable::kFirstEphemeral + 16384);
  PortTable small({bound(kHere, PortTable::kFirstEphemeral, 1, ListenFamily::kIPv4)});
  EXPECT_EQ(small.find_free(PortSpace::kTCP, 0), PortTable::kFirstEphemeral + 1);
  EXPECT_EQ(small.find_free(PortSpace::kUDP, 0), PortTable::kFirstEphemeral);
  constexpr u64 kPorts = PortTable::kLastEphemeral - PortTable::kFirstEphemeral + 1;
  EXPECT_EQ(small.find_free(PortSpace::kTCP, kPorts - 1), PortTable::kLastEphemeral);
}

TEST(PortTableTest, ListenersAreFoundTheParticularOnesFirst) {
  PortTable table({bound({}, 7000, 1, ListenFamily::kIPv4, 10),
                   bound(kHere, 7000, 2, ListenFamily::kIPv4, 20),
                   bound({}, 7000, 3, ListenFamily::kIPv6, 30)});
  EXPECT_THAT(table.listeners(tcp(7000), kHere), IsEmpty()) << "bound only";
  for (const u64 owner : {1u, 2u, 3u}) table.set_listening(owner);
  EXPECT_THAT(table.listeners(tcp(7000), kHere), ElementsAre(20, 10));
  EXPECT_THAT(table.listeners(tcp(7000), kThere), ElementsAre(10));
  EXPECT_THAT(table.listeners(tcp(7000), kIPv6), ElementsAre(30));
  EXPECT_THAT(table.listeners(tcp(7001), kHere), IsEmpty());
}

TEST(PortTableTest, AProcessIsForgottenWithAllItHad) {
  PortTable table({bound({}, 7000, 1, ListenFamily::kIPv4, 10),
                   bound({}, 7001, 2, ListenFamily::kIPv4, 20),
                   bound({}, 7002, 3, ListenFamily::kIPv4, 10)});
  EXPECT_THAT(table.slots(), ElementsAre(10, 20));
  table.forget(10);
  EXPECT_THAT(table.slots(), ElementsAre(20));
}

}  // namespace
}  // namespace verbena::host
