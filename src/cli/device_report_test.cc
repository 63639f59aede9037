#include "cli/device_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace verbena::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

DeviceReport eth0() {
  DeviceReport report;
  report.address.device_name = "verbena0";
  report.address.interface = "eth0";
  report.address.mtu = 1500;
  report.address.ipv4 = GID::parse("10.77.0.2");
  report.address.node_guid = 0x0242acfffe110002;
  report.config.active_mtu = MTU::k1024;
  report.link = host::LinkKind::kPacket;
  report.config.gids = {{*report.address.ipv4, GIDType::kRoCEv1},
                        {*report.address.ipv4, GIDType::kRoCEv2}};
  return report;
}

TEST(DeviceReportTest, Text) {
  EXPECT_EQ(to_text({eth0()}),
            "verbena0\n"
            "  interface   eth0, MTU 1500\n"
            "  addresses   10.77.0.2\n"
            "  node GUID   0242:acff:fe11:0002\n"
            "  port 1      active, Ethernet, path MTU 1024\n"
            "  link        packet\n"
            "  UDP 4791    can be used\n"
            "  GIDs        0  RoCE v1  10.77.0.2\n"
            "              1  RoCE v2  10.77.0.2\n");
}

TEST(DeviceReportTest, ADeviceThatCannotBeOpenedSaysWhy) {
  DeviceReport report = eth0();
  report.problem = "UDP port 4791 is taken";
  EXPECT_THAT(to_text({report}), HasSubstr("port 1      down: UDP port 4791 is taken\n"));
  EXPECT_THAT(to_text({report}), Not(HasSubstr("GIDs")));
}

TEST(DeviceReportTest, JSON) {
  const auto devices = nlohmann::json::parse(to_json({eth0(), eth0()}));
  ASSERT_EQ(devices.size(), 2u);
  EXPECT_EQ(devices[0]["device"], "verbena0");
  EXPECT_EQ(devices[0]["node_guid"], "0242:acff:fe11:0002");
  EXPECT_EQ(devices[0]["addresses"], nlohmann::json({"10.77.0.2"}));
  EXPECT_EQ(devices[0]["port"]["state"], "active");
  EXPECT_EQ(devices[0]["port"]["link"], "packet");
  EXPECT_EQ(devices[0]["port"]["path_mtu"], 1024);
  EXPECT_EQ(devices[0]["gids"][1]["type"], "RoCE v2");
  EXPECT_EQ(nlohmann::json::parse(to_json({})), nlohmann::json::array());
}

}  // namespace
}  // namespace verbena::cli
