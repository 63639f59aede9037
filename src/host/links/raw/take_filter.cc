#include "host/links/raw/take_filter.h"

#include <linux/if_packet.h>

#include <span>

#include "base/check.h"
#include "host/os/socket_option.h"
#include "wire/eth/udp.h"

namespace verbena::host {
namespace {

constexpr u32 kAll = ~0u, kNothing = 0;
constexpr u32 kPacketType = static_cast<u32>(SKF_AD_OFF + SKF_AD_PKTTYPE);
constexpr u32 kVLANTag = static_cast<u32>(SKF_AD_OFF + SKF_AD_VLAN_TAG);
constexpr u32 kInterface = static_cast<u32>(SKF_AD_OFF + SKF_AD_IFINDEX);
constexpr u32 kVLANIdMask = 0xfff;

u16 load_of(FieldSize size) {
  switch (size) {
    case FieldSize::kByte: return BPF_LD | BPF_ABS | BPF_B;
    case FieldSize::kHalf: return BPF_LD | BPF_ABS | BPF_H;
    case FieldSize::kWord: return BPF_LD | BPF_ABS | BPF_W;
  }
  CHECK_UNREACHABLE();
}

// Gives `verdict` where all tests hold; else goes on behind.
void add_case(std::span<const FieldTest> tests, u32 verdict, std::vector<sock_filter>& program) {
  constexpr std::size_t kInstructions = 3;  // of a test
  for (std::size_t i = 0; i < tests.size(); ++i) {
    const FieldTest& test = tests[i];
    const auto to_end = static_cast<u8>((tests.size() - i - 1) * kInstructions + 1);
    program.push_back(BPF_STMT(load_of(test.size), test.at));
    program.push_back(BPF_STMT(BPF_ALU | BPF_AND | BPF_K, test.mask));
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, test.value, 0, to_end));
  }
  program.push_back(BPF_STMT(BPF_RET | BPF_K, verdict));
}

// Not to this host, or of another VLAN. (VLAN 0 is none: 802.1Q, 9.6)
void refuse_what_is_not_ours(u32 vlan, std::vector<sock_filter>& program) {
  const std::vector<sock_filter> first = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kPacketType),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PACKET_HOST, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kVLANTag),
      BPF_STMT(BPF_ALU | BPF_AND | BPF_K, kVLANIdMask),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, vlan, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, kNothing),
  };
  program.insert(program.end(), first.begin(), first.end());
}

}  // namespace

std::vector<sock_filter> take_filter(const TakenTraffic& taken) {
  std::vector<sock_filter> program;
  refuse_what_is_not_ours(taken.vlan.value_or(0), program);
  for (const TakenCase& one : cases_of(taken)) add_case(one.tests, kAll, program);
  program.push_back(BPF_STMT(BPF_RET | BPF_K, kNothing));
  CHECK(program.size() <= BPF_MAXINSNS);
  return program;
}

// A datagram that is too short for the last test is dropped, as a packet without BTH would be.
std::vector<sock_filter> leave_filter(const TakenTraffic& taken) {
  const std::vector<FieldTest> tests = {{FieldSize::kWord, kInterface, kAll, taken.interface_index},
                                        {FieldSize::kWord, kPacketType, kAll, PACKET_HOST},
                                        slot_test(*taken.slot, taken.steer_by, UDPHeader::kSize)};
  std::vector<sock_filter> program;
  add_case(tests, kNothing, program);
  program.push_back(BPF_STMT(BPF_RET | BPF_K, kAll));
  return program;
}

bool attach_filter(int fd, std::vector<sock_filter> program) {
  const sock_fprog code{.len = static_cast<unsigned short>(program.size()),
                        .filter = program.data()};
  return set_option(fd, SOL_SOCKET, SO_ATTACH_FILTER, code);
}

}  // namespace verbena::host
