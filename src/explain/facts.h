// Facts: all that is known of a QP whose work has ended in error, gathered by the driver at that
// moment. diagnosis.h draws the conclusions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "device/objects/async_event.h"
#include "explain/packet_history.h"
#include "transport/cqe.h"
#include "transport/qp_attributes.h"
#include "transport/qp_fault.h"

namespace verbena::explain {

// The way in which the application learns of the error.
enum class Told : u8 { kBySendCompletion, kByReceiveCompletion, kByEvent };

// Facts about the other end that were found without its help.
struct PeerFacts {
  enum class Place : u8 {
    kElsewhere,   // another host, or not known
    kThisHost,    // another process or device of this host
    kThisDevice,  // our own device
  };
  Place place = Place::kElsewhere;
  std::optional<bool> process_alive{};  // kThisHost: whether the process that owns the QPN lives
  // kThisDevice: nullopt if there is no such QP.
  struct QP {
    QPState state = QPState::kReset;
    QPN dest_qp;
    PKey p_key;
    GID source, destination;
    bool has_srq = false;
    ResponderFault fault{};
  };
  std::optional<QP> qp{};
  bool port_refused = false;      // ICMP says: nothing listens on UDP port 4791 there
  bool host_unreachable = false;  // no route, or no host
  std::optional<u32> path_mtu{};  // bytes of an IP packet, as the kernel knows the path
};

struct Facts {
  QPAttributes qp;
  Told told = Told::kBySendCompletion;
  WQEStatus status = WQEStatus::kSuccess;           // by a completion
  u64 wr_id = 0;                                    //
  AsyncEventType event = AsyncEventType::kQPFatal;  // by an event
  Time at;                                          // of the error
  QPFault fault;
  std::vector<PacketRecord> packets;  // oldest first
  std::vector<std::string> rules;     // texts of fault rules, by PacketRecord::rule - 1
  bool injected = false;              // the QP was broken by a fault rule
  PeerFacts peer;
};

}  // namespace verbena::explain
