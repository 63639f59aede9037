#include "tests/rdmacm/stranger.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "connect/ip_cm.h"
#include "wire/ib/bth.h"
#include "wire/ib/deth.h"
#include "wire/roce/icrc.h"

namespace verbena::test {
namespace {

constexpr QPN kGSI{1};
constexpr QKey kGSIKey{0x80010000};
constexpr u16 kSourcePort = 4791;
constexpr std::size_t kMADAt = BTH::kSize + DETH::kSize;

sockaddr_in socket_address(const GID& gid) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(kRoCEv2Port);
  to.sin_addr.s_addr = htonl(gid.ipv4());
  return to;
}

}  // namespace

Stranger::Stranger(const std::string& own_address, const std::string& peer)
    : own_(*GID::parse(own_address)),
      peer_(*GID::parse(peer)),
      socket_(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
  const sockaddr_in here = socket_address(own_);
  EXPECT_EQ(::bind(socket_, reinterpret_cast<const sockaddr*>(&here), sizeof here), 0);
}

Stranger::~Stranger() { ::close(socket_); }

std::vector<u8> Stranger::packet_of(std::span<const u8> mad) const {
  std::vector<u8> packet(kMADAt);
  BTH{.opcode = {Service::kUD, Op::kSendOnly}, .dest_qp = kGSI}.encode(
      std::span(packet).first<BTH::kSize>());
  DETH{.q_key = kGSIKey, .source_qp = kGSI}.encode(
      std::span(packet).subspan<BTH::kSize, DETH::kSize>());
  packet.insert(packet.end(), mad.begin(), mad.end());
  const u32 icrc =
      icrc_of({.source = own_, .destination = peer_, .udp_source_port = kSourcePort}, packet);
  packet.resize(packet.size() + kICRCSize);
  store_icrc(icrc, std::span(packet).last<kICRCSize>());
  return packet;
}

void Stranger::send_raw(std::span<const u8> datagram) const {
  const sockaddr_in to = socket_address(peer_);
  EXPECT_EQ(::sendto(socket_, datagram.data(), datagram.size(), 0,
                     reinterpret_cast<const sockaddr*>(&to), sizeof to),
            static_cast<ssize_t>(datagram.size()));
}

void Stranger::send(std::span<const u8> mad) const { send_raw(packet_of(mad)); }

void Stranger::send(const cm::Body& body, u64 transaction_id) const {
  send(cm::Message{.transaction_id = transaction_id, .body = body}.encode());
}

std::optional<cm::Message> Stranger::receive(int wait_ms) const {
  pollfd waiting{.fd = socket_, .events = POLLIN, .revents = 0};
  if (::poll(&waiting, 1, wait_ms) != 1) return std::nullopt;
  std::array<u8, 2048> buffer{};
  const ssize_t size = ::recv(socket_, buffer.data(), buffer.size(), 0);
  if (size < static_cast<ssize_t>(kMADAt + kMADSize + kICRCSize)) return std::nullopt;
  return cm::Message::decode(std::span(buffer).subspan<kMADAt, kMADSize>());
}

cm::REQ Stranger::request(u16 port, CommId id, u32 qpn) const {
  cm::REQ req{.local_comm_id = id,
              .service_id = service_id_of({.port = port}),
              .local_ca_guid = GUID{0x5742},
              .local_qpn = QPN{qpn},
              .remote_cm_response_timeout = 18,
              .starting_psn = PSN{qpn},
              .local_cm_response_timeout = 18,
              .p_key = PKey{0xffff},
              .path_mtu_code = 3,
              .max_cm_retries = 15,
              .primary = {.local_gid = own_, .remote_gid = peer_, .hop_limit = 64}};
  const auto data =
      IPPrivateData::compose({.address = own_, .port = 4000}, peer_, {}, kIPConnectDataSize);
  std::ranges::copy(data->bytes(), req.private_data.begin());
  return req;
}

}  // namespace verbena::test
