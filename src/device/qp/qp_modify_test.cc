#include "device/qp/qp_modify.h"

#include <gtest/gtest.h>

#include <functional>

#include "device/testing.h"

namespace verbena {
namespace {

using test::kGIDA;
using test::kGIDB;
using test::path_to;

struct QPModifyTest : ::testing::Test {
  QPModifyTest() {
    config.gids = {{kGIDA, GIDType::kRoCEv2}, {GID{}, GIDType::kRoCEv2}, {ipv6, GIDType::kRoCEv2}};
    config.p_keys = {kDefaultPKey, PKey{0x8000}, PKey{0x1234}};
    config.active_mtu = MTU::k1024;
  }
  // A change of an RC QP in `from` to `change.state`, altered in one point.
  Status check(QPState from, QPModify change, const std::function<void(QPModify&)>& alter) {
    alter(change);
    QPAttributes qp;
    qp.state = from;
    return check_modify(change, qp, config);
  }
  Status init(const std::function<void(QPModify&)>& alter) {
    return check(QPState::kReset, test::to_init(QPType::kRC), alter);
  }
  Status rtr(const std::function<void(QPModify&)>& alter) {
    return check(QPState::kInit, test::to_rtr(QPType::kRC, kGIDB, QPN{9}), alter);
  }
  Status rts(const std::function<void(QPModify&)>& alter) {
    return check(QPState::kRTR, test::to_rts(QPType::kRC), alter);
  }
  static void nothing(QPModify&) {}

  GID ipv6 = *GID::parse("fe80::1");
  DeviceConfig config;
  static constexpr Status kBad = Status::kInvalidArgument;
  static constexpr Status kGood = Status::kOk;
};

TEST_F(QPModifyTest, PortAndPKeyIndex) {
  EXPECT_EQ(init(nothing), kGood);
  EXPECT_EQ(init([](QPModify& c) { c.port = 0; }), kBad);
  EXPECT_EQ(init([](QPModify& c) { c.port = 2; }), kBad);
  EXPECT_EQ(init([](QPModify& c) { c.p_key_index = 1; }), kBad);  // no P_Key: its base is 0
  EXPECT_EQ(init([](QPModify& c) { c.p_key_index = 2; }), kGood);
  EXPECT_EQ(init([](QPModify& c) { c.p_key_index = 3; }), kBad);
}

TEST_F(QPModifyTest, AddressVector) {
  EXPECT_EQ(rtr(nothing), kGood);
  EXPECT_EQ(rtr([](QPModify& c) { c.path.source_gid_index = 1; }), kBad);  // an empty entry
  EXPECT_EQ(rtr([](QPModify& c) { c.path.source_gid_index = 3; }), kBad);
  EXPECT_EQ(rtr([](QPModify& c) { c.path.source_gid_index = 255; }), kBad);
  EXPECT_EQ(rtr([](QPModify& c) { c.path.source_gid_index = 2; }), kBad);  // IPv6 to IPv4
  EXPECT_EQ(rtr([this](QPModify& c) {
              c.path = path_to(ipv6);
              c.path.source_gid_index = 2;
            }),
            kGood);
  EXPECT_EQ(rtr([](QPModify& c) { c.path.destination = GID{}; }), kBad);
}

TEST_F(QPModifyTest, PathMTUUpToTheActiveOne) {
  EXPECT_EQ(rtr([](QPModify& c) { c.path_mtu = MTU::k256; }), kGood);
  EXPECT_EQ(rtr([](QPModify& c) { c.path_mtu = MTU::k1024; }), kGood);
  EXPECT_EQ(rtr([](QPModify& c) { c.path_mtu = MTU::k2048; }), kBad);
  EXPECT_EQ(rtr([](QPModify& c) { c.path_mtu = static_cast<MTU>(0); }), kBad);
  EXPECT_EQ(rtr([](QPModify& c) { c.path_mtu = static_cast<MTU>(6); }), kBad);
}

TEST_F(QPModifyTest, RangesOfNumbers) {
  EXPECT_EQ(rtr([](QPModify& c) { c.dest_qp = QPN{0xffffff}; }), kGood);
  EXPECT_EQ(rtr([](QPModify& c) { c.dest_qp = QPN{0x1000000}; }), kBad);
  EXPECT_EQ(rtr([](QPModify& c) { c.min_rnr_timer = 31; }), kGood);
  EXPECT_EQ(rtr([](QPModify& c) { c.min_rnr_timer = 32; }), kBad);
  EXPECT_EQ(rtr([](QPModify& c) { c.max_dest_rd_atomic = 16; }), kGood);
  EXPECT_EQ(rtr([](QPModify& c) { c.max_dest_rd_atomic = 17; }), kBad);
  EXPECT_EQ(rts(nothing), kGood);
  EXPECT_EQ(rts([](QPModify& c) { c.max_rd_atomic = 0; }), kGood);
  EXPECT_EQ(rts([](QPModify& c) { c.max_rd_atomic = 128; }), kGood);
  EXPECT_EQ(rts([](QPModify& c) { c.max_rd_atomic = 129; }), kBad);
  EXPECT_EQ(rts([](QPModify& c) { c.ack_timeout = 31; }), kGood);
  EXPECT_EQ(rts([](QPModify& c) { c.ack_timeout = 32; }), kBad);
  EXPECT_EQ(rts([](QPModify& c) { c.retry_count = 8; }), kBad);
  EXPECT_EQ(rts([](QPModify& c) { c.rnr_retry_count = 8; }), kBad);
}

TEST_F(QPModifyTest, TheCurrentStateMustBeTheCurrentState) {
  EXPECT_EQ(rts([](QPModify& c) { c.set(QPField::kCurrentState).current_state = QPState::kRTR; }),
            kGood);
  EXPECT_EQ(rts([](QPModify& c) { c.set(QPField::kCurrentState).current_state = QPState::kRTS; }),
            kBad);
}

TEST_F(QPModifyTest, PathMigrationIsNotOffered) {
  EXPECT_EQ(rts([](QPModify& c) { c.set(QPField::kAlternatePath); }), Status::kNotSupported);
  EXPECT_EQ(rts([](QPModify& c) { c.set(QPField::kPathMigrationState); }), Status::kNotSupported);
}

TEST_F(QPModifyTest, ValuesArePutIn) {
  QPAttributes qp;
  QPModify change = test::to_rtr(QPType::kRC, kGIDB, QPN{9});
  change.rq_psn = PSN{5};
  change.path_mtu = MTU::k512;
  change.p_key_index = 2;
  change.set(QPField::kPKeyIndex);
  change.remote_access = Access::kLocalWrite | Access::kRemoteRead;
  change.set(QPField::kAccessFlags);
  apply_modify(change, config, qp);
  EXPECT_EQ(qp.path.source, kGIDA);
  EXPECT_EQ(qp.path.destination, kGIDB);
  EXPECT_EQ(qp.dest_qp, QPN{9});
  EXPECT_EQ(qp.rq_psn, PSN{5});
  EXPECT_EQ(qp.path_mtu, MTU::k512);
  EXPECT_EQ(qp.p_key, PKey{0x1234});
  EXPECT_EQ(qp.remote_access, AccessFlags(Access::kRemoteRead));  // remote rights only
  EXPECT_EQ(qp.max_dest_rd_atomic, 4);
  EXPECT_EQ(qp.state, QPState::kReset);  // the state is not its business
  EXPECT_EQ(qp.ack_timeout, 0);          // and what is not given stays
}

}  // namespace
}  // namespace verbena
