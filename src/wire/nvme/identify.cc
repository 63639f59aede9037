#include "wire/nvme/identify.h"

namespace verbena::nvme {
namespace {

std::string without_spaces(std::string_view text) {
  const std::size_t last = text.find_last_not_of(' ');
  return std::string(text.substr(0, last == std::string_view::npos ? 0 : last + 1));
}

}  // namespace

void IdentifyController::encode(std::span<u8, kIdentifySize> out) const {
  std::ranges::fill(out, u8{0});
  const LEWriter<kIdentifySize> w(out);
  w.text<4, 20>(serial, ' ');
  w.text<24, 40>(model, ' ');
  w.text<64, 8>(firmware, ' ');
  w.put<u8, 76>(1 << 1 | 1);  // CMIC: several ports and controllers
  w.put<u8, 77>(max_transfer_pages_log2);
  w.put<u16, 78>(controller_id);
  w.put<u32, 80>(kVersion);
  w.put<u32, 92>(optional_events);
  w.put<u32, 96>(attributes);
  w.put<u8, 111>(static_cast<u8>(type));
  w.put<u8, 258>(abort_limit);
  w.put<u8, 259>(async_event_limit);
  w.put<u8, 260>(3);                // FRMW: one slot, read only
  w.put<u8, 261>(1 << 1 | 1 << 2);  // LPA: effects log, extended data
  w.put<u8, 262>(error_log_entries);
  w.put<u16, 266>(343);  // WCTEMP, CCTEMP: 70 and 85 degrees Celsius
  w.put<u16, 268>(358);
  w.put<u16, 320>(keep_alive_granularity);
  w.put<u8, 512>(0x66);  // SQES, CQES
  w.put<u8, 513>(0x44);
  w.put<u16, 514>(max_commands);
  w.put<u32, 516>(namespaces);
  w.put<u16, 520>(optional_commands);
  w.put<u8, 525>(has_write_cache ? 1 | 3 << 1 : 0);  // VWC; Flush of all namespaces
  w.put<u32, 536>(sgls);
  w.text<768, 256>(subsystem_nqn);
  w.put<u32, 1792>(command_capsule_units);
  w.put<u32, 1796>(response_capsule_units);
  w.put<u8, 1803>(1);   // MSDBD: one data block
  w.put<u16, 1804>(1);  // OFCS: Disconnect
}

IdentifyController IdentifyController::decode(std::span<const u8, kIdentifySize> in) {
  const LEReader<kIdentifySize> r(in);
  IdentifyController c;
  c.serial = without_spaces(r.text<4, 20>());
  c.model = without_spaces(r.text<24, 40>());
  c.firmware = without_spaces(r.text<64, 8>());
  c.subsystem_nqn = r.text<768, 256>();
  c.controller_id = r.get<u16, 78>();
  c.type = static_cast<Type>(in[111]);
  c.max_transfer_pages_log2 = in[77];
  c.optional_events = r.get<u32, 92>();
  c.attributes = r.get<u32, 96>();
  c.abort_limit = in[258];
  c.async_event_limit = in[259];
  c.error_log_entries = in[262];
  c.keep_alive_granularity = r.get<u16, 320>();
  c.max_commands = r.get<u16, 514>();
  c.namespaces = r.get<u32, 516>();
  c.optional_commands = r.get<u16, 520>();
  c.has_write_cache = (in[525] & 1) != 0;
  c.sgls = r.get<u32, 536>();
  c.command_capsule_units = r.get<u32, 1792>();
  c.response_capsule_units = r.get<u32, 1796>();
  return c;
}

void IdentifyNamespace::encode(std::span<u8, kIdentifySize> out) const {
  std::ranges::fill(out, u8{0});
  const LEWriter<kIdentifySize> w(out);
  w.put<u64, 0>(blocks);
  w.put<u64, 8>(blocks);
  w.put<u64, 16>(blocks);
  w.put<u8, 30>(1);           // NMIC: shared by controllers
  w.put<u8, 33>(1 | 1 << 3);  // DLFEAT: deallocated blocks read as zeros
  w.put<u8, 99>(is_read_only ? 1 : 0);
  std::ranges::copy(nguid, out.begin() + 104);
  std::ranges::copy(eui64, out.begin() + 120);
  w.put<u8, 130>(block_log2);  // LBAF 0
}

IdentifyNamespace IdentifyNamespace::decode(std::span<const u8, kIdentifySize> in) {
  IdentifyNamespace n;
  n.blocks = load_le<u64>(in.data());
  const u8 format = in[26] & 0xf;  // FLBAS
  n.block_log2 = in[128 + 4 * std::size_t{format} + 2];
  n.is_read_only = (in[99] & 1) != 0;
  std::ranges::copy(in.subspan<104, 16>(), n.nguid.begin());
  std::ranges::copy(in.subspan<120, 8>(), n.eui64.begin());
  return n;
}

void encode_namespace_list(std::span<const u32> namespaces, u32 after,
                           std::span<u8, kIdentifySize> out) {
  std::ranges::fill(out, u8{0});
  std::size_t at = 0;
  for (const u32 id : namespaces) {
    if (id <= after || at == kIdentifySize) continue;
    store_le<u32>(out.data() + at, id);
    at += sizeof id;
  }
}

void encode_descriptors(const IdentifyNamespace& of, std::span<const u8, 16> uuid,
                        std::span<u8, kIdentifySize> out) {
  std::ranges::fill(out, u8{0});
  u8* p = out.data();
  const auto put = [&p](u8 type, std::span<const u8> bytes) {
    p[0] = type;
    p[1] = static_cast<u8>(bytes.size());
    p = std::ranges::copy(bytes, p + 4).out;
  };
  constexpr std::array<u8, 1> kNVMCommandSet{0};
  put(1, of.eui64);
  put(2, of.nguid);
  put(3, uuid);
  put(4, kNVMCommandSet);
}

}  // namespace verbena::nvme
