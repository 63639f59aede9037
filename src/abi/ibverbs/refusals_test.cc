#include "abi/ibverbs/refusals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "abi/ibverbs/address.h"

namespace verbena::abi {
namespace {

using ::testing::HasSubstr;

DeviceConfig roce() {
  DeviceConfig config;
  config.gids = {{GID::from_ipv4(0x7f000001), GIDType::kRoCEv2}};
  return config;
}

ibv_ah_attr good_path() {
  ibv_ah_attr path{};
  path.is_global = 1;
  path.port_num = 1;
  path.grh.dgid.raw[15] = 1;
  return path;
}

template <typename Change>
std::string mistake_of(Change change) {
  ibv_ah_attr path = good_path();
  change(path);
  return path_mistake(path, roce());
}

TEST(RefusalsTest, Paths) {
  EXPECT_EQ(path_mistake(good_path(), roce()), "");
  EXPECT_THAT(mistake_of([](auto& path) { path.is_global = 0; }), HasSubstr("no GRH"));
  EXPECT_THAT(mistake_of([](auto& path) { path.port_num = 2; }), HasSubstr("only port 1"));
  EXPECT_THAT(mistake_of([](auto& path) { path.grh.sgid_index = 7; }), HasSubstr("sgid_index 7"));
  EXPECT_THAT(mistake_of([](auto& path) { path.grh.dgid = {}; }), HasSubstr("dgid is zero"));
}

// The call is refused whatever attributes it has, and the reason names the way to connect.
TEST(RefusalsTest, AnIWARPDeviceHasNoConnectionsButThoseOfRDMACM) {
  DeviceConfig iwarp = roce();
  iwarp.transport = Transport::kIWARP;
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTR;
  EXPECT_THAT(change_mistake(QPType::kRC, QPState::kInit, attr, IBV_QP_STATE, iwarp),
              HasSubstr("by rdma_cm alone"));
}

TEST(RefusalsTest, PathsOfASubnet) {
  DeviceConfig subnet;
  subnet.gids = {{*GID::parse("fe80::1"), GIDType::kInfiniBand}};
  ibv_ah_attr path{};
  path.port_num = 1;
  EXPECT_THAT(path_mistake(path, subnet), HasSubstr("dlid is no LID"));
  path.dlid = 7;
  path.sl = 3;
  EXPECT_EQ(path_mistake(path, subnet), "");
  const std::optional<AddressVector> vector = to_address_vector(path, subnet);
  ASSERT_TRUE(vector.has_value());
  EXPECT_EQ(to_ibv(*vector).dlid, 7);
  EXPECT_EQ(to_ibv(*vector).sl, 3);
  EXPECT_EQ(to_ibv(*vector).is_global, 0);
  path.sl = 16;
  EXPECT_THAT(path_mistake(path, subnet), HasSubstr("service levels are 0 .. 15"));
  EXPECT_FALSE(to_address_vector(path, subnet).has_value());
}

TEST(RefusalsTest, Changes) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = IBV_MTU_1024;
  attr.ah_attr = good_path();
  constexpr u32 kRTR = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                       IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  const auto mistake = [&](QPState from, u32 mask) {
    return change_mistake(QPType::kRC, from, attr, mask, roce());
  };
  EXPECT_EQ(mistake(QPState::kInit, kRTR), "");
  EXPECT_EQ(mistake(QPState::kInit, kRTR & ~u32{IBV_QP_MIN_RNR_TIMER | IBV_QP_DEST_QPN}),
            "INIT to RTR needs also IBV_QP_MIN_RNR_TIMER, IBV_QP_DEST_QPN in the mask");
  EXPECT_EQ(mistake(QPState::kInit, kRTR | IBV_QP_TIMEOUT),
            "INIT to RTR cannot change IBV_QP_TIMEOUT");
  EXPECT_EQ(mistake(QPState::kReset, kRTR), "a QP of this type cannot go from RESET to RTR");
  attr.path_mtu = static_cast<ibv_mtu>(7);
  EXPECT_THAT(mistake(QPState::kInit, kRTR), HasSubstr("1024 is not"));
  attr.path_mtu = IBV_MTU_1024;
  attr.ah_attr.is_global = 0;
  EXPECT_THAT(mistake(QPState::kInit, kRTR), HasSubstr("no GRH"));
}

}  // namespace
}  // namespace verbena::abi
