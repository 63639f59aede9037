// Binding, ports, resolving and names.
#include <arpa/inet.h>
#include <infiniband/ib.h>
#include <netdb.h>

#include <cerrno>
#include <cstring>

#include "tests/rdmacm/rdmacm_fixture.h"

namespace verbena::test {
namespace {

using AddressTest = RDMACMTest;

int bind_error(rdma_cm_id* id, sockaddr* to) { return rdma_bind_addr(id, to) == 0 ? 0 : errno; }

TEST_F(AddressTest, BindsToItsDevice) {
  rdma_cm_id* id = make_id();
  sockaddr_in here = address(own_address(), 0);
  ASSERT_EQ(bind_error(id, any(here)), 0);
  EXPECT_NE(id->verbs, nullptr);
  EXPECT_GE(port_of(id), 32768) << "any free port";
  EXPECT_EQ(id->route.addr.src_sin.sin_addr.s_addr, here.sin_addr.s_addr);
  EXPECT_EQ(std::memcmp(id->route.addr.addr.ibaddr.sgid.raw + 12, &here.sin_addr, 4), 0);
  EXPECT_EQ(bind_error(id, any(here)), EINVAL) << "once only";
}

TEST_F(AddressTest, AnyAddressAndLoopbackAreEveryDevice) {
  sockaddr_in everywhere = address("0.0.0.0", 0), loopback = address("127.0.0.1", 0);
  sockaddr_in6 everywhere6 = address6("::", 0), loopback6 = address6("::1", 0);
  for (sockaddr* to : {any(everywhere), any(loopback), any(everywhere6), any(loopback6)}) {
    rdma_cm_id* id = make_id();
    ASSERT_EQ(bind_error(id, to), 0);
    EXPECT_EQ(id->verbs, nullptr);
    EXPECT_EQ(rdma_listen(id, 0), 0);
  }
}

TEST_F(AddressTest, BadAddressesAreRefused) {
  sockaddr_in elsewhere = address("203.0.113.9", 0);  // RFC 5737: nobody has it
  EXPECT_EQ(bind_error(make_id(), any(elsewhere)), EADDRNOTAVAIL);
  sockaddr nothing{};
  nothing.sa_family = AF_UNIX;
  EXPECT_EQ(bind_error(make_id(), &nothing), EINVAL);
  EXPECT_EQ(bind_error(make_id(), nullptr), EINVAL);
  rdma_cm_id* id = make_id();
  EXPECT_EQ(rdma_resolve_addr(id, nullptr, &nothing, 1), -1);
  EXPECT_EQ(errno, EINVAL);
}

TEST_F(AddressTest, APortIsHadOnce) {
  rdma_cm_id* listener = make_listener();
  sockaddr_in same = address(own_address(), port_of(listener));
  sockaddr_in everywhere = address("0.0.0.0", port_of(listener));
  EXPECT_EQ(bind_error(make_id(), any(same)), EADDRINUSE);
  EXPECT_EQ(bind_error(make_id(), any(everywhere)), EADDRINUSE);
  EXPECT_EQ(bind_error(make_id(RDMA_PS_UDP), any(same)), 0) << "another port space";
  destroy(listener);
  EXPECT_EQ(bind_error(make_id(), any(same)), 0) << "free again";
}

TEST_F(AddressTest, AReusablePortIsSharedUntilOneListens) {
  rdma_cm_id *one = make_id(), *two = make_id();
  int yes = 1;
  for (rdma_cm_id* id : {one, two})
    ASSERT_EQ(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &yes, sizeof yes), 0);
  sockaddr_in here = address(own_address(), 0);
  ASSERT_EQ(bind_error(one, any(here)), 0);
  here.sin_port = rdma_get_src_port(one);
  ASSERT_EQ(bind_error(two, any(here)), 0);
  EXPECT_EQ(rdma_listen(one, 1), -1);
  EXPECT_EQ(errno, EADDRINUSE);
  destroy(two);
  EXPECT_EQ(rdma_listen(one, 1), 0);
  EXPECT_EQ(rdma_set_option(one, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &yes, sizeof yes), -1);
}

TEST_F(AddressTest, FamiliesShareAPortOnlyWhenTheyAreApart) {
  rdma_cm_id *ipv4 = make_id(), *ipv6 = make_id(), *both = make_id();
  sockaddr_in everywhere = address("0.0.0.0", 0);
  ASSERT_EQ(bind_error(ipv4, any(everywhere)), 0);
  sockaddr_in6 everywhere6 = address6("::", port_of(ipv4));
  EXPECT_EQ(bind_error(both, any(everywhere6)), EADDRINUSE);
  int yes = 1;
  ASSERT_EQ(rdma_set_option(ipv6, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &yes, sizeof yes), 0);
  EXPECT_EQ(bind_error(ipv6, any(everywhere6)), 0);
}

TEST_F(AddressTest, ListeningNeedsNoBindAndComesOnce) {
  rdma_cm_id* id = make_id();
  EXPECT_EQ(rdma_listen(id, 1), 0);
  EXPECT_NE(port_of(id), 0);
  EXPECT_EQ(rdma_listen(id, 1), -1);
  EXPECT_EQ(errno, EINVAL);
}

TEST_F(AddressTest, ResolvingGivesAPath) {
  rdma_cm_id* id = make_resolved(7);
  EXPECT_EQ(ntohs(rdma_get_dst_port(id)), 7);
  EXPECT_NE(port_of(id), 0);
  ASSERT_EQ(id->route.num_paths, 1);
  EXPECT_EQ(id->route.path_rec->hop_limit, 64);
  EXPECT_EQ(std::memcmp(&id->route.path_rec->dgid, &id->route.addr.addr.ibaddr.dgid, 16), 0);
  EXPECT_EQ(rdma_resolve_route(id, 1), -1);
  EXPECT_EQ(errno, EINVAL) << "once only";
}

TEST_F(AddressTest, LoopbackAddressesLeadToOurselves) {
  std::string nobodys = own_address();
  nobodys.back() = '9';
  for (const std::string& text : {nobodys, std::string("0.0.0.0")}) {
    sockaddr_in there = address(text, 7);
    rdma_cm_id* id = make_id();
    ASSERT_EQ(rdma_resolve_addr(id, nullptr, any(there), 1000), 0) << text;
    expect_event(RDMA_CM_EVENT_ADDR_RESOLVED);
    const sockaddr_in own = address(own_address(), 0);
    EXPECT_EQ(std::memcmp(id->route.addr.addr.ibaddr.dgid.raw + 12, &own.sin_addr, 4), 0) << text;
  }
}

TEST_F(AddressTest, WhatCannotBeReachedIsAnEvent) {
  sockaddr_in there = address("203.0.113.9", 7);  // not from a loopback address
  ASSERT_EQ(rdma_resolve_addr(make_id(), nullptr, any(there), 1000), 0);
  const Event event = expect_event(RDMA_CM_EVENT_ADDR_ERROR);
  EXPECT_LT(event.status, 0);
  rdma_cm_id* id = nullptr;
  ASSERT_EQ(rdma_create_id(nullptr, &id, nullptr, RDMA_PS_TCP), 0);
  EXPECT_EQ(rdma_resolve_addr(id, nullptr, any(there), 1000), -1);
  EXPECT_EQ(errno, -event.status) << "the same, for who waits for it";
  EXPECT_EQ(rdma_destroy_id(id), 0);
}

TEST_F(AddressTest, NamesBecomeAddresses) {
  rdma_addrinfo hints{}, *found = nullptr;
  hints.ai_port_space = RDMA_PS_TCP;
  ASSERT_EQ(rdma_getaddrinfo("127.0.0.1", "7471", &hints, &found), 0);
  EXPECT_EQ(found->ai_family, AF_INET);
  EXPECT_EQ(found->ai_qp_type, IBV_QPT_RC);
  EXPECT_EQ(found->ai_port_space, RDMA_PS_TCP);
  ASSERT_EQ(found->ai_dst_len, sizeof(sockaddr_in));
  EXPECT_EQ(reinterpret_cast<sockaddr_in*>(found->ai_dst_addr)->sin_port, htons(7471));
  EXPECT_EQ(found->ai_src_addr, nullptr);
  rdma_freeaddrinfo(found);

  hints.ai_flags = RAI_PASSIVE;
  hints.ai_port_space = RDMA_PS_UDP;
  ASSERT_EQ(rdma_getaddrinfo(nullptr, "7471", &hints, &found), 0);
  EXPECT_EQ(found->ai_flags, RAI_PASSIVE);
  EXPECT_EQ(found->ai_qp_type, IBV_QPT_UD);
  EXPECT_NE(found->ai_src_addr, nullptr);
  EXPECT_EQ(found->ai_dst_addr, nullptr);
  rdma_freeaddrinfo(found);
}

TEST_F(AddressTest, BadNamesAreRefused) {
  rdma_addrinfo hints{}, *found = nullptr;
  EXPECT_EQ(rdma_getaddrinfo(nullptr, nullptr, nullptr, &found), -1);
  EXPECT_EQ(errno, EINVAL);
  hints.ai_flags = RAI_NUMERICHOST;
  EXPECT_EQ(rdma_getaddrinfo("no.number", nullptr, &hints, &found), EAI_NONAME);
  EXPECT_EQ(rdma_getaddrinfo("127.0.0.1", "no such service", &hints, &found), EAI_SERVICE);
  hints.ai_flags = 0;
  hints.ai_qp_type = IBV_QPT_UD;
  hints.ai_port_space = RDMA_PS_TCP;
  EXPECT_EQ(rdma_getaddrinfo("127.0.0.1", "7471", &hints, &found), EAI_SOCKTYPE) << "EAI_QPTYPE";
  hints = {};
  hints.ai_family = AF_UNIX;
  EXPECT_EQ(rdma_getaddrinfo("127.0.0.1", "7471", &hints, &found), EAI_FAMILY);
  hints.ai_family = AF_INET6;
  hints.ai_flags = RAI_NUMERICHOST;
  EXPECT_EQ(rdma_getaddrinfo("127.0.0.1", "7471", &hints, &found), EAI_ADDRFAMILY);
  EXPECT_EQ(rdma_getaddrinfo(nullptr, "7471", nullptr, nullptr), -1);
  EXPECT_EQ(errno, EINVAL);
  rdma_freeaddrinfo(nullptr);
}

TEST_F(AddressTest, HintsAloneAreCopied) {
  sockaddr_in from = address("127.0.0.1", 1), to = address("127.0.0.1", 2);
  rdma_addrinfo hints{}, *found = nullptr;
  hints.ai_flags = RAI_NOROUTE;
  hints.ai_family = AF_INET;
  hints.ai_qp_type = IBV_QPT_UC;
  hints.ai_port_space = RDMA_PS_IB;
  hints.ai_src_addr = any(from);
  hints.ai_dst_addr = any(to);
  hints.ai_src_len = hints.ai_dst_len = sizeof(sockaddr_in);
  ASSERT_EQ(rdma_getaddrinfo(nullptr, nullptr, &hints, &found), 0);
  EXPECT_EQ(found->ai_flags, RAI_NOROUTE);
  EXPECT_EQ(found->ai_family, AF_INET);
  EXPECT_EQ(found->ai_qp_type, IBV_QPT_UC);
  EXPECT_EQ(found->ai_port_space, RDMA_PS_IB);
  ASSERT_EQ(found->ai_src_len, sizeof(sockaddr_in));
  EXPECT_EQ(std::memcmp(found->ai_src_addr, &from, sizeof from), 0);
  EXPECT_EQ(std::memcmp(found->ai_dst_addr, &to, sizeof to), 0);
  EXPECT_EQ(found->ai_route_len, 0);
  rdma_freeaddrinfo(found);
}

// --- AF_IB: GIDs and ServiceIDs

constexpr std::uint64_t kTCPServices = 0x0000000001060000;  // Vol 1, A11.2

sockaddr_ib ib_address(const char* gid, std::uint64_t service_id) {
  sockaddr_ib to{};
  to.sib_family = AF_IB;
  inet_pton(AF_INET6, gid, &to.sib_addr);
  to.sib_sid = htobe64(service_id);
  to.sib_sid_mask = htobe64(~std::uint64_t{0});
  return to;
}

TEST_F(AddressTest, NumbersBecomeGIDs) {
  rdma_addrinfo hints{}, *found = nullptr;
  hints.ai_flags = RAI_FAMILY | RAI_NUMERICHOST;
  hints.ai_family = AF_IB;
  hints.ai_port_space = RDMA_PS_TCP;
  for (const char* node : {"127.0.0.1", "::ffff:127.0.0.1"}) {
    ASSERT_EQ(rdma_getaddrinfo(node, "7471", &hints, &found), 0);
    EXPECT_EQ(found->ai_family, AF_IB);
    ASSERT_EQ(found->ai_dst_len, sizeof(sockaddr_ib));
    const sockaddr_ib expected = ib_address("::ffff:127.0.0.1", kTCPServices | 7471);
    const auto* to = reinterpret_cast<sockaddr_ib*>(found->ai_dst_addr);
    EXPECT_EQ(to->sib_family, AF_IB);
    EXPECT_EQ(std::memcmp(&to->sib_addr, &expected.sib_addr, sizeof to->sib_addr), 0);
    EXPECT_EQ(to->sib_sid, expected.sib_sid);
    EXPECT_EQ(to->sib_sid_mask, expected.sib_sid_mask);
    rdma_freeaddrinfo(found);
  }
  hints.ai_flags = RAI_FAMILY;
  ASSERT_EQ(rdma_getaddrinfo("127.0.0.1", "7471", &hints, &found), 0);
  EXPECT_EQ(found->ai_family, AF_INET) << "names have no GID that anybody knows";
  rdma_freeaddrinfo(found);
}

TEST_F(AddressTest, GIDsConnect) {
  const std::string gid = "::ffff:" + own_address();
  sockaddr_ib here = ib_address(gid.c_str(), kTCPServices);
  rdma_cm_id* listener = make_id();
  ASSERT_EQ(bind_error(listener, any(here)), 0);
  EXPECT_EQ(rdma_get_local_addr(listener)->sa_family, AF_IB);
  EXPECT_EQ(rdma_listen(listener, 1), 0);
  sockaddr_ib there = ib_address(gid.c_str(), kTCPServices | port_of(listener));
  rdma_cm_id* client = make_id();
  ASSERT_EQ(rdma_resolve_addr(client, nullptr, any(there), 1000), 0);
  expect_event(RDMA_CM_EVENT_ADDR_RESOLVED);
  ASSERT_EQ(rdma_resolve_route(client, 1000), 0);
  expect_event(RDMA_CM_EVENT_ROUTE_RESOLVED);
  EXPECT_EQ(ntohs(rdma_get_dst_port(client)), port_of(listener));
  EXPECT_EQ(rdma_get_peer_addr(client)->sa_family, AF_IB);
  make_qp(client);
  rdma_conn_param conn{};
  ASSERT_EQ(rdma_connect(client, &conn), 0);
  const Event request = expect_event(RDMA_CM_EVENT_CONNECT_REQUEST);
  EXPECT_EQ(request.listener, listener);
  const auto& local = reinterpret_cast<sockaddr_ib&>(*rdma_get_local_addr(request.id));
  EXPECT_EQ(local.sib_family, AF_IB);
  EXPECT_EQ(local.sib_sid, there.sib_sid);
  EXPECT_EQ(local.sib_sid_mask, ~std::uint64_t{0});
  EXPECT_EQ(std::memcmp(&local.sib_addr, &there.sib_addr, sizeof local.sib_addr), 0);
  const auto& peer = reinterpret_cast<sockaddr_ib&>(*rdma_get_peer_addr(request.id));
  EXPECT_EQ(peer.sib_family, AF_IB);
  EXPECT_EQ(std::memcmp(&peer.sib_addr, &there.sib_addr, sizeof peer.sib_addr), 0);
  EXPECT_EQ(rdma_get_dst_port(request.id), rdma_get_src_port(client));
}

TEST_F(AddressTest, AnyGIDListensAtAPort) {
  sockaddr_ib everywhere = ib_address("::", kTCPServices | 7475);
  rdma_cm_id* listener = make_id();
  ASSERT_EQ(bind_error(listener, any(everywhere)), 0);
  EXPECT_EQ(port_of(listener), 7475);
  EXPECT_EQ(rdma_listen(listener, 1), 0);
}

TEST_F(AddressTest, AServiceOfAnotherPortSpaceIsRefused) {
  sockaddr_ib tcp = ib_address("::", kTCPServices | 7476);
  EXPECT_EQ(bind_error(make_id(RDMA_PS_UDP), any(tcp)), EPROTONOSUPPORT);
  rdma_cm_id* id = make_id(RDMA_PS_IB);
  EXPECT_EQ(rdma_resolve_addr(id, nullptr, any(tcp), 1), -1);
  EXPECT_EQ(errno, EPROTONOSUPPORT);
  tcp.sib_sid_mask = htobe64(0xffff);
  EXPECT_EQ(bind_error(make_id(RDMA_PS_UDP), any(tcp)), 0) << "the mask leaves the port space open";
}

}  // namespace
}  // namespace verbena::test
