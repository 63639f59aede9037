#include "cli/subnet_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace verbena::cli {
namespace {

std::string content_of(const std::vector<DeviceFile>& files, const std::string& end) {
  for (const DeviceFile& file : files)
    if (file.path.ends_with(end)) return file.content;
  return "none";
}

TEST(SubnetFilesTest, APortIsAsItsManagerHasLeftIt) {
  host::LocalAddress address;
  address.device_name = "verbena0";
  address.interface = "lo";
  address.ipv4 = GID::from_ipv4(0x7f400001);
  std::vector<DeviceFile> files = files_of(address, host::LinkKind::kUDP, {});
  host::FabricPortAttributes port;
  port.port_guid = 0x0256450000000101;
  port.gid_prefix = 0xfe80000000000000;
  port.lid = 8;
  port.sm_lid = 1;
  port.state = 2;
  port.physical_state = 5;
  port.width = 2;
  port.speed = 4;
  port.ext_speed = 2;
  port.p_keys[0] = 0xffff;
  show_subnet_port(files, "verbena0", port);
  EXPECT_EQ(content_of(files, "/ports/1/state"), "2: INIT\n");
  EXPECT_EQ(content_of(files, "/ports/1/phys_state"), "5: LinkUp\n");
  EXPECT_EQ(content_of(files, "/ports/1/link_layer"), "InfiniBand\n");
  EXPECT_EQ(content_of(files, "/ports/1/rate"), "100 Gb/sec (4X EDR)\n");
  EXPECT_EQ(content_of(files, "/ports/1/lid"), "0x8\n");
  EXPECT_EQ(content_of(files, "/ports/1/gids/0"), "fe80:0000:0000:0000:0256:4500:0000:0101\n");
  EXPECT_EQ(content_of(files, "/ports/1/gids/1"), "none");
}

}  // namespace
}  // namespace verbena::cli
