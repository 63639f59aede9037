// libibumad's calls on a MAD in its buffer: addresses, and words for people.
#include <infiniband/umad.h>
#include <infiniband/umad_str.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>

#include "abi/ibverbs/exceptions.h"
#include "base/types.h"

using namespace verbena;

namespace {

ib_user_mad& mad_in(void* umad) { return *static_cast<ib_user_mad*>(umad); }

struct Word {
  u32 code;
  const char* text;
};

template <std::size_t N>
const char* word_of(const std::array<Word, N>& words, u32 code, const char* otherwise) {
  const auto found = std::ranges::find(words, code, &Word::code);
  return found == words.end() ? otherwise : found->text;
}

constexpr std::array kClasses = {
    Word{0x01, "Subn"},    Word{0x81, "SubnDR"},   Word{0x03, "SA"},     Word{0x04, "Perf"},
    Word{0x05, "BM"},      Word{0x06, "DevMgmt"},  Word{0x07, "ComMgt"}, Word{0x08, "SNMP"},
    Word{0x09, "DevAdmt"}, Word{0x10, "BootMgmt"}, Word{0x11, "BIS"},    Word{0x21, "CongMgmt"}};
constexpr std::array kMethods = {
    Word{0x01, "Get"},  Word{0x02, "Set"},    Word{0x81, "GetResp"},    Word{0x03, "Send"},
    Word{0x05, "Trap"}, Word{0x06, "Report"}, Word{0x86, "ReportResp"}, Word{0x07, "TrapRepress"}};
constexpr std::array kSAMethods = {Word{0x12, "GetTable"},      Word{0x92, "GetTableResp"},
                                   Word{0x13, "GetTraceTable"}, Word{0x14, "GetMulti"},
                                   Word{0x94, "GetMultiResp"},  Word{0x15, "Delete"},
                                   Word{0x95, "DeleteResp"}};
constexpr std::array kCommonAttributes = {Word{0x01, "ClassPortInfo"}, Word{0x02, "Notice"},
                                          Word{0x03, "InformInfo"}};
constexpr std::array kSMPAttributes = {Word{0x10, "NodeDescription"},
                                       Word{0x11, "NodeInfo"},
                                       Word{0x12, "SwitchInfo"},
                                       Word{0x14, "GUIDInfo"},
                                       Word{0x15, "PortInfo"},
                                       Word{0x16, "P_KeyTable"},
                                       Word{0x17, "SLtoVLMappingTable"},
                                       Word{0x18, "VLArbitrationTable"},
                                       Word{0x19, "LinearForwardingTable"},
                                       Word{0x1a, "RandomForwardingTable"},
                                       Word{0x1b, "MulticastForwardingTable"},
                                       Word{0x20, "SMInfo"},
                                       Word{0x30, "VendorDiag"},
                                       Word{0x31, "LedInfo"}};
constexpr std::array kSAAttributes = {
    Word{0x11, "NodeRecord"},          Word{0x12, "PortInfoRecord"},
    Word{0x13, "SLtoVLMappingRecord"}, Word{0x14, "SwitchInfoRecord"},
    Word{0x15, "LinearFTRecord"},      Word{0x17, "MulticastFTRecord"},
    Word{0x18, "SMInfoRecord"},        Word{0x20, "LinkRecord"},
    Word{0x30, "GuidInfoRecord"},      Word{0x31, "ServiceRecord"},
    Word{0x33, "P_KeyTableRecord"},    Word{0x35, "PathRecord"},
    Word{0x36, "VLArbTableRecord"},    Word{0x38, "MCMemberRecord"},
    Word{0xf3, "InformInfoRecord"}};
constexpr std::array kStatuses = {Word{0, "Success"}, Word{1, "Busy"},
                                  Word{2, "Redirection required"}};
constexpr std::array kFieldStatuses = {Word{1, "Bad Version"}, Word{2, "Method not supported"},
                                       Word{3, "Method/Attribute combo not supported"},
                                       Word{7, "Invalid attribute/modifier/field"}};
constexpr std::array kSAStatuses = {Word{1, "No Resources"}, Word{2, "Request Invalid"},
                                    Word{3, "No Records"},   Word{4, "Too Many Records"},
                                    Word{5, "Invalid GID"},  Word{6, "Insufficient Components"},
                                    Word{7, "Denied"},       Word{8, "Priority Suggested"}};

constexpr u8 kSA = 0x03, kSubn = 0x01, kSubnDirected = 0x81;

}  // namespace

extern "C" {

void* umad_get_mad(void* umad) noexcept { return mad_in(umad).data; }
size_t umad_size() noexcept { return sizeof(ib_user_mad); }
int umad_status(void* umad) noexcept { return static_cast<int>(mad_in(umad).status); }
ib_mad_addr_t* umad_get_mad_addr(void* umad) noexcept { return &mad_in(umad).addr; }

int umad_set_grh(void* umad, void* mad_addr) noexcept {
  ib_mad_addr& to = mad_in(umad).addr;
  to.grh_present = mad_addr != nullptr ? 1 : 0;
  if (mad_addr == nullptr) return 0;
  const auto& from = *static_cast<const ib_mad_addr*>(mad_addr);
  to.ib_gid = from.ib_gid;
  to.flow_label = htobe32(from.flow_label);
  to.hop_limit = from.hop_limit;
  to.traffic_class = from.traffic_class;
  return 0;
}

int umad_set_addr_net(void* umad, __be16 dlid, __be32 dqp, int sl, __be32 qkey) noexcept {
  ib_mad_addr& to = mad_in(umad).addr;
  to.qpn = dqp;
  to.lid = dlid;
  to.qkey = qkey;
  to.sl = static_cast<u8>(sl);
  return 0;
}

int umad_set_addr(void* umad, int dlid, int dqp, int sl, int qkey) noexcept {
  return umad_set_addr_net(umad, htobe16(static_cast<u16>(dlid)), htobe32(static_cast<u32>(dqp)),
                           sl, htobe32(static_cast<u32>(qkey)));
}

int umad_set_pkey(void* umad, int pkey_index) noexcept {
  mad_in(umad).addr.pkey_index = static_cast<u16>(pkey_index);
  return 0;
}
int umad_get_pkey(void* umad) noexcept { return mad_in(umad).addr.pkey_index; }

int umad_debug(int /*level*/) noexcept { return 0; }  // there is nothing more to be told

void umad_addr_dump(ib_mad_addr_t* addr) try {
  std::fprintf(stderr, "qpn %u qkey 0x%x lid %u sl %u\n", be32toh(addr->qpn), be32toh(addr->qkey),
               be16toh(addr->lid), addr->sl);
  std::fprintf(stderr, "pkey_index %u path_bits 0x%x grh %u\n", addr->pkey_index, addr->path_bits,
               addr->grh_present);
} catch (...) {
  (void)verbena::abi::errno_of_exception();
}

void umad_dump(void* umad) try {
  ib_user_mad& mad = mad_in(umad);
  std::fprintf(stderr, "agent id %u status %x timeout %u\n", mad.agent_id, mad.status,
               mad.timeout_ms);
  umad_addr_dump(&mad.addr);
} catch (...) {
  (void)verbena::abi::errno_of_exception();
}

const char* umad_class_str(uint8_t mgmt_class) noexcept {
  if (mgmt_class >= 0x09 && mgmt_class <= 0x0f) return "<vendor>";
  if (mgmt_class >= 0x30 && mgmt_class <= 0x4f) return "Vendor";
  return word_of(kClasses, mgmt_class, "<unknown>");
}

const char* umad_method_str(uint8_t mgmt_class, uint8_t method) noexcept {
  const char* const common = word_of(kMethods, method, nullptr);
  if (common != nullptr) return common;
  return mgmt_class == kSA ? word_of(kSAMethods, method, "<unknown>") : "<unknown>";
}

const char* umad_attribute_str(uint8_t mgmt_class, __be16 attr_id) noexcept {
  const u32 id = be16toh(attr_id);
  const char* const common = word_of(kCommonAttributes, id, nullptr);
  if (common != nullptr) return common;
  if (mgmt_class == kSA) return word_of(kSAAttributes, id, "<unknown>");
  if (mgmt_class == kSubn || mgmt_class == kSubnDirected)
    return word_of(kSMPAttributes, id, "<unknown>");
  return "<unknown>";
}

// IBTA 13.4.7: busy and redirection in the lowest two bits, a code in the next three.
const char* umad_common_mad_status_str(__be16 status) noexcept {
  const u32 code = be16toh(status);
  if ((code & 3) != 0) return word_of(kStatuses, code & 3, "<unknown>");
  if ((code >> 2 & 7) != 0) return word_of(kFieldStatuses, code >> 2 & 7, "<unknown>");
  return "Success";
}

// IBTA 15.2.1: of the class, in the upper byte.
const char* umad_sa_mad_status_str(__be16 status) noexcept {
  const u32 code = be16toh(status) >> 8;
  return code == 0 ? "Success" : word_of(kSAStatuses, code, "<unknown>");
}

}  // extern "C"
