// The data of Identify, as far as a controller of ours fills it or a host of ours reads it.
// NVM Express Base 2.0, 5.17.2; NVM Command Set 1.0, 4.1.5.
#pragma once

#include <string>
#include <vector>

#include "wire/nvme/fabrics.h"

namespace verbena::nvme {

inline constexpr std::size_t kIdentifySize = 4096;
using IdentifyBytes = std::array<u8, kIdentifySize>;

enum class CNS : u8 {
  kNamespace = 0x00,
  kController = 0x01,
  kActiveNamespaces = 0x02,
  kNamespaceDescriptors = 0x03,
  kCommandSetNamespace = 0x05,
  kCommandSetController = 0x06,
  kCommandSetActiveNamespaces = 0x07,
  kIndependentNamespace = 0x08,
  kControllerList = 0x13,
  kCommandSets = 0x1c,
};

struct IdentifyController {
  enum class Type : u8 { kIO = 1, kDiscovery = 2 };
  // SGLs: supported without alignment, keyed, address in the capsule. Figure 275
  static constexpr u32 kSGLs = 1 | 1 << 2 | 1 << 20;
  static constexpr u16 kCompare = 1, kDatasetManagement = 1 << 2, kWriteZeroes = 1 << 3;  // ONCS

  std::string serial, model, firmware, subsystem_nqn;
  u16 controller_id = 0;
  Type type = Type::kIO;
  u8 max_transfer_pages_log2 = 0;  // MDTS, in units of 4096 bytes
  u32 optional_events = 0;         // OAES
  u32 attributes = 0;              // CTRATT
  u8 abort_limit = 3, async_event_limit = 3, error_log_entries = 63;  // 0's based
  u16 keep_alive_granularity = 0;                                     // KAS, in 100 ms
  u16 max_commands = 0;
  u32 namespaces = 0;  // NN
  u16 optional_commands = 0;
  bool has_write_cache = false;
  u32 sgls = kSGLs;
  u32 command_capsule_units = 0, response_capsule_units = 1;  // of 16 bytes

  void encode(std::span<u8, kIdentifySize> out) const;
  [[nodiscard]] static IdentifyController decode(std::span<const u8, kIdentifySize> in);
};

struct IdentifyNamespace {
  u64 blocks = 0;
  u8 block_log2 = 9;
  std::array<u8, 16> nguid{};
  std::array<u8, 8> eui64{};
  bool is_read_only = false;

  void encode(std::span<u8, kIdentifySize> out) const;
  [[nodiscard]] static IdentifyNamespace decode(std::span<const u8, kIdentifySize> in);
};

// A list of 1024 identifiers that are greater than `after`, ascending.
void encode_namespace_list(std::span<const u32> namespaces, u32 after,
                           std::span<u8, kIdentifySize> out);
// CNS 3: EUI64, NGUID, UUID and the command set.
void encode_descriptors(const IdentifyNamespace& of, std::span<const u8, 16> uuid,
                        std::span<u8, kIdentifySize> out);

}  // namespace verbena::nvme
