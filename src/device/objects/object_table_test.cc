#include "device/objects/object_table.h"

#include <gtest/gtest.h>

namespace verbena {
namespace {

struct Thing {
  Thing(u32 s, int v) : slot(s), value(v) {}
  u32 table_slot() const { return slot; }
  u32 slot;
  int value;
};

TEST(ObjectTableTest, HoldsUpToItsLimitAndReusesSlots) {
  ObjectTable<Thing> table(2);
  Thing* const a = table.create(1);
  Thing* const b = table.create(2);
  EXPECT_EQ(table.create(3), nullptr);
  table.destroy(a);
  EXPECT_EQ(table.size(), 1u);
  const Thing* const c = table.create(4);
  ASSERT_NE(c, nullptr);
  EXPECT_EQ(c->slot, 0u);
  EXPECT_EQ(b->value, 2);  // stayed where it is
  EXPECT_EQ(table.size(), 2u);
}

TEST(ObjectTableTest, PointersSurviveGrowth) {
  ObjectTable<Thing> table(1000);
  const Thing* const first = table.create(-1);
  for (int i = 0; i < 999; ++i) EXPECT_NE(table.create(i), nullptr);
  EXPECT_EQ(first->value, -1);
}

}  // namespace
}  // namespace verbena
