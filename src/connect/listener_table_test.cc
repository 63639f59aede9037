#include "connect/listener_table.h"

#include <gtest/gtest.h>

#include "connect/cm_test_host.h"

namespace verbena {
namespace {

using test::kService;

const GID kIPv4 = *GID::parse("10.77.0.2");
const GID kIPv6 = *GID::parse("fe80::1");

ListenerId id_of(const Listener* listener) { return listener ? listener->id : ListenerId{}; }

TEST(ListenerTableTest, OnlyTheServiceIDAskedFor) {
  ListenerTable table(4);
  const ListenerId id = *table.add({.service_id = kService});
  EXPECT_EQ(id_of(table.find(kService, kIPv4)), id);
  EXPECT_EQ(id_of(table.find(kService, kIPv6)), id);
  EXPECT_EQ(table.find(ServiceId{kService.value + 1}, kIPv4), nullptr);
}

TEST(ListenerTableTest, AMaskServesARange) {
  ListenerTable table(4);
  const ListenerId range =
      *table.add({.service_id = kService, .service_mask = ServiceId{~u64{0xffff}}});
  const ListenerId exact = *table.add({.service_id = kService});
  EXPECT_EQ(id_of(table.find(ServiceId{0x1060001}, kIPv4)), range);
  EXPECT_EQ(id_of(table.find(kService, kIPv4)), exact);
  EXPECT_EQ(table.find(ServiceId{0x1110001}, kIPv4), nullptr);
}

TEST(ListenerTableTest, TheMostParticularOneServes) {
  ListenerTable table(4);
  const ListenerId any = *table.add({.service_id = kService});
  const ListenerId family = *table.add({.service_id = kService, .family = ListenFamily::kIPv4});
  const ListenerId exact = *table.add({.service_id = kService, .local_gid = kIPv4});
  EXPECT_EQ(id_of(table.find(kService, kIPv4)), exact);
  EXPECT_EQ(id_of(table.find(kService, *GID::parse("127.0.0.1"))), family);
  EXPECT_EQ(id_of(table.find(kService, kIPv6)), any);
}

TEST(ListenerTableTest, FamiliesDoNotMix) {
  ListenerTable table(4);
  const ListenerId ipv6 = *table.add({.service_id = kService, .family = ListenFamily::kIPv6});
  EXPECT_EQ(id_of(table.find(kService, kIPv6)), ipv6);
  EXPECT_EQ(table.find(kService, kIPv4), nullptr);
}

TEST(ListenerTableTest, OnePlaceOneListener) {
  ListenerTable table(4);
  ASSERT_TRUE(table.add({.service_id = kService, .local_gid = kIPv4}).has_value());
  EXPECT_EQ(table.add({.service_id = kService, .local_gid = kIPv4}), failure(Status::kBusy));
  EXPECT_TRUE(table.add({.service_id = kService}).has_value());
  EXPECT_TRUE(table.add({.service_id = kService, .local_gid = kIPv6}).has_value());
}

TEST(ListenerTableTest, IsBoundedAndGivesPlacesBack) {
  ListenerTable table(1);
  const ListenerId id = *table.add({.service_id = kService});
  EXPECT_EQ(table.add({.service_id = ServiceId{1}}), failure(Status::kNoMemory));
  EXPECT_EQ(table.remove(id), Status::kOk);
  EXPECT_EQ(table.remove(id), Status::kNotFound);
  EXPECT_EQ(table.find(id), nullptr);
  EXPECT_EQ(table.find(kService, kIPv4), nullptr);
  EXPECT_TRUE(table.add({.service_id = ServiceId{1}}).has_value());
}

}  // namespace
}  // namespace verbena
