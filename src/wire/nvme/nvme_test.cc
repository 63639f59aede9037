#include <gtest/gtest.h>

#include "wire/nvme/authentication.h"
#include "wire/nvme/discovery.h"
#include "wire/nvme/identify.h"

namespace verbena::nvme {
namespace {

// A Write of Linux's nvme-rdma host: 8 blocks at LBA 0x1234, data by a keyed SGL with the remote
// invalidation subtype, as struct nvme_rw_command of linux/nvme.h lays it out.
constexpr std::array<u8, Command::kSize> kWrite = {
    0x01, 0x40, 0x22, 0x11, 0x01, 0,    0,    0, 0, 0,    0,    0,    0,    0,    0,
    0,    0,    0,    0,    0,    0,    0,    0, 0, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33,
    0x22, 0x11, 0x00, 0x10, 0x00,  // SGL
    0xdd, 0xcc, 0xbb, 0xaa, 0x4f, 0x34, 0x12, 0, 0, 0,    0,    0,    0,    0x07, 0,
    0,    0,    0,    0,    0,    0,    0,    0, 0, 0,    0,    0,    0,    0};

TEST(NVMeCommand, KeyedWrite) {
  const Command c = Command::decode(kWrite);
  EXPECT_EQ(c.opcode, 1);
  EXPECT_EQ(c.cid, 0x1122);
  EXPECT_EQ(c.nsid, 1u);
  EXPECT_EQ(c.sgl, (SGLDescriptor{4, 0xf, 0x1122334455667788, 0x1000, 0xaabbccdd}));
  EXPECT_EQ(c.slba(), 0x1234u);
  EXPECT_EQ(c.blocks(), 8u);
  std::array<u8, Command::kSize> again{};
  c.encode(again);
  EXPECT_EQ(again, kWrite);
}

TEST(NVMeCommand, AnInCapsuleSGLHas32BitsOfLength) {
  std::array<u8, SGLDescriptor::kSize> bytes{};
  SGLDescriptor::in_capsule(0x1000000).encode(bytes);
  EXPECT_EQ(bytes[11], 1);
  EXPECT_EQ(bytes[15], 0x01);
  EXPECT_EQ(SGLDescriptor::decode(bytes), SGLDescriptor::in_capsule(0x1000000));
}

TEST(NVMeCommand, TheStatusOfACompletionStandsBesideThePhaseTag) {
  const Completion c{
      .result = 5,
      .sq_head = 7,
      .sq_id = 3,
      .cid = 0x1234,
      .status = static_cast<u16>(static_cast<u16>(Status::kLBAOutOfRange) | kDoNotRetry)};
  std::array<u8, Completion::kSize> bytes{};
  c.encode(bytes);
  EXPECT_EQ(bytes[14], 0x00);
  EXPECT_EQ(bytes[15], 0x81);  // DNR is bit 31 of DW3, SC 80h in its bits 24:17
  EXPECT_EQ(Completion::decode(bytes), c);
  EXPECT_EQ(c.code(), Status::kLBAOutOfRange);
}

TEST(NVMeFabrics, ConnectAndItsData) {
  Command c;
  ConnectCommand{.qid = 3, .sq_size = 127, .keep_alive_ms = 5000}.put_into(c);
  std::array<u8, Command::kSize> bytes{};
  c.encode(bytes);
  EXPECT_EQ(bytes[0], 0x7f);
  EXPECT_EQ(bytes[4], 0x01);
  EXPECT_EQ(bytes[42], 3);
  EXPECT_EQ(bytes[44], 127);
  EXPECT_EQ(load_le<u32>(bytes.data() + 48), 5000u);
  ConnectData data{.controller_id = 9, .subsystem_nqn = "nqn.a", .host_nqn = "nqn.b"};
  std::array<u8, ConnectData::kSize> encoded{};
  data.encode(encoded);
  EXPECT_EQ(encoded[256], 'n');
  const ConnectData again = ConnectData::decode(encoded);
  EXPECT_EQ(again.controller_id, 9);
  EXPECT_EQ(again.subsystem_nqn, "nqn.a");
  EXPECT_EQ(again.host_nqn, "nqn.b");
}

TEST(NVMeFabrics, PrivateDataOfARequestHas32Bytes) {
  const RDMARequestData data{.qid = 2, .receive_queue_size = 128, .send_queue_size = 127};
  const auto bytes = data.encode();
  const auto again = RDMARequestData::decode(bytes);
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->qid, 2);
  EXPECT_EQ(again->receive_queue_size, 128);
  EXPECT_EQ(again->send_queue_size, 127);
  EXPECT_FALSE(RDMARequestData::decode(std::span(bytes).first(31)).has_value());
}

TEST(NVMeIdentify, ControllerAndNamespaceComeBack) {
  IdentifyController c{.serial = "s", .model = "m", .firmware = "1", .subsystem_nqn = "nqn.x"};
  c.controller_id = 17;
  c.command_capsule_units = 516;
  c.namespaces = 3;
  IdentifyBytes bytes{};
  c.encode(bytes);
  EXPECT_EQ(bytes[5], ' ');  // texts end with spaces
  const auto again = IdentifyController::decode(bytes);
  EXPECT_EQ(again.serial, "s");
  EXPECT_EQ(again.subsystem_nqn, "nqn.x");
  EXPECT_EQ(again.controller_id, 17);
  EXPECT_EQ(again.command_capsule_units, 516u);
  EXPECT_EQ(again.sgls, IdentifyController::kSGLs);
  IdentifyNamespace{.blocks = 1000, .block_log2 = 12}.encode(bytes);
  const auto space = IdentifyNamespace::decode(bytes);
  EXPECT_EQ(space.blocks, 1000u);
  EXPECT_EQ(space.block_log2, 12);
}

TEST(NVMeDiscovery, AnEntryNamesServiceAndAddress) {
  const DiscoveryEntry e{.service = "4420", .subsystem_nqn = "nqn.a", .address = "10.77.0.1"};
  std::array<u8, DiscoveryEntry::kSize> bytes{};
  e.encode(bytes);
  EXPECT_EQ(bytes[0], 1);  // RDMA
  EXPECT_EQ(bytes[2], 2);  // an NVM subsystem
  EXPECT_EQ(bytes[770], 1);
  const auto again = DiscoveryEntry::decode(bytes);
  EXPECT_EQ(again.service, "4420");
  EXPECT_EQ(again.address, "10.77.0.1");
}

// Offsets as in struct nvmf_auth_dhchap_* of linux/nvme.h.
TEST(NVMeAuthentication, MessagesHaveTheirFieldsWhereLinuxHasThem) {
  const AuthNegotiate negotiate{.t_id = 0x1122,
                                .hashes = {AuthHash::kSHA384, AuthHash::kSHA512},
                                .groups = {DHGroup::kNull, DHGroup::kFFDHE8192}};
  const auto first = negotiate.encode();
  ASSERT_EQ(first.size(), 72u);
  EXPECT_EQ(load_le<u64>(first.data()), 0x01'00'1122'0000'0000u);
  EXPECT_EQ(load_le<u64>(first.data() + 8), 0x03'02'02'02'00'01u);
  EXPECT_EQ(first[42], 0);
  EXPECT_EQ(first[43], 5);
  const auto again = AuthNegotiate::decode(first);
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->hashes, negotiate.hashes);
  EXPECT_EQ(again->groups, negotiate.groups);

  const AuthReply reply{.t_id = 3,
                        .has_challenge = true,
                        .seqnum = 0x04030201,
                        .response = std::vector<u8>(32, 0xaa),
                        .challenge = std::vector<u8>(32, 0xbb),
                        .dh_value = std::vector<u8>(256, 0xcc)};
  const auto second = reply.encode();
  ASSERT_EQ(second.size(), 16u + 64 + 256);
  EXPECT_EQ(second[0], 1);
  EXPECT_EQ(second[1], 2);
  EXPECT_EQ(second[6], 32);
  EXPECT_EQ(second[8], 1);
  EXPECT_EQ(load_le<u16>(second.data() + 10), 256);
  EXPECT_EQ(load_le<u32>(second.data() + 12), 0x04030201u);
  const auto back = AuthReply::decode(second);
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(back->challenge, reply.challenge);
  EXPECT_EQ(back->dh_value, reply.dh_value);

  const AuthSuccess1 success{.t_id = 3, .response = std::vector<u8>(48, 1), .hash_bytes = 48};
  const auto third = success.encode();
  ASSERT_EQ(third.size(), 64u);
  EXPECT_EQ(third[6], 48);
  EXPECT_EQ(third[8], 1);
  EXPECT_EQ(AuthSuccess1::decode(third)->response, success.response);
  const auto last = AuthFailureMessage{AuthId::kFailure2, 3, AuthFailure::kHashNotUsable}.encode();
  EXPECT_EQ(load_le<u64>(last.data()), 0x04'01'0003'0000'f000u);
}

TEST(NVMeAuthentication, TruncatedMessagesAreRefused) {
  const auto challenge =
      AuthChallenge{.challenge = std::vector<u8>(64), .dh_value = std::vector<u8>(256)}.encode();
  EXPECT_TRUE(AuthChallenge::decode(challenge).has_value());
  for (std::size_t n = 0; n < challenge.size(); ++n)
    EXPECT_FALSE(AuthChallenge::decode(std::span(challenge).first(n)).has_value()) << n;
  auto negotiate = AuthNegotiate{.hashes = {AuthHash::kSHA256}}.encode();
  EXPECT_FALSE(AuthNegotiate::decode(std::span(negotiate).first(71)).has_value());
  negotiate[7] = 2;  // descriptors
  EXPECT_FALSE(AuthNegotiate::decode(negotiate).has_value());
  negotiate[7] = 1;
  negotiate[8 + 2] = 31;  // hashes
  EXPECT_FALSE(AuthNegotiate::decode(negotiate).has_value());
}

}  // namespace
}  // namespace verbena::nvme
