#include "wire/ib/opcode.h"

#include <string_view>

#include "wire/ib/aeth.h"
#include "wire/ib/atomic_eth.h"
#include "wire/ib/bth.h"
#include "wire/ib/deth.h"
#include "wire/ib/feth.h"
#include "wire/ib/imm_dt.h"
#include "wire/ib/reth.h"
#include "wire/ib/sack_eth.h"
#include "wire/ib/xrceth.h"

namespace verbena {
namespace {

constexpr u8 bit(Service service) { return static_cast<u8>(1u << static_cast<u8>(service)); }

constexpr u8 kInRC = bit(Service::kRC) | bit(Service::kXRC);  // reliable: RC, XRC
constexpr u8 kInUC = kInRC | bit(Service::kUC);               // connected: RC, XRC, UC
constexpr u8 kInUD = kInUC | bit(Service::kUD);               // RC, XRC, UC, UD

// One line of table 38: the operation's traits in each service that has it.
struct Operation {
  Op op;
  u8 services;
  std::string_view name;
  OpcodeTraits traits;
};

constexpr OpcodeTraits kFirst = {.request = true, .first = true, .payload = true};
constexpr OpcodeTraits kMiddle = {.request = true, .payload = true};
constexpr OpcodeTraits kLast = {.request = true, .last = true, .payload = true};
constexpr OpcodeTraits kOnly = {.request = true, .first = true, .last = true, .payload = true};
constexpr OpcodeTraits kNoPayload = {.request = true, .first = true, .last = true};

constexpr OpcodeTraits with_reth(OpcodeTraits t) { return t.reth = true, t; }
constexpr OpcodeTraits with_atomic_eth(OpcodeTraits t) { return t.atomic_eth = true, t; }
constexpr OpcodeTraits with_imm_dt(OpcodeTraits t) { return t.imm_dt = true, t; }
constexpr OpcodeTraits with_feth(OpcodeTraits t) { return t.feth = true, t; }
constexpr OpcodeTraits with_ieth(OpcodeTraits t) { return t.ieth = true, t; }
constexpr OpcodeTraits with_aeth(OpcodeTraits t) { return t.aeth = true, t; }
constexpr OpcodeTraits with_atomic_ack_eth(OpcodeTraits t) { return t.atomic_ack_eth = true, t; }
constexpr OpcodeTraits with_sack_eth(OpcodeTraits t) { return t.sack_eth = true, t; }
constexpr OpcodeTraits response(OpcodeTraits t) { return t.request = false, t; }

constexpr auto kOperations = std::to_array<Operation>({
    {Op::kSendFirst, kInUC, "SEND First", kFirst},
    {Op::kSendMiddle, kInUC, "SEND Middle", kMiddle},
    {Op::kSendLast, kInUC, "SEND Last", kLast},
    {Op::kSendLastWithImmediate, kInUC, "SEND Last with Immediate", with_imm_dt(kLast)},
    {Op::kSendOnly, kInUD, "SEND Only", kOnly},
    {Op::kSendOnlyWithImmediate, kInUD, "SEND Only with Immediate", with_imm_dt(kOnly)},
    {Op::kRDMAWriteFirst, kInUC, "RDMA WRITE First", with_reth(kFirst)},
    {Op::kRDMAWriteMiddle, kInUC, "RDMA WRITE Middle", kMiddle},
    {Op::kRDMAWriteLast, kInUC, "RDMA WRITE Last", kLast},
    {Op::kRDMAWriteLastWithImmediate, kInUC, "RDMA WRITE Last with Immediate", with_imm_dt(kLast)},
    {Op::kRDMAWriteOnly, kInUC, "RDMA WRITE Only", with_reth(kOnly)},
    {Op::kRDMAWriteOnlyWithImmediate, kInUC, "RDMA WRITE Only with Immediate",
     with_imm_dt(with_reth(kOnly))},
    {Op::kRDMAReadRequest, kInRC, "RDMA READ Request", with_reth(kNoPayload)},
    {Op::kRDMAReadResponseFirst, kInRC, "RDMA READ response First", with_aeth(response(kFirst))},
    {Op::kRDMAReadResponseMiddle, kInRC, "RDMA READ response Middle", response(kMiddle)},
    {Op::kRDMAReadResponseLast, kInRC, "RDMA READ response Last", with_aeth(response(kLast))},
    {Op::kRDMAReadResponseOnly, kInRC, "RDMA READ response Only", with_aeth(response(kOnly))},
    {Op::kAcknowledge, kInRC, "Acknowledge", with_aeth(response(kNoPayload))},
    {Op::kAtomicAcknowledge, kInRC, "ATOMIC Acknowledge",
     with_atomic_ack_eth(with_aeth(response(kNoPayload)))},
    {Op::kCmpSwap, kInRC, "CmpSwap", with_atomic_eth(kNoPayload)},
    {Op::kFetchAdd, kInRC, "FetchAdd", with_atomic_eth(kNoPayload)},
    {Op::kSendLastWithInvalidate, kInRC, "SEND Last with Invalidate", with_ieth(kLast)},
    {Op::kSendOnlyWithInvalidate, kInRC, "SEND Only with Invalidate", with_ieth(kOnly)},
    {Op::kFlush, kInRC, "FLUSH", with_feth(with_reth(kNoPayload))},
    {Op::kAtomicWrite, kInRC, "ATOMIC WRITE", with_reth(kOnly)},
});

struct ServiceName {
  Service service;
  std::string_view name;
};

constexpr auto kServices = std::to_array<ServiceName>({
    {Service::kRC, "RC "},
    {Service::kUC, "UC "},
    {Service::kUD, "UD "},
    {Service::kXRC, "XRC "},
});

constexpr u8 size_of_headers(const OpcodeTraits& t) {
  std::size_t n = BTH::kSize;
  if (t.xrceth) n += XRCETH::kSize;
  if (t.deth) n += DETH::kSize;
  if (t.feth) n += FETH::kSize;
  if (t.reth) n += RETH::kSize;
  if (t.atomic_eth) n += AtomicETH::kSize;
  if (t.aeth) n += AETH::kSize;
  if (t.atomic_ack_eth) n += AtomicAckETH::kSize;
  if (t.imm_dt) n += ImmDt::kSize;
  if (t.ieth) n += IETH::kSize;
  if (t.sack_eth) n += SackETH::kSize;
  return static_cast<u8>(n);
}

constexpr OpcodeTraits in_service(Service service, OpcodeTraits t) {
  t.valid = true;
  t.deth = service == Service::kUD;
  t.xrceth = service == Service::kXRC && t.request;
  t.headers_size = size_of_headers(t);
  return t;
}

constexpr std::array<OpcodeTraits, 256> make_traits() {
  std::array<OpcodeTraits, 256> table{};
  for (const Operation& o : kOperations)
    for (const ServiceName& s : kServices)
      if ((o.services & bit(s.service)) != 0)
        table[Opcode{s.service, o.op}.to_byte()] = in_service(s.service, o.traits);
  table[kCNPOpcode.to_byte()] = in_service(Service::kCNP, response(kOnly));
  table[kSackOpcode.to_byte()] =
      in_service(Service::kOwn, with_sack_eth(with_aeth(response(kNoPayload))));
  return table;
}

using Name = std::array<char, 36>;  // with its 0

constexpr Name join(std::string_view service, std::string_view operation) {
  Name name{};
  std::size_t n = 0;
  for (const char c : service) name[n++] = c;
  for (const char c : operation) name[n++] = c;
  return name;
}

constexpr std::array<Name, 256> make_names() {
  std::array<Name, 256> table{};
  for (Name& name : table) name = join("", "reserved");
  for (const Operation& o : kOperations)
    for (const ServiceName& s : kServices)
      if ((o.services & bit(s.service)) != 0)
        table[Opcode{s.service, o.op}.to_byte()] = join(s.name, o.name);
  table[kCNPOpcode.to_byte()] = join("", "CNP");
  table[kSackOpcode.to_byte()] = join("", "Selective Acknowledge");
  return table;
}

constexpr std::array<Name, 256> kNames = make_names();

}  // namespace

constexpr std::array<OpcodeTraits, 256> kOpcodeTraits = make_traits();

const char* name_of(Opcode opcode) { return kNames[opcode.to_byte()].data(); }

}  // namespace verbena
