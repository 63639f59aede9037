// SimulatedNode: the node of one host. See SimulatedNodes.
#pragma once

#include <deque>
#include <map>

#include "fabric/nodes/node_channels.h"
#include "fabric/nodes/node_memory.h"

namespace verbena::fabric {

class SimulatedNode final : public application::Node {
 public:
  SimulatedNode(NodeChannels& all, NodeIndex host) : all_(all), host_(host) {}

  [[nodiscard]] Time now() const override { return now_; }
  void set_alarm(Time at) override;
  [[nodiscard]] Result<application::Region> register_bytes(std::span<u8> bytes,
                                                           application::Access access) override;
  [[nodiscard]] Result<application::Region> allocate(u64 bytes, application::Content content,
                                                     application::Access access) override;
  void deregister(const application::Region& region) override { memory_.remove(region.l_key); }
  [[nodiscard]] Status listen(const application::Address& at,
                              const application::QueueDepths& depths) override;
  [[nodiscard]] Result<application::ConnectionId> connect(
      const application::Address& to, const application::QueueDepths& depths,
      std::span<const u8> private_data) override;
  void accept(application::ConnectionId id, std::span<const u8> private_data) override;
  void reject(application::ConnectionId id, std::span<const u8> private_data) override;
  void disconnect(application::ConnectionId id) override;
  void post_receive(application::ConnectionId id, u32 work,
                    const application::Slice& into) override;
  void post(application::ConnectionId id, const application::Work& work) override;
  [[nodiscard]] bool poll(application::Event& out) override;

  // For SimulatedNodes.
  u32 add_channel(u32 outgoing, NodeIndex peer, bool is_active);
  void run(application::Program& program) { program_ = &program; }
  void on_packet(u32 channel, NodePacket packet, Time now);
  void on_sent(u32 channel, Time now);
  void on_alarm(Time now);

 private:
  enum class State : u8 { kFree, kConnecting, kRequested, kConnected };
  struct Posted {  // a WRITE or SEND that is not acknowledged, or a READ without its response
    u32 id = 0;
    application::Report report = application::Report::kAlways;
    bool counts = false;  // it is a work request, and is reported
    application::ConnectionId connection = 0;
  };
  struct Outgoing {
    NodePacket packet;
    Posted posted;
  };
  struct Read {
    u32 id = 0;
    application::Report report = application::Report::kAlways;
    std::vector<application::Slice> into;
  };
  struct Receive {
    u32 id = 0;
    application::Slice into;
  };
  struct Channel {
    u32 outgoing = 0;  // connection of the network
    NodeIndex peer = 0;
    bool is_active = false;
    State state = State::kFree;
    u32 incarnation = 0;
    application::ConnectionId connection = 0;
    std::deque<Outgoing> waiting{};
    std::deque<Posted> under_way{};
    std::deque<Receive> receives{};
    std::deque<NodePacket> unreceived{};
    std::map<u32, Read> reads{};
    u32 next_read = 0;
  };

  Channel* find(application::ConnectionId id);
  void send(Channel& channel, NodePacket packet, const Posted& posted);
  void send_control(Channel& channel, NodePacket::Kind kind, std::span<const u8> private_data);
  void transmit(Channel& channel);
  void close(Channel& channel, application::Event::Kind kind, std::span<const u8> private_data);
  void fail(Channel& channel);
  bool gather(const application::Work& work, NodePacket& packet) const;
  void begin(Channel& channel, NodePacket&& packet);
  void receive(Channel& channel, NodePacket&& packet);
  void serve_read(Channel& channel, const NodePacket& request);
  void finish_read(Channel& channel, const NodePacket& response);
  void on_connected_packet(Channel& channel, NodePacket&& packet);
  void tell(application::Event event, std::span<const u8> private_data = {});
  void wake();

  NodeChannels& all_;
  const NodeIndex host_;
  application::Program* program_ = nullptr;
  NodeMemory memory_;
  Time now_;
  Time alarm_ = Time::never();
  std::vector<Channel> channels_;
  std::map<application::ConnectionId, u32> channel_of_;
  std::vector<u16> listening_;
  application::ConnectionId next_connection_ = 1;
  struct Queued {
    application::Event event;
    std::vector<u8> private_data;
  };
  std::deque<Queued> events_;
  std::vector<u8> private_data_;  // of the event that was polled last
};

}  // namespace verbena::fabric
