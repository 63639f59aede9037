#include "cli/stats_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <regex>
#include <set>
#include <sstream>

#include "cli/prometheus.h"
#include "cli/top_screen.h"

namespace verbena::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

host::QPSnapshot qp(u32 number, const char* peer, u64 packets) {
  host::QPSnapshot snapshot;
  snapshot.qpn = QPN{number};
  snapshot.state = QPState::kRTS;
  snapshot.dest_qpn = QPN{0x9001};
  if (peer != nullptr) snapshot.peer = *GID::parse(peer);
  if (peer == nullptr) snapshot.type = QPType::kUD;
  snapshot.traffic = {.sent_packets = packets,
                      .sent_bytes = packets * 1000,
                      .received_packets = 1,
                      .received_bytes = 16};
  snapshot.transport.retransmitted_packets = 2;
  return snapshot;
}

DeviceStats device(u64 packets, i64 taken_ns) {
  DeviceStats stats;
  stats.command = "ib_write_bw";
  stats.observed.pid = 4711;
  stats.observed.name = {.user = 1000, .slot = 5};
  stats.observed.adapter.device = host::snapshot_name("verbena0");
  stats.observed.adapter.interface = host::snapshot_name("eth0");
  stats.observed.adapter.ipv4 = *GID::parse("10.0.0.1");
  stats.observed.adapter.qp_count = 3;
  stats.observed.adapter.taken_ns = taken_ns;
  stats.observed.adapter.counters.port_xmit_packets = packets;
  stats.observed.qps = {qp(0x4001, "10.0.0.2", packets), qp(0x4002, "10.0.0.2", 7),
                        qp(0x4003, nullptr, 0)};
  return stats;
}

TEST(StatsReportTest, SubsystemsOfATargetHaveALineEach) {
  StatsReport report{device(5, 0)};
  EXPECT_THAT(to_text(report, nullptr), Not(HasSubstr("NVMe")));
  EXPECT_FALSE(nlohmann::json::parse(to_json(report, -1))[0].contains("nvme_subsystems"));
  report[0].subsystems = {{"nqn.a", {1, 2, 4096, 8192, 3}, 4}};
  EXPECT_THAT(to_text(report, nullptr), HasSubstr("  nqn.a "));
  const auto json = nlohmann::json::parse(to_json(report, -1))[0]["nvme_subsystems"][0];
  EXPECT_EQ(json["nqn"], "nqn.a");
  EXPECT_EQ(json["bytes_written"], 8192);
  EXPECT_EQ(json["hosts"], 4);
  EXPECT_THAT(to_prometheus(report), HasSubstr(R"(subsystem="nqn.a"} 4096)"));
}

TEST(StatsReportTest, PeersAreSums) {
  const std::vector<PeerStats> peers = peers_of(device(5, 0).observed.qps);
  ASSERT_EQ(peers.size(), 1u);  // a datagram QP has none
  EXPECT_EQ(peers[0].qp_count, 2u);
  EXPECT_EQ(peers[0].traffic.sent_packets, 12u);
  EXPECT_EQ(peers[0].transport.retransmitted_packets, 4u);
}

TEST(StatsReportTest, Text) {
  EXPECT_EQ(to_text({}, nullptr), "no running program uses Verbena\n");
  const std::string text = to_text({device(5, 0)}, nullptr);
  EXPECT_THAT(text, StartsWith("verbena0  eth0  10.0.0.1  process 4711 (ib_write_bw)\n"));
  EXPECT_THAT(text, HasSubstr("  counters\n"));
  EXPECT_THAT(text, HasSubstr("  hw_counters\n"));
  EXPECT_THAT(text, HasSubstr("0x004001  RC      RTS   10.0.0.2 0x009001"));
  EXPECT_THAT(text, Not(HasSubstr("/s")));
}

TEST(StatsReportTest, RatesSinceTheReportBefore) {
  const StatsReport before = {device(100, 0)};
  const std::string text = to_text({device(300, 2'000'000'000)}, &before);
  EXPECT_TRUE(std::regex_search(text, std::regex("port_xmit_packets +300 +100\\.0/s"))) << text;
}

TEST(StatsReportTest, AnotherProcessHasNoRates) {
  StatsReport before = {device(100, 0)};
  before[0].observed.pid = 1;
  EXPECT_THAT(to_text({device(300, 2'000'000'000)}, &before), Not(HasSubstr("/s")));
}

// A QP whose counters have gone back is another one with the number of a QP that is gone.
TEST(StatsReportTest, AQPWithASmallerCountIsAnotherOne) {
  const DeviceStats before = device(100, 0);
  const auto sent_before = [&](const host::QPSnapshot& now) {
    return find_same(&before, now).traffic.sent_packets;
  };
  host::QPSnapshot now = qp(0x4001, "10.0.0.2", 100);
  EXPECT_EQ(sent_before(now), 100u);
  EXPECT_EQ(sent_before(qp(0x4001, "10.0.0.2", 99)), 0u);
  now.traffic.received_packets = 0;
  EXPECT_EQ(sent_before(now), 0u);
  EXPECT_EQ(sent_before(qp(0x4004, "10.0.0.2", 100)), 0u);
  EXPECT_EQ(find_same(nullptr, now).traffic.sent_packets, 0u);
}

TEST(StatsReportTest, JSON) {
  const auto json = nlohmann::json::parse(to_json({device(5, 0)}, 2));
  ASSERT_EQ(json.size(), 1u);
  EXPECT_EQ(json[0]["pid"], 4711);
  EXPECT_EQ(json[0]["addresses"], nlohmann::json::array({"10.0.0.1"}));
  EXPECT_EQ(json[0]["counters"]["port_xmit_packets"], 5);
  EXPECT_EQ(json[0]["hw_counters"]["rnr_nak_retry_err"], 0);
  EXPECT_EQ(json[0]["qps"][0]["qpn"], 0x4001);
  EXPECT_EQ(json[0]["qps"][0]["peer"], "10.0.0.2");
  EXPECT_FALSE(json[0]["qps"][2].contains("peer"));
  EXPECT_EQ(json[0]["peers"][0]["sent_packets"], 12);
  EXPECT_EQ(to_json({}, 2), "[]\n");
  const std::string line = to_json({device(5, 0)}, -1);
  EXPECT_EQ(line.find('\n'), line.size() - 1);
}

TEST(PrometheusTest, EveryLineIsOne) {
  DeviceStats odd = device(5, 0);
  odd.command = "a\"b\\c";
  std::istringstream lines(to_prometheus({device(5, 0), odd}));
  const std::regex comment("# (HELP|TYPE) verbena_[a-zA-Z0-9_]+ .+");
  const std::regex sample(
      R"re((verbena_[a-zA-Z0-9_]+)(\{([a-z]+="([^"\\]|\\["\\n])*",?)*\})? [0-9]+)re");
  std::set<std::string> seen;
  std::string line, last;
  std::smatch match;
  while (std::getline(lines, line)) {
    if (std::regex_match(line, comment)) continue;
    ASSERT_TRUE(std::regex_match(line, match, sample)) << line;
    EXPECT_TRUE(match[1] == last || seen.insert(match[1]).second) << "not together: " << line;
    last = match[1];
  }
  EXPECT_TRUE(seen.contains("verbena_port_xmit_packets_total"));
  EXPECT_TRUE(seen.contains("verbena_qp_sent_bytes_total"));
  EXPECT_TRUE(seen.contains("verbena_peer_retransmitted_packets_total"));
}

TEST(PrometheusTest, LinesAreBounded) {
  DeviceStats many = device(5, 0);
  many.observed.qps.assign(kMaxQPs + 10, qp(0x4001, "10.0.0.2", 1));
  const std::string text = to_prometheus({many});
  std::size_t count = 0;
  for (std::size_t at = 0; (at = text.find("\nverbena_qp_sent_bytes_total{", at)) != text.npos;
       ++at)
    ++count;
  EXPECT_EQ(count, kMaxQPs);
}

TEST(PrometheusTest, NothingRuns) {
  EXPECT_THAT(to_prometheus({}), HasSubstr("verbena_devices 0\n"));
}

TEST(TopScreenTest, ShortNumbers) {
  EXPECT_EQ(short_number(0), "0");
  EXPECT_EQ(short_number(999), "999");
  EXPECT_EQ(short_number(1000), "1.00K");
  EXPECT_EQ(short_number(12'345), "12.3K");
  EXPECT_EQ(short_number(999'999), "1.00M");
  EXPECT_EQ(short_number(2.5e9), "2.50G");
}

TEST(TopScreenTest, TheBusiestFirstAndNoMoreThanFits) {
  const StatsReport before = {device(100, 0)};
  StatsReport now = {device(100, 1'000'000'000)};
  now[0].observed.qps[1].traffic.sent_packets += 50;
  now[0].observed.qps[1].traffic.sent_bytes += 50'000;
  const std::string all = top_screen(now, &before, nullptr);
  EXPECT_THAT(all, HasSubstr("1 device, 3 QPs, 50.0KB/s"));
  EXPECT_LT(all.find("0x004002"), all.find("0x004001"));
  EXPECT_THAT(all, HasSubstr("50.0K"));

  const ScreenSize small{.columns = 20, .rows = 3};
  std::istringstream lines(top_screen(now, &before, &small));
  std::size_t count = 0;
  for (std::string line; std::getline(lines, line); ++count) EXPECT_LE(line.size(), 20u);
  EXPECT_EQ(count, 3u);
}

}  // namespace
}  // namespace verbena::cli
