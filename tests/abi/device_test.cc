// Finding, opening and querying a device.
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/abi/verbs_fixture.h"

namespace verbena::test {
namespace {

using DeviceTest = VerbsTest;

TEST_F(DeviceTest, ListHasOneEntryForOneAddress) {
  int count = 0;
  ibv_device** devices = verbs.get_device_list(&count);
  ASSERT_NE(devices, nullptr);
  EXPECT_EQ(count, 1);
  EXPECT_EQ(devices[1], nullptr);
  EXPECT_EQ(devices[0], context->device) << "an open device keeps its place";
  EXPECT_STREQ(verbs.get_device_name(devices[0]), "verbena0");
  EXPECT_EQ(verbs.get_device_index(devices[0]), 0);
  EXPECT_NE(verbs.get_device_guid(devices[0]), 0u);
  EXPECT_EQ(devices[0]->node_type, IBV_NODE_CA);
  EXPECT_EQ(devices[0]->transport_type, IBV_TRANSPORT_IB);
  EXPECT_STREQ(devices[0]->ibdev_path, "/sys/class/infiniband/verbena0");
  verbs.free_device_list(devices);
}

TEST_F(DeviceTest, AnAddressThatIsNotOursIsAnError) {
  setenv("VERBENA_ADDRESS", "192.0.2.123", 1);  // RFC 5737: nobody has it
  int count = 7;
  ::testing::internal::CaptureStderr();
  errno = 0;
  EXPECT_EQ(verbs.get_device_list(&count), nullptr);
  const int error = errno;
  const std::string message = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(error, 0);
  EXPECT_EQ(count, 0);
  EXPECT_TRUE(message.starts_with("verbena: ")) << message;
  EXPECT_EQ(std::ranges::count(message, '\n'), 1) << message;
}

TEST_F(DeviceTest, ContextHasTheExtendedForm) {
  verbs_context* extended = verbs_get_ctx(context);
  ASSERT_NE(extended, nullptr);
  EXPECT_EQ(extended->sz, sizeof(verbs_context));
  EXPECT_NE(verbs_get_ctx_op(context, create_qp_ex), nullptr);
  EXPECT_NE(verbs_get_ctx_op(context, create_cq_ex), nullptr);
  EXPECT_GE(context->async_fd, 0);
  EXPECT_GE(context->num_comp_vectors, 1);
}

TEST_F(DeviceTest, ContextsOfOneDeviceAreTheirOwn) {
  ibv_context* second = verbs.open_device(context->device);
  ASSERT_NE(second, nullptr);
  EXPECT_NE(second, context);
  EXPECT_NE(second->async_fd, context->async_fd);
  ibv_pd* other = verbs.alloc_pd(second);
  ASSERT_NE(other, nullptr);
  ibv_qp_init_attr attr = qp_attributes(IBV_QPT_RC);
  EXPECT_EQ(verbs.create_qp(other, &attr), nullptr) << "the CQ is another context's";
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(verbs.close_device(second), 0) << "takes the PD with it";
}

TEST_F(DeviceTest, DeviceIsSane) {
  ibv_device_attr attr{};
  ASSERT_EQ(verbs.query_device(context, &attr), 0);
  EXPECT_STRNE(attr.fw_ver, "");
  EXPECT_EQ(attr.node_guid, verbs.get_device_guid(context->device));
  EXPECT_EQ(attr.phys_port_cnt, 1);
  EXPECT_EQ(attr.atomic_cap, IBV_ATOMIC_HCA);
  for (const int limit : {attr.max_qp, attr.max_qp_wr, attr.max_sge, attr.max_cq, attr.max_cqe,
                          attr.max_mr, attr.max_pd, attr.max_srq, attr.max_ah})
    EXPECT_GT(limit, 0);
}

TEST_F(DeviceTest, ExtendedQueryFitsOlderAndNewerPrograms) {
  struct {
    ibv_device_attr_ex known;
    char newer[64];
  } attr;
  std::memset(&attr, 0xff, sizeof attr);
  verbs_context* extended = verbs_get_ctx_op(context, query_device_ex);
  ASSERT_NE(extended, nullptr);
  ASSERT_EQ(extended->query_device_ex(context, nullptr, &attr.known, sizeof attr), 0);
  EXPECT_NE(attr.known.odp_caps.general_caps & IBV_ODP_SUPPORT, 0u);
  EXPECT_EQ(attr.newer[0], 0);
  std::memset(&attr, 0xff, sizeof attr);
  ASSERT_EQ(extended->query_device_ex(context, nullptr, &attr.known, sizeof(ibv_device_attr)), 0);
  EXPECT_EQ(attr.known.comp_mask, 0xffffffff) << "not written";
}

TEST_F(DeviceTest, PortIsUpEthernetAndNeedsAGRH) {
  ibv_port_attr port{};
  ASSERT_EQ(verbs.query_port(context, 1, reinterpret_cast<_compat_ibv_port_attr*>(&port)), 0);
  EXPECT_EQ(port.state, IBV_PORT_ACTIVE);
  EXPECT_EQ(port.link_layer, IBV_LINK_LAYER_ETHERNET);
  EXPECT_NE(port.flags & IBV_QPF_GRH_REQUIRED, 0);
  EXPECT_EQ(port.max_mtu, IBV_MTU_4096);
  EXPECT_GE(port.gid_tbl_len, 4);
  EXPECT_EQ(verbs.query_port(context, 2, reinterpret_cast<_compat_ibv_port_attr*>(&port)), EINVAL);
}

TEST_F(DeviceTest, GIDsOneByOneAndAsATable) {
  ibv_gid gid{};
  ibv_gid_entry entry{};
  ASSERT_EQ(verbs.query_gid_ex(context, 1, kGIDIndex, &entry, 0, sizeof entry), 0);
  ASSERT_EQ(verbs.query_gid(context, 1, kGIDIndex, &gid), 0);
  EXPECT_EQ(std::memcmp(&entry.gid, &gid, sizeof gid), 0);
  EXPECT_EQ(entry.gid_type, static_cast<std::uint32_t>(IBV_GID_TYPE_ROCE_V2));
  EXPECT_EQ(entry.gid_index, kGIDIndex);
  EXPECT_EQ(gid.raw[12], 127);
  EXPECT_EQ(gid.raw[15], 1);

  std::array<ibv_gid_entry, 64> table{};
  const ssize_t count = verbs.query_gid_table(context, table.data(), table.size(), 0, sizeof entry);
  EXPECT_GT(count, 0);
  EXPECT_EQ(verbs.query_gid_table(context, table.data(), 0, 0, sizeof entry), -EINVAL);
}

TEST_F(DeviceTest, IndexesOutsideOfTheTablesAreInvalid) {
  ibv_gid gid{};
  ibv_gid_entry entry{};
  __be16 p_key = 0;
  EXPECT_EQ(verbs.query_gid(context, 1, -1, &gid), -1);
  EXPECT_EQ(verbs.query_gid(context, 1, 1000, &gid), -1);
  EXPECT_EQ(verbs.query_gid(context, 2, 0, &gid), -1);
  EXPECT_EQ(verbs.query_gid_ex(context, 1, 1000, &entry, 0, sizeof entry), EINVAL);
  EXPECT_EQ(verbs.query_pkey(context, 1, 1000, &p_key), -1);
}

TEST_F(DeviceTest, DefaultPKeyIsTheFirst) {
  __be16 p_key = 0;
  ASSERT_EQ(verbs.query_pkey(context, 1, 0, &p_key), 0);
  EXPECT_EQ(p_key, 0xffff);
  EXPECT_EQ(verbs.get_pkey_index(context, 1, 0xffff), 0);
  EXPECT_EQ(verbs.get_pkey_index(context, 1, 0x1234), -1);
}

TEST_F(DeviceTest, ForkNeedsNothing) {
  EXPECT_EQ(verbs.fork_init(), 0);
  EXPECT_EQ(verbs.is_fork_initialized(), IBV_FORK_UNNEEDED);
}

}  // namespace
}  // namespace verbena::test
