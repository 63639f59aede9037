#include "device/qp/qp_table.h"

#include <gtest/gtest.h>

#include <set>

namespace verbena {
namespace {

QueuePair* create(QPTable& table) {
  const std::optional<QPN> qpn = table.next_number();
  if (!qpn.has_value()) return nullptr;
  QPAttributes attributes;
  attributes.qpn = *qpn;
  return table.insert(std::make_unique<QueuePair>(QPInit{}, attributes));
}

TEST(QPTableTest, FindsByNumber) {
  QPTable table(QPN{0x100}, 4);
  QueuePair* const a = create(table);
  QueuePair* const b = create(table);
  EXPECT_EQ(table.find(QPN{0x100}), a);
  EXPECT_EQ(table.find(QPN{0x101}), b);
  for (const u32 other : {0u, 1u, 0xffu, 0x102u, 0x104u, 0xffffffu, 0xffffffffu})
    EXPECT_EQ(table.find(QPN{other}), nullptr) << other;
}

TEST(QPTableTest, DrawnNumbersAreUniqueAndInRange) {
  QPTable table(QPN{0x4001}, 100, 7);
  std::set<u32> numbers;
  u32 in_order = 0, last = 0;
  while (const QueuePair* const qp = create(table)) {
    const u32 number = qp->attributes.qpn.value;
    EXPECT_TRUE(numbers.insert(number).second);
    EXPECT_TRUE(number >= 0x4001 && number < 0x4001 + 100);
    in_order += number == last + 1;
    last = number;
  }
  EXPECT_EQ(numbers.size(), 100u);
  EXPECT_LT(in_order, 50u);
}

TEST(QPTableTest, FindsTheNextOne) {
  QPTable table(QPN{0x100}, 8);
  EXPECT_EQ(table.find_from(QPN{0}), nullptr);
  QueuePair* const a = create(table);
  table.erase(create(table));
  QueuePair* const c = create(table);
  EXPECT_EQ(table.find_from(QPN{0}), a);
  EXPECT_EQ(table.find_from(QPN{0x100}), a);
  EXPECT_EQ(table.find_from(QPN{0x101}), c);
  EXPECT_EQ(table.find_from(QPN{0x103}), nullptr);
  EXPECT_EQ(table.find_from(QPN{0xffffffff}), nullptr);
}

TEST(QPTableTest, AFreedNumberComesBackLast) {
  QPTable table(QPN{0x100}, 4);
  table.erase(create(table));  // 0x100
  for (const u32 expected : {0x101u, 0x102u, 0x103u, 0x100u})
    EXPECT_EQ(create(table)->attributes.qpn, QPN{expected});
  EXPECT_EQ(create(table), nullptr);
  table.erase(table.find(QPN{0x102}));
  EXPECT_EQ(table.find(QPN{0x102}), nullptr);
  EXPECT_EQ(create(table)->attributes.qpn, QPN{0x102});
  EXPECT_EQ(table.size(), 4u);
}

TEST(QPTableTest, VisitsEachOnce) {
  QPTable table(QPN{0x100}, 8);
  std::set<QueuePair*> expected;
  for (int i = 0; i < 8; ++i) expected.insert(create(table));
  QueuePair* const gone = *expected.begin();
  expected.erase(gone);
  table.erase(gone);
  std::set<QueuePair*> seen;
  table.for_each([&](QueuePair& qp) { EXPECT_TRUE(seen.insert(&qp).second); });
  EXPECT_EQ(seen, expected);
}

}  // namespace
}  // namespace verbena
