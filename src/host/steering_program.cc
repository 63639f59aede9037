#include "host/steering_program.h"

#include <algorithm>

#include "base/check.h"
#include "host/probe_packet.h"
#include "host/qpn_slot.h"
#include "host/socket_option.h"

namespace verbena::host {
namespace {

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

}  // namespace

std::vector<sock_filter> steering_program(std::vector<Steer> table) {
  CHECK(table.size() <= kMaxSteered);
  table.push_back({.slot = 0, .index = 0});
  std::ranges::sort(table, {}, &Steer::slot);
  std::vector<sock_filter> program = {
      BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ProbePacket::kOpCode, 0, 5),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, ProbePacket::kMagicAt),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ProbePacket::kMagic, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, ProbePacket::kTargetAt),
      BPF_STMT(BPF_ALU | BPF_AND | BPF_K, kMask24),
      BPF_STMT(BPF_RET | BPF_A, 0),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 4),  // FECN, BECN, reserved, DestQP
      BPF_STMT(BPF_ALU | BPF_AND | BPF_K, kMask24),
      BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, kQPNIndexBits),
  };
  emit_search(table, program);
  return program;
}

bool attach_steering(int fd, std::vector<Steer> table) {
  std::vector<sock_filter> program = steering_program(std::move(table));
  const sock_fprog attached{.len = static_cast<unsigned short>(program.size()),
                            .filter = program.data()};
  return set_option(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, attached);
}

}  // namespace verbena::host
