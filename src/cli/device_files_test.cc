#include "cli/device_files.h"

#include <algorithm>
#include <map>

#include <gtest/gtest.h>

namespace verbena::cli {
namespace {

host::LocalAddress second_device() {
  host::LocalAddress address;
  address.device_name = "verbena1";
  address.interface = "eth0";
  address.ipv4 = GID::parse("10.77.0.2");
  address.ipv6 = GID::parse("fe80::2");
  address.node_guid = 0x0242acfffe110002;
  address.link_speed_mbps = 100'000;
  return address;
}

std::map<std::string, std::string> contents(const std::vector<DeviceFile>& files) {
  std::map<std::string, std::string> found;
  for (const DeviceFile& file : files) {
    EXPECT_TRUE(file.path.starts_with('/')) << file.path;
    EXPECT_TRUE(found.emplace(file.path, file.content).second) << file.path << " twice";
  }
  return found;
}

TEST(DeviceFilesTest, AnIWARPDeviceIsAnRNIC) {
  auto files = contents(files_of(second_device(), host::LinkKind::kIWARP, {}));
  EXPECT_EQ(files["/sys/devices/virtual/infiniband/verbena1/infiniband/verbena1/node_type"],
            "4: RNIC\n");
}

TEST(DeviceFilesTest, WhatProgramsReadOfADevice) {
  auto files = contents(
      files_of(second_device(), host::LinkKind::kUDP, {.numa_node = 1, .cpu_list = "0-3,33"}));
  const std::string card = "/sys/devices/virtual/infiniband/verbena1";
  const std::string device = card + "/infiniband/verbena1", port = device + "/ports/1";
  EXPECT_EQ(files["/sys/class/infiniband/verbena1"],
            "../../devices/virtual/infiniband/verbena1/infiniband/verbena1");
  EXPECT_EQ(files[device + "/device"], "../../../verbena1");
  EXPECT_EQ(files[device + "/node_type"], "1: CA\n");
  EXPECT_EQ(files[device + "/node_guid"], "0242:acff:fe11:0002\n");
  EXPECT_EQ(files[port + "/state"], "4: ACTIVE\n");
  EXPECT_EQ(files[port + "/link_layer"], "Ethernet\n");
  EXPECT_EQ(files[port + "/rate"], "100 Gb/sec (4X EDR)\n");
  EXPECT_EQ(files[port + "/gids/1"], "fe80:0000:0000:0000:0000:0000:0000:0002\n");
  EXPECT_EQ(files[port + "/gids/3"], "0000:0000:0000:0000:0000:ffff:0a4d:0002\n");
  EXPECT_EQ(files[port + "/gid_attrs/types/3"], "RoCE v2\n");
  EXPECT_EQ(files[port + "/gid_attrs/ndevs/3"], "eth0\n");
  EXPECT_EQ(files[port + "/pkeys/0"], "0xffff\n");
  EXPECT_EQ(files[card + "/numa_node"], "1\n");
  EXPECT_EQ(files[card + "/local_cpulist"], "0-3,33\n");
  EXPECT_EQ(files[card + "/local_cpus"], "00000002,0000000f\n");
  EXPECT_EQ(files[card + "/net/eth0"], "/sys/class/net/eth0");
}

TEST(DeviceFilesTest, OnARawLinkEvenGIDIndexesAreRoCEv1) {
  auto files = contents(files_of(second_device(), host::LinkKind::kPacket, {}));
  const std::string types =
      "/sys/devices/virtual/infiniband/verbena1/infiniband/verbena1/ports/1/gid_attrs/types/";
  for (const char* const index : {"0", "2"}) EXPECT_EQ(files[types + index], "IB/RoCE v1\n");
  for (const char* const index : {"1", "3"}) EXPECT_EQ(files[types + index], "RoCE v2\n");
}

TEST(DeviceFilesTest, TheVerbsDeviceHasTheNumberOfTheName) {
  auto files = contents(files_of(second_device(), host::LinkKind::kUDP, {}));
  const std::string verbs = "/sys/devices/virtual/infiniband/verbena1/infiniband_verbs/uverbs1";
  EXPECT_EQ(files["/sys/class/infiniband_verbs/uverbs1"],
            "../../devices/virtual/infiniband/verbena1/infiniband_verbs/uverbs1");
  EXPECT_EQ(files[verbs + "/ibdev"], "verbena1\n");
  EXPECT_EQ(files[verbs + "/dev"], "231:193\n");
  EXPECT_EQ(files["/dev/infiniband/uverbs1"], "/dev/null");
}

TEST(DeviceFilesTest, WhatIsThereOnce) {
  auto files = contents(common_files());
  EXPECT_EQ(files["/sys/class/infiniband_verbs/abi_version"], "6\n");
  EXPECT_EQ(files["/dev/infiniband/rdma_cm"], "/dev/null");
}

TEST(DeviceFilesTest, CPUMasks) {
  EXPECT_EQ(cpu_mask("0"), "00000001");
  EXPECT_EQ(cpu_mask("0-1"), "00000003");
  EXPECT_EQ(cpu_mask("31-32,64"), "00000001,00000001,80000000");
  for (const char* odd : {"", "x", "9-", "1-99999999"}) EXPECT_EQ(cpu_mask(odd), "00000000") << odd;
}

TEST(DeviceFilesTest, TheLocalityOfAnInterfaceWithoutACardIsTheMachine) {
  const Locality locality = locality_of("lo");
  EXPECT_EQ(locality.numa_node, -1);
  EXPECT_TRUE(locality.cpu_list.starts_with('0')) << locality.cpu_list;
}

}  // namespace
}  // namespace verbena::cli
