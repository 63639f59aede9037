#include "jobs/plan/bill.h"

#include <gtest/gtest.h>

#include "fabric/topologies/rail_optimized.h"
#include "fabric/topologies/star.h"

namespace verbena::jobs {
namespace {

using fabric::Technology;

u64 count_of(const Bill& bill, std::string_view what) {
  for (const BillItem& item : bill.items)
    if (item.what == what) return item.count;
  return 0;
}

TEST(Catalogue, RangesAreRangesWithSources) {
  const auto is_good = [](Range range) { return range.low >= 0 && range.low <= range.high; };
  for (const NICModel& nic : nic_models()) {
    EXPECT_TRUE(is_good(nic.dollars) && nic.dollars.low > 0 && is_good(nic.watts)) << nic.name;
    EXPECT_FALSE(nic.dollars_source.empty() || nic.watts_source.empty()) << nic.name;
    EXPECT_NE(nic.year, 0u) << nic.name;
  }
  for (const SwitchModel& model : switch_models()) {
    EXPECT_TRUE(is_good(model.dollars) && model.dollars.low > 0) << model.name;
    EXPECT_FALSE(model.dollars_source.empty() || model.watts_source.empty()) << model.name;
    EXPECT_GE(model.most_ports, model.ports) << model.name;
  }
  for (const CableModel& cable : cable_models()) {
    EXPECT_TRUE(is_good(cable.dollars) && is_good(cable.watts)) << cable.name;
    EXPECT_FALSE(cable.source.empty()) << cable.name;
  }
}

TEST(Bill, CountsWhatIsDrawn) {
  const fabric::LinkConfig link{.rate = gbps(400), .delay = ns(500)};
  const fabric::Plan plan =
      fabric::rail_optimized({.nodes = 4, .rails = 8, .groups = 1, .spines = 4}, {link, link});
  const Bill bill = bill_of({.plan = plan, .technology = Technology::kInfiniBand});
  EXPECT_TRUE(bill.can_be_had()) << bill.shortfall;
  EXPECT_EQ(count_of(bill, "ConnectX-7"), 32u);
  EXPECT_EQ(count_of(bill, "Quantum-2 QM9700"), 12u);
  EXPECT_EQ(count_of(bill, "two NDR modules and fibre"), 32u + 32);
  Range dollars;
  for (const BillItem& item : bill.items) dollars += item.dollars;
  EXPECT_DOUBLE_EQ(bill.dollars.low, dollars.low);
  EXPECT_DOUBLE_EQ(dollars.low, 32 * 1200 + 12 * 25'000 + 64 * 900);
}

TEST(Bill, SaysWhatCannotBeHad) {
  const fabric::Plan plan = fabric::star(8, {.rate = gbps(400), .delay = ns(10)});
  const Bill bill = bill_of({.plan = plan, .technology = Technology::kIWARP});
  EXPECT_FALSE(bill.can_be_had());
  EXPECT_NE(bill.shortfall.find("iwarp at 400 Gb/s"), std::string::npos) << bill.shortfall;
  EXPECT_EQ(count_of(bill, "Intel E810-CQDA2"), 4u * 8);  // as fast as one of 400 Gb/s
  EXPECT_EQ(count_of(bill, "copper, 400 Gb/s"), 8u);      // 2 m
  const fabric::Plan slower = fabric::star(8, {.rate = gbps(100), .delay = ns(10)});
  EXPECT_TRUE(bill_of({.plan = slower, .technology = Technology::kIWARP}).can_be_had());
}

// A link faster than any cable that is sold takes several cables, which carry its rate together.
TEST(Bill, FastLinksTakeSeveralCables) {
  const fabric::Plan plan = fabric::star(3, {.rate = gbps(3200), .delay = ns(10)});
  const Bill bill = bill_of({.plan = plan, .technology = Technology::kInfiniBand});
  u64 bps = 0;
  for (const CableModel& cable : cable_models())
    bps += count_of(bill, cable.name) * cable.rate.bps();
  EXPECT_EQ(bps, 3 * gbps(3200).bps());
}

// A switch with more ports than any that is sold is a leaf and spine network of such.
TEST(Bill, LargeSwitchesAreSeveralBoxes) {
  const auto switches = [](u32 hosts) {
    const fabric::Plan plan = fabric::star(hosts, {.rate = gbps(400), .delay = ns(10)});
    return count_of(bill_of({.plan = plan, .technology = Technology::kInfiniBand}),
                    "Quantum-2 QM9700");
  };
  EXPECT_EQ(switches(64), 1u);
  EXPECT_EQ(switches(128), 6u);  // 4 leaves with 32 ports down and up each, 2 spines
}

TEST(Bill, PresetsHaveTheirParts) {
  const fabric::Plan plan = fabric::star(8, {.rate = gbps(400), .delay = ns(450)});
  const Preset* const preset = preset_named("spectrum_x");
  const Bill bill = bill_of({.plan = plan, .preset = preset});
  EXPECT_EQ(count_of(bill, "BlueField-3"), 8u);
  EXPECT_EQ(count_of(bill, "Spectrum-4 SN5600"), 1u);
  EXPECT_EQ(
      count_of(bill_of({.plan = plan, .technology = Technology::kInfiniBand, .preset = preset}),
               "Quantum-2 QM9700"),
      1u);
}

TEST(Bill, ADelayIsALength) {
  EXPECT_EQ(metres_of(ns(500)), 100u);
  EXPECT_EQ(metres_of(ps(1)), 1u);
  EXPECT_EQ(metres_of({}), 0u);
}

}  // namespace
}  // namespace verbena::jobs
