// MPAConnectionManager: the ConnectionManager of an iWARP adapter: rdma_cm over TCP and MPA. A
// rdma_cm port is the TCP port itself, so that every iWARP peer finds it. RFC 5044, 7; RFC 6581.
// Any client may connect. A connection without an MPA request, or without one in time, is closed,
// and a listener has a bounded number of connections that have not asked yet.
#pragma once

#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "connect/mpa_set_up.h"
#include "host/adapter.h"
#include "host/cm/connection_manager.h"
#include "host/links/tcp/stream_encryption.h"
#include "host/links/tcp/stream_opener.h"
#include "host/links/tcp/tcp_streams.h"
#include "host/local/local_path.h"

namespace verbena::host {

class MPAConnectionManager final : public ConnectionManager {
 public:
  // All are the adapter's and outlive this. `local`: nullptr if there is no path to peers on this
  // host. `encryption`: nullptr where connections go in clear.
  MPAConnectionManager(Adapter& adapter, Device& device, TCPPoll& poll, TCPStreams& streams,
                       const MPAConfig& config, StreamOpener& opener, LocalPath* local,
                       StreamEncryption* encryption);
  ~MPAConnectionManager() override;

  [[nodiscard]] const ConnectionIdentity& identity() const override { return identity_; }
  [[nodiscard]] Result<ListenerId> listen(const ListenParams& params,
                                          ConnectionTarget& target) override;
  void unlisten(ListenerId id) override;
  [[nodiscard]] Result<CommId> connect(const ConnectParams& params,
                                       ConnectionTarget& target) override;
  void abandon(CommId id) override;
  [[nodiscard]] Status accept(CommId id, const AcceptParams& params) override;
  [[nodiscard]] Status reject(CommId id, const RejectParams& params) override;
  [[nodiscard]] Status disconnect(CommId id) override;
  [[nodiscard]] Status take_request(CommId id) override;
  // Datagrams, and what MPA has no message for.
  [[nodiscard]] Result<CommId> sidr_request(const SIDRRequestParams&, ConnectionTarget&) override {
    return failure(Status::kNotSupported);
  }
  [[nodiscard]] Status sidr_reply(CommId, const SIDRReplyParams&) override {
    return Status::kNotSupported;
  }
  [[nodiscard]] Status ready_to_use(CommId) override { return Status::kInvalidArgument; }
  [[nodiscard]] Status establish(CommId) override { return Status::kBusy; }

  // The adapter's, with its lock held.
  bool run_due_timers(Time now);
  [[nodiscard]] Time next_timer() const { return next_timer_; }  // or earlier
  // Reports connections that are over. Returns false if there were none.
  bool drain();
  // Opens all listeners again, as far as possible. They have ended with the NIC.
  void listen_again();
  // Connections that begin from now on.
  void capture_to(CaptureFile& file, u32 interface);
  void abandon_all();  // the process ends, or this is the child of a fork

 private:
  struct Listener;
  struct Connection;

  static constexpr Duration kRequestPatience = ms(10'000);  // for the peer's request
  static constexpr Duration kConnectPatience = ms(10'000);  // for TCP
  static constexpr Duration kReplyPatience = ms(60'000);    // its program has to accept
  static constexpr Duration kRefusalPatience = ms(1000), kRefusalPause = ms(20);
  static constexpr u32 kMaxSilent = 4096;  // connections of a listener that have not asked
  static constexpr u32 kAcceptedAtOnce = 64;

  void on_listener(Listener& listener, Time now);
  void turn_away(const Listener& listener);
  void on_connection(Connection& connection, u32 events, Time now);
  [[nodiscard]] bool open(Listener& listener);
  void close(Listener& listener);
  Connection& add(MPASetUp set_up, ConnectionTarget* target);
  static void take_stream(Connection& connection, OpenedStream opened);
  [[nodiscard]] Connection* find(CommId id);
  void begin_capture(Connection& connection, StreamCapture::Opener opener);
  void begin_to_connect(Connection& connection, Time now);
  void on_refused(Connection& connection, int error, Time now);
  void on_connected(Connection& connection, Time now);
  void begin_to_secure(Connection& connection, TLSRole role, Time now);
  void secure(Connection& connection, Time now);
  void ask(Connection& connection, Time now);
  void receive(Connection& connection, Time now);
  [[nodiscard]] bool flush(Connection& connection);
  void follow(Connection& connection, Bytes rest, Time now);
  void on_request(Connection& connection);
  [[nodiscard]] Result<u64> open_stream(Connection& connection, QPN qpn, Time now);
  void establish(Connection& connection, Bytes rest, Time now);
  void refuse(Connection& connection, int error, std::span<const u8> private_data);
  void lose(Connection& connection, int error);
  void leave_backlog(Connection& connection);
  void erase(Connection& connection);
  void watch(Connection& connection, u32 events);
  void set_deadline(Connection& connection, Time deadline);

  Adapter& adapter_;
  Device& device_;
  TCPPoll& poll_;
  TCPStreams& streams_;
  const MPAConfig config_;
  StreamOpener& opener_;
  LocalPath* const local_;
  const ConnectionIdentity identity_;
  StreamEncryption* const encryption_;
  Descriptor spare_;  // for a connection that comes when the process has no descriptor left
  std::map<u32, std::unique_ptr<Listener>> listeners_;
  std::unordered_map<u32, std::unique_ptr<Connection>> connections_;  // by CommId
  std::unordered_map<u64, u32> by_stream_;                            // its CommId
  CaptureFile* capture_ = nullptr;
  u32 capture_interface_ = 0;
  Time next_timer_ = Time::never();
  u32 last_listener_ = 0, last_connection_ = 0;
};

}  // namespace verbena::host
