// The kernel runs the program, on a socket that needs no privilege: a pair of Unix ones, whose
// packets have the type PACKET_HOST and no VLAN tag.
#include "host/links/raw/take_filter.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include "host/links/raw/raw_frame_for_test.h"
#include "host/links/raw/xdp_program.h"
#include "host/os/descriptor.h"

namespace verbena::host {
namespace {

using test::RawFrame;

constexpr u32 kSlot = 3;
constexpr QPN kOurs{(kSlot << 14) + 5};
const GID kIPv6OfA = *GID::parse("fe80::1"), kIPv6OfB = *GID::parse("fe80::2");

TakenTraffic taken() {
  return {.addresses = {test::kIPv4OfB, kIPv6OfB}, .slot = kSlot, .interface_index = 1, .mac = {}};
}

class TakeFilterTest : public ::testing::Test {
 protected:
  void SetUp() override {
    int fds[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, fds), 0);
    sender_ = Descriptor(fds[0]);
    receiver_ = Descriptor(fds[1]);
    ASSERT_TRUE(attach_filter(receiver_.get(), take_filter(taken())));
  }
  bool takes(std::span<const u8> frame) {
    (void)::send(sender_.get(), frame.data(), frame.size(), 0);  // EPERM: the filter's no
    std::array<u8, 8192> got;
    return ::recv(receiver_.get(), got.data(), got.size(), 0) == static_cast<ssize_t>(frame.size());
  }
  bool takes(GIDType type, const GID& from, const GID& to, QPN qpn) {
    return takes(RawFrame(type, from, to, qpn, 64).bytes());
  }
  Descriptor sender_, receiver_;
};

TEST_F(TakeFilterTest, BothVersionsToAnyAddressOfOurs) {
  for (const GIDType type : {GIDType::kRoCEv1, GIDType::kRoCEv2}) {
    EXPECT_TRUE(takes(type, test::kIPv4OfA, test::kIPv4OfB, kOurs));
    EXPECT_TRUE(takes(type, kIPv6OfA, kIPv6OfB, kOurs));
    EXPECT_FALSE(takes(type, test::kIPv4OfA, GID::from_ipv4(0x0a4d0003), kOurs));
    EXPECT_FALSE(takes(type, kIPv6OfA, *GID::parse("fe80::3"), kOurs));
    EXPECT_FALSE(takes(type, kIPv6OfA, *GID::parse("fe81::2"), kOurs));
  }
}

TEST_F(TakeFilterTest, OnlyQPsOfThisProcess) {
  for (const GIDType type : {GIDType::kRoCEv1, GIDType::kRoCEv2})
    for (const u32 qpn : {0x1u, ((kSlot - 1) << 14) + 5, ((kSlot + 1) << 14) + 5, 0xffffffu})
      EXPECT_FALSE(takes(type, test::kIPv4OfA, test::kIPv4OfB, QPN{qpn})) << qpn;
}

// As the port of a NIC process, whose functions have these addresses.
TEST_F(TakeFilterTest, AllQPsWithoutASlot) {
  TakenTraffic all = taken();
  all.slot.reset();
  ASSERT_TRUE(attach_filter(receiver_.get(), take_filter(all)));
  for (const u32 qpn : {0x1u, ((kSlot - 1) << 14) + 5, kOurs.value}) {
    EXPECT_TRUE(takes(GIDType::kRoCEv2, test::kIPv4OfA, test::kIPv4OfB, QPN{qpn})) << qpn;
    EXPECT_TRUE(takes(GIDType::kRoCEv2, kIPv6OfA, kIPv6OfB, QPN{qpn})) << qpn;
    EXPECT_FALSE(takes(GIDType::kRoCEv1, kIPv6OfA, kIPv6OfB, QPN{qpn})) << qpn;
    EXPECT_FALSE(takes(GIDType::kRoCEv2, test::kIPv4OfA, GID::from_ipv4(0x0a4d0003), QPN{qpn}));
  }
}

// The sockets of this test have no tags: a filter for a VLAN takes nothing from them. QP 1 is for
// the process that is told to take it, and RoCEv1 for none.
TEST_F(TakeFilterTest, VLANsAndManagement) {
  TakenTraffic tagged = taken();
  tagged.vlan = 100;
  ASSERT_TRUE(attach_filter(receiver_.get(), take_filter(tagged)));
  EXPECT_FALSE(takes(GIDType::kRoCEv2, test::kIPv4OfA, test::kIPv4OfB, kOurs));
  tagged.vlan = 0;  // as if there was a tag: the kernel says 0 of those without
  tagged.takes_management = true;
  ASSERT_TRUE(attach_filter(receiver_.get(), take_filter(tagged)));
  for (const QPN qpn : {kOurs, kGSIQPN}) {
    EXPECT_TRUE(takes(GIDType::kRoCEv2, test::kIPv4OfA, test::kIPv4OfB, qpn));
    EXPECT_TRUE(takes(GIDType::kRoCEv2, kIPv6OfA, kIPv6OfB, qpn));
    EXPECT_FALSE(takes(GIDType::kRoCEv1, test::kIPv4OfA, test::kIPv4OfB, qpn));
  }
}

// A PSP packet is taken by the slot in its SPI; nothing is taken in clear.
TEST_F(TakeFilterTest, WhereItEncryptsOnlyPSPOfThisProcess) {
  TakenTraffic encrypted = taken();
  encrypted.udp_port = kPSPPort;
  encrypted.steer_by = SteerBy::kSPI;
  ASSERT_TRUE(attach_filter(receiver_.get(), take_filter(encrypted)));
  const OpenSSL& ssl = **OpenSSL::load();
  const auto sealed = [&](u32 slot, u16 port) {
    PSPSender sender(ssl, {.spi = slot << kSPINumberBits | 9, .key = {}}, 1, 0);
    return RawFrame(GIDType::kRoCEv2, test::kIPv4OfA, test::kIPv4OfB, kOurs, 64)
        .bytes({.sealer = &sender, .udp_port = port});
  };
  EXPECT_TRUE(takes(sealed(kSlot, kPSPPort)));
  EXPECT_FALSE(takes(sealed(kSlot + 1, kPSPPort)));
  EXPECT_FALSE(takes(sealed(kSlot, kRoCEv2Port)));
  for (const GIDType type : {GIDType::kRoCEv1, GIDType::kRoCEv2})
    EXPECT_FALSE(takes(type, test::kIPv4OfA, test::kIPv4OfB, kOurs));
}

// Each of these bits makes another packet of it: EtherType, version, flags, protocol, port.
TEST_F(TakeFilterTest, NothingElse) {
  const std::vector<u8> frame =
      RawFrame(GIDType::kRoCEv2, test::kIPv4OfA, test::kIPv4OfB, kOurs, 64).bytes();
  ASSERT_TRUE(takes(frame));
  for (const std::size_t at : {12u, 13u, 14u, 21u, 23u, 36u, 37u}) {
    std::vector<u8> other = frame;
    other[at] ^= 0x10;
    EXPECT_FALSE(takes(other)) << at;
  }
  EXPECT_FALSE(takes(std::span(frame).first(30)));
}

// Jumps stay inside the program, and it ends in all cases: the kernel has checked the classic one;
// of the other, every jump leads to the start of a case or to the end.
TEST(XDPProgramTest, JumpsLeadToInstructions) {
  const std::vector<bpf_insn> program = xdp_program(taken(), 3);
  for (std::size_t i = 0; i < program.size(); ++i) {
    const u8 kind = program[i].code & 7;
    const bool jumps = (kind == BPF_JMP || kind == BPF_JMP32) &&
                       program[i].code != (BPF_JMP | BPF_CALL) &&
                       program[i].code != (BPF_JMP | BPF_EXIT);
    if (!jumps) continue;
    const std::size_t to = i + 1 + static_cast<std::size_t>(program[i].off);
    ASSERT_LT(to, program.size());
    EXPECT_EQ(program[to - 1].code, BPF_JMP | BPF_EXIT) << "behind the case of " << i;
  }
  EXPECT_EQ(program.back().code, BPF_JMP | BPF_EXIT);
}

}  // namespace
}  // namespace verbena::host
