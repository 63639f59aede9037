#include "device/port/counter_table.h"

#include <gtest/gtest.h>

#include <optional>
#include <set>

namespace verbena {
namespace {

u64 value_of(std::string_view name, const Counters& counters) {
  std::optional<u64> found;
  for_each_counter(counters, [&](std::string_view other, auto, auto, u64 value) {
    if (other == name) found = value;
  });
  EXPECT_TRUE(found.has_value()) << name;
  return found.value_or(0);
}

TEST(CounterTableTest, NoNameTwice) {
  std::set<std::string_view> names;
  for_each_counter({}, [&](std::string_view name, auto, auto, u64) {
    EXPECT_TRUE(names.insert(name).second) << name;
  });
  EXPECT_GT(names.size(), 40u);
}

TEST(CounterTableTest, DataIsInWords) {
  Counters counters;
  counters.port_xmit_bytes = 4096;
  counters.port_rcv_bytes = 400;
  EXPECT_EQ(value_of("port_xmit_data", counters), 1024u);
  EXPECT_EQ(value_of("port_rcv_data", counters), 100u);
}

TEST(CounterTableTest, TransportsAreAmongThem) {
  Counters counters;
  counters.transport.retransmitted_packets = 3;
  counters.transport.rnr_nak_retry_err = 4;
  counters.dropped_p_key = 5;
  EXPECT_EQ(value_of("retransmitted_packets", counters), 3u);
  EXPECT_EQ(value_of("rnr_nak_retry_err", counters), 4u);
  EXPECT_EQ(value_of("dropped_p_key", counters), 5u);
  EXPECT_EQ(value_of("symbol_error", counters), 0u);
}

}  // namespace
}  // namespace verbena
