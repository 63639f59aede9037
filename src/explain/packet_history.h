// PacketHistory: the last packets of each QP, both ways, for explanations: fixed records in rings
// that are allocated once. A QP's place follows from its number; QPs with the same place share it.
// Received packets are kept apart from sent ones, so that retransmissions into silence do not
// displace the last answer.
// Sans-IO; deterministic; no allocation except for the names of fault rules. Not thread-safe.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/psn.h"
#include "base/time.h"
#include "device/port/frame.h"
#include "device/port/reception.h"

namespace verbena::explain {

enum class Direction : u8 { kSent, kReceived };

struct PacketRecord {
  static constexpr u8 kNoSyndrome = 0xff;  // bit 7 of an AETH's is never set
  Time at;
  QPN qp;  // of this device
  PSN psn;
  u16 transport_bytes = 0;  // BTH .. pad
  u8 opcode = 0;
  u8 syndrome = kNoSyndrome;
  Direction direction = Direction::kSent;
  Reception reception = Reception::kAccepted;
  u8 rule = 0;  // 0: passed; otherwise the number of the fault rule that dropped it
  friend bool operator==(const PacketRecord&, const PacketRecord&) = default;
};

class PacketHistory {
 public:
  static constexpr u32 kPlaces = 256, kDepth = 16;  // packets of each direction
  static constexpr u32 kMaxRules = 100;             // the rest share the last number

  PacketHistory();

  void on_sent(const EgressFrame& frame, Time now);
  // Returns the record of a packet that `qp` sends, which the caller fills in completely.
  [[nodiscard]] PacketRecord& add_sent(QPN qp) { return place_of(qp).sent.add(); }
  // Records an acknowledgement that came with another packet, and before it.
  void on_received(const Acknowledgement& acknowledgement, QPN qp, Time now);
  void on_received(const IngressFrame& frame, Reception reception, Time now);
  // Records a packet, or the packets of a train, that arrived decoded.
  void on_received(const PacketView& packet, std::size_t transport_bytes, u32 packets,
                   Reception reception, Time now);
  // A fault rule dropped the packet just sent.
  void on_lost_by_fault(const EgressFrame& frame, std::string_view rule);
  // A fault rule dropped a packet that arrived: on_received() is not called for it.
  void on_lost_by_fault(const IngressFrame& frame, std::string_view rule, Time now);

  // Returns the packets, oldest first; a received packet precedes one that was sent at the same
  // time.
  [[nodiscard]] std::vector<PacketRecord> of(QPN qp) const;
  // Returns the texts of fault rules, by PacketRecord::rule - 1.
  [[nodiscard]] const std::vector<std::string>& rules() const { return rules_; }

 private:
  struct Ring {
    std::array<PacketRecord, kDepth> records;
    u32 count = 0;  // ever added
    PacketRecord& add() { return records[count++ % kDepth]; }
    PacketRecord& last() { return records[(count - 1) % kDepth]; }
  };
  struct Place {
    Ring sent, received;
  };

  Place& place_of(QPN qp) const { return places_[qp.value % kPlaces]; }
  u8 number_of(std::string_view rule);
  static void follow(Ring& ring, const PacketRecord& first, u32 packets);

  std::unique_ptr<Place[]> places_;
  std::vector<std::string> rules_;
};

}  // namespace verbena::explain
