#include "host/links/raw/xdp_program.h"

#include <arpa/inet.h>
#include <linux/if_link.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "base/bytes.h"
#include "base/check.h"
#include "host/links/raw/xdp_error.h"

namespace verbena::host {
namespace {

enum Register : u8 { kR0, kR1, kR2, kR3, kR4, kR5, kR6 };
constexpr Register kContext = kR6, kPacket = kR2, kPacketEnd = kR3, kValue = kR5;

bpf_insn instruction(u32 code, Register to, Register from, std::int16_t offset,
                     std::int32_t immediate) {
  bpf_insn one{};
  one.code = static_cast<u8>(code);
  one.dst_reg = to & 15;
  one.src_reg = from & 15;
  one.off = offset;
  one.imm = immediate;
  return one;
}
bpf_insn move(Register to, Register from) {
  return instruction(BPF_ALU64 | BPF_MOV | BPF_X, to, from, 0, 0);
}
bpf_insn set(Register to, std::int32_t value) {
  return instruction(BPF_ALU64 | BPF_MOV | BPF_K, to, kR0, 0, value);
}
bpf_insn add(Register to, u32 value) {
  return instruction(BPF_ALU64 | BPF_ADD | BPF_K, to, kR0, 0, static_cast<std::int32_t>(value));
}
bpf_insn load(u32 size, Register to, Register base, std::size_t at) {
  return instruction(BPF_LDX | BPF_MEM | size, to, base, static_cast<std::int16_t>(at), 0);
}
bpf_insn end() { return instruction(BPF_JMP | BPF_EXIT, kR0, kR0, 0, 0); }

// The value as a load by this machine, of a field in network order, gives it.
u32 as_loaded(FieldSize size, u32 value) {
  switch (size) {
    case FieldSize::kByte: return value;
    case FieldSize::kHalf: return htons(static_cast<u16>(value));
    case FieldSize::kWord: return htonl(value);
  }
  CHECK_UNREACHABLE();
}

u32 load_size(FieldSize size) {
  switch (size) {
    case FieldSize::kByte: return BPF_B;
    case FieldSize::kHalf: return BPF_H;
    case FieldSize::kWord: return BPF_W;
  }
  CHECK_UNREACHABLE();
}

// To the socket of this queue: bpf_redirect_map(map, queue, XDP_PASS), where there is none: PASS.
void add_redirect(int map_fd, std::vector<bpf_insn>& program) {
  program.push_back(
      instruction(BPF_LD | BPF_IMM | BPF_DW, kR1, Register{BPF_PSEUDO_MAP_FD}, 0, map_fd));
  program.push_back(bpf_insn{});  // the upper half of the 64-bit value
  program.push_back(load(BPF_W, kR2, kContext, offsetof(xdp_md, rx_queue_index)));
  program.push_back(set(kR3, XDP_PASS));
  program.push_back(instruction(BPF_JMP | BPF_CALL, kR0, kR0, 0, BPF_FUNC_redirect_map));
  program.push_back(end());
}
constexpr std::size_t kRedirectSize = 6;  // instructions

void add_case(const TakenCase& one, int map_fd, std::vector<bpf_insn>& program) {
  constexpr std::size_t kInstructions = 3;  // of a test
  const std::size_t rest = one.tests.size() * kInstructions + kRedirectSize;
  program.push_back(move(kR4, kPacket));
  program.push_back(add(kR4, one.size_bytes));
  program.push_back(
      instruction(BPF_JMP | BPF_JGT | BPF_X, kR4, kPacketEnd, static_cast<std::int16_t>(rest), 0));
  for (std::size_t i = 0; i < one.tests.size(); ++i) {
    const FieldTest& test = one.tests[i];
    const std::size_t to_end = rest - (i + 1) * kInstructions;
    program.push_back(load(load_size(test.size), kValue, kPacket, test.at));
    program.push_back(instruction(BPF_ALU | BPF_AND | BPF_K, kValue, kR0, 0,
                                  static_cast<std::int32_t>(as_loaded(test.size, test.mask))));
    program.push_back(instruction(BPF_JMP32 | BPF_JNE | BPF_K, kValue, kR0,
                                  static_cast<std::int16_t>(to_end),
                                  static_cast<std::int32_t>(as_loaded(test.size, test.value))));
  }
  add_redirect(map_fd, program);
}

// A frame to another station, on an interface that takes all.
TakenCase to_own_mac(TakenCase one, const MAC& mac) {
  const u8* const bytes = mac.bytes.data();
  one.tests.insert(one.tests.begin(), {{FieldSize::kWord, 0, ~0u, load_be32(bytes)},
                                       {FieldSize::kHalf, 4, ~0u, load_be16(bytes + 4)}});
  return one;
}

int bpf(int command, bpf_attr& attributes) {
  return static_cast<int>(::syscall(SYS_bpf, command, &attributes, sizeof(attributes)));
}

u64 address_of(const void* p) { return reinterpret_cast<u64>(p); }

Descriptor create_map(u32 queues) {
  bpf_attr attributes{};
  attributes.map_type = BPF_MAP_TYPE_XSKMAP;
  attributes.key_size = sizeof(u32);
  attributes.value_size = sizeof(u32);
  attributes.max_entries = queues;
  return Descriptor(bpf(BPF_MAP_CREATE, attributes));
}

Descriptor load_program(const std::vector<bpf_insn>& program, XDPFrames frames) {
  bpf_attr attributes{};
  attributes.prog_type = BPF_PROG_TYPE_XDP;
  attributes.insn_cnt = static_cast<u32>(program.size());
  attributes.insns = address_of(program.data());
  attributes.license = address_of("Apache-2.0");
  attributes.prog_flags = frames == XDPFrames::kSeveralBuffers ? BPF_F_XDP_HAS_FRAGS : 0;
  attributes.expected_attach_type = BPF_XDP;
  std::memcpy(attributes.prog_name, "verbena", sizeof("verbena"));
  return Descriptor(bpf(BPF_PROG_LOAD, attributes));
}

Descriptor create_link(int program, u32 interface_index, u32 mode) {
  bpf_attr attributes{};
  attributes.link_create.prog_fd = static_cast<u32>(program);
  attributes.link_create.target_ifindex = interface_index;
  attributes.link_create.attach_type = BPF_XDP;
  attributes.link_create.flags = mode;
  return Descriptor(bpf(BPF_LINK_CREATE, attributes));
}

}  // namespace

std::vector<bpf_insn> xdp_program(const TakenTraffic& taken, int map_fd) {
  std::vector<bpf_insn> program = {move(kContext, kR1),
                                   load(BPF_W, kPacket, kContext, offsetof(xdp_md, data)),
                                   load(BPF_W, kPacketEnd, kContext, offsetof(xdp_md, data_end))};
  for (const TakenCase& one : cases_of(taken))
    add_case(to_own_mac(one, taken.mac), map_fd, program);
  program.push_back(set(kR0, XDP_PASS));
  program.push_back(end());
  return program;
}

Expected<XDPAttachment> XDPAttachment::load(const TakenTraffic& taken, u32 queues,
                                            XDPFrames frames) {
  XDPAttachment attachment;
  attachment.interface_index_ = taken.interface_index;
  attachment.frames_ = frames;
  attachment.map_ = create_map(queues);
  if (!attachment.map_.is_open()) return xdp_failure("create a BPF map");
  attachment.program_ = load_program(xdp_program(taken, attachment.map_.get()), frames);
  if (!attachment.program_.is_open()) return xdp_failure("load its BPF program");
  return attachment;
}

bool XDPAttachment::add_socket(u32 queue, int fd) {
  bpf_attr attributes{};
  attributes.map_fd = static_cast<u32>(map_.get());
  attributes.key = address_of(&queue);
  attributes.value = address_of(&fd);
  return bpf(BPF_MAP_UPDATE_ELEM, attributes) == 0;
}

Expected<void> XDPAttachment::attach() {
  for (const u32 mode : {XDP_FLAGS_DRV_MODE, XDP_FLAGS_SKB_MODE}) {
    link_ = create_link(program_.get(), interface_index_, mode);
    if (link_.is_open()) return {};
    if (errno == EBUSY || errno == EEXIST) break;
  }
  return xdp_failure("attach its BPF program");
}

Expected<void> XDPAttachment::retake(const TakenTraffic& taken) {
  Descriptor program = load_program(xdp_program(taken, map_.get()), frames_);
  if (!program.is_open()) return xdp_failure("load its BPF program");
  bpf_attr attributes{};
  attributes.link_update.link_fd = static_cast<u32>(link_.get());
  attributes.link_update.new_prog_fd = static_cast<u32>(program.get());
  if (bpf(BPF_LINK_UPDATE, attributes) != 0) return xdp_failure("replace its BPF program");
  program_ = std::move(program);
  return {};
}

void XDPAttachment::close() {
  link_.reset();
  program_.reset();
  map_.reset();
}

}  // namespace verbena::host
