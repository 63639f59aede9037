// IdObject: an rdma_cm_id: its place in its life, what it is bound to, and what it knows of its
// peer. Programs use an ID from one thread at a time; the adapter tells it of its connection from
// any thread. What those two share: the channel, `comm_id` and `is_over`; and what is set before
// the adapter is told of the ID and does not change after.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "abi/ibverbs/event_account.h"
#include "abi/rdmacm/channel_object.h"
#include "abi/rdmacm/connection_path.h"
#include "abi/rdmacm/device_table.h"
#include "abi/rdmacm/local_routes.h"
#include "abi/rdmacm/membership.h"
#include "abi/rdmacm/socket_endpoint.h"
#include "host/cm/port_directory.h"
#include "host/network/next_hop.h"

namespace verbena::rdmacm {

// As Linux's rdma_cm has them; resolving a route takes no time here.
enum class IdState : u8 {
  kIdle,
  kBound,
  kResolvingAddress,
  kAddressResolved,
  kRouteResolved,
  kListening,
  kRequested,   // made by a request, and neither accepted nor rejected
  kConnecting,  // and all that follows
};

struct IdOptions {
  u8 traffic_class = 0;
  u8 ack_timeout = 0;  // code; 0: the default
  bool reuse_address = false;
  bool only_own_family = false;
};

struct IdObject final : rdma_cm_id, host::ConnectionTarget {
  IdObject(ChannelObject& events_to, void* user, rdma_port_space space, ibv_qp_type type);
  ~IdObject() override;
  IdObject(const IdObject&) = delete;
  IdObject& operator=(const IdObject&) = delete;

  static IdObject& of(rdma_cm_id* id) { return *static_cast<IdObject*>(id); }

  void on_connection_event(const CMEvent& event) override;
  [[nodiscard]] host::ConnectionTarget* on_request(CommId id, const ConnectRequest& req) override;
  [[nodiscard]] host::ConnectionTarget* on_request(CommId id, const SIDRRequest& req) override;
  [[nodiscard]] host::ConnectionTarget* on_request(CommId id, const StreamRequest& req) override;
  void on_request_withdrawn() override { is_over = true; }

  // To its channel; counted until it is acknowledged.
  void push(std::unique_ptr<EventObject> event);
  void push(int type, int status = 0);
  // Its events go to another channel, those that wait as well. How many events were read before.
  [[nodiscard]] u64 move_to(ChannelObject& to);
  // Where events of this ID go now: rdma_migrate_id() changes it in any thread.
  [[nodiscard]] ChannelObject& events_to();
  // No more of the network's business: ends what is under way, frees the port, drops unread events.
  void withdraw();

  [[nodiscard]] PortSpace port_space() const { return static_cast<PortSpace>(ps); }
  // Its device is an iWARP one: the connection manager brings its QP up, with a stream.
  [[nodiscard]] bool has_streams() const {
    return place.device != nullptr && place.device->identity().transport == Transport::kIWARP;
  }
  [[nodiscard]] bool is_datagram() const { return qp_type == IBV_QPT_UD; }
  [[nodiscard]] ibv_qp_type transport() const { return qp != nullptr ? qp->qp_type : qp_type; }
  // 0: it has no connection, or no longer.
  [[nodiscard]] CommId connection() const { return is_over ? CommId{} : CommId{comm_id}; }
  [[nodiscard]] SocketEndpoint source() const;
  [[nodiscard]] SocketEndpoint destination() const;
  void set_source(const SocketEndpoint& endpoint) { endpoint.store(route.addr.src_storage); }
  void set_destination(const SocketEndpoint& endpoint) { endpoint.store(route.addr.dst_storage); }
  // From now on it is this device's.
  void set_device(OpenDevice& opened);
  void set_gids(const GID& local, const GID& remote);
  void publish_path();  // `path`, for programs

  std::mutex channel_mutex;
  bool is_synchronous = false;  // it has a channel of its own, and calls wait for their event
  abi::EventAccount account;

  std::atomic<IdState> state = IdState::kIdle;
  IdOptions options;
  LocalPlace place;  // what it is bound to
  host::HeldPort port;
  struct Listening {
    host::ConnectionManager* connections;
    ListenerId id;
  };
  std::vector<Listening> listening;

  std::unique_ptr<host::NextHopWait> neighbour;  // that is asked whether it is there

  std::atomic<u32> comm_id{0};
  std::atomic<bool> is_over{false};
  ConnectionPath path;
  PSN rq_psn;  // of the first packet that our QP receives
  u8 initiator_depth = 0, responder_resources = 0, retry_count = kMaxRetryCount;
  std::optional<PeerAnswer> peer;
  cm::ECE local_ece, remote_ece;
  bool has_failed = false;  // its QP could not follow

  std::vector<Membership> memberships;
  u64 last_membership = 0;                      // number
  std::vector<u8> connect_data;                 // of rdma_create_ep(): goes before the caller's
  std::optional<ibv_qp_init_attr> accepted_qp;  // of a passive one: for each request
  rdma_addrinfo* resolved = nullptr;            // by name, and not yet asked for
  bool is_resolving = false;

 private:
  std::vector<std::unique_ptr<EventObject>> take_unread();
  // Returns a new ID for a request to this one, or nullptr if the request makes no sense.
  std::unique_ptr<IdObject> make_request(CommId id, const std::optional<IPRequest>& request,
                                         const GID& local);
  ibv_sa_path_rec path_record_{};
};

}  // namespace verbena::rdmacm
