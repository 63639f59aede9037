// StreamSide: replaces frames and MADs in an adapter whose QPs have TCP connections: streams and
// connection manager, driven as one. Not thread-safe; the adapter's lock guards it.
#pragma once

#include <algorithm>

#include "host/cm/mpa_connection_manager.h"
#include "host/links/tcp/tcp_link.h"
#include "host/links/tcp/tcp_streams.h"

namespace verbena::host {

class StreamSide {
 public:
  // The adapter's. All outlive this. `local`: nullptr if there is no path to peers on this host.
  // `encryption`: nullptr where connections go in clear.
  StreamSide(Adapter& adapter, Device& device, TCPLink& link, const MPAConfig& config,
             std::unique_ptr<StreamOpener> opener, LocalPath* local,
             std::unique_ptr<StreamEncryption> encryption);
  ~StreamSide();

  [[nodiscard]] ConnectionManager& connections() { return manager_; }

  // Receives bytes. Returns false if there were none.
  bool receive(Look look, Time now);
  // Sends pending bytes, as far as the sockets take them. Returns false if they took nothing.
  bool send(Time now);
  // Reports ends. Returns false if there were none.
  bool drain();
  [[nodiscard]] Time next_timer() const {
    return std::min({streams_.next_timer(), manager_.next_timer(), opener_->next_timer()});
  }
  bool run_due_timers(Time now) {
    const bool returned = opener_->run_due_timers(now);
    if (returned) manager_.listen_again();
    return streams_.run_due_timers(now) | manager_.run_due_timers(now) | returned;
  }
  void after_device_timers(Time now) { streams_.resume_reads(now); }
  // Connections that begin from now on. `file` outlives this.
  void capture_to(CaptureFile& file, u32 interface) {
    capture_ = &file;
    manager_.capture_to(file, interface);
  }
  [[nodiscard]] StreamFaults& faults() { return streams_.faults(); }
  void abandon();  // in a child after fork(): closes our copies of the sockets
  void publish_counters() {
    LinkCounters counters = streams_.counters();
    if (encryption_ != nullptr) encryption_->add_counters(counters);
    link_.set_counters(counters);
  }

 private:
  static constexpr u32 kLooksBetween = 8;  // at the likely socket alone, between looks at all
  static constexpr u32 kAlone = 4;         // looks at all in a row that found that socket alone

  [[nodiscard]] bool receive_everywhere(Time now);

  // Peers on this host send messages when they withdraw what we have mapped.
  struct Withdrawals final : ReadyTarget {
    Withdrawals(ProcessChannel& from, LocalPath* to) : channel(from), local(to) {}
    void on_ready(u32 events, Time now) override;
    ProcessChannel& channel;
    LocalPath* const local;
  };

  Device& device_;
  TCPLink& link_;
  std::unique_ptr<StreamOpener> opener_;
  std::unique_ptr<StreamEncryption> encryption_;
  Withdrawals withdrawals_;
  TCPStreams streams_;
  MPAConnectionManager manager_;
  CaptureFile* capture_ = nullptr;
  u32 looks_ = 0;
  u32 alone_ = kAlone;  // looks in a row
};

}  // namespace verbena::host
