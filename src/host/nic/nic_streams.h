// NICStreams: the iWARP side of a virtual function: the programs that are attached with an iWARP
// device, and their TCP connections, which are sockets of the NIC process on the function's
// addresses. Each open connection is a NICRelay. Not thread-safe: the NIC has one thread.
#pragma once

#include <sys/socket.h>

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "host/links/tcp/kernel_stream_opener.h"
#include "host/links/tcp/stream_encryption.h"
#include "host/links/tcp/tcp_poll.h"
#include "host/nic/nic_relay.h"
#include "host/nic/nic_stream_filter.h"
#include "host/nic/token_bucket.h"

namespace verbena::host {

struct NICStreamCounters {
  u64 attached = 0, detached = 0;  // programs
  u64 opened = 0, closed = 0;      // connections
  u64 sent_bytes = 0, received_bytes = 0;
  u64 refused_connections = 0;  // requests beyond the rate
  u64 refused_beyond_limit = 0;
  u64 refused_requests = 0;   // programs detached, since they sent what is no request
  u64 refused_protocol = 0;   // connections ended, since the program sent what is not MPA
  u64 refused_handshake = 0;  // of TLS
  std::array<u64, kNICStreamRefusals> refused{};
};

// The parts that all functions of a NIC share. They outlive each NICStreams.
struct NICStreamHost {
  TCPPoll poll;
  std::unique_ptr<StreamEncryption> encryption;  // nullptr: connections go in clear
  std::unique_ptr<NICRelay::Piece> piece = std::make_unique_for_overwrite<NICRelay::Piece>();
};

class NICStreams {
 public:
  static constexpr Duration kSetUpPatience = ms(10'000);  // for TCP, and for TLS
  static constexpr Duration kOrphanPatience = ms(2000);   // for what a program that ended has sent

  // `interface_index`: of the addresses.
  NICStreams(NICStreamHost& host, std::vector<GID> addresses, u32 interface_index);
  ~NICStreams();
  // `max_streams`: connections and listeners. When it gets smaller none is ended.
  // `connections_per_second` 0: no limit.
  void set_limits(u32 max_streams, u32 connections_per_second);

  // The program at the other end of a control socket.
  struct Program {
    u64 id = 0;
    pid_t pid = 0;
    uid_t user = 0;
  };
  // Adds a program, which then has the socket.
  void attach(Descriptor socket, const ucred& who);
  [[nodiscard]] std::size_t program_count() const { return programs_.size(); }
  [[nodiscard]] std::vector<Program> programs() const;
  [[nodiscard]] bool is_in_use() const { return !programs_.empty() || streams() != 0; }
  [[nodiscard]] std::size_t streams() const { return relays_.size() + openings_.size(); }
  [[nodiscard]] std::size_t listeners() const { return listeners_.size(); }

  // After host.poll.serve().
  [[nodiscard]] bool can_send() const { return !to_send_.empty(); }
  // Moves bytes of the connection whose turn it is, at most `bytes`. Returns how many it took.
  u64 send(u64 bytes, Time now);
  // Moves bytes to the programs. Returns false if there were none.
  bool receive(Time now);
  void run_due_timers(Time now);
  [[nodiscard]] const NICStreamCounters& counters() const { return counters_; }
  void for_each_counter(const std::function<void(const std::string& name, u64 value)>& visit) const;

 private:
  struct Client;
  struct Listener;
  struct Opening;
  struct Relay;

  static constexpr u32 kRequestsAtOnce = 4;          // of a program, before others are served
  static constexpr u32 kAcceptedAtOnce = 16;         // of a listener
  static constexpr u64 kReceivedAtOnce = 256 << 10;  // bytes, before others are served
  static constexpr u32 kTurnsAtOnce = 64;            // of connections, likewise
  static constexpr Duration kAcceptPause = ms(100);  // when the kernel gives no socket

  void on_client(Client& client, Time now);
  [[nodiscard]] bool answer(Client& client, const NICStreamRequest& request, Time now);
  [[nodiscard]] bool open(Client& client, const NICStreamRequest& request, Time now);
  void close_listener(const Client& client, u32 number);
  [[nodiscard]] bool refuse_if_full();
  [[nodiscard]] i32 refusal_of(const Client& client, const NICStreamRequest& request, Time now);
  [[nodiscard]] i32 listen(Client& client, const NICStreamRequest& request, Descriptor door);
  [[nodiscard]] i32 connect(const NICStreamRequest& request, Descriptor door, Time now);
  void detach(Client& client);
  void on_listener(Listener& listener, Time now);
  void on_accepted(Listener& listener, OpenedStream opened, Time now);
  void on_opening(Opening& opening, Time now);
  void begin_to_secure(Opening& opening, Time now);
  void secure(Opening& opening, Time now);
  void hand_over(Opening& opening);
  void fail(Opening& opening, int error);
  [[nodiscard]] Opening& add_opening(Time now);
  [[nodiscard]] int door_of(const Opening& opening) const;
  void on_relay(Relay& relay, Time now);
  void close(Relay& relay);
  void set_deadline(Time deadline) { next_timer_ = std::min(next_timer_, deadline); }

  NICStreamHost& host_;
  KernelStreamOpener opener_;
  const NICStreamFilter filter_;
  u32 max_streams_ = 0;
  TokenBucket connections_;
  u64 last_id_ = 0;  // none is used twice
  std::unordered_map<u64, std::unique_ptr<Client>> programs_;
  std::unordered_map<u64, std::unique_ptr<Listener>> listeners_;
  std::unordered_map<u64, std::unique_ptr<Opening>> openings_;
  std::unordered_map<u64, std::unique_ptr<Relay>> relays_;
  std::deque<Relay*> to_send_, to_receive_;  // those that can, in turn
  Time next_timer_ = Time::never();
  NICStreamCounters counters_;
};

}  // namespace verbena::host
