// Answers about devices whose files lie in a folder of the test.
#include "abi/paths/rdma_netlink.h"

#include <gtest/gtest.h>
#include <rdma/rdma_netlink.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace verbena::abi::paths {
namespace {

struct Reply {
  nlmsghdr header{};
  std::vector<u8> rest;
  [[nodiscard]] int error() const {
    int value = 0;
    std::memcpy(&value, rest.data(), sizeof(value));
    return -value;
  }
  [[nodiscard]] std::optional<u32> number(u16 attribute) const {
    return NetlinkRequest{.header = header, .attributes = rest}.number(attribute);
  }
  // Whether the message has an attribute's bytes somewhere.
  [[nodiscard]] bool holds(std::string_view text) const {
    return std::string_view(reinterpret_cast<const char*>(rest.data()), rest.size()).find(text) !=
           std::string_view::npos;
  }
};

class RDMANetlinkTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/rdma-netlink-test-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    root_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void add_device(const std::string& name) {
    const std::string folder = root_ + "/sys/class/infiniband/" + name;
    std::filesystem::create_directories(folder + "/ports/1/gid_attrs/ndevs");
    write(folder + "/fw_ver", "1.2.3");
    write(folder + "/node_guid", "0011:2233:4455:6677");
    write(folder + "/node_type", "1: CA");
    write(folder + "/ports/1/state", "4: ACTIVE");
    write(folder + "/ports/1/phys_state", "5: LinkUp");
    write(folder + "/ports/1/gid_attrs/ndevs/0", "lo");
  }

  std::vector<Reply> ask(u16 command, u16 flags, std::optional<u32> device = {},
                         std::optional<u32> port = {}, u16 client = RDMA_NL_NLDEV) {
    NetlinkWriter writer(77, 0);
    writer.begin(static_cast<u16>(RDMA_NL_GET_TYPE(client, command)),
                 static_cast<u16>(NLM_F_REQUEST | flags));
    if (device) writer.put(RDMA_NLDEV_ATTR_DEV_INDEX, *device);
    if (port) writer.put(RDMA_NLDEV_ATTR_PORT_INDEX, *port);
    writer.end();
    std::vector<Reply> replies;
    const auto collect = [](void* to, std::span<const u8> datagram) {
      while (const auto message = NetlinkRequest::take(datagram))
        static_cast<std::vector<Reply>*>(to)->push_back(
            {message->header, {message->attributes.begin(), message->attributes.end()}});
      return true;
    };
    RDMANetlink(root_, 5, collect, &replies).answer(writer.bytes());
    for (const Reply& reply : replies) {
      EXPECT_EQ(reply.header.nlmsg_seq, 77u);
      EXPECT_EQ(reply.header.nlmsg_pid, 5u);
    }
    return replies;
  }

  void expect_error(const std::vector<Reply>& replies, int error) {
    ASSERT_EQ(replies.size(), 1u);
    EXPECT_EQ(replies[0].header.nlmsg_type, NLMSG_ERROR);
    EXPECT_EQ(replies[0].error(), error);
  }

 private:
  static void write(const std::string& path, const char* line) {
    std::ofstream(path) << line << '\n';
  }
  std::string root_;
};

TEST_F(RDMANetlinkTest, ADumpTellsOfAllDevicesByTheirIndex) {
  for (const char* name : {"verbena10", "verbena0", "verbena2"}) add_device(name);
  const auto replies = ask(RDMA_NLDEV_CMD_GET, NLM_F_DUMP | NLM_F_ACK);
  ASSERT_EQ(replies.size(), 4u);
  EXPECT_EQ(replies[0].number(RDMA_NLDEV_ATTR_DEV_INDEX), 0u);
  EXPECT_EQ(replies[1].number(RDMA_NLDEV_ATTR_DEV_INDEX), 2u);
  EXPECT_EQ(replies[2].number(RDMA_NLDEV_ATTR_DEV_INDEX), 10u);
  EXPECT_EQ(replies[0].header.nlmsg_flags, NLM_F_MULTI);
  EXPECT_EQ(replies[3].header.nlmsg_type, NLMSG_DONE);
  EXPECT_TRUE(replies[2].holds("verbena10"));
  EXPECT_TRUE(replies[0].holds("1.2.3"));
  EXPECT_TRUE(replies[0].holds("roce"));
  EXPECT_TRUE(replies[0].holds("\x77\x66\x55\x44\x33\x22\x11")) << "GUIDs are in the host's order";
}

TEST_F(RDMANetlinkTest, OneDeviceAndAnAcknowledgement) {
  add_device("verbena1");
  const auto replies = ask(RDMA_NLDEV_CMD_GET, NLM_F_ACK, 1);
  ASSERT_EQ(replies.size(), 2u);
  EXPECT_EQ(replies[0].header.nlmsg_type, 0x1401);
  EXPECT_EQ(replies[0].header.nlmsg_flags, 0);
  EXPECT_EQ(replies[0].number(RDMA_NLDEV_ATTR_PORT_INDEX), 1u) << "its last port";
  EXPECT_EQ(replies[1].header.nlmsg_type, NLMSG_ERROR);
  EXPECT_EQ(replies[1].error(), 0);
  EXPECT_EQ(ask(RDMA_NLDEV_CMD_GET, 0, 1).size(), 1u) << "not asked for an acknowledgement";
}

TEST_F(RDMANetlinkTest, APortHasItsInterfaceAndNoLID) {
  add_device("verbena0");
  const auto replies = ask(RDMA_NLDEV_CMD_PORT_GET, NLM_F_ACK, 0, 1);
  ASSERT_EQ(replies.size(), 2u);
  EXPECT_TRUE(replies[0].holds("lo"));
  EXPECT_EQ(replies[0].number(RDMA_NLDEV_ATTR_NDEV_INDEX), 1u);
  EXPECT_EQ(replies[0].number(RDMA_NLDEV_ATTR_LID), std::nullopt);
  EXPECT_EQ(ask(RDMA_NLDEV_CMD_PORT_GET, NLM_F_DUMP, 0).size(), 2u) << "the port, and the end";
}

TEST_F(RDMANetlinkTest, WhatIsNotThereIsInvalid) {
  add_device("verbena0");
  expect_error(ask(RDMA_NLDEV_CMD_GET, 0), EINVAL);
  expect_error(ask(RDMA_NLDEV_CMD_GET, 0, 1), EINVAL);
  expect_error(ask(RDMA_NLDEV_CMD_PORT_GET, 0, 0), EINVAL);
  expect_error(ask(RDMA_NLDEV_CMD_PORT_GET, 0, 0, 2), EINVAL);
  expect_error(ask(RDMA_NLDEV_CMD_PORT_GET, NLM_F_DUMP), EINVAL);
  for (const u16 list :
       {RDMA_NLDEV_CMD_RES_QP_GET, RDMA_NLDEV_CMD_RES_PD_GET, RDMA_NLDEV_CMD_RES_CQ_GET,
        RDMA_NLDEV_CMD_RES_MR_GET, RDMA_NLDEV_CMD_RES_SRQ_GET, RDMA_NLDEV_CMD_RES_CTX_GET}) {
    expect_error(ask(list, NLM_F_DUMP), EINVAL);    // of no device
    expect_error(ask(list, NLM_F_ACK, 0), EINVAL);  // of no object
  }
}

TEST_F(RDMANetlinkTest, OtherRequestsAreNotSupported) {
  add_device("verbena0");
  for (const u16 command :
       {RDMA_NLDEV_CMD_SET, RDMA_NLDEV_CMD_NEWLINK, RDMA_NLDEV_CMD_RES_CM_ID_GET,
        RDMA_NLDEV_CMD_RES_CQ_GET_RAW, RDMA_NLDEV_CMD_STAT_GET})
    expect_error(ask(command, NLM_F_DUMP, 0), EOPNOTSUPP);
  expect_error(ask(0, 0, {}, {}, RDMA_NL_LS), EOPNOTSUPP);
}

TEST_F(RDMANetlinkTest, WithoutDevicesADumpIsEmpty) {
  const auto replies = ask(RDMA_NLDEV_CMD_GET, NLM_F_DUMP);
  ASSERT_EQ(replies.size(), 1u);
  EXPECT_EQ(replies[0].header.nlmsg_type, NLMSG_DONE);
}

}  // namespace
}  // namespace verbena::abi::paths
