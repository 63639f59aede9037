// FabricServer: the process that simulates a live fabric (docs/live_fabric.md). It takes the
// packets of live processes from their sockets, passes them through a LiveFabric, and gives them to
// the processes of their destinations. It keeps the fabric's clock: simulated time runs `scale`
// times slower than the host's, from the first packet on. If the simulation cannot keep up, or a
// process does not take its packets, simulated time runs slower still, and nothing is lost.
#pragma once

#include <sys/types.h>

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "fabric/live/live_fabric.h"
#include "host/links/fabric/fabric_protocol.h"
#include "live/subnet_server.h"

namespace verbena::live {

struct FabricServerConfig {
  static constexpr u32 kDefaultScale = 1000, kMostScale = 1'000'000;
  enum class Life : u8 { kUntilStopped, kUntilTheLastLeaves };

  u32 scale = kDefaultScale;
  u64 scenario_hash = 0;  // that claims must have
  Life life = Life::kUntilStopped;
};

class FabricServer {
 public:
  // `listening`: from listen_as_fabric(). The fabric outlives it.
  FabricServer(fabric::LiveFabric& fabric, const FabricServerConfig& config,
               host::Descriptor listening);

  // Runs until `stop` is readable, or until its life is over.
  void run(int stop);
  // Returns a summary of all that has happened, lines for a terminal.
  [[nodiscard]] std::string text() const;

 private:
  struct Client {
    enum class Role : u8 { kUnknown, kProgram, kDevice, kManagement };
    host::Descriptor socket;
    u32 number = 0;  // LivePacket::owner
    Role role = Role::kUnknown;
    u32 host = 0;  // among the scenario's
    u64 claim = 0;
    u32 slot = 0;                         // of its QPNs
    u64 packets_before = 0;               // of its host, when it came
    u64 credit = 0;                       // bytes that it has not been told of
    std::deque<std::vector<u8>> backlog;  // messages, with kind, that its socket had no room for
    Time stuck_since = Time::never();
    bool knows_clock = true;
    bool is_gone = false;
    u32 mad_client = 0;   // kManagement: SubnetServer's number
    std::vector<u8> mad;  // of which parts have come
  };

  void wait(int stop);
  [[nodiscard]] Duration time_to_wait(Time now) const;
  void accept_clients();
  void read(Client& client);
  void take(Client& client, const host::FabricMessage& message);
  void on_claim(Client& client, const host::FabricClaim& claim);
  void on_attach(Client& client, const host::FabricAttach& attach);
  void on_packet(Client& client, const host::FabricPacket& packet, std::span<const u8> bytes);
  [[nodiscard]] bool set_path(Client& client, const host::FabricPacket& packet,
                              fabric::LivePacket& live);
  void loop_back(fabric::LivePacket packet);
  void on_leave(Client& client);
  [[nodiscard]] bool take_management(Client& client, const host::FabricMessage& message);
  void on_cable(Client& client, const host::FabricCable& cable);
  void change_link(const host::FabricCable& cable, u32 link);
  void on_mad_attach(Client& client, const host::FabricMADAttach& attach);
  void on_mad(Client& client, const host::FabricMAD& mad, std::span<const u8> part);
  void refuse(Client& client, int error, const std::string& message);
  [[nodiscard]] std::string holder_of(u32 host, u64 claim) const;

  void advance();
  [[nodiscard]] Duration longest_step() const;
  [[nodiscard]] bool has_to_wait(Time now) const;
  void set_clock(const host::FabricClock& clock);
  void deliver();
  void give(Client& client, const fabric::LivePacket& packet);
  void put(Client& client, host::FabricKind kind, std::span<const u8> header,
           std::span<const u8> bytes);
  void deliver_mads();
  void give_mad(Client& client, const management::ReceivedMAD& received);
  void give_to_receivers(const fabric::LivePacket& packet);
  [[nodiscard]] bool is_receiver(const Client& client, const fabric::LivePacket& packet) const;
  void tell_port_changes();
  void flush(Client& client);
  void give_credit();
  void forget_the_gone();
  [[nodiscard]] bool is_over(Time now);
  [[nodiscard]] u64 packets_of(u32 host) const;
  void tell_clock(Time now);
  template <typename Message>
  bool tell(Client& client, const Message& message, std::span<const u8> rest = {});

  fabric::LiveFabric& fabric_;
  const FabricServerConfig config_;
  host::Descriptor listening_;
  std::vector<u32> host_of_node_;
  std::unique_ptr<SubnetServer> subnet_;  // nullptr if the fabric is not InfiniBand
  std::vector<std::unique_ptr<Client>> clients_;
  u32 next_client_ = 1;
  host::FabricClock clock_;
  Time told_;         // the last time when processes were told the clock
  Time began_;        // real time of the first packet
  Duration slipped_;  // real time in which simulated time stood still
  Time alone_since_;
  u64 undelivered_ = 0;
};

}  // namespace verbena::live
