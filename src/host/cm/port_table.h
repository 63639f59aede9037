// PortTable: which RDMA ports of this host are bound, by whom, and who listens. Ports are per port
// space and address, as in Linux's rdma_cm (drivers/infiniband/core/cma.c): "any address" overlaps
// with every one of its family.
// Pure bookkeeping: no file, no clock.
#pragma once

#include <optional>
#include <vector>

#include "connect/cm_params.h"
#include "connect/ip_cm.h"

namespace verbena::host {

// One place of a bound port. A port that is bound to any address has one in each adapter of its
// process; they have the same owner.
struct PortRecord {
  GID address{};        // zero: any
  ServiceId service{};  // port space and port
  u64 owner = 0;        // random; names what was bound
  u32 slot = 0;         // of the adapter (qpn_slot.h)
  ListenFamily family = ListenFamily::kAny;
  bool reusable = false;  // RDMA_OPTION_ID_REUSEADDR
  bool listening = false;
  u8 reserved = 0;
  friend bool operator==(const PortRecord&, const PortRecord&) = default;
};

class PortTable {
 public:
  static constexpr std::size_t kMaxRecords = 16384;
  static constexpr u16 kFirstEphemeral = 32768, kLastEphemeral = 60999;  // as Linux's TCP has them

  PortTable() = default;
  explicit PortTable(std::vector<PortRecord> records) : records_(std::move(records)) {}
  [[nodiscard]] const std::vector<PortRecord>& records() const { return records_; }

  // Somebody else's bind that `wanted` collides with; nullptr: none.
  [[nodiscard]] const PortRecord* find_conflict(const PortRecord& wanted) const;
  // The same for listen(): what was reusable for bind() is not for that.
  [[nodiscard]] const PortRecord* find_listen_conflict(u64 owner) const;
  // A port of the space that nobody has, searched for from `random`; nullopt: all are taken.
  [[nodiscard]] std::optional<u16> find_free(PortSpace space, u64 random) const;

  [[nodiscard]] bool add(const PortRecord& record);  // false: full
  void set_listening(u64 owner);
  void release(u64 owner);
  void forget(u32 slot);  // its process is gone
  [[nodiscard]] std::vector<u32> slots() const;

  // The slots where somebody listens for it, the most particular first.
  [[nodiscard]] std::vector<u32> listeners(ServiceId service, const GID& address) const;

 private:
  std::vector<PortRecord> records_;
};

}  // namespace verbena::host
