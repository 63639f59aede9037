#include "host/links/raw/taken_traffic.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/check.h"
#include "host/encryption/host_keys.h"
#include "host/sharing/qpn_slot.h"
#include "wire/eth/ipv4.h"
#include "wire/eth/ipv6.h"
#include "wire/eth/udp.h"
#include "wire/ib/bth.h"
#include "wire/ib/grh.h"
#include "wire/roce/icrc.h"

namespace verbena::host {
namespace {

constexpr u32 kAllBits = ~0u;
constexpr u32 kEtherTypeAt = 12;
constexpr u32 kIPAt = EthernetHeader::kSize;  // or the GRH
constexpr u32 kSlotMask = (kMask24 >> kQPNIndexBits) << kQPNIndexBits;
constexpr u32 kSlotOfSPIMask = 0x3ffu << kSPINumberBits;
constexpr u32 kDestQPWordAt = 4;       // in BTH: FECN, BECN, reserved; DestQP
constexpr u32 kDestinationPortAt = 2;  // in UDP
constexpr u32 kVersionAndIHL = 0x45;   // IPv4 without options
constexpr u32 kFragmentMask = 0x3fff;  // more fragments, and the offset
constexpr u32 kIPv6DestinationAt = 24;
constexpr u32 kBTHOverIPv4 = kIPAt + IPv4Header::kSize + UDPHeader::kSize;
constexpr u32 kBTHOverIPv6 = kIPAt + IPv6Header::kSize + UDPHeader::kSize;

FieldTest byte_is(u32 at, u32 value) { return {FieldSize::kByte, at, kAllBits, value}; }
FieldTest half_is(u32 at, u32 value) { return {FieldSize::kHalf, at, kAllBits, value}; }
FieldTest word_is(u32 at, u32 value) { return {FieldSize::kWord, at, kAllBits, value}; }
FieldTest ether_type_is(EtherType type) { return half_is(kEtherTypeAt, static_cast<u32>(type)); }

void add_destination(const GID& gid, std::vector<FieldTest>& tests) {
  for (u32 i = 0; i < gid.bytes.size(); i += 4)
    tests.push_back(word_is(kIPAt + kIPv6DestinationAt + i, load_be32(gid.bytes.data() + i)));
}

FieldTest management_test(u32 bth_at) {
  return {FieldSize::kWord, bth_at + kDestQPWordAt, kMask24, kGSIQPN.value};
}

// `dest_qp`: a test of the transport packet that begins at kBTHOverIPv4 or kBTHOverIPv6.
std::vector<FieldTest> v2_over_ipv4(const GID& address, const TakenTraffic& taken) {
  constexpr u32 kUDPAt = kIPAt + IPv4Header::kSize;
  return {ether_type_is(EtherType::kIPv4),
          byte_is(kIPAt, kVersionAndIHL),
          byte_is(kIPAt + 9, kProtocolUDP),
          word_is(kIPAt + 16, address.ipv4()),
          {FieldSize::kHalf, kIPAt + 6, kFragmentMask, 0},
          half_is(kUDPAt + kDestinationPortAt, taken.udp_port)};
}

std::vector<FieldTest> v2_over_ipv6(const GID& address, const TakenTraffic& taken) {
  constexpr u32 kUDPAt = kIPAt + IPv6Header::kSize;
  std::vector<FieldTest> tests = {ether_type_is(EtherType::kIPv6), byte_is(kIPAt + 6, kProtocolUDP),
                                  half_is(kUDPAt + kDestinationPortAt, taken.udp_port)};
  add_destination(address, tests);
  return tests;
}

std::vector<FieldTest> v1(const GID& address, u32 slot) {
  std::vector<FieldTest> tests = {ether_type_is(EtherType::kRoCEv1),
                                  byte_is(kIPAt + 6, kNextHeaderIBA),
                                  slot_test(slot, SteerBy::kDestQP, kIPAt + GRH::kSize)};
  add_destination(address, tests);
  return tests;
}

TakenCase case_of(std::vector<FieldTest> tests) {
  u32 size = 0;
  for (const FieldTest& test : tests) size = std::max(size, test.at + static_cast<u32>(test.size));
  return {.tests = std::move(tests), .size_bytes = size};
}

TakenCase case_of(std::vector<FieldTest> tests, const FieldTest& dest_qp) {
  tests.push_back(dest_qp);
  return case_of(std::move(tests));
}

}  // namespace

FieldTest slot_test(u32 slot, SteerBy by, u32 at) {
  switch (by) {
    case SteerBy::kDestQP:
      return {FieldSize::kWord, at + kDestQPWordAt, kSlotMask, slot << kQPNIndexBits};
    case SteerBy::kDestQPInVXLANOverIPv4:  // no raw link carries it
    case SteerBy::kDestQPInVXLANOverIPv6: break;
    case SteerBy::kSPI:
      return {FieldSize::kWord, at + static_cast<u32>(PSPHeader::kSPIAt), kSlotOfSPIMask,
              slot << kSPINumberBits};
  }
  CHECK_UNREACHABLE();
}

std::vector<TakenCase> cases_of(const TakenTraffic& taken) {
  std::vector<TakenCase> cases;
  for (const GID& address : taken.addresses) {
    const u32 bth_at = address.is_ipv4() ? kBTHOverIPv4 : kBTHOverIPv6;
    const std::vector<FieldTest> v2 =
        address.is_ipv4() ? v2_over_ipv4(address, taken) : v2_over_ipv6(address, taken);
    if (!taken.slot) {
      cases.push_back(case_of(v2));
      continue;
    }
    cases.push_back(case_of(v2, slot_test(*taken.slot, taken.steer_by, bth_at)));
    if (taken.takes_management) cases.push_back(case_of(v2, management_test(bth_at)));
    if (taken.steer_by == SteerBy::kDestQP && !taken.vlan)
      cases.push_back(case_of(v1(address, *taken.slot)));
  }
  return cases;
}

}  // namespace verbena::host
