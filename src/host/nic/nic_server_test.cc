// Tests a NIC whose tenants write any data into their rings: which packets leave, which arrive, and
// which counters count them.
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <filesystem>
#include <numeric>
#include <string_view>

#include "host/nic/nic_server_for_test.h"
#include "wire/ib/aeth.h"
#include "wire/ib/deth.h"

namespace verbena::host {
namespace {

TEST_F(NICServerTest, FramesPassFromTenantToTenant) {
  start();
  const auto red = attach(), blue = attach();
  ASSERT_NE(red->address, blue->address);
  red->send({red->address, blue->address}, packet_to(blue->qpn(), 0x8001));
  FrameRingReader::Record record;
  ASSERT_TRUE(receives(*blue, record));
  EXPECT_EQ(record.addresses.source, red->address);
  EXPECT_EQ(record.body.size(), BTH::kSize + kICRCSize);
  EXPECT_EQ(counter("red", "sent_packets", 1), 1u);
  EXPECT_EQ(counter("blue", "received_packets", 1), 1u);
}

// The longer packet first: so both are one datagram call.
TEST_F(NICServerTest, ARequestOvertakesAnAcknowledgement) {
  start();
  const auto red = attach(), blue = attach();
  std::vector<u8> acknowledgement(BTH::kSize + AETH::kSize);
  BTH{.opcode = {Service::kRC, Op::kAcknowledge},
      .p_key = PKey{0x8001},
      .dest_qp = QPN{blue->qpn()}}
      .encode(std::span(acknowledgement).first<BTH::kSize>());
  std::vector<u8> request = packet_to(blue->qpn(), 0x8001);
  request.resize(BTH::kSize + 64);
  red->add({red->address, blue->address}, acknowledgement);
  red->send({red->address, blue->address}, request);
  for (const Op op : {Op::kSendOnly, Op::kAcknowledge}) {
    FrameRingReader::Record record;
    ASSERT_TRUE(receives(*blue, record));
    EXPECT_EQ(BTH::decode(record.body)->opcode.op, op);
  }
}

TEST_F(NICServerTest, ForgedSource) {
  start();
  const auto red = attach(), blue = attach();
  red->send({blue->address, blue->address}, packet_to(blue->qpn(), 0x8001));
  red->send({*GID::parse("10.1.2.3"), blue->address}, packet_to(blue->qpn(), 0x8001));
  EXPECT_EQ(counter("red", "sent_refused_source", 2), 2u);
  EXPECT_EQ(counter("red", "sent_packets", 0), 0u);
}

TEST_F(NICServerTest, ForeignPartition) {
  start();
  const auto red = attach(), blue = attach();
  red->send({red->address, blue->address}, packet_to(blue->qpn(), 0xffff));
  red->send({red->address, blue->address}, packet_to(blue->qpn(), 0x0001));
  EXPECT_EQ(counter("red", "sent_refused_p_key", 2), 2u);
  blue->send({blue->address, red->address}, packet_to(red->qpn(), 0xffff));
  EXPECT_EQ(counter("red", "received_refused_p_key", 1), 1u);
}

TEST_F(NICServerTest, ForeignSourceQPN) {
  start();
  const auto red = attach(), blue = attach();
  std::vector<u8> packet(BTH::kSize + DETH::kSize);
  BTH{.opcode = {Service::kUD, Op::kSendOnly}, .p_key = PKey{0x8001}, .dest_qp = QPN{blue->qpn()}}
      .encode(std::span(packet).first<BTH::kSize>());
  for (const u32 source : {blue->qpn(), red->qpn()}) {
    DETH{.source_qp = QPN{source}}.encode(
        std::span(packet).subspan<BTH::kSize>().first<DETH::kSize>());
    red->send({red->address, blue->address}, packet);
  }
  EXPECT_EQ(counter("red", "sent_refused_qpn", 1), 1u);
  EXPECT_EQ(counter("red", "sent_packets", 1), 1u);
}

TEST_F(NICServerTest, GroupsAndRubbishPackets) {
  start();
  const auto red = attach();
  red->send({red->address, *GID::parse("239.1.1.1")}, packet_to(0xffffff, 0x8001));
  EXPECT_EQ(counter("red", "sent_refused_destination", 1), 1u);
  const std::vector<u8> rubbish(40, 0xee);
  red->send({red->address, red->address}, rubbish);
  red->send({red->address, red->address}, {});
  EXPECT_EQ(counter("red", "sent_refused_malformed", 2), 2u);
}

// An invalid ring costs its owner the attachment; other tenants lose nothing.
TEST_F(NICServerTest, RubbishRing) {
  start();
  const auto red = attach(), blue = attach();
  auto* const bytes = reinterpret_cast<u8*>(&red->rings().to_nic[3]);
  for (std::size_t i = 0; i < sizeof(FrameRing); ++i) bytes[i] = static_cast<u8>(i * 37 + 11);
  red->rings().used = ~0u;
  ring_doorbell(red->attachment.doorbell_of_nic.get());
  EXPECT_EQ(counter("red", "broken_rings", 1), 1u);
  blue->send({blue->address, blue->address}, packet_to(blue->qpn(), 0x8001));
  FrameRingReader::Record record;
  EXPECT_TRUE(receives(*blue, record));
}

// The NIC writes the other ring: a tenant that writes there breaks only its own traffic.
TEST_F(NICServerTest, RubbishInTheRingToTheProgram) {
  start();
  const auto red = attach(), blue = attach();
  auto* const bytes = reinterpret_cast<u8*>(&red->rings().to_program);
  for (std::size_t i = 0; i < sizeof(FrameRing); ++i) bytes[i] = 0xff;
  for (u32 i = 0; i < 100; ++i)
    blue->send({blue->address, red->address}, packet_to(red->qpn(), 0x8001));
  EXPECT_EQ(counter("blue", "sent_packets", 100), 100u);
  blue->send({blue->address, blue->address}, packet_to(blue->qpn(), 0x8001));
  FrameRingReader::Record record;
  EXPECT_TRUE(receives(*blue, record));
}

// A tenant shares its descriptors with the NIC, and may change their flags.
TEST_F(NICServerTest, NoDescriptorOfATenantMakesTheNICWait) {
  start();
  const auto red = attach(), blue = attach();
  const NICAttachment& of_red = red->attachment;
  const u64 most = ~u64{0} - 1;  // of an eventfd: the next ring would wait
  for (const Descriptor* const end :
       {&of_red.socket, &of_red.doorbell_of_nic, &of_red.doorbell_of_program}) {
    ASSERT_EQ(::fcntl(end->get(), F_SETFL, 0), 0);
    if (end != &of_red.socket) (void)!::write(end->get(), &most, sizeof(most));
  }
  FrameRingReader::Record record;
  for (u32 i = 0; i < 3; ++i) {
    sleep_for(ms(5));  // the NIC sleeps
    blue->send({blue->address, red->address}, packet_to(red->qpn(), 0x8001));
    blue->send({blue->address, blue->address}, packet_to(blue->qpn(), 0x8001));
    EXPECT_TRUE(receives(*blue, record));
  }
}

TEST_F(NICServerTest, ATenantWithoutPacketsKeepsTheNICFromNoSleep) {
  start();
  const auto red = attach(), blue = attach();
  ASSERT_EQ(::send(red->attachment.socket.get(), "text", 4, MSG_NOSIGNAL), 4);
  EXPECT_LT(computes_in(ms(200)), ms(50));
  // Gone, but for its doorbell, which it has rung.
  const Descriptor kept = std::move(blue->attachment.doorbell_of_nic);
  blue->attachment.socket.reset();
  EXPECT_EQ(counter("blue", "detached", 1), 1u);
  ring_doorbell(kept.get());
  EXPECT_LT(computes_in(ms(200)), ms(50));
}

TEST_F(NICServerTest, FunctionsOfOneVXLANNetworkReachEachOther) {
  config_.functions[0].vni = config_.functions[1].vni = 5001;
  start();
  const auto red = attach(), blue = attach();
  EXPECT_GT(red->attachment.attached.packet_overhead, 0u);
  red->send({red->address, blue->address}, packet_to(blue->qpn(), 0x8001));
  FrameRingReader::Record record;
  ASSERT_TRUE(receives(*blue, record));
  EXPECT_EQ(record.addresses.source, red->address);
  EXPECT_EQ(record.addresses.destination, blue->address);
  EXPECT_EQ(record.header.udp_source_port, 0xc000);
  EXPECT_EQ(BTH::decode(record.body)->dest_qp.value, blue->qpn());
}

TEST_F(NICServerTest, VXLANNetworksAreApart) {
  config_.functions[0].vni = 5001;
  for (const std::optional<u32> other : {std::optional<u32>(5002), std::optional<u32>()}) {
    config_.functions[1].vni = other;
    start();
    const auto red = attach(), blue = attach();
    red->send({red->address, blue->address}, packet_to(blue->qpn(), 0x8001));
    blue->send({blue->address, red->address}, packet_to(red->qpn(), 0x8001));
    EXPECT_EQ(counter("red", "sent_packets", 1), 1u);
    EXPECT_EQ(counter("blue", "sent_packets", 1), 1u);
    if (other) {
      EXPECT_EQ(counter("red", "received_refused_vni", 1), 1u);
      EXPECT_EQ(counter("blue", "received_refused_vni", 1), 1u);
    }
    sleep_for(ms(20));
    EXPECT_EQ(counter("red", "received_packets", 0), 0u);
    EXPECT_EQ(counter("blue", "received_packets", 0), 0u);
    stop();
  }
}

TEST_F(NICServerTest, NobodyElseMayAttach) {
  for (NICFunctionConfig& function : config_.functions) function.user = ::geteuid() + 1;
  start();
  const auto refused = attach_to_nic(path_, 0);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().error, EACCES);
}

TEST_F(NICServerTest, AProgramChoosesItsFunctionByNameOrAddress) {
  start();
  for (const NICFunctionConfig& function : config_.functions)
    for (const std::string& wanted : {function.name, function.address}) {
      const auto attached = attach_to_nic(path_, 0, wanted);
      ASSERT_TRUE(attached.has_value()) << attached.error().message;
      EXPECT_EQ(text_of(attached->attached.address), function.address);
      EXPECT_EQ(*address_on_nic(path_, wanted), function.address);
    }
  const auto refused = attach_to_nic(path_, 0, "green");
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().error, EACCES);
  EXPECT_NE(refused.error().message.find("green"), std::string::npos);
}

TEST_F(NICServerTest, ProgramsAreCountedAndLetGo) {
  config_.functions.resize(1);
  config_.functions[0].max_programs = 2;
  start();
  {
    const auto one = attach(), two = attach();
    EXPECT_NE(one->attachment.attached.slot, two->attachment.attached.slot);
    EXPECT_FALSE(attach_to_nic(path_, 0).has_value());
    EXPECT_EQ(counter("red", "refused_programs", 1), 1u);
  }
  EXPECT_EQ(counter("red", "detached", 2), 2u);
  const auto again = attach();
}

// A function that is full does not keep a program from another one that admits it.
TEST_F(NICServerTest, AFullFunctionIsPassedOver) {
  config_.functions[0].max_programs = 1;
  start();
  std::vector<std::unique_ptr<Tenant>> tenants;
  for (u32 i = 0; i < 4; ++i) tenants.push_back(attach());
  EXPECT_EQ(counter("red", "attached", 1), 1u);
  EXPECT_EQ(counter("blue", "attached", 3), 3u);
}

TEST_F(NICServerTest, SilentConnectionsKeepNobodyOut) {
  start();
  std::vector<Descriptor> silent;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path_.copy(address.sun_path, path_.size());
  for (u32 i = 0; i < 2 * NICServer::kMaxControls; ++i) {
    Descriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)),
              0);
    silent.push_back(std::move(socket));
  }
  const auto red = attach();
  EXPECT_EQ(counter("red", "attached", 1), 1u);
}

TEST_F(NICServerTest, FunctionIsTakenBackAfterARestart) {
  start();
  const u32 slot = attach()->attachment.attached.slot;
  stop();
  start();
  const auto back = attach_to_nic(path_, slot);
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(back->attached.slot, slot);
}

TEST_F(NICServerTest, ReconfiguredWhileProgramsStay) {
  start();
  const auto red = attach(), blue = attach();
  config_.functions[0].p_keys = {0xffff};
  reconfigure();
  ASSERT_TRUE(reloaded_.has_value()) << reloaded_.error().message;
  red->send({red->address, blue->address}, packet_to(blue->qpn(), 0xffff));
  EXPECT_EQ(counter("red", "sent_packets", 1), 1u);
  red->send({red->address, blue->address}, packet_to(blue->qpn(), 0x8001));
  EXPECT_EQ(counter("red", "sent_refused_p_key", 1), 1u);
}

// An address belongs to one tenant: another one's packets would have its source address, too.
TEST_F(NICServerTest, AnAddressOfTwoTenantsIsRefused) {
  config_.functions[1].address = config_.functions[0].address;
  start();  // functions of one tenant
  config_.functions[1].user = ::geteuid() + 1;
  reconfigure();
  ASSERT_FALSE(reloaded_.has_value());
  EXPECT_NE(reloaded_.error().message.find("functions red and blue have the address"),
            std::string::npos);
  stop();
  const auto opened = NICServer::open(config_);
  ASSERT_FALSE(opened.has_value());
  EXPECT_EQ(opened.error().error, EINVAL);
}

// Otherwise each program would learn of it, and the NIC's user would not.
TEST_F(NICServerTest, EncryptionWithoutItsKeyIsRefused) {
  config_.encryption = EncryptionSettings{.psk_file = "/nonexistent/key"};
  const auto opened = NICServer::open(config_);
  ASSERT_FALSE(opened.has_value());
  EXPECT_NE(opened.error().message.find("/nonexistent/key"), std::string::npos);
}

// Tenants that send as much as the NIC takes.
class NICSharesTest : public NICServerTest {
 protected:
#ifdef __SANITIZE_THREAD__
  void SetUp() override { GTEST_SKIP() << "ThreadSanitizer is too slow for the rates"; }
#endif
  // The bytes that each function sends in a second, in the order of the file. All `programs` flood
  // for a while before, in which the first have the burst for themselves.
  std::vector<double> shares(std::size_t programs) {
    while (tenants_.size() < programs) tenants_.push_back(attach());
    flood(ms(400));
    const std::vector<double> before = sent_bytes();
    flood(sec(1));
    std::vector<double> shares = sent_bytes();
    for (std::size_t i = 0; i < shares.size(); ++i) shares[i] -= before[i];
    return shares;
  }
  void flood(Duration time) {
    for (const Time end = monotonic_now() + time; monotonic_now() < end; sleep_for(ms(1)))
      for (const auto& tenant : tenants_) fill(*tenant);
  }
  static void fill(Tenant& tenant) {
    std::vector<u8> packet = packet_to(tenant.qpn(), 0x8001);
    packet.resize(4000);
    packet[1] = 0;
    const FrameRing::Addresses addresses{tenant.address, *GID::parse("127.88.1.99")};
    while (u8* const out = tenant.writer.add(0, addresses, 4004))
      std::copy(packet.begin(), packet.end(), out);
    (void)tenant.writer.publish();
    ring_doorbell(tenant.attachment.doorbell_of_nic.get());
  }
  std::vector<double> sent_bytes() const {
    constexpr std::string_view kName = "\"sent_bytes\": ";
    const std::string status = *status_of_nic(path_);
    std::vector<double> out;
    for (std::size_t at = 0; (at = status.find(kName, at)) != std::string::npos; ++at)
      out.push_back(std::stod(status.substr(at + kName.size())));
    return out;
  }

  std::vector<std::unique_ptr<Tenant>> tenants_;
};

// nic_scheduler_test.cc has the exact shares. The rates are low, so that the bursts outlast a NIC
// that waits for its core.
TEST_F(NICSharesTest, TheOrderOfTheSchedulerHolds) {
  config_.rate_bps = 20'000'000;
  config_.functions[0].weight = 100;
  config_.functions[1].priority = 1;
  config_.functions[1].max_bps = 15'000'000;
  config_.functions[1].burst_bytes = 200'000;
  start();
  const std::vector<double> sent = shares(2);
  EXPECT_NEAR(sent[1] * 8, 15e6, 4e6);
  EXPECT_NEAR(sent[0] * 8, 5e6, 4e6);
}

// Ten functions of one weight, one of them with four programs, share within 10 %.
TEST_F(NICSharesTest, TenTenants) {
  config_.rate_bps = 400'000'000;
  config_.functions.clear();
  for (u32 i = 1; i <= 10; ++i)
    config_.functions.push_back({.name = "f" + std::to_string(i),
                                 .address = "127.88.1." + std::to_string(i),
                                 .p_keys = {0x8001},
                                 .max_programs = i == 10 ? 4u : 1u});
  start();
  for (u32 i = 0; i < 9; ++i) tenants_.push_back(attach());
  const std::vector<double> sent = shares(13);
  ASSERT_EQ(sent.size(), 10u);
  const double fair = std::accumulate(sent.begin(), sent.end(), 0.0) / 10;
  EXPECT_GT(fair, 0);
  EXPECT_LT(fair * 10 * 8, 460e6);  // less where a slow machine or a sanitizer cannot fill the rate
  for (const double share : sent) EXPECT_NEAR(share, fair, fair / 10);
}

std::size_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

// The NIC gives back all that a tenant had, whatever the tenant left in its ring.
TEST_F(NICServerTest, TenantsThatEndLeaveNothing) {
  constexpr u32 kTenants = 300;
  config_.functions.resize(1);
  start();
  attach();
  EXPECT_EQ(counter("red", "detached", 1), 1u);
  const std::size_t before = open_descriptors();
  for (u32 i = 0; i < kTenants; ++i) {
    const auto red = attach();
    red->send({red->address, red->address}, packet_to(red->qpn(), 0x8001));
  }
  EXPECT_EQ(counter("red", "detached", kTenants + 1), kTenants + 1);
  for (const Time end = monotonic_now() + sec(3); monotonic_now() < end; sleep_for(ms(2)))
    if (open_descriptors() <= before) break;  // the socket of the last status closes after it
  EXPECT_LE(open_descriptors(), before);
}

}  // namespace
}  // namespace verbena::host
