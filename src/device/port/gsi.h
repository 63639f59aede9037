// GSI: the General Services Interface, QP 1: management datagrams of 256 bytes, in and out, outside
// of all objects that a program makes. IBTA Vol 1, 13.5.1; UD SEND Only with the Q_Key 0x80010000.
// Both queues are bounded. What does not fit on its way in is dropped: MADs are asked for again.
// They take memory with their first message: a device of a simulation never has one.
#pragma once

#include <memory>

#include "base/ring.h"
#include "base/status.h"
#include "device/port/counters.h"
#include "device/port/frame.h"
#include "transport/address_vector.h"
#include "wire/ib/mad.h"

namespace verbena {

using MADBytes = std::array<u8, kMADSize>;

struct GSIMessage {
  GID source, destination;
  QPN source_qp;
  MADBytes mad;
};

class GSI {
 public:
  static constexpr std::size_t kQueueSize = 64;  // messages, each way

  explicit GSI(Counters& counters) : counters_(counters) {}

  // A packet to QP 1. Its frame is sound; nothing else of it has been looked at.
  void on_packet(const PacketView& packet, const IngressFrame& frame);
  [[nodiscard]] bool poll(GSIMessage& out);  // false if there is none

  // To QP 1 at the path's destination, from its source address. kAgain: the queue is full.
  [[nodiscard]] Status post(const AddressVector& path, const MADBytes& mad);
  [[nodiscard]] bool has_frames() const { return queues_ != nullptr && !queues_->sends.empty(); }
  // Returns false if there is none. The payload is valid until the next post().
  [[nodiscard]] bool poll_frame(EgressFrame& out);

 private:
  struct Send {
    AddressVector path;
    MADBytes mad;
  };
  struct Queues {
    Ring<GSIMessage> received{kQueueSize};
    Ring<Send> sends{kQueueSize};
  };
  Queues& queues();

  Counters& counters_;
  std::unique_ptr<Queues> queues_;
  PSN next_psn_;
};

}  // namespace verbena
