// Tests segments between processes: which processes are trusted, and how the end of one is noticed.
#include "host/local/segment.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "host/local/segment_directory.h"

namespace verbena::host {
namespace {

constexpr u32 kSlot = 77;

SegmentPlace place_of(const OwnSegment& segment) {
  return {.pid = static_cast<u32>(::getpid()),
          .fd = static_cast<u32>(segment.fd()),
          .nonce = segment.layout().header.nonce};
}

TEST(SegmentTest, APeerSeesWhatTheOwnerPublishes) {
  const std::vector<GIDEntry> gids{{.gid = *GID::parse("127.0.0.1")}};
  Expected<OwnSegment> own = OwnSegment::create(kSlot, gids);
  ASSERT_TRUE(own);
  Expected<PeerSegment> peer = PeerSegment::open(place_of(*own), kSlot);
  ASSERT_TRUE(peer);
  EXPECT_EQ(peer->header().gid_count, 1u);
  EXPECT_EQ(peer->header().gids[0], gids[0].gid);
  EXPECT_EQ(peer->header().open, 0u);
  own->layout().header.open = 1;
  EXPECT_EQ(peer->header().open, 1u);
  peer->shared().gates.pass_in(5);
  EXPECT_TRUE(AccessGates::is_open(own->layout().shared.gates.look(5)));
}

TEST(SegmentTest, NothingElseIsTakenForOne) {
  Expected<OwnSegment> own = OwnSegment::create(kSlot, {});
  ASSERT_TRUE(own);
  const SegmentPlace right = place_of(*own);
  EXPECT_FALSE(PeerSegment::open(right, kSlot + 1));

  SegmentPlace wrong = right;
  wrong.nonce ^= 1;
  EXPECT_FALSE(PeerSegment::open(wrong, kSlot));
  wrong = right;
  wrong.pid = 0x7fffffff;
  EXPECT_FALSE(PeerSegment::open(wrong, kSlot));
  wrong = right;
  wrong.fd = ~0u;
  EXPECT_FALSE(PeerSegment::open(wrong, kSlot));

  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);  // opening one for reading would wait for a writer
  wrong = right;
  wrong.fd = static_cast<u32>(pipe[0]);
  EXPECT_FALSE(PeerSegment::open(wrong, kSlot));

  // As large, and with the same bytes, but it could be cut short.
  const int copy = ::memfd_create("copy", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  ASSERT_EQ(::ftruncate(copy, kSegmentBytes), 0);
  ASSERT_EQ(::pwrite(copy, &own->layout().header, sizeof(SegmentHeader), 0),
            static_cast<ssize_t>(sizeof(SegmentHeader)));
  wrong.fd = static_cast<u32>(copy);
  EXPECT_FALSE(PeerSegment::open(wrong, kSlot));
  ASSERT_EQ(::fcntl(copy, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
  EXPECT_TRUE(PeerSegment::open(wrong, kSlot));
  for (const int fd : {copy, pipe[0], pipe[1]}) ::close(fd);
}

TEST(SegmentTest, ADirectoryRemembersEachSlot) {
  Expected<SegmentDirectory> directory = SegmentDirectory::open();
  ASSERT_TRUE(directory);
  const std::optional<SegmentPlace> before = directory->find(1023);  // no process has it
  ASSERT_TRUE(directory->set(1023, {.pid = 5, .fd = 6, .nonce = 7}));
  const std::optional<SegmentPlace> place = SegmentDirectory::open()->find(1023);
  ASSERT_TRUE(place.has_value());
  EXPECT_EQ(place->pid, 5u);
  EXPECT_EQ(place->fd, 6u);
  EXPECT_EQ(place->nonce, 7u);
  ASSERT_TRUE(directory->set(1023, before.value_or(SegmentPlace{})));
}

// --- the sign of life

class LifeSignTest : public testing::Test {
 protected:
  LifeSignTest() : segment_(*OwnSegment::create(kSlot, {})) {}
  LifeSign& life() { return segment_.layout().header.life; }
  // A process with a thread that holds the sign, and another that then does `what`.
  template <typename What>
  void start_owner(What what) {
    child_ = ::fork();
    if (child_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      std::thread([this] {
        life().hold();
        ::poll(nullptr, 0, -1);
      }).detach();
      life().wait_until_held();
      what();
      ::poll(nullptr, 0, -1);
    }
    while (!LifeSign::is_alive(life().look())) ::poll(nullptr, 0, 1);
  }
  void end_owner() {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }

  OwnSegment segment_;
  pid_t child_ = 0;
};

TEST_F(LifeSignTest, LooksTheSameWhileItsThreadLives) {
  EXPECT_FALSE(LifeSign::is_alive(life().look()));
  start_owner([] {});
  const LifeSign::Look look = life().look();
  EXPECT_TRUE(LifeSign::is_alive(look));
  EXPECT_EQ(life().look(), look);
  end_owner();
}

TEST_F(LifeSignTest, ChangesWhenItsProcessIsKilled) {
  start_owner([] {});
  const LifeSign::Look look = life().look();
  end_owner();
  EXPECT_NE(life().look(), look);
  EXPECT_FALSE(LifeSign::is_alive(life().look()));
}

TEST_F(LifeSignTest, ChangesWhenItsProcessRunsAnotherProgram) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  start_owner([to = pipe[1]] {
    ::poll(nullptr, 0, 50);
    ::dup2(to, 1);
    ::execlp("sh", "sh", "-c", "echo here; exec sleep 60", nullptr);
  });
  const LifeSign::Look look = life().look();
  char byte = 0;
  ASSERT_EQ(::read(pipe[0], &byte, 1), 1);  // the same process, another program
  EXPECT_FALSE(LifeSign::is_alive(life().look()));
  EXPECT_NE(life().look(), look);
  end_owner();
  for (const int fd : pipe) ::close(fd);
}

TEST_F(LifeSignTest, ChangesWhenItIsReleased) {
  std::thread([this] {
    life().hold();
    EXPECT_TRUE(LifeSign::is_alive(life().look()));
    life().release();
  }).join();
  EXPECT_FALSE(LifeSign::is_alive(life().look()));
}

}  // namespace
}  // namespace verbena::host
