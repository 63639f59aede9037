#include "connect/connection_table.h"

#include <gtest/gtest.h>

namespace verbena {
namespace {

const GID kPeer = *GID::parse("10.0.0.2");
constexpr Time at(i64 s) { return Time() + sec(s); }

TEST(ConnectionTableTest, FindsByEachKey) {
  ConnectionTable table(4);
  CMConnection& c = table.add(CommId{7});
  EXPECT_EQ(table.find(CommId{7}), &c);
  EXPECT_EQ(table.find(CommId{8}), nullptr);

  c.remote_gid = kPeer;
  c.remote_id = CommId{9};
  c.remote_ca_guid = GUID{3};
  c.remote_qpn = QPN{4};
  EXPECT_EQ(table.find_remote(kPeer, CommId{9}), nullptr);  // not indexed yet
  table.index_remote(c);
  table.index_qp(c);
  EXPECT_EQ(table.find_remote(kPeer, CommId{9}), &c);
  EXPECT_EQ(table.find_remote(GID{}, CommId{9}), nullptr);
  EXPECT_EQ(table.find_qp(kPeer, GUID{3}, QPN{4}), &c);
  EXPECT_EQ(table.find_qp(kPeer, GUID{3}, QPN{5}), nullptr);
  EXPECT_EQ(table.find_qp(kPeer, GUID{2}, QPN{4}), nullptr);
  table.unindex_qp(c);
  EXPECT_EQ(table.find_qp(kPeer, GUID{3}, QPN{4}), nullptr);

  table.remove(c);
  EXPECT_EQ(table.size(), 0u);
  EXPECT_EQ(table.find_remote(kPeer, CommId{9}), nullptr);
}

TEST(ConnectionTableTest, DeadlinesComeInOrder) {
  ConnectionTable table(4);
  CMConnection& a = table.add(CommId{1});
  CMConnection& b = table.add(CommId{2});
  EXPECT_EQ(table.next_deadline(), Time::never());
  table.arm(a, at(5));
  table.linger(b, at(3));
  EXPECT_EQ(table.next_deadline(), at(3));
  EXPECT_EQ(table.first_due(at(2)), nullptr);
  EXPECT_EQ(table.first_due(at(3)), &b);
  table.arm(a, at(1));  // replaces the other
  EXPECT_EQ(table.first_due(at(1)), &a);
  table.disarm(a);
  EXPECT_EQ(table.next_deadline(), at(3));
}

TEST(ConnectionTableTest, OnlyTheLingeringMayBeEvicted) {
  ConnectionTable table(3);
  table.arm(table.add(CommId{1}), at(1));
  EXPECT_EQ(table.first_lingering(), nullptr);
  CMConnection& late = table.add(CommId{2});
  CMConnection& soon = table.add(CommId{3});
  table.linger(late, at(9));
  table.linger(soon, at(8));
  EXPECT_TRUE(table.full());
  EXPECT_EQ(table.first_lingering(), &soon);
  table.remove(soon);
  EXPECT_EQ(table.first_lingering(), &late);
  table.arm(late, at(9));  // alive again
  EXPECT_EQ(table.first_lingering(), nullptr);
}

}  // namespace
}  // namespace verbena
