// PortTable: the bound RDMA ports of this host, their owners, and the listeners. A port is bound
// per port space and address. A program that binds a port to "any address" has it on each address
// of its devices. Pure bookkeeping: no file, no clock.
#pragma once

#include <optional>
#include <vector>

#include "connect/ip_cm.h"

namespace verbena::host {

// One port on one address. Those of one bind have the same owner.
struct PortRecord {
  GID address{};
  ServiceId service{};    // port space and port
  u64 owner = 0;          // random; names what was bound
  u32 slot = 0;           // of the adapter on the address (qpn_slot.h)
  bool reusable = false;  // RDMA_OPTION_ID_REUSEADDR
  bool listening = false;
  u16 reserved = 0;
  friend bool operator==(const PortRecord&, const PortRecord&) = default;
};

class PortTable {
 public:
  static constexpr std::size_t kMaxRecords = 16384;
  static constexpr u16 kFirstEphemeral = 32768, kLastEphemeral = 60999;  // as Linux's TCP has them

  PortTable() = default;
  explicit PortTable(std::vector<PortRecord> records) : records_(std::move(records)) {}
  [[nodiscard]] const std::vector<PortRecord>& records() const { return records_; }

  // Returns true if another owner has the port and not both are reusable.
  [[nodiscard]] bool is_taken(const PortRecord& wanted) const;
  // Returns true if another owner has a port of this owner's: then it may not listen. As Linux's
  // rdma_cm.
  [[nodiscard]] bool is_shared(u64 owner) const;
  // Returns a port of the space that is free on all addresses, or nullopt if all are taken. The
  // search begins at `random`.
  [[nodiscard]] std::optional<u16> find_free(PortSpace space, u64 random) const;

  [[nodiscard]] bool add(const PortRecord& record);  // false: full
  void set_listening(u64 owner);
  void release(u64 owner);
  void forget(u32 slot);  // its process is gone

  [[nodiscard]] std::optional<u32> listener(ServiceId service, const GID& address) const;
  // All that have anything, or anything on one address; each once.
  [[nodiscard]] std::vector<u32> slots() const;
  [[nodiscard]] std::vector<u32> slots_at(const GID& address) const;

 private:
  std::vector<PortRecord> records_;
};

}  // namespace verbena::host
