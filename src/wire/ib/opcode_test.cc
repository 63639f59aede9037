#include "wire/ib/opcode.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace verbena {
namespace {

constexpr std::array kAllServices = {Service::kRC, Service::kUC,  Service::kRD,
                                     Service::kUD, Service::kCNP, Service::kXRC};

TEST(OpcodeTest, BytesBothWays) {
  for (int byte = 0; byte < 256; ++byte)
    EXPECT_EQ(Opcode::from_byte(static_cast<u8>(byte)).to_byte(), byte);
  EXPECT_EQ((Opcode{Service::kRC, Op::kRDMAWriteOnly}.to_byte()), 0x0a);
  EXPECT_EQ((Opcode{Service::kUD, Op::kSendOnlyWithImmediate}.to_byte()), 0x65);
  EXPECT_EQ((Opcode{Service::kXRC, Op::kSendOnly}.to_byte()), 0xa4);
  EXPECT_EQ(kCNPOpcode.to_byte(), 0x81);
}

TEST(OpcodeTest, TheValidOnesAreTable38WithoutRDTheTwoOfA19AndOurOwn) {
  std::set<int> valid;
  for (int byte = 0; byte < 256; ++byte)
    if (traits_of(Opcode::from_byte(static_cast<u8>(byte))).valid) valid.insert(byte);
  std::set<int> expected = {0x64, 0x65, 0x81, 0x1c, 0x1d, 0xbc, 0xbd, 0xd1};
  for (int op = 0x00; op <= 0x17; ++op) {
    if (op == 0x15) continue;
    expected.insert(0x00 | op);
    expected.insert(0xa0 | op);
    if (op <= 0x0b) expected.insert(0x20 | op);
  }
  EXPECT_EQ(valid, expected);
}

TEST(OpcodeTest, HeadersOfRC) {
  const auto size = [](Op op) { return int{traits_of({Service::kRC, op}).headers_size}; };
  EXPECT_EQ(size(Op::kSendFirst), 12);
  EXPECT_EQ(size(Op::kSendLastWithImmediate), 12 + 4);
  EXPECT_EQ(size(Op::kSendOnlyWithInvalidate), 12 + 4);
  EXPECT_EQ(size(Op::kRDMAWriteFirst), 12 + 16);
  EXPECT_EQ(size(Op::kRDMAWriteMiddle), 12);
  EXPECT_EQ(size(Op::kRDMAWriteLastWithImmediate), 12 + 4);
  EXPECT_EQ(size(Op::kRDMAWriteOnlyWithImmediate), 12 + 16 + 4);
  EXPECT_EQ(size(Op::kRDMAReadRequest), 12 + 16);
  EXPECT_EQ(size(Op::kRDMAReadResponseFirst), 12 + 4);
  EXPECT_EQ(size(Op::kRDMAReadResponseMiddle), 12);
  EXPECT_EQ(size(Op::kRDMAReadResponseLast), 12 + 4);
  EXPECT_EQ(size(Op::kRDMAReadResponseOnly), 12 + 4);
  EXPECT_EQ(size(Op::kAcknowledge), 12 + 4);
  EXPECT_EQ(size(Op::kAtomicAcknowledge), 12 + 4 + 8);
  EXPECT_EQ(size(Op::kCmpSwap), 12 + 28);
  EXPECT_EQ(size(Op::kFetchAdd), 12 + 28);
  EXPECT_EQ(size(Op::kFlush), 12 + 4 + 16);
  EXPECT_EQ(size(Op::kAtomicWrite), 12 + 16);
}

TEST(OpcodeTest, XRCRequestsCarryXRCETHAndResponsesDoNot) {
  for (int op = 0; op < 32; ++op) {
    const OpcodeTraits& rc = traits_of({Service::kRC, static_cast<Op>(op)});
    const OpcodeTraits& xrc = traits_of({Service::kXRC, static_cast<Op>(op)});
    EXPECT_EQ(xrc.xrceth, rc.request) << op;
    EXPECT_EQ(xrc.headers_size, rc.headers_size + (rc.request ? 4 : 0)) << op;
  }
}

TEST(OpcodeTest, UDCarriesDETH) {
  EXPECT_EQ(traits_of({Service::kUD, Op::kSendOnly}).headers_size, 12 + 8);
  EXPECT_EQ(traits_of({Service::kUD, Op::kSendOnlyWithImmediate}).headers_size, 12 + 8 + 4);
  for (const Service service : kAllServices)
    for (int op = 0; op < 32; ++op) {
      const OpcodeTraits& traits = traits_of({service, static_cast<Op>(op)});
      EXPECT_EQ(traits.deth, traits.valid && service == Service::kUD);
    }
}

TEST(OpcodeTest, PlaceInTheMessage) {
  const auto place = [](Op op) {
    const OpcodeTraits& traits = traits_of({Service::kRC, op});
    return std::string(traits.first ? "F" : "") + (traits.last ? "L" : "");
  };
  EXPECT_EQ(place(Op::kSendFirst), "F");
  EXPECT_EQ(place(Op::kSendMiddle), "");
  EXPECT_EQ(place(Op::kSendLast), "L");
  EXPECT_EQ(place(Op::kSendLastWithInvalidate), "L");
  EXPECT_EQ(place(Op::kSendOnlyWithImmediate), "FL");
  EXPECT_EQ(place(Op::kRDMAWriteFirst), "F");
  EXPECT_EQ(place(Op::kRDMAWriteLastWithImmediate), "L");
  EXPECT_EQ(place(Op::kRDMAWriteOnly), "FL");
  EXPECT_EQ(place(Op::kRDMAReadRequest), "FL");
  EXPECT_EQ(place(Op::kRDMAReadResponseFirst), "F");
  EXPECT_EQ(place(Op::kRDMAReadResponseMiddle), "");
  EXPECT_EQ(place(Op::kRDMAReadResponseLast), "L");
  EXPECT_EQ(place(Op::kRDMAReadResponseOnly), "FL");
  EXPECT_EQ(place(Op::kCmpSwap), "FL");
  EXPECT_EQ(place(Op::kFlush), "FL");
  EXPECT_EQ(place(Op::kAtomicWrite), "FL");
}

TEST(OpcodeTest, RequestsResponsesAndPayload) {
  for (int i = 0; i < 32; ++i) {
    const auto op = static_cast<Op>(i);
    const OpcodeTraits& traits = traits_of({Service::kRC, op});
    if (!traits.valid) continue;
    const bool response = op >= Op::kRDMAReadResponseFirst && op <= Op::kAtomicAcknowledge;
    const bool bare = op == Op::kRDMAReadRequest || op == Op::kAcknowledge ||
                      op == Op::kAtomicAcknowledge || op == Op::kCmpSwap || op == Op::kFetchAdd ||
                      op == Op::kFlush;
    EXPECT_EQ(traits.request, !response) << i;
    EXPECT_EQ(traits.payload, !bare) << i;
  }
}

TEST(OpcodeTest, CNP) {
  const OpcodeTraits& traits = traits_of(kCNPOpcode);
  EXPECT_TRUE(traits.valid);
  EXPECT_FALSE(traits.request);
  EXPECT_TRUE(traits.payload);
  EXPECT_EQ(traits.headers_size, 12);
}

TEST(OpcodeTest, SelectiveAcknowledge) {
  const OpcodeTraits& traits = traits_of(kSackOpcode);
  EXPECT_TRUE(traits.valid && traits.aeth && traits.sack_eth);
  EXPECT_FALSE(traits.request || traits.payload);
  EXPECT_EQ(traits.headers_size, 12 + 4 + 12);
}

TEST(OpcodeTest, NamesAreTheSpecs) {
  EXPECT_STREQ(name_of({Service::kRC, Op::kRDMAWriteOnly}), "RC RDMA WRITE Only");
  EXPECT_STREQ(name_of({Service::kXRC, Op::kRDMAWriteOnlyWithImmediate}),
               "XRC RDMA WRITE Only with Immediate");
  EXPECT_STREQ(name_of({Service::kUC, Op::kSendMiddle}), "UC SEND Middle");
  EXPECT_STREQ(name_of({Service::kRC, Op::kCmpSwap}), "RC CmpSwap");
  EXPECT_STREQ(name_of({Service::kXRC, Op::kFlush}), "XRC FLUSH");
  EXPECT_STREQ(name_of(kCNPOpcode), "CNP");
  EXPECT_STREQ(name_of(kSackOpcode), "Selective Acknowledge");
  EXPECT_STREQ(name_of({Service::kRD, Op::kSendOnly}), "reserved");
  EXPECT_STREQ(name_of(Opcode::from_byte(0xff)), "reserved");
}

TEST(OpcodeTest, EveryValidOneHasItsOwnName) {
  std::set<std::string> names;
  std::size_t valid = 0;
  for (int byte = 0; byte < 256; ++byte) {
    const Opcode opcode = Opcode::from_byte(static_cast<u8>(byte));
    EXPECT_EQ(traits_of(opcode).valid, std::string(name_of(opcode)) != "reserved") << byte;
    if (!traits_of(opcode).valid) continue;
    ++valid;
    names.insert(name_of(opcode));
  }
  EXPECT_EQ(names.size(), valid);
}

}  // namespace
}  // namespace verbena
