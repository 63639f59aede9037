// FabricLink: a Link whose frames go through a simulated fabric (docs/live_fabric.md): to its
// server, by a Unix socket, and from it. It has the fabric's clock, by which its device's timers
// and rates go. The device sends data only while the simulated NIC has room for it, so that a pause
// reaches the device. When the server ends, the link is dead: has_died(). Several processes on one
// host of the fabric find each other as those of a real host do: slots (qpn_slot.h) tell whose a
// QPN is, and packets to QP 1 are handed on (MADRouter).
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "host/cm/mad_router.h"
#include "host/links/fabric/fabric_protocol.h"
#include "host/links/link.h"
#include "host/os/descriptor.h"
#include "host/sharing/process_channel.h"

namespace verbena::host {

class FabricLink final : public Link {
 public:
  // Returns nullopt if VERBENA_FABRIC is not set. EINVAL: its value is no place.
  [[nodiscard]] static Expected<std::optional<FabricPlace>> place_from_environment();
  // The search for a free slot begins at `random`.
  [[nodiscard]] static Expected<std::unique_ptr<FabricLink>> open(const FabricPlace& place,
                                                                  u64 random);
  ~FabricLink() override { leave(); }

  [[nodiscard]] u32 slot() const { return channel_.slot(); }
  [[nodiscard]] const FabricAttached& settings() const { return settings_; }
  // Returns the attributes of the port before and after its changes since the last call, or nullopt
  // if it has not changed.
  struct PortChange {
    FabricPortAttributes before, now;
  };
  [[nodiscard]] std::optional<PortChange> take_port_change();
  // On InfiniBand: entry 0 of the GID table. IBTA 4.1.1
  [[nodiscard]] GID own_gid() const { return own_gid_; }
  // Never goes back.
  [[nodiscard]] Time device_time(Time real) {
    return latest_ = std::max(latest_, settings_.clock.at(real));
  }
  [[nodiscard]] Time real_time(Time of_device) const { return settings_.clock.when(of_device); }
  [[nodiscard]] bool takes_data() const { return waiting_bytes_ < settings_.queue_bytes; }
  // Once, when the server has ended.
  [[nodiscard]] bool has_died() { return std::exchange(has_died_, false); }

  void append(const EgressFrame& frame) override;
  void flush() override {}
  [[nodiscard]] bool receive(Look look) override;
  [[nodiscard]] bool poll_frame(IngressFrame& out, Time now) override;
  [[nodiscard]] Time next_timer() const override { return router_.next_timer(); }
  [[nodiscard]] std::span<const int> descriptors() const override { return descriptors_; }
  [[nodiscard]] Expected<void> join_multicast(const GID& group) override;
  void leave_multicast(const GID& /*group*/) override {}
  void leave() override;  // and says on standard error what the host has sent and received
  void abandon() override;
  [[nodiscard]] const LinkCounters& counters() const override { return counters_; }

 private:
  static constexpr u32 kBatch = 32;  // messages
  struct Arrival {
    FabricPacket packet;
    std::span<const u8> bytes;
  };

  FabricLink(ProcessChannel channel, u32 host) : channel_(std::move(channel)), host_(host) {}
  [[nodiscard]] std::optional<FabricPacket> address(const EgressFrame& frame) const;
  [[nodiscard]] bool send(const FabricPacket& packet, std::span<const u8> bytes);
  bool receive_from_server();
  bool receive_from_processes();
  void take(const FabricMessage& message);
  void die();
  [[nodiscard]] bool is_for_us(const IngressFrame& frame, Time now);
  [[nodiscard]] IngressFrame frame_of(const Arrival& arrival) const;

  Descriptor socket_;
  ProcessChannel channel_;
  MADRouter router_{channel_};
  const u32 host_;
  FabricAttached settings_{};
  FabricPortAttributes told_port_{};  // by take_port_change()
  bool port_has_changed_ = false;
  GID own_gid_;  // when it was opened, as the device's table has it
  std::vector<int> descriptors_;
  u64 waiting_bytes_ = 0;  // of data, in the simulated NIC
  Time latest_;
  std::array<std::array<u8, kMaxFabricMessage>, kBatch> buffers_;
  std::array<Arrival, kBatch> arrivals_{};
  u32 arrived_ = 0, polled_ = 0;
  std::optional<IngressFrame> taken_over_;  // from another process; in the channel's buffer
  std::array<u8, kMaxFabricMessage> out_;
  LinkCounters counters_;
  bool has_died_ = false;
};

}  // namespace verbena::host
