#include "host/sharing/steering_program.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "connect/comm_id_space.h"
#include "host/encryption/host_keys.h"
#include "host/links/vxlan_stage.h"
#include "host/os/socket_option.h"
#include "host/sharing/probe_packet.h"
#include "host/sharing/qpn_slot.h"
#include "wire/ib/bth.h"
#include "wire/ib/cm/attribute.h"
#include "wire/ib/deth.h"
#include "wire/ib/mad.h"

namespace verbena::host {
namespace {

constexpr u32 kMADAt = BTH::kSize + DETH::kSize;
constexpr u32 kAttributeIdAt = kMADAt + 16;
constexpr u32 kLocalIdAt = kMADAt + MADHeader::kSize;  // SIDRREP: the ID of who asked
constexpr u32 kRemoteIdAt = kLocalIdAt + 4;
constexpr u32 kRandom = static_cast<u32>(SKF_AD_OFF + SKF_AD_RANDOM);

constexpr u32 value_of(cm::Attribute attribute) { return static_cast<u32>(attribute); }

u32 end_of(const std::vector<Steer>& table) {
  u32 end = 1;
  for (const Steer& steer : table) end = std::max(end, steer.index + 1);
  return end;
}

// Returns the offset of the BTH in the UDP payload.
u32 bth_place_of(SteerBy by) {
  switch (by) {
    case SteerBy::kDestQP:
    case SteerBy::kSPI: return 0;
    case SteerBy::kDestQPInVXLANOverIPv4: return kVXLANHeadOverIPv4;
    case SteerBy::kDestQPInVXLANOverIPv6: return kVXLANHeadOverIPv6;
  }
  CHECK_UNREACHABLE();
}

// A balanced tree of comparisons: `sorted` by slot, the slot in the accumulator.
void emit_search(std::span<const Steer> sorted, std::vector<sock_filter>& out) {
  if (sorted.size() == 1) {
    out.push_back(BPF_STMT(BPF_RET | BPF_K, sorted[0].index));
    return;
  }
  const std::size_t middle = sorted.size() / 2;
  out.push_back(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, sorted[middle].slot, 0, 1));
  const std::size_t jump = out.size();
  out.push_back(BPF_STMT(BPF_JMP | BPF_JA, 0));
  emit_search(sorted.first(middle), out);
  out[jump].k = static_cast<u32>(out.size() - jump - 1);
  emit_search(sorted.subspan(middle), out);
}

// Nothing but the SPI is known of a PSP packet: this takes the place of all between the probe and
// the search, with the slot in the accumulator, and jumps to the two that stand behind it.
void slot_from_spi(std::vector<sock_filter>& program) {
  constexpr std::size_t kBegin = 7, kEnd = 21;
  const std::array<sock_filter, 4> by_spi = {{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, PSPHeader::kSPIAt),
      BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, kSPINumberBits),
      BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0x3ff),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 3),
  }};
  program.erase(program.begin() + kBegin, program.begin() + kEnd);
  program.insert(program.begin() + kBegin, by_spi.begin(), by_spi.end());
}

}  // namespace

std::vector<sock_filter> steering_program(std::vector<Steer> table, SteerBy by) {
  const u32 bth = bth_place_of(by);
  CHECK(table.size() <= kMaxSteered);
  const u32 end = end_of(table);
  if (table.empty()) table.push_back({});
  std::ranges::sort(table, {}, &Steer::slot);
  std::vector<sock_filter> program = {
      // A probe: 0
      BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ProbePacket::kOpCode, 0, 5),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, ProbePacket::kMagicAt),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ProbePacket::kMagic, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, ProbePacket::kTargetAt),
      BPF_STMT(BPF_ALU | BPF_AND | BPF_K, kMask24),
      BPF_STMT(BPF_RET | BPF_A, 0),
      // FECN, BECN, reserved, DestQP: 7
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, bth + 4),
      BPF_STMT(BPF_ALU | BPF_AND | BPF_K, kMask24),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kGSIQPN.value, 0, 9),
      // A MAD, and whose it is: 10
      BPF_STMT(BPF_LD | BPF_H | BPF_ABS, bth + kAttributeIdAt),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value_of(cm::Attribute::kREQ), 9, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value_of(cm::Attribute::kSIDRREQ), 8, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value_of(cm::Attribute::kSIDRREP), 0, 2),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, bth + kLocalIdAt),
      BPF_STMT(BPF_JMP | BPF_JA, 1),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, bth + kRemoteIdAt),
      BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, kCommIdRandomBits),
      BPF_STMT(BPF_JMP | BPF_JA, 1),
      // The slot: 19
      BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, kQPNIndexBits),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 3),
      // Nobody's: 21
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kRandom),
      BPF_STMT(BPF_ALU | BPF_MOD | BPF_K, end),
      BPF_STMT(BPF_RET | BPF_A, 0),
  };
  if (by == SteerBy::kSPI) slot_from_spi(program);
  emit_search(table, program);
  return program;
}

bool attach_steering(int fd, std::vector<Steer> table, SteerBy by) {
  std::vector<sock_filter> program = steering_program(std::move(table), by);
  const sock_fprog attached{.len = static_cast<unsigned short>(program.size()),
                            .filter = program.data()};
  return set_option(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, attached);
}

void detach_steering(int fd) { (void)set_option(fd, SOL_SOCKET, SO_DETACH_REUSEPORT_BPF, 0); }

}  // namespace verbena::host
