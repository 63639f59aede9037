#include "host/encryption/host_keys.h"

#include <sys/stat.h>

#include <set>

#include <gtest/gtest.h>

namespace verbena::host {
namespace {

constexpr Duration kRotation = sec(100);
const AssociationEnds kEnds{.sender = *GID::parse("10.0.0.1"), .receiver = *GID::parse("10.0.0.2")};

class HostKeysTest : public testing::Test {
 protected:
  void SetUp() override { ::unlink(path_.c_str()); }
  void TearDown() override { ::unlink(path_.c_str()); }
  HostKeys open() { return std::move(*HostKeys::open_file(**OpenSSL::load(), path_, kRotation)); }
  IssuedAssociation issue(HostKeys& keys, u32 slot, Time now) {
    return *keys.issue(slot, kEnds, PSPVersion::kAES128GCM, now);
  }

  const std::string path_ = "/tmp/verbena-host-keys-test-" + std::to_string(::getpid());
  const Time now_ = Time::from_ns(1) + sec(3600 * 24 * 90);  // later than any boot
};

TEST_F(HostKeysTest, AnotherProcessDerivesTheKey) {
  HostKeys one = open(), other = open();
  const IssuedAssociation issued = issue(one, 7, now_);
  EXPECT_EQ(slot_of_spi(issued.spi), 7u);
  const auto known = other.find(issued.spi);
  ASSERT_TRUE(known.has_value());
  EXPECT_EQ(known->ends, kEnds);
  EXPECT_EQ(other.derive(issued.spi, PSPVersion::kAES128GCM), issued.key);
  EXPECT_EQ(other.find(issued.spi ^ 1), std::nullopt);
  EXPECT_EQ(other.find(0), std::nullopt);
}

TEST_F(HostKeysTest, EachAssociationHasItsOwnKey) {
  HostKeys keys = open();
  std::set<u32> spis;
  for (u32 i = 0; i < 1000; ++i) spis.insert(issue(keys, i % 3, now_).spi);
  EXPECT_EQ(spis.size(), 1000u);
  EXPECT_NE(issue(keys, 1, now_).key.bytes, issue(keys, 1, now_).key.bytes);
}

TEST_F(HostKeysTest, FileIsPrivate) {
  open();
  struct stat status {};
  ASSERT_EQ(::stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST_F(HostKeysTest, KeysLiveForTwoRotations) {
  HostKeys keys = open();
  (void)issue(keys, 1, now_);  // rotates: the file's key has its time from the clock
  const IssuedAssociation first = issue(keys, 1, now_);
  EXPECT_EQ(first.renew_after, kRotation);
  EXPECT_EQ(first.expires_after, kRotation * 2);
  const IssuedAssociation second = issue(keys, 1, now_ + kRotation);
  EXPECT_NE(first.spi >> 31, second.spi >> 31);
  EXPECT_TRUE(keys.find(first.spi).has_value());
  (void)issue(keys, 1, now_ + kRotation * 2);
  EXPECT_FALSE(keys.find(first.spi).has_value());
  EXPECT_TRUE(keys.find(second.spi).has_value());
}

TEST_F(HostKeysTest, NewOwnerOfASlotKnowsNoOldAssociation) {
  HostKeys keys = open();
  const IssuedAssociation old = issue(keys, 5, now_), others = issue(keys, 6, now_);
  ASSERT_TRUE(keys.forget_slot(5).has_value());
  EXPECT_FALSE(keys.find(old.spi).has_value());
  EXPECT_TRUE(keys.find(others.spi).has_value());
}

TEST_F(HostKeysTest, SharedWindowTakesEachIVOnce) {
  HostKeys one = open(), other = open();
  const u32 spi = issue(one, 0, now_).spi;
  EXPECT_TRUE(one.note_shared(spi, 1));
  EXPECT_FALSE(other.note_shared(spi, 1));
  EXPECT_TRUE(other.note_shared(spi, 40));
  EXPECT_TRUE(one.note_shared(spi, 10));
  EXPECT_FALSE(one.note_shared(spi, 10));
  EXPECT_FALSE(one.note_shared(spi, 8));  // too old to tell
  EXPECT_FALSE(one.note_shared(spi, 0));
}

TEST_F(HostKeysTest, FullTableTakesTheOldestPlace) {
  HostKeys keys = open();
  IssuedAssociation last;
  for (u32 i = 0; i < HostKeys::kMaxAssociations + 10; ++i) last = issue(keys, 1, now_);
  EXPECT_TRUE(keys.find(last.spi).has_value());
}

}  // namespace
}  // namespace verbena::host
