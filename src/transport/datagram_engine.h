// DatagramEngine: an Engine whose wire side is packets: RC, UC and UD.
// Contract: as Engine's; also drain poll_packet().
#pragma once

#include "transport/acknowledgement.h"
#include "transport/engine.h"
#include "transport/tx_packet.h"
#include "wire/roce/gid_type.h"

namespace verbena {

// RxContext: the properties of a received packet outside of its transport headers.
struct RxContext {
  GID source, destination;
  GIDType type = GIDType::kRoCEv2;
  u8 traffic_class = 0;
  u8 hop_limit = 0;
  u16 transport_bytes = 0;              // BTH .. ICRC, for the GRH's payload length
  const PathTelemetry* path = nullptr;  // of the way of what this acknowledges; nullptr: none
};

// Requests and READ responses are held to the QP's rate; what only acknowledges never waits.
enum class MaySend : u8 {
  kAnything,
  kTrains,  // anything, and packets that are alike as one. An engine need not have any
  kAcknowledgements,
};

class DatagramEngine : public Engine {
 public:
  // For the state the QP is in (RTR and beyond); P_Key, ICRC and source checked by the device.
  virtual void on_packet(const PacketView& packet, const RxContext& context, Time now) = 0;
  // The same for an acknowledgement that is followed at once by on_packet(), of what it came with.
  virtual void on_acknowledgement(const Acknowledgement&, Time) {}
  // Returns false if there is nothing to send now. Bounded work per call. `out.packets` is 1
  // before, and stays 1 except for a train. A packet arms the timer or moves it to later, if it
  // does anything to it, unless outputs() says so.
  [[nodiscard]] virtual bool poll_packet(Time now, MaySend what, TxPacket& out) = 0;
};

}  // namespace verbena
