#include "connect/ip_cm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/support/golden.h"
#include "tests/support/pcap.h"
#include "wire/ib/cm/message.h"

namespace verbena {
namespace {

cm::Body captured(const char* file, std::size_t frame) {
  const std::vector<u8> bytes = test::captured_frame(file, frame);
  return cm::Message::decode(std::span(bytes).subspan(test::kMADAt))->body;
}

TEST(ServiceIdTest, IsPortSpaceAndPort) {  // values: rdma_cma.h's RDMA_IB_IP_PS_*
  EXPECT_EQ(service_id_of({PortSpace::kTCP, 0x1c06}), ServiceId{0x1061c06});
  EXPECT_EQ(service_id_of({PortSpace::kUDP, 0x1c06}), ServiceId{0x1111c06});
  EXPECT_EQ(service_id_of({PortSpace::kIB, 1}), ServiceId{0x13f0001});
  EXPECT_EQ(service_id_of({PortSpace::kIPoIB, 65535}), ServiceId{0x2ffff});
}

TEST(ServiceIdTest, BothWays) {
  for (const PortSpace space :
       {PortSpace::kTCP, PortSpace::kUDP, PortSpace::kIB, PortSpace::kIPoIB})
    for (const u16 port : {u16{0}, u16{7174}, u16{65535}})
      EXPECT_EQ(service_port_of(service_id_of({space, port})), (ServicePort{space, port}));
  EXPECT_EQ(service_port_of(ServiceId{0x1071c06}), std::nullopt);
  EXPECT_EQ(service_port_of(ServiceId{0x1'0000'0106'1c06}), std::nullopt);
}

TEST(IPRequestTest, FromCapture) {  // rping -c -a 10.77.0.2, port 7174
  const auto req = std::get<cm::REQ>(captured("rxe-cm-rping.pcap", 1));
  const std::optional<IPRequest> ip = parse_ip_request(req.service_id, req.private_data);
  ASSERT_TRUE(ip.has_value());
  EXPECT_EQ(ip->space, PortSpace::kTCP);
  EXPECT_EQ(ip->source, (IPEndpoint{*GID::parse("10.77.0.3"), 0xc99b}));
  EXPECT_EQ(ip->destination, (IPEndpoint{*GID::parse("10.77.0.2"), 7174}));
  EXPECT_EQ(ip->private_data.size(), kIPConnectDataSize);
}

TEST(IPRequestTest, ComposedAsLinuxDoes) {
  const auto req = std::get<cm::SIDRREQ>(captured("rxe-cm-ud.pcap", 1));
  const std::optional<IPRequest> ip = parse_ip_request(req.service_id, req.private_data);
  ASSERT_TRUE(ip.has_value());
  EXPECT_EQ(ip->space, PortSpace::kUDP);
  const Result<IPPrivateData> ours = IPPrivateData::compose(ip->source, ip->destination.address,
                                                            ip->private_data, kIPSIDRDataSize);
  ASSERT_TRUE(ours.has_value());
  EXPECT_TRUE(std::ranges::equal(ours->bytes(), req.private_data));
}

TEST(IPRequestTest, IPv6BothWays) {
  const std::array<u8, 3> data = {1, 2, 3};
  const IPEndpoint source{*GID::parse("2001:db8::1"), 40000};
  const GID destination = *GID::parse("2001:db8::2");
  const Result<IPPrivateData> bytes =
      IPPrivateData::compose(source, destination, data, kIPConnectDataSize);
  ASSERT_TRUE(bytes.has_value());
  const auto ip = parse_ip_request(service_id_of({PortSpace::kTCP, 5}), bytes->bytes());
  ASSERT_TRUE(ip.has_value());
  EXPECT_EQ(ip->source, source);
  EXPECT_EQ(ip->destination, (IPEndpoint{destination, 5}));
  EXPECT_TRUE(std::ranges::equal(ip->private_data, data));
}

TEST(IPRequestTest, WhatDoesNotFitIsRefused) {
  const IPEndpoint source{*GID::parse("10.0.0.1"), 1};
  const GID destination = *GID::parse("10.0.0.2");
  const std::array<u8, kIPSIDRDataSize + 1> data{};
  const auto compose = [&](std::size_t size, std::size_t room) {
    return IPPrivateData::compose(source, destination, std::span(data).first(size), room)
        .has_value();
  };
  EXPECT_TRUE(compose(56, kIPConnectDataSize));
  EXPECT_FALSE(compose(57, kIPConnectDataSize));
  EXPECT_TRUE(compose(180, kIPSIDRDataSize));
  EXPECT_FALSE(compose(181, kIPSIDRDataSize));
  EXPECT_EQ(IPPrivateData::compose(source, *GID::parse("::1"), {}, kIPConnectDataSize).error(),
            Status::kInvalidArgument);  // two families
}

TEST(IPRequestTest, BadOnesAreRefused) {
  std::array<u8, cm::IPCMHeader::kSize> bytes{};
  EXPECT_FALSE(parse_ip_request(ServiceId{0x1061c06}, bytes).has_value());  // IP version 0
  bytes[1] = 0x40;
  EXPECT_TRUE(parse_ip_request(ServiceId{0x1061c06}, bytes).has_value());
  EXPECT_FALSE(parse_ip_request(ServiceId{12345}, bytes).has_value());
  EXPECT_FALSE(
      parse_ip_request(ServiceId{0x1061c06}, std::span(bytes).first(bytes.size() - 1)).has_value());
}

}  // namespace
}  // namespace verbena
