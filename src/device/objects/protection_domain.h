// ProtectionDomain: ties QPs and SRQs to the memory they may touch. IBTA Vol 1, 10.2.3, 11.2.1.6.
#pragma once

#include "memory/protection_table.h"

namespace verbena {

struct ProtectionDomain {
  ProtectionDomain() = default;
  explicit ProtectionDomain(u32 slot) : id(slot) {}
  u32 table_slot() const { return id.value; }

  PDId id;
  u32 users = 0;  // QPs and SRQs; the protection table knows of MRs and MWs
};

}  // namespace verbena
