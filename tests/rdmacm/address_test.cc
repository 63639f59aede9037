// Binding, ports, resolving and names.
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
  rdma_freeaddrinfo(nullptr);
}

}  // namespace
}  // namespace verbena::test
