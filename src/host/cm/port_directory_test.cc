#include "host/cm/port_directory.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <set>
#include <thread>

#include "host/os/random.h"
#include "host/sharing/process_channel.h"

namespace verbena::host {
namespace {

using ::testing::IsEmpty;

constexpr GID kThisHost = GID::from_ipv4(0x0a000001);

class PortDirectoryTest : public ::testing::Test {
 protected:
  PortDirectoryTest() { EXPECT_NE(::mkdtemp(folder_.data()), nullptr); }
  ~PortDirectoryTest() override {
    ::unlink(path().c_str());
    ::rmdir(folder_.c_str());
  }
  std::string path() const { return folder_ + "/ports"; }
  PortDirectory open() const { return std::move(*PortDirectory::open_file(path())); }
  PortRequest request(u16 port) const { return {.port = port, .places = alive_}; }
  static std::optional<u32> listener(const PortDirectory& ports, u16 port) {
    return ports.read().listener(service_id_of({.port = port}), kThisHost);
  }

  std::string folder_ = "/tmp/verbena-port-directory-test-XXXXXX";
  ProcessChannel channel_ = std::move(*ProcessChannel::claim(random_u64()));  // keeps a slot alive
  const std::vector<PortPlace> alive_{{.address = kThisHost, .slot = channel_.slot()}};
};

TEST_F(PortDirectoryTest, APortIsHadByOneOnly) {
  PortDirectory one = open(), two = open();
  const auto bound = one.bind(request(7000));
  ASSERT_TRUE(bound);
  EXPECT_EQ(bound->port, 7000);
  EXPECT_EQ(two.bind(request(7000)).error().error, EADDRINUSE);
  one.release(bound->owner);
  EXPECT_TRUE(two.bind(request(7000)));
}

TEST_F(PortDirectoryTest, PortZeroIsAnyFreeOne) {
  std::set<u16> ports;
  for (int i = 0; i < 100; ++i) ports.insert(open().bind(request(0)).value().port);
  EXPECT_EQ(ports.size(), 100u);
  EXPECT_GE(*ports.begin(), PortTable::kFirstEphemeral);
}

TEST_F(PortDirectoryTest, ListenersAreSeenByOthers) {
  PortDirectory one = open();
  const auto bound = one.bind(request(7000));
  ASSERT_TRUE(bound);
  EXPECT_EQ(listener(open(), 7000), std::nullopt);
  EXPECT_TRUE(one.listen(bound->owner));
  EXPECT_EQ(listener(open(), 7000), channel_.slot());
  one.release(bound->owner);
  EXPECT_EQ(listener(open(), 7000), std::nullopt);
}

TEST_F(PortDirectoryTest, OnlyOneOfThoseThatReuseAPortListens) {
  PortDirectory ports = open();
  PortRequest reusable = request(7000);
  reusable.reusable = true;
  const auto one = ports.bind(reusable), two = ports.bind(reusable);
  ASSERT_TRUE(one && two);
  EXPECT_EQ(ports.listen(one->owner).error().error, EADDRINUSE);
  ports.release(two->owner);
  EXPECT_TRUE(ports.listen(one->owner));
}

TEST_F(PortDirectoryTest, WhatTheDeadHadIsFree) {
  u32 dead = 0;
  {
    const ProcessChannel gone = std::move(*ProcessChannel::claim(random_u64()));
    dead = gone.slot();
  }
  const std::vector<PortPlace> places{{.address = kThisHost, .slot = dead}};
  PortRequest of_the_dead = request(7000);
  of_the_dead.places = places;
  PortDirectory ports = open();
  ASSERT_TRUE(ports.listen(ports.bind(of_the_dead).value().owner));
  EXPECT_TRUE(ports.bind(request(7000)));
  EXPECT_EQ(listener(ports, 7000), std::nullopt);
}

TEST_F(PortDirectoryTest, ANewOwnerOfASlotForgetsTheOld) {
  PortDirectory ports = open();
  ASSERT_TRUE(ports.bind(request(7000)));
  ports.forget(channel_.slot());
  EXPECT_THAT(ports.read().records(), IsEmpty());
}

TEST_F(PortDirectoryTest, ADamagedFileIsAnEmptyTable) {
  ASSERT_TRUE(open().bind(request(7000)));
  for (const char* text : {"", "short", "a text that is longer than the header of the file is"}) {
    const int fd = ::open(path().c_str(), O_WRONLY | O_TRUNC);
    ASSERT_EQ(::write(fd, text, std::strlen(text)), static_cast<ssize_t>(std::strlen(text)));
    ::close(fd);
    EXPECT_THAT(open().read().records(), IsEmpty());
    EXPECT_TRUE(open().bind(request(7000)));
  }
}

TEST_F(PortDirectoryTest, ThreadsAndProcessesGetDifferentPorts) {
  constexpr int kEach = 50;
  const pid_t child = ::fork();
  if (child == 0) {
    PortDirectory ports = open();
    for (int i = 0; i < kEach; ++i)
      if (!ports.bind(request(0))) ::_exit(1);
    ::_exit(0);
  }
  PortDirectory ports = open();
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < kEach; ++i) EXPECT_TRUE(ports.bind(request(0)));
    });
  for (std::thread& thread : threads) thread.join();
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  std::set<u64> services;
  const PortTable table = ports.read();
  for (const PortRecord& record : table.records()) services.insert(record.service.value);
  EXPECT_EQ(services.size(), 3u * kEach);
}

// A writer that ends in the middle leaves the old table: the place that does not count is written
// first.
TEST_F(PortDirectoryTest, AHalfWrittenTableDoesNotCount) {
  PortDirectory ports = open();
  ASSERT_TRUE(ports.bind(request(7000)));  // generation 1: the second place counts
  const int fd = ::open(path().c_str(), O_WRONLY);
  const std::string rubbish(sizeof(PortRecord), '?');
  ASSERT_EQ(::pwrite(fd, rubbish.data(), rubbish.size(), 24), static_cast<ssize_t>(rubbish.size()));
  ::close(fd);
  EXPECT_EQ(ports.bind(request(7000)).error().error, EADDRINUSE);
  EXPECT_EQ(ports.read().records().size(), 1u);
}

}  // namespace
}  // namespace verbena::host
