#include "cli/sim_table.h"

#include <gtest/gtest.h>

namespace verbena::cli {
namespace {

const std::vector<SimColumn> kColumns = {{"kmin=50k", {{"pauses", "7"}, {"goodput", "99 Gb/s"}}},
                                         {"kmin=100k", {{"pauses", "12"}, {"goodput", "98 Gb/s"}}}};

TEST(SimTable, SideBySide) {
  EXPECT_EQ(table_text(kColumns, 80),
            "                      kmin=50k  kmin=100k\n"
            "pauses                       7         12\n"
            "goodput                99 Gb/s    98 Gb/s\n");
}

TEST(SimTable, WhatIsTooWideGoesBelow) {
  EXPECT_EQ(table_text(kColumns, 30),
            "                      kmin=50k\n"
            "pauses                       7\n"
            "goodput                99 Gb/s\n"
            "\n"
            "                      kmin=100k\n"
            "pauses                       12\n"
            "goodput                 98 Gb/s\n");
}

TEST(SimTable, CSV) {
  EXPECT_EQ(table_csv({{"a,\"b\"", {{"pauses", "7"}}}}), "run,pauses\n\"a,\"\"b\"\"\",7\n");
}

}  // namespace
}  // namespace verbena::cli
