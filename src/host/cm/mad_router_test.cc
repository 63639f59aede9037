#include "host/cm/mad_router.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "connect/comm_id_space.h"
#include "host/random.h"
#include "wire/ib/cm/message.h"

namespace verbena::host {
namespace {

constexpr GID kHere = GID::from_ipv4(0x0a000001), kPeer = GID::from_ipv4(0x0a000002);

// Two processes' worth of channels on one address.
class MADRouterTest : public ::testing::Test {
 protected:
  MADRouterTest() : directory_(make_directory()) {
    DirectoryTable table;
    for (const u32 slot : {ours_.slot(), other_.slot()})
      table.members.push_back({.address = kHere, .slot = slot});
    directory_.write(table);
  }
  ~MADRouterTest() override {
    ::unlink((folder_ + "/directory").c_str());
    ::rmdir(folder_.c_str());
  }
  Directory make_directory() {
    EXPECT_NE(::mkdtemp(folder_.data()), nullptr);
    return std::move(*Directory::open_file(folder_ + "/directory"));
  }
  IngressFrame frame_of(const cm::Body& body) {
    const cm::MADBytes mad = cm::Message{.transaction_id = 1, .body = body}.encode();
    packet_.assign(BTH::kSize + DETH::kSize, 0);
    packet_.insert(packet_.end(), mad.begin(), mad.end());
    packet_.insert(packet_.end(), kICRCSize, 0);
    return {.source = kPeer, .destination = kHere, .transport = packet_};
  }
  bool reaches_other() {
    if (other_.receive() != ProcessChannel::Received::kFrame) return false;
    return std::ranges::equal(other_.frame().transport, packet_);
  }
  static CommId id_at(u32 slot) { return CommId{(slot << kCommIdRandomBits) | 7}; }

  std::string folder_ = "/tmp/verbena-mad-router-test-XXXXXX";
  Directory directory_;
  ProcessChannel ours_ = std::move(*ProcessChannel::claim(random_u64()));
  ProcessChannel other_ = std::move(*ProcessChannel::claim(random_u64()));
  MADRouter router_{directory_, ours_};
  std::vector<u8> packet_;
};

using Outcome = MADRouter::Outcome;

TEST_F(MADRouterTest, AnswersGoToWhomTheyName) {
  EXPECT_EQ(router_.route(frame_of(cm::REP{.remote_comm_id = id_at(ours_.slot())})),
            Outcome::kOurs);
  EXPECT_EQ(router_.route(frame_of(cm::REP{.remote_comm_id = id_at(other_.slot())})),
            Outcome::kHandedOn);
  EXPECT_TRUE(reaches_other());
}

TEST_F(MADRouterTest, WhatIsForNobodyOrTheDeadIsOurs) {
  const u32 dead = other_.slot();
  other_.close();
  EXPECT_EQ(router_.route(frame_of(cm::DREQ{.remote_comm_id = id_at(dead)})), Outcome::kOurs);
  EXPECT_EQ(router_.route(frame_of(cm::DREQ{.remote_comm_id = CommId{0xffffffff}})),
            Outcome::kOurs);
}

TEST_F(MADRouterTest, RequestsGoToTheListener) {
  PortDirectory ports = std::move(*PortDirectory::open());
  const std::vector<u32> slots{other_.slot()};
  const auto bound = ports.bind({.address = kHere, .family = ListenFamily::kIPv4, .slots = slots});
  ASSERT_TRUE(bound);
  const cm::REQ req{.local_comm_id = CommId{1}, .service_id = service_id_of({.port = bound->port})};
  EXPECT_EQ(router_.route(frame_of(req)), Outcome::kOurs) << "nobody listens yet";
  ASSERT_TRUE(ports.listen(bound->owner));
  EXPECT_EQ(router_.route(frame_of(req)), Outcome::kHandedOn);
  EXPECT_TRUE(reaches_other());
  ports.release(bound->owner);
}

TEST_F(MADRouterTest, ARejectionOfNobodyKnownGoesToAll) {
  EXPECT_EQ(router_.route(frame_of(cm::REJ{.local_comm_id = CommId{9}})), Outcome::kOurs);
  EXPECT_TRUE(reaches_other());
}

TEST_F(MADRouterTest, WhatIsNoMADIsForTheDeviceToCount) {
  for (const std::size_t size : {0u, 20u, 100u, 300u}) {
    packet_.assign(size, 0);
    EXPECT_EQ(router_.route({.source = kPeer, .destination = kHere, .transport = packet_}),
              Outcome::kOurs);
  }
}

}  // namespace
}  // namespace verbena::host
