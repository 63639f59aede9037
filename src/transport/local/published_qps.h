// PublishedQPs: the RC queue pairs (and iWARP's) of one device that accept requests, for other
// processes of the host to read. QPPublisher is the device's side of it.
#pragma once

#include <array>
#include <bitset>
#include <utility>

#include "base/shared_record.h"
#include "transport/qp_attributes.h"

namespace verbena {

struct PublishedQP {
  u32 accepts = 0;  // 1: RC, in RTR or beyond, and a first packet has arrived
  QPN dest_qp{};
  u32 rq_psn = 0;  // the first PSN: distinguishes QPs that had this number one after the other
  PDId pd{};
  AccessFlags access{};
  u32 p_key = 0;
  u32 path_mtu = 0;                           // in bytes
  u32 max_dest_rd_atomic = 0;                 // READs and atomics that it executes at a time
  GID source{}, destination{};                // of its path, or of its TCP connection
  u16 source_port = 0, destination_port = 0;  // of its TCP connection
  u32 reserved = 0;

  [[nodiscard]] TCPTuple tcp() const {
    return {source, destination, source_port, destination_port};
  }
  // Returns whether requests of `requester` are accepted here. It checks what the device checks of
  // each packet (device/port/admission.h), that both ends are of one connection, and that packets
  // of one end have the length that the other expects. IBTA 9.7.4.1.6. Of iWARP, a TCP connection
  // tells.
  [[nodiscard]] bool accepts_from(const QPAttributes& requester) const;
  // Returns whether requests of this kind are permitted: `need` is kRemoteWrite or kRemoteRead.
  // IBTA 9.7.4.1.5. A requester that may have more READs outstanding than there are resources may
  // be refused. IBTA 9.7.4.1.8
  [[nodiscard]] bool permits(Access need, const QPAttributes& requester) const {
    return access.has(need) &&
           (need != Access::kRemoteRead || requester.max_rd_atomic <= max_dest_rd_atomic);
  }
};

class PublishedQPs {
 public:
  static constexpr u32 kPlaces = 1u << 14;  // by the lower bits of the QPN

  [[nodiscard]] bool find(QPN qpn, PublishedQP& out) const {
    return places_[qpn.value % kPlaces].load(out);
  }

 private:
  friend class QPPublisher;
  std::array<SharedRecord<PublishedQP>, kPlaces> places_;
};

class QPPublisher {
 public:
  explicit QPPublisher(PublishedQPs& qps) : qps_(qps) {}

  // To be called when its attributes or state have changed.
  void update(const QPAttributes& qp);
  // To be called in RTR when the first packet has arrived and raised its event. IBTA 11.6.3.1
  void on_established(const QPAttributes& qp);
  void withdraw(QPN qpn);
  // Returns whether anything was withdrawn since the last call: peers may still access it.
  [[nodiscard]] bool take_withdrawn() { return std::exchange(withdrawn_, false); }

 private:
  void publish(const QPAttributes& qp);

  PublishedQPs& qps_;
  std::bitset<PublishedQPs::kPlaces> published_;
  bool withdrawn_ = false;
};

}  // namespace verbena
