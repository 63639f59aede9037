// Several processes on one address: every frame reaches the process whose QPN it names, while
// others join, leave and are killed. The members are forked; this process sends to them and
// watches.
#include "host/sharing/port_group.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "base/prng.h"
#include "host/links/udp_link.h"
#include "host/network/socket_address.h"
#include "host/os/clock.h"
#include "host/sharing/qpn_slot.h"
#include "wire/ib/bth.h"
#include "wire/ib/deth.h"
#include "wire/ib/mad.h"
#include "wire/roce/icrc.h"

namespace verbena::host {
namespace {

constexpr Duration kPatience = sec(10);
constexpr int kPatienceMs = 10'000;

// A file for the directory, removed at the end.
class DirectoryFile {
 public:
  DirectoryFile() {
    const int fd = ::mkstemp(path_.data());
    EXPECT_GE(fd, 0);
    ::close(fd);
  }
  ~DirectoryFile() { remove(); }
  void remove() const { ::unlink(path_.c_str()); }
  Directory open() const { return std::move(*Directory::open_file(path_)); }

 private:
  std::string path_ = "/tmp/verbena-port-group-test-XXXXXX";
};

LocalAddress address_of(const char* ip) { return choose_local_addresses(ip)->front(); }

GID gid_of(const LocalAddress& address) { return address.ipv4 ? *address.ipv4 : *address.ipv6; }

bool is_readable(int fd, int timeout_ms) {
  pollfd waiting{.fd = fd, .events = POLLIN, .revents = 0};
  return ::poll(&waiting, 1, timeout_ms) == 1;
}

struct Report {
  u32 number = 0;      // of the frame
  bool direct = true;  // false: another process had it first
};

// A process with a UDPLink that reports each frame it gets.
class Member {
 public:
  Member(const LocalAddress& address, const DirectoryFile& directory) {
    std::array<int, 2> reports{}, commands{};
    EXPECT_EQ(::pipe(reports.data()), 0);
    EXPECT_EQ(::pipe(commands.data()), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      run(address, directory, reports[1], commands[0]);
    }
    ::close(reports[1]);
    ::close(commands[0]);
    reports_ = Descriptor(reports[0]);
    commands_ = Descriptor(commands[1]);
    EXPECT_EQ(::read(reports_.get(), &slot_, sizeof(slot_)), static_cast<ssize_t>(sizeof(slot_)));
  }
  ~Member() {
    if (pid_ > 0) kill();
  }

  u32 slot() const { return slot_; }
  std::optional<Report> next_report(int timeout_ms) const {
    Report report;
    if (!is_readable(reports_.get(), timeout_ms)) return std::nullopt;
    if (::read(reports_.get(), &report, sizeof(report)) != sizeof(report)) return std::nullopt;
    return report;
  }
  void leave() {
    EXPECT_EQ(::write(commands_.get(), "", 1), 1);
    end();
  }
  void kill() {
    ::kill(pid_, SIGKILL);
    end();
  }
  void stop() const { ::kill(pid_, SIGSTOP); }
  void go_on() const { ::kill(pid_, SIGCONT); }

 private:
  // Ends at a command, or with its parent.
  [[noreturn]] static void run(const LocalAddress& address, const DirectoryFile& directory,
                               int reports, int commands) {
    auto link = UDPLink::open(address, static_cast<u64>(::getpid()), directory.open());
    if (!link) ::_exit(1);
    const u32 slot = (*link)->slot();
    (void)!::write(reports, &slot, sizeof(slot));
    report_all(**link, reports);  // what came while it joined
    std::vector<pollfd> waiting{{.fd = commands, .events = POLLIN, .revents = 0}};
    for (const int fd : (*link)->descriptors())
      waiting.push_back({.fd = fd, .events = POLLIN, .revents = 0});
    while (::poll(waiting.data(), waiting.size(), -1) > 0 && waiting[0].revents == 0)
      while ((*link)->receive(Look::kEverywhere)) report_all(**link, reports);
    (*link)->leave();
    ::_exit(0);
  }
  static void report_all(UDPLink& link, int reports) {
    u64 taken_over = link.counters().taken_over;
    for (IngressFrame frame; link.poll_frame(frame, monotonic_now());) {
      const Report report{.number = load_be32(frame.transport.data() + BTH::kSize),
                          .direct = taken_over == link.counters().taken_over};
      taken_over = link.counters().taken_over;
      (void)!::write(reports, &report, sizeof(report));
    }
  }
  void end() {
    int status = 0;
    EXPECT_EQ(::waitpid(pid_, &status, 0), pid_);
    pid_ = -1;
  }

  pid_t pid_ = -1;
  u32 slot_ = 0;
  Descriptor reports_, commands_;
};

class PortGroupTest : public testing::TestWithParam<const char*> {
 protected:
  PortGroupTest()
      : address_(address_of(GetParam())),
        socket_(::socket(family_of(gid_of(address_)), SOCK_DGRAM | SOCK_CLOEXEC, 0)) {}

  void join() { members_.push_back(std::make_unique<Member>(address_, file_)); }
  std::unique_ptr<Member> take(std::size_t index) {
    std::unique_ptr<Member> member = std::move(members_[index]);
    members_.erase(members_.begin() + static_cast<std::ptrdiff_t>(index));
    return member;
  }
  // A frame for the first QPN of `slot`, as large as a MAD; its number is in the payload.
  u32 send_to(u32 slot) { return send_to(first_qpn_of(slot)); }
  u32 send_to(QPN qpn) {
    std::array<u8, BTH::kSize + DETH::kSize + kMADSize + kICRCSize> bytes{};
    BTH bth;
    bth.opcode = {Service::kUD, Op::kSendOnly};
    bth.dest_qp = qpn;
    bth.encode(std::span(bytes).first<BTH::kSize>());
    store_be32(bytes.data() + BTH::kSize, ++number_);
    const SocketAddress to(gid_of(address_), kRoCEv2Port, address_.interface_index);
    EXPECT_EQ(::sendto(socket_.get(), bytes.data(), bytes.size(), 0, to.data(), to.size()),
              static_cast<ssize_t>(bytes.size()));
    return number_;
  }
  // Sends one frame to each member; whether all came directly. All must come.
  bool all_are_reached_directly() {
    bool direct = true;
    for (const auto& member : members_) {
      const u32 number = send_to(member->slot());
      const auto report = member->next_report(kPatienceMs);
      EXPECT_TRUE(report.has_value()) << "slot " << member->slot();
      if (!report) return false;
      EXPECT_EQ(report->number, number);
      direct &= report->direct;
    }
    return direct;
  }
  // After a kill the kernel's order is unknown to all, until one finds out.
  bool all_are_reached_directly_in_time() {
    const Time deadline = monotonic_now() + kPatience;
    while (monotonic_now() < deadline && !HasFailure())
      if (all_are_reached_directly()) return true;
    return false;
  }

  DirectoryFile file_;
  LocalAddress address_;
  Descriptor socket_;
  std::vector<std::unique_ptr<Member>> members_;
  u32 number_ = 0;
};

TEST_P(PortGroupTest, EachMemberGetsItsOwnFrames) {
  for (int i = 0; i < 5; ++i) {
    join();
    EXPECT_TRUE(all_are_reached_directly()) << i;
  }
}

// Between its bind() and its program the kernel draws, and both get what is for the first.
TEST_P(PortGroupTest, AJoinTakesNothingFromWhoWasAlone) {
  constexpr u32 kFrames = 2000;
  join();
  const u32 slot = members_[0]->slot();
  const pid_t sender = ::fork();
  if (sender == 0) {
    for (u32 i = 0; i < kFrames; ++i) {
      socket_ = Descriptor(::socket(family_of(gid_of(address_)), SOCK_DGRAM | SOCK_CLOEXEC, 0));
      send_to(slot);
      ::usleep(5);
    }
    ::_exit(0);
  }
  join();
  int status = 0;
  EXPECT_EQ(::waitpid(sender, &status, 0), sender);
  std::vector<bool> came(kFrames + 1, false);
  for (u32 i = 0; i < kFrames; ++i) {
    const auto report = members_[0]->next_report(kPatienceMs);
    ASSERT_TRUE(report.has_value()) << i;
    EXPECT_FALSE(came[report->number]);
    came[report->number] = true;
  }
  EXPECT_FALSE(members_[1]->next_report(0).has_value());
  EXPECT_TRUE(all_are_reached_directly());
}

TEST_P(PortGroupTest, OthersAreNotDisturbedByALeave) {
  for (int i = 0; i < 5; ++i) join();
  for (const std::size_t leaving : {0u, 3u, 1u, 0u}) {
    take(leaving)->leave();
    EXPECT_TRUE(all_are_reached_directly()) << leaving;
  }
  join();
  EXPECT_TRUE(all_are_reached_directly());
}

// Between leaving and close() the leaving process must receive nothing for another: no process
// would take it.
TEST_P(PortGroupTest, WhoHasLeftGetsNothingMoreThoughItsSocketIsOpen) {
  Directory directory = file_.open();
  auto channel = ProcessChannel::claim(700);
  ASSERT_TRUE(channel.has_value());
  const GID address = gid_of(address_);
  auto receiver = DatagramReceiver::open(address, address_.interface_index);
  auto sender = SourcePorts::open(address, address_.interface_index);
  ASSERT_TRUE(receiver.has_value() && sender.has_value());
  PortGroup leaving({.directory = directory,
                     .channel = *channel,
                     .receiver = *receiver,
                     .sender = **sender,
                     .interface_index = address_.interface_index});
  const auto joined = leaving.join(*directory.lock(kPatience));
  ASSERT_TRUE(joined.has_value()) << joined.error().message;
  auto link = UDPLink::open(address_, 500, file_.open());  // the last, which takes our place
  ASSERT_TRUE(link.has_value());
  {
    const auto lock = directory.lock(kPatience);
    ASSERT_TRUE(lock.has_value());
    leaving.leave(&*lock);
  }
  send_to((*link)->slot());
  EXPECT_TRUE(is_readable((*link)->descriptors()[0], kPatienceMs));
  EXPECT_FALSE(is_readable(receiver->fd(), 0));
}

TEST_P(PortGroupTest, AJoinAfterAKillSetsTheOrderRight) {
  for (int i = 0; i < 4; ++i) join();
  take(0)->kill();
  take(1)->kill();
  join();
  EXPECT_TRUE(all_are_reached_directly());
}

TEST_P(PortGroupTest, MisdirectedFramesSetTheOrderRightAfterAKill) {
  for (int i = 0; i < 5; ++i) join();
  take(0)->kill();
  EXPECT_TRUE(all_are_reached_directly_in_time());
  take(2)->kill();
  take(0)->kill();
  EXPECT_TRUE(all_are_reached_directly_in_time());
}

TEST_P(PortGroupTest, AMemberWithoutAnAnswerDelaysAJoinButDoesNotPreventIt) {
  for (int i = 0; i < 3; ++i) join();
  take(0)->kill();
  members_[0]->stop();
  join();
  members_[0]->go_on();
  EXPECT_TRUE(all_are_reached_directly_in_time());
}

// The process that receives an unclaimed MAD takes it.
TEST_P(PortGroupTest, QP1IsServedThoughAMemberIsStopped) {
  for (int i = 0; i < 3; ++i) join();
  members_[0]->stop();
  bool reached = false;
  for (int tries = 0; tries < 100 && !reached; ++tries) {
    send_to(kGSIQPN);
    for (const std::size_t live : {1u, 2u}) reached |= members_[live]->next_report(20).has_value();
  }
  EXPECT_TRUE(reached);
  members_[0]->go_on();
}

TEST_P(PortGroupTest, ALostDirectoryIsFoundOutByProbing) {
  for (int i = 0; i < 3; ++i) join();
  file_.remove();
  join();
  EXPECT_TRUE(all_are_reached_directly());
}

TEST_P(PortGroupTest, AnyOrderOfJoinLeaveAndKill) {
  const u64 seed = 20240607;
  PRNG prng(seed);
  for (int step = 0; step < 40; ++step) {
    if (members_.empty() || (members_.size() < 7 && prng.chance(0.5))) {
      join();
    } else {
      const std::unique_ptr<Member> member = take(prng.below(members_.size()));
      prng.chance(0.5) ? member->leave() : member->kill();
    }
    ASSERT_TRUE(all_are_reached_directly_in_time()) << "step " << step << " of seed " << seed;
  }
}

// The program in the kernel is made wrong on purpose.
TEST_P(PortGroupTest, AMisdirectedFrameIsHandedOnOnce) {
  join();
  auto link = UDPLink::open(address_, 500, file_.open());
  ASSERT_TRUE(link.has_value());
  const u32 other = members_[0]->slot();
  ASSERT_TRUE(attach_steering((*link)->descriptors()[0], {{.slot = other, .index = 1},
                                                          {.slot = (*link)->slot(), .index = 0}}));
  const u32 number = send_to(other);
  ASSERT_TRUE(is_readable((*link)->descriptors()[0], kPatienceMs));
  ASSERT_TRUE((*link)->receive(Look::kEverywhere));
  IngressFrame frame;
  EXPECT_FALSE((*link)->poll_frame(frame, monotonic_now()));
  EXPECT_EQ((*link)->counters().handed_on, 1u);
  const auto report = members_[0]->next_report(kPatienceMs);
  ASSERT_TRUE(report.has_value());
  EXPECT_EQ(report->number, number);
  EXPECT_FALSE(report->direct);

  const Time deadline = monotonic_now() + kPatience;  // and the program is set right
  bool direct = false;
  while (!direct && monotonic_now() < deadline) {
    send_to(other);
    std::optional<Report> next;
    while (!(next = members_[0]->next_report(1)) && monotonic_now() < deadline)
      while ((*link)->receive(Look::kEverywhere))
        while ((*link)->poll_frame(frame, monotonic_now())) continue;
    direct = next && next->direct;
  }
  EXPECT_TRUE(direct);
}

TEST_P(PortGroupTest, AFrameForASlotThatNobodyHasIsDropped) {
  auto link = UDPLink::open(address_, 500, file_.open());
  ASSERT_TRUE(link.has_value());
  u32 nobody = kLastSlot;
  while (ProcessChannel::is_alive(nobody)) --nobody;
  send_to(nobody);
  ASSERT_TRUE(is_readable((*link)->descriptors()[0], kPatienceMs));
  ASSERT_TRUE((*link)->receive(Look::kEverywhere));
  IngressFrame frame;
  EXPECT_FALSE((*link)->poll_frame(frame, monotonic_now()));
  EXPECT_EQ((*link)->counters().receive_dropped, 1u);
}

TEST_P(PortGroupTest, AForeignSocketOnThePortIsToldInOneLine) {
  const Descriptor foreign(::socket(family_of(gid_of(address_)), SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const SocketAddress at(gid_of(address_), kRoCEv2Port, address_.interface_index);
  ASSERT_EQ(::bind(foreign.get(), at.data(), at.size()), 0);
  const auto link = UDPLink::open(address_, 500, file_.open());
  ASSERT_FALSE(link.has_value());
  EXPECT_EQ(link.error().error, EADDRINUSE);
  EXPECT_EQ(link.error().message.find("UDP port 4791 on "), 0u) << link.error().message;
  EXPECT_EQ(link.error().message.find('\n'), std::string::npos);
}

std::string family_name(const testing::TestParamInfo<const char*>& tested) {
  return tested.index == 0 ? "IPv4" : "IPv6";
}
INSTANTIATE_TEST_SUITE_P(Families, PortGroupTest, testing::Values("127.0.0.71", "::1"),
                         family_name);

}  // namespace
}  // namespace verbena::host
