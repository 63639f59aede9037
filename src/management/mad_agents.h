// MADAgents: what a kernel's MAD layer does for programs: agents that register for classes and
// methods, transaction IDs that tell their owners, requests that are repeated and time out, and
// messages in segments (RMPP), which programs give and get as a whole. It
// stands between the programs of all channel adapters and the subnet. IBTA Vol 1, 13.5.4.
//
// Sans-IO. Contract: after any call, drain poll_to_send() and poll_received(), then read
// next_timer().
#pragma once

#include <array>
#include <deque>

#include "management/datagram.h"
#include "management/rmpp_transfers.h"
#include "management/subnet.h"

namespace verbena::management {

struct AgentConfig {
  u8 mgmt_class = 0;
  u8 class_version = 0;              // 0: it takes no requests
  std::array<u64, 2> method_mask{};  // of requests that it takes
  u32 oui = 0;                       // of a vendor class 0x30 .. 0x4f
};

struct ReceivedMAD {
  enum class Status : u8 { kOk, kTimedOut };
  u32 client = 0;
  u32 agent = 0;  // as the client numbers it
  Status status = Status::kOk;
  Datagram datagram;
};

class MADAgents {
 public:
  enum class Registration : u8 { kDone, kTaken, kInvalid };
  static constexpr std::size_t kMostPending = 1 << 16;

  // A program opens a port; the number by which it is known here.
  [[nodiscard]] u32 open(PortPlace at);
  void close(u32 client);
  [[nodiscard]] Registration add(u32 client, u32 agent, const AgentConfig& config);
  void remove(u32 client, u32 agent);
  // A request is repeated `retries` times and comes back when no answer does; timeout 0: neither.
  // The time of a request in segments begins when all of them are acknowledged.
  void send(u32 client, u32 agent, Datagram datagram, Duration timeout, u32 retries, Time now);
  void deliver(Delivery delivery, Time now);
  void on_timer(Time now);
  [[nodiscard]] Time next_timer() const;

  [[nodiscard]] std::optional<Delivery> poll_to_send();
  [[nodiscard]] std::optional<ReceivedMAD> poll_received();
  // Whether an agent of that port takes requests of the subnet manager's class.
  [[nodiscard]] bool has_manager(PortPlace at) const;

 private:
  struct Agent {
    u32 client = 0, number = 0;
    PortPlace at;
    AgentConfig config;
    u32 high_id = 0;  // the upper half of its transaction IDs
    [[nodiscard]] bool takes(const Datagram& datagram) const;
  };
  struct Pending {
    u32 high_id = 0, low_id = 0;
    u8 mgmt_class = 0;
    Datagram datagram;
    Duration timeout;
    u32 retries = 0;
    Time due;
  };

  [[nodiscard]] const Agent* find(u32 client, u32 agent) const;
  [[nodiscard]] bool takes_segments(const Delivery& delivery) const;
  void prolong(const Delivery& delivery, Time now);
  void transmit(PortPlace at, Datagram datagram, Time now);
  void take_to_send();
  void deliver_response(Delivery delivery);
  void deliver_request(Delivery delivery);

  struct Client {
    u32 number = 0;
    PortPlace at;
  };
  std::vector<Client> clients_;
  std::vector<Agent> agents_;
  std::vector<Pending> pending_;
  RMPPTransfers transfers_;
  std::deque<Delivery> to_send_;
  std::deque<ReceivedMAD> received_;
  u32 next_client_ = 1, next_high_id_ = 1;
};

}  // namespace verbena::management
