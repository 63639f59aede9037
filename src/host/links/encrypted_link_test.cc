// Tests UDPLinks that encrypt: the packets between two, and the effect of an attacker's packets.
#include <gtest/gtest.h>
#include <poll.h>

#include <fstream>

#include "host/encryption/psp_sender.h"
#include "host/links/udp_link.h"
#include "host/network/socket_address.h"
#include "host/os/clock.h"
#include "host/os/kernel_socket.h"
#include "host/sharing/qpn_slot.h"
#include "wire/roce/icrc.h"
#include "wire/roce/source_port.h"

namespace verbena::host {
namespace {

constexpr Duration kEncryptedPatience = sec(5);
constexpr u16 kTestPort = 4793;  // needs no privilege

LocalAddress address_at(const char* ip) { return choose_local_addresses(ip)->front(); }

EgressFrame encrypted_frame(const GID& source, const GID& destination, u32 qpn, u32 psn,
                            std::span<const u8> payload) {
  EgressFrame frame;
  frame.source = source;
  frame.destination = destination;
  frame.udp_source_port = kFirstSourcePort + 7;
  BTH bth;
  bth.opcode = {Service::kRC, Op::kSendOnly};
  bth.dest_qp = QPN{qpn};
  bth.psn = PSN{psn};
  bth.pad_count = static_cast<u8>(-payload.size() & 3);
  bth.encode(std::span(frame.headers).first<BTH::kSize>());
  frame.headers_size = BTH::kSize;
  frame.pad_count = bth.pad_count;
  frame.payload.add(payload);
  return frame;
}

class EncryptedLinkTest : public testing::Test {
 protected:
  void SetUp() override { write_key(key_file_, "a key that only these hosts know"); }
  void TearDown() override {
    ::unlink(key_file_.c_str());
    ::unlink(other_key_file_.c_str());
  }
  static void write_key(const std::string& path, const std::string& key) {
    std::ofstream(path) << key << '\n';
  }
  EncryptionSettings settings() const { return {.psk_file = key_file_, .port = kTestPort}; }
  static std::unique_ptr<UDPLink> open(const LocalAddress& address,
                                       const EncryptionSettings& settings, u64 random) {
    auto link = UDPLink::open(address, random, settings);
    EXPECT_TRUE(link.has_value()) << (link ? "" : link.error().message);
    return std::move(*link);
  }
  HostKeys keys() const {
    const OpenSSL& ssl = **OpenSSL::load();
    const auto credentials = TLSCredentials::load(ssl, settings());
    return std::move(*HostKeys::open(ssl, (*credentials)->name(), settings().rotation));
  }

  struct Got {
    IngressFrame frame;
    std::vector<u8> transport;
  };
  // Receives at both until `count` frames are at `to`, or for a while.
  static std::vector<Got> exchange(UDPLink& from, UDPLink& to, std::size_t count,
                                   Duration patience = kEncryptedPatience) {
    std::vector<Got> got;
    const Time deadline = monotonic_now() + patience;
    while (got.size() < count && monotonic_now() < deadline) {
      IngressFrame frame;
      (void)from.receive(Look::kEverywhere);
      while (from.poll_frame(frame, monotonic_now())) {
      }
      (void)to.receive(Look::kEverywhere);
      while (to.poll_frame(frame, monotonic_now()))
        got.push_back({frame, {frame.transport.begin(), frame.transport.end()}});
      sleep_for(us(100));
    }
    return got;
  }
  static u32 qpn_at(const UDPLink& link) { return first_qpn_of(link.slot()).value; }

  const std::string key_file_ = "/tmp/verbena-psk-" + std::to_string(::getpid());
  const std::string other_key_file_ = key_file_ + "-other";
  const LocalAddress a_ = address_at("127.85.1.1"), b_ = address_at("127.85.1.2");
  const GID from_ = *a_.ipv4, to_ = *b_.ipv4;
};

TEST_F(EncryptedLinkTest, FramesArriveWholeAndInOrder) {
  const auto one = open(a_, settings(), 1), other = open(b_, settings(), 2);
  std::vector<u8> payload(4096);
  for (std::size_t i = 0; i < payload.size(); ++i) payload[i] = static_cast<u8>(i * 7);
  std::vector<EgressFrame> sent;
  u32 psn = 0;
  for (const std::size_t size : {0, 1, 63, 64, 1000, 4096, 4096, 4096, 17})
    sent.push_back(
        encrypted_frame(from_, to_, qpn_at(*other), psn++, std::span(payload).first(size)));
  for (const EgressFrame& frame : sent) one->append(frame);
  one->flush();
  const std::vector<Got> got = exchange(*one, *other, sent.size());
  ASSERT_EQ(got.size(), sent.size());
  for (std::size_t i = 0; i < sent.size(); ++i) {
    EXPECT_TRUE(got[i].frame.authenticated);
    EXPECT_EQ(got[i].frame.source, from_);
    EXPECT_EQ(got[i].frame.udp_source_port, sent[i].udp_source_port);
    ASSERT_EQ(got[i].transport.size(), sent[i].transport_size() + kICRCSize);
    EXPECT_TRUE(std::equal(sent[i].headers.begin(), sent[i].headers.begin() + BTH::kSize,
                           got[i].transport.begin()));
    const Bytes part = sent[i].payload.count == 0 ? Bytes() : sent[i].payload.parts[0];
    EXPECT_TRUE(std::equal(part.begin(), part.end(), got[i].transport.begin() + BTH::kSize));
  }
  EXPECT_EQ(one->counters().encrypted, sent.size());
  EXPECT_EQ(other->counters().decrypted, sent.size());
  EXPECT_EQ(one->counters().keys_agreed, 1u);
}

// One datagram call for both, and one at the receiver. The IV of the second is the older one.
TEST_F(EncryptedLinkTest, ARequestAndAnAcknowledgementBeforeItShareADatagram) {
  const auto one = open(a_, settings(), 1), other = open(b_, settings(), 2);
  const std::vector<u8> payload(64, 3);
  const u32 qpn = qpn_at(*other);
  one->append(encrypted_frame(from_, to_, qpn, 1, payload));
  ASSERT_EQ(exchange(*one, *other, 1).size(), 1u);
  const u64 sent_before = one->counters().sent_bursts;
  const u64 received_before = other->counters().received_datagrams;
  EgressFrame acknowledgement = encrypted_frame(from_, to_, qpn, 2, {});
  acknowledgement.urgency = Urgency::kWithReply;
  one->append(acknowledgement);
  one->append(encrypted_frame(from_, to_, qpn, 3, payload));
  one->flush();
  const std::vector<Got> got = exchange(*one, *other, 2);
  ASSERT_EQ(got.size(), 2u);
  EXPECT_EQ(BTH::decode(got[0].transport)->psn, PSN{3});
  EXPECT_EQ(BTH::decode(got[1].transport)->psn, PSN{2});
  EXPECT_EQ(one->counters().sent_bursts, sent_before + 1);
  EXPECT_EQ(other->counters().received_datagrams, received_before + 1);
  EXPECT_EQ(other->counters().refused_replay, 0u);
}

TEST_F(EncryptedLinkTest, BothCiphersAndCryptOffsets) {
  for (const PSPVersion version : {PSPVersion::kAES128GCM, PSPVersion::kAES256GCM})
    for (const u8 offset : {u8{0}, u8{5}, u8{63}}) {
      EncryptionSettings wanted = settings();
      wanted.version = version;
      wanted.crypt_offset = offset;
      const auto one = open(a_, wanted, 1), other = open(b_, wanted, 2);
      const std::vector<u8> payload(100, 9);
      one->append(encrypted_frame(from_, to_, qpn_at(*other), 1, payload));
      one->flush();
      EXPECT_EQ(exchange(*one, *other, 1).size(), 1u);
    }
}

TEST_F(EncryptedLinkTest, NewKeysComeWithoutLoss) {
  EncryptionSettings often = settings();
  often.rotation_packets = 10;
  const auto one = open(a_, often, 1), other = open(b_, often, 2);
  const std::vector<u8> payload(64, 1);
  std::size_t arrived = 0;
  for (u32 i = 0; i < 600; ++i) {
    one->append(encrypted_frame(from_, to_, qpn_at(*other), i, payload));
    one->flush();
    arrived += exchange(*one, *other, 1, ms(2)).size();
    sleep_for(ms(1));
  }
  arrived += exchange(*one, *other, 600 - arrived).size();
  EXPECT_EQ(arrived, 600u);
  EXPECT_GE(one->counters().keys_agreed, 2u);
  EXPECT_EQ(one->counters().send_dropped, 0u);
}

TEST_F(EncryptedLinkTest, AnotherKeyIsRefused) {
  write_key(other_key_file_, "a key that nobody else knows at all");
  EncryptionSettings wrong = settings();
  wrong.psk_file = other_key_file_;
  const auto one = open(a_, wrong, 1), other = open(b_, settings(), 2);
  const std::vector<u8> payload(64, 1);
  one->append(encrypted_frame(from_, to_, qpn_at(*other), 1, payload));
  EXPECT_TRUE(exchange(*one, *other, 1, sec(2)).empty());
  EXPECT_GE(one->counters().key_failures, 3u);
  EXPECT_GE(other->counters().key_refusals, 1u);
  EXPECT_EQ(one->counters().send_dropped, 1u);  // it had waited for the key
}

// A new process in the same place knows nothing of the associations of the one before it.
TEST_F(EncryptedLinkTest, RestartedPeerIsAgreedWithAnew) {
  const auto one = open(a_, settings(), 1);
  auto other = open(b_, settings(), 2);
  const u32 slot = other->slot();
  const std::vector<u8> payload(64, 1);
  one->append(encrypted_frame(from_, to_, qpn_at(*other), 1, payload));
  ASSERT_EQ(exchange(*one, *other, 1).size(), 1u);
  other.reset();
  other = open(b_, settings(), slot - kFirstSlot);
  ASSERT_EQ(other->slot(), slot);
  std::size_t arrived = 0;
  for (u32 i = 0; i < 100 && arrived == 0; ++i) {
    one->append(encrypted_frame(from_, to_, qpn_at(*other), 2, payload));
    one->flush();
    arrived = exchange(*one, *other, 1, ms(50)).size();
  }
  EXPECT_EQ(arrived, 1u);
  EXPECT_GE(other->counters().refused_spi, 1u);
}

TEST_F(EncryptedLinkTest, MulticastIsRefused) {
  const auto one = open(a_, settings(), 1);
  const auto joined = one->join_multicast(*GID::parse("239.1.2.3"));
  ASSERT_FALSE(joined.has_value());
  EXPECT_EQ(joined.error().error, EOPNOTSUPP);
}

// An attacker that can send any datagram from any address of this host.
class Attacker {
 public:
  explicit Attacker(const GID& source)
      : socket_(open_kernel_socket(family_of(source), SOCK_DGRAM | SOCK_CLOEXEC)) {
    const SocketAddress from(source, 0, 0);
    EXPECT_EQ(::bind(socket_.get(), from.data(), from.size()), 0);
  }
  void send(std::span<const u8> datagram, const GID& to) {
    const SocketAddress at(to, kTestPort, 0);
    EXPECT_EQ(::sendto(socket_.get(), datagram.data(), datagram.size(), 0, at.data(), at.size()),
              static_cast<ssize_t>(datagram.size()));
  }

 private:
  Descriptor socket_;
};

class EncryptionAttackTest : public EncryptedLinkTest {
 protected:
  // A genuine packet from `from_` to the link, as it is on the wire.
  std::vector<u8> genuine_packet(PSPSender& sender, u32 qpn) const {
    std::vector<u8> packet(sender.overhead() + BTH::kSize + kICRCSize);
    BTH{.opcode = {Service::kRC, Op::kSendOnly}, .dest_qp = QPN{qpn}}.encode(
        std::span(packet).subspan(sender.head_bytes()).first<BTH::kSize>());
    sender.seal(packet, kFirstSourcePort);
    return packet;
  }
  PSPSender genuine_sender(const UDPLink& link) { return genuine_sender(link, std::nullopt); }
  PSPSender genuine_sender(const UDPLink& link, std::optional<u32> vni) {
    const auto issued = keys().issue(link.slot(), {.sender = from_, .receiver = to_},
                                     PSPVersion::kAES128GCM, monotonic_now());
    return PSPSender(**OpenSSL::load(), *issued, 7, 0, vni);
  }
  static std::size_t polled(UDPLink& link) {
    std::size_t count = 0;
    const Time deadline = monotonic_now() + ms(100);
    while (monotonic_now() < deadline) {
      (void)link.receive(Look::kEverywhere);
      for (IngressFrame frame; link.poll_frame(frame, monotonic_now());) ++count;
    }
    return count;
  }
};

TEST_F(EncryptionAttackTest, ReplayedPacket) {
  const auto link = open(b_, settings(), 2);
  PSPSender sender = genuine_sender(*link);
  const std::vector<u8> packet = genuine_packet(sender, qpn_at(*link));
  Attacker attacker(from_);
  for (u32 i = 0; i < 5; ++i) attacker.send(packet, to_);
  EXPECT_EQ(polled(*link), 1u);
  EXPECT_EQ(link->counters().refused_replay, 4u);
}

// The VNI is PSP's Virtualization Cookie: in clear for those that look at packets on their way, and
// authenticated, so that nobody can move a packet to another network.
TEST_F(EncryptionAttackTest, PacketsOfOtherNetworks) {
  const auto link = UDPLink::open_in_network(b_, 2, 5001, settings());
  ASSERT_TRUE(link.has_value()) << link.error().message;
  PSPSender ours = genuine_sender(**link, 5001), others = genuine_sender(**link, 5002),
            none = genuine_sender(**link, std::nullopt);
  const std::vector<u8> packet = genuine_packet(ours, qpn_at(**link));
  const std::optional<PSPHeader> header = PSPHeader::decode(packet);
  ASSERT_TRUE(header.has_value());
  EXPECT_EQ(header->cookie, 5001u);
  EXPECT_EQ(header->crypt_offset_bytes(), PSPHeader::kCookieSize);
  std::vector<u8> moved = genuine_packet(others, qpn_at(**link));
  store_be64(moved.data() + PSPHeader::kCookieAt, 5001);
  Attacker attacker(from_);
  attacker.send(genuine_packet(others, qpn_at(**link)), to_);
  attacker.send(genuine_packet(none, qpn_at(**link)), to_);
  attacker.send(moved, to_);
  attacker.send(packet, to_);
  EXPECT_EQ(polled(**link), 1u);
  EXPECT_EQ((*link)->counters().refused_vni, 2u);
  EXPECT_EQ((*link)->counters().refused_icv, 1u);

  const auto plain = open(a_, settings(), 3);
  const auto issued = keys().issue(plain->slot(), {.sender = to_, .receiver = from_},
                                   PSPVersion::kAES128GCM, monotonic_now());
  PSPSender of_network(**OpenSSL::load(), *issued, 7, 0, 5001);
  Attacker(to_).send(genuine_packet(of_network, qpn_at(*plain)), from_);
  EXPECT_EQ(polled(*plain), 0u);
  EXPECT_EQ(plain->counters().refused_vni, 1u);
}

TEST_F(EncryptedLinkTest, CryptOffsetsInANetwork) {
  for (const u8 offset : {u8{0}, u8{5}, u8{63}}) {
    EncryptionSettings wanted = settings();
    wanted.crypt_offset = offset;
    const auto one = UDPLink::open_in_network(a_, 1, 0xffffff, wanted);
    const auto other = UDPLink::open_in_network(b_, 2, 0xffffff, wanted);
    ASSERT_TRUE(one && other);
    const std::vector<u8> payload(100, 9);
    (*one)->append(encrypted_frame(from_, to_, qpn_at(**other), 1, payload));
    (*one)->flush();
    const std::vector<Got> got = exchange(**one, **other, 1);
    ASSERT_EQ(got.size(), 1u);
    EXPECT_EQ(got[0].transport.size(), BTH::kSize + 100 + kICRCSize);
  }
}

TEST_F(EncryptionAttackTest, PacketInClear) {
  const auto link = open(b_, settings(), 2);
  std::vector<u8> packet(BTH::kSize + 16 + kICRCSize);
  BTH{.opcode = {Service::kRC, Op::kSendOnly}, .dest_qp = QPN{qpn_at(*link)}}.encode(
      std::span(packet).first<BTH::kSize>());
  Attacker(from_).send(packet, to_);
  EXPECT_EQ(polled(*link), 0u);
  EXPECT_EQ(link->counters().refused_unencrypted, 1u);
}

TEST_F(EncryptionAttackTest, ChangedPacket) {
  const auto link = open(b_, settings(), 2);
  PSPSender sender = genuine_sender(*link);
  std::vector<u8> packet = genuine_packet(sender, qpn_at(*link));
  Attacker attacker(from_);
  for (const std::size_t at : {std::size_t{12}, std::size_t{20}, packet.size() - 1}) {
    std::vector<u8> changed = packet;
    changed[at] ^= 0x10;
    attacker.send(changed, to_);
  }
  EXPECT_EQ(polled(*link), 0u);
  EXPECT_EQ(link->counters().refused_icv, 3u);
  attacker.send(packet, to_);  // the attempts have not used its IV up
  EXPECT_EQ(polled(*link), 1u);
}

// A host that holds keys of its own sends in another's name.
TEST_F(EncryptionAttackTest, ForgedSource) {
  const auto link = open(b_, settings(), 2);
  PSPSender sender = genuine_sender(*link);
  Attacker(*GID::parse("127.85.1.3")).send(genuine_packet(sender, qpn_at(*link)), to_);
  EXPECT_EQ(polled(*link), 0u);
  EXPECT_EQ(link->counters().refused_source, 1u);
}

TEST_F(EncryptionAttackTest, GuessedSPI) {
  const auto link = open(b_, settings(), 2);
  const IssuedAssociation guessed{.spi = link->slot() << kSPINumberBits | 12345};
  PSPSender sender(**OpenSSL::load(), guessed, 7, 0);
  Attacker(from_).send(genuine_packet(sender, qpn_at(*link)), to_);
  EXPECT_EQ(polled(*link), 0u);
  EXPECT_EQ(link->counters().refused_spi, 1u);
}

// An authentic packet may carry a packet that is not RoCE.
TEST_F(EncryptionAttackTest, ShortAndStrangePackets) {
  const auto link = open(b_, settings(), 2);
  PSPSender sender = genuine_sender(*link);
  Attacker attacker(from_);
  const std::vector<u8> packet = genuine_packet(sender, qpn_at(*link));
  for (std::size_t size = 0; size < packet.size(); ++size)
    attacker.send(std::span(packet).first(size), to_);
  EXPECT_EQ(polled(*link), 0u);
  const LinkCounters& seen = link->counters();
  EXPECT_EQ(seen.refused_unencrypted + seen.refused_icv, packet.size() - 1);  // one is empty
}

}  // namespace
}  // namespace verbena::host
