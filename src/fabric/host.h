// Host: a computer with one NIC: a Device, the code that runs behind the verbs library too, and the
// port that it sends from, or several (host_port.h). Its messages are RDMA WRITEs to and from
// memory that has no bytes. PFC pauses all packets that it sends in the priority: data, and the
// acknowledgements of the device, which go before data. A host may be told to send acknowledgements
// whatever is paused. Of a QP whose priority is paused, the host takes at most one packet from the
// device, which waits.
#pragma once

#include <span>
#include <vector>

#include "device/device.h"
#include "fabric/egress_queues.h"
#include "fabric/endpoint.h"
#include "fabric/flow.h"
#include "fabric/host_port.h"
#include "fabric/infiniband/channel_adapter.h"
#include "fabric/live/live_packet.h"
#include "fabric/pcie_path.h"
#include "fabric/pfc.h"
#include "fabric/receiver.h"
#include "fabric/routes.h"
#include "fabric/sending_gate.h"

namespace verbena::fabric {

// The size of a frame on the wire, as links and buffers count it, from that of its packet.
struct FrameSizes {
  u16 overhead = 14 + 20 + 8 + 4 + 4;  // MAC, IPv4, UDP, ICRC, FCS
  bool counts_headers = true;          // BTH, what follows it, and pad
  u16 acknowledgement = 0;             // of a frame without payload; 0: by the same rule
};

// Notification: how a congestion notification travels.
enum class Notification : u8 {
  kPacket,             // CNPs of their own. IBTA A17.9.3
  kInAcknowledgement,  // with the acknowledgement of the data that was marked
};

struct HostConfig {
  DeviceConfig device{};
  PauseExpiry pause_expiry = PauseExpiry::kQuanta;
  FrameSizes sizes{};
  Notification notification = Notification::kPacket;
  u8 cnp_priority = 6;
  bool acknowledgements_obey_pause = true;
  u8 traffic_class = 2;  // ECT(0)
  u16 pause_frame_bytes = 64;
  ReceiverConfig receiver{};
  PCIeConfig pcie{};
  FunctionConfig function{};
  EncryptionConfig encryption{};  // its overhead is in `sizes`, too
  u8 ack_timeout = 16;  // Local ACK Timeout: 4.096 us * 2^16, 268 ms. IBTA Vol 1, 9.7.6.1.3
  u8 retry_count = 7;
  bool collects_telemetry = false;  // telemetry.h
  std::optional<ChannelAdapterConfig> channel_adapter{};
};
// The same computer on a link of InfiniBand.
void be_on_infiniband(HostConfig& host, const InfiniBandConfig& config, const LinkConfig& link);

class Host final : public Endpoint {
 public:
  // `ports`: the host's own, which are numbered `first_port` .. of all.
  Host(Domain& domain, HostConfig config, NodeIndex node, std::span<Port> ports, u32 first_port,
       const Routes& routes, const std::vector<u32>& addresses);
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  void on_arrival(u32 port, FrameIndex index) override;
  void on_lost(u32 port, FrameIndex index) override;
  void fetch(u32 step, FrameIndex index) const override;
  void on_wake() override;
  void on_own_timer() override;  // pauses that end or are asked for again, the receiver, and PCIe
  void on_device_timer() override;

  void on_link_down(u32 port) override;
  void on_link_up(u32 port) override;
  void on_routes_changed() override;
  void begin_stuck_pause(u32 port, u32 priority) override;
  void end_stuck_pause(u32 port, u32 priority) override;

  // An end is a QP.
  [[nodiscard]] EndNumber create_end(u32 sends, u32 receives) override;
  void connect(EndNumber end, const Connection& connection) override;
  [[nodiscard]] u16 source_port_of(EndNumber end) const override;
  void destroy_end(EndNumber end) override;
  // Flows and messages are written to the peer's memory of that key.
  [[nodiscard]] RKey memory_key() const override { return keys_.r_key; }
  [[nodiscard]] std::optional<Rate> rate_of(EndNumber end, Time now) const override;
  void write(EndNumber end, u64 bytes, u32 flow) override;
  [[nodiscard]] u32 messages_of(u64 bytes) const override;
  void expect(EndNumber end, u32 messages, u32 connection) override;
  void send_message(EndNumber end, u32 bytes, u32 connection, u32 word) override;
  [[nodiscard]] Repairs repairs() const override;

  [[nodiscard]] QPN peer_of(QPN qpn) const override;
  [[nodiscard]] u64 sent_bytes(u32 port) const override { return ports_[port].sent_bytes; }

  // --- packets of live processes, which share the port with the device and go before its data
  // To be called at packet.given, while that time is simulated. On InfiniBand it is no longer than
  // InfiniBandConfig::longest_packet().
  void send_live(LivePacket packet);
  // Return the packets that have arrived and the data that has left, since the caller last removed
  // them.
  [[nodiscard]] std::vector<LivePacket>& arrived_live() { return arrived_live_; }
  [[nodiscard]] std::vector<LeftPacket>& left_live() { return left_live_; }

  [[nodiscard]] Device& device() { return device_; }
  [[nodiscard]] Duration waited_for_credits(Time now) const override {
    return channel_adapter_ ? channel_adapter_->waited(now) : Duration();
  }
  [[nodiscard]] PacketCount sent_packets() const override {
    return channel_adapter_ ? channel_adapter_->sent_packets() : PacketCount();
  }

 private:
  static constexpr u32 kMessageBytes = 1u << 30;  // at most; IBTA 9.7.2 has 2^31

  std::span<HostPort> make_ports(std::span<Port> ports, u32 first_port);
  void on_link_packet(HostPort& at, FrameIndex index);
  void on_pause_frame(HostPort& at, const Frame& frame);
  void free(const Frame& frame);
  void tell_credits(u32 lane);
  void ask_to_pause(HostPort& at, u32 priority, u16 quanta);
  void take_failure(const CQE& cqe);
  void accept(FrameIndex index);
  void receive_slowly(HostPort& at, FrameIndex index);
  void drain();
  void begin_drain();
  void end_pauses(HostPort& at);
  void park(HostPort& at, FrameIndex index);
  HostPort& port_for(const Frame& frame) { return several_.empty() ? only_ : port_by_hash(frame); }
  HostPort& port_by_hash(const Frame& frame);
  [[nodiscard]] u16 number_by_hash(const Frame& frame) const;
  void move_waiting(HostPort& from);
  void release(const Frame& frame);
  void post(const SendWR& wr, QueuePair* qp);
  void take_from_pcie();
  void deliver(const Frame& frame, const PathTelemetry* path);
  void deliver_live(FrameIndex index);
  void fill_live(Frame& frame, const LivePacket& packet) const;
  void note_left_live(FrameIndex index);
  void notify(const Frame& frame, QPN qpn);
  void collect();
  void take(const CQE& cqe);
  void make_room_for_completions();
  void fetch_acknowledgements();
  void fill(Frame& frame);
  u16 size_of_frame() const;
  void settle();
  void arm_timer();
  void transmit();
  void transmit(HostPort& at);
  bool transmit_data(HostPort& at);
  void put_on_wire(HostPort& at, FrameIndex index);
  void note_wait();
  void wake_at(HostPort& at, Time when);
  [[gnu::noinline]] void wake_before_arrival();
  bool data_may_go(const HostPort& at) const {
    return at.parked.may_send() || (data_may_wait_ && (data_priorities_ & ~at.paused) != 0);
  }
  Connection& connection_of(QPN qpn) { return connections_[index_of(qpn)].connection; }
  QPN number_of(const QueuePair* qp) const { return device_.attributes_of(qp).qpn; }
  std::size_t index_of(QPN qpn) const { return qpn.value - config_.device.first_qpn.value; }
  u32 packet_bytes() const;

  struct Open {  // what is known of a QP, by its number
    Connection connection;
    bool owes_notification = false;
    bool failed = false;
    QueuePair* qp = nullptr;
    bool paused = false;   // with a packet in parked_
    bool expects = false;  // messages
    u32 completions = 0;   // that may be under way, at most
  };

  Domain& domain_;
  const HostConfig config_;
  SendingGate gate_;
  const NodeIndex node_;
  HostPort only_;                  // where there is one, as is usual: beside what goes with it
  std::vector<HostPort> several_;  // else
  const std::span<HostPort> ports_;
  const Routes& routes_;
  const std::vector<u32>& addresses_;
  Device device_;
  ProtectionDomain* pd_;
  CompletionQueue* cq_;
  MRKeys keys_;
  std::vector<Open> connections_;
  u32 completions_at_most_ = 0;  // of all of them that are open
  u8 data_priorities_ = 0;       // a bit each
  bool data_may_wait_ = false;   // in the device, since it was last found to have none
  EgressQueues received_;        // slowly; its first queue
  Time drained_at_ = Time::never();
  PCIePath pcie_;
  Time timer_ = Time::never();                     // set already
  std::optional<ChannelAdapter> channel_adapter_;  // on InfiniBand, which has one port
  std::vector<LivePacket> arrived_live_;
  std::vector<LeftPacket> left_live_;
  EgressFrame& out_;    // the domain's
  PacketView& packet_;  // likewise: what has arrived
  PathTelemetry seen_;  // by the data that arrived last, for its acknowledgement
};

}  // namespace verbena::fabric
