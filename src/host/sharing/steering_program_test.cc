// Runs the program in a small interpreter of classic BPF; port_group_test.cc runs it in the kernel.
#include "host/sharing/steering_program.h"

#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/prng.h"
#include "connect/comm_id_space.h"
#include "host/sharing/probe_packet.h"
#include "host/sharing/qpn_slot.h"
#include "wire/ib/bth.h"
#include "wire/ib/cm/message.h"
#include "wire/ib/deth.h"
#include "wire/roce/icrc.h"

namespace verbena::host {
namespace {

// Runs the program as the kernel does, for the instructions that it uses. A load beyond the end
// returns 0.
u32 run(const std::vector<sock_filter>& program, std::span<const u8> packet, u32 random = 0) {
  u32 a = 0;
  for (std::size_t pc = 0; pc < program.size(); ++pc) {
    const sock_filter& i = program[pc];
    switch (i.code) {
      case BPF_LD | BPF_B | BPF_ABS:
        if (i.k + 1 > packet.size()) return 0;
        a = packet[i.k];
        break;
      case BPF_LD | BPF_H | BPF_ABS:
        if (i.k + 2 > packet.size()) return 0;
        a = load_be16(packet.data() + i.k);
        break;
      case BPF_LD | BPF_W | BPF_ABS:
        if (i.k == static_cast<u32>(SKF_AD_OFF + SKF_AD_RANDOM)) {
          a = random;
          break;
        }
        if (i.k + 4 > packet.size()) return 0;
        a = load_be32(packet.data() + i.k);
        break;
      case BPF_ALU | BPF_AND | BPF_K: a &= i.k; break;
      case BPF_ALU | BPF_RSH | BPF_K: a >>= i.k; break;
      case BPF_ALU | BPF_MOD | BPF_K: a %= i.k; break;
      case BPF_JMP | BPF_JEQ | BPF_K: pc += a == i.k ? i.jt : i.jf; break;
      case BPF_JMP | BPF_JGE | BPF_K: pc += a >= i.k ? i.jt : i.jf; break;
      case BPF_JMP | BPF_JA: pc += i.k; break;
      case BPF_RET | BPF_K: return i.k;
      case BPF_RET | BPF_A: return a;
      default: ADD_FAILURE() << i.code; return 0;
    }
  }
  ADD_FAILURE() << "fell off the end";
  return 0;
}

u32 steer(const std::vector<sock_filter>& program, u32 qpn) {
  std::array<u8, 16> packet{0x64, 0x40, 0xff, 0xff, 0xc0};  // FECN and BECN are not the QPN's
  store_be24(packet.data() + 5, qpn);
  return run(program, packet);
}

TEST(SteeringProgramTest, EachQPNToTheSocketOfItsSlot) {
  PRNG prng(7);
  for (const std::size_t count : {1u, 2u, 3u, 10u, 100u, 512u}) {
    std::vector<Steer> table;
    for (u32 i = 0; i < count; ++i) table.push_back({.slot = i * 2 + 1, .index = i});
    for (std::size_t i = count - 1; i > 0; --i)  // any order
      std::swap(table[i].index, table[prng.below(i + 1)].index);
    const std::vector<sock_filter> program = steering_program(table);
    EXPECT_LE(program.size(), static_cast<std::size_t>(BPF_MAXINSNS));
    for (const Steer& steer_to : table)
      for (const u32 qpn :
           {first_qpn_of(steer_to.slot).value, (steer_to.slot << kQPNIndexBits) + kQPNsPerSlot})
        EXPECT_EQ(steer(program, qpn), steer_to.index);
    EXPECT_EQ(steer(program, 0), 0u);
  }
}

// A packet to QP 1 with this message.
std::vector<u8> mad_packet(const cm::Body& body) {
  std::vector<u8> packet(BTH::kSize + DETH::kSize);
  packet[0] = 0x64;
  store_be24(packet.data() + 5, kGSIQPN.value);
  const cm::MADBytes mad = cm::Message{.transaction_id = 1, .body = body}.encode();
  packet.insert(packet.end(), mad.begin(), mad.end());
  packet.insert(packet.end(), kICRCSize, 0);
  return packet;
}

TEST(SteeringProgramTest, AMADToTheProcessWhoseCommunicationIdItNames) {
  const std::vector<sock_filter> program =
      steering_program({{.slot = 3, .index = 1}, {.slot = 5, .index = 0}, {.slot = 9, .index = 2}});
  for (const auto& [slot, index] : {std::pair{3u, 1u}, {5u, 0u}, {9u, 2u}}) {
    const CommId theirs{0x12345678}, ours{(slot << kCommIdRandomBits) | 77};
    for (const cm::Body& body :
         std::initializer_list<cm::Body>{cm::MRA{.local_comm_id = theirs, .remote_comm_id = ours},
                                         cm::REJ{.local_comm_id = theirs, .remote_comm_id = ours},
                                         cm::REP{.local_comm_id = theirs, .remote_comm_id = ours},
                                         cm::RTU{.local_comm_id = theirs, .remote_comm_id = ours},
                                         cm::DREQ{.local_comm_id = theirs, .remote_comm_id = ours},
                                         cm::DREP{.local_comm_id = theirs, .remote_comm_id = ours},
                                         cm::LAP{.local_comm_id = theirs, .remote_comm_id = ours},
                                         cm::APR{.local_comm_id = theirs, .remote_comm_id = ours},
                                         cm::SIDRREP{.request_id = ours}})
      EXPECT_EQ(run(program, mad_packet(body), 7), index) << body.index();
  }
}

TEST(SteeringProgramTest, AMADOfNobodyToARandomProcess) {
  const std::vector<sock_filter> program =
      steering_program({{.slot = 3, .index = 1}, {.slot = 5, .index = 0}, {.slot = 9, .index = 2}});
  const CommId theirs{0x12345678};
  for (const cm::Body& body : std::initializer_list<cm::Body>{cm::REQ{.local_comm_id = theirs},
                                                              cm::SIDRREQ{.request_id = theirs},
                                                              cm::REJ{.local_comm_id = theirs}})
    for (u32 random = 0; random < 9; ++random)
      EXPECT_EQ(run(program, mad_packet(body), random), random % 3) << body.index();
}

TEST(SteeringProgramTest, AProbeToTheSocketItNames) {
  const std::vector<sock_filter> program = steering_program({{.slot = 3, .index = 1}});
  for (const u32 index : {0u, 1u, 5u, 511u, kMask24})
    EXPECT_EQ(run(program, ProbePacket{.index = index, .nonce = 9, .prober_slot = 3}.encode()),
              index);
}

TEST(SteeringProgramTest, ShortPacketsGoToTheFirstSocket) {
  const std::vector<sock_filter> program = steering_program({{.slot = 3, .index = 1}});
  const std::array<u8, 12> packet{0xff, 0, 0, 0, 0, 0, 0xc0, 0x01, 0x56, 0x52, 0x42, 0x4e};
  for (std::size_t size = 0; size < 8; ++size)
    EXPECT_EQ(run(program, std::span(packet).first(size)), 0u);
}

TEST(SteeringProgramTest, ProbeForBackAndForth) {
  const ProbePacket probe{.index = 0x123456, .nonce = 0x1122334455667788, .prober_slot = 77};
  auto bytes = probe.encode();
  EXPECT_EQ(ProbePacket::decode(bytes), probe);
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(ProbePacket::decode(std::span(bytes).first(size)).has_value());
  ++bytes[ProbePacket::kMagicAt];
  EXPECT_FALSE(ProbePacket::decode(bytes).has_value());
}

// A PSP packet shows nothing but its SPI.
TEST(SteeringProgramTest, SPINamesTheSlot) {
  const auto program =
      steering_program({{.slot = 5, .index = 1}, {.slot = 700, .index = 0}}, SteerBy::kSPI);
  const auto packet = [](u32 spi) {
    std::array<u8, 24> bytes{17, 1, 0, 1};
    store_be32(bytes.data() + 4, spi);
    return bytes;
  };
  for (const u32 selector : {0u, 1u << 31}) {
    EXPECT_EQ(run(program, packet(selector | 5u << 21 | 77)), 1u);
    EXPECT_EQ(run(program, packet(selector | 700u << 21 | 0x1fffff)), 0u);
    for (const u32 random : {0u, 1u})
      EXPECT_EQ(run(program, packet(selector | 3), random), random);  // slot 0: QP 1
  }
  const auto probe = ProbePacket{.index = 1, .nonce = 3, .prober_slot = 5}.encode();
  EXPECT_EQ(run(program, probe), 1u);
}

}  // namespace
}  // namespace verbena::host
