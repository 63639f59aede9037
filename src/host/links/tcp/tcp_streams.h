// TCPStreams: the TCP connections of an adapter's QPs: bytes between the kernel and the device's
// Streams. Gathered sends go from registered memory; payload of long segments is received where it
// belongs. A socket that takes no more pauses its QP until it is writable.
// Not thread-safe; the adapter's lock guards it.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "device/device.h"
#include "device/qp/streams.h"
#include "host/capture/stream_capture.h"
#include "host/links/link.h"
#include "host/links/tcp/stream_faults.h"
#include "host/links/tcp/stream_socket.h"
#include "host/links/tcp/tcp_poll.h"

namespace verbena::host {

// The stream of a QP, as its two ends have agreed on it.
struct AgreedStream {
  QPN qpn;
  u64 number = 0;  // of the QP's stream
  GID peer;
  StreamAgreement agreement;               // of its markers
  Bytes first;                             // that have been read from the connection already
  std::unique_ptr<StreamCapture> capture;  // of the connection; nullptr: none
};

class TCPStreams {
 public:
  // `device`, `poll`: the adapter's, which outlive this.
  TCPStreams(Device& device, TCPPoll& poll);
  ~TCPStreams();

  // The socket is the stream's from now on.
  void adopt(StreamSocket socket, AgreedStream agreed, Time now);
  // Receives from the socket that has lately had something, without looking whether it has. False:
  // nothing came.
  bool receive_likely(Time now);
  [[nodiscard]] bool has_likely() const { return likely_ != nullptr; }
  [[nodiscard]] const void* likely() const { return likely_; }  // names it
  // Some QPs are gone whose connections are not.
  [[nodiscard]] bool has_orphans() const { return device_.streams().orphans() != orphans_; }
  // Sends the data of all QPs, as far as the sockets take it. Returns false if they took nothing.
  bool send(Time now);
  // Returns the number of a stream that is over, or 0 if there is none.
  [[nodiscard]] u64 poll_ended();

  [[nodiscard]] Time next_timer() const { return next_timer_; }
  bool run_due_timers(Time now);
  // After the device's timers: receives again from sockets whose QPs waited for copies.
  void resume_reads(Time now);
  // In a child after fork(), and where the process ends: closes the sockets.
  void abandon();
  [[nodiscard]] const LinkCounters& counters() const { return counters_; }
  // The rules of connections that begin from now on.
  [[nodiscard]] StreamFaults& faults() { return faults_; }

 private:
  struct Stream;

  void on_ready(Stream& stream, u32 events, Time now);
  bool receive(Stream& stream, Time now);
  [[nodiscard]] QueuePair* qp_of(const Stream& stream) const;
  [[nodiscard]] MutableBytes place_of(const Stream& stream, QueuePair* qp) const;
  void take_in(Stream& stream, Bytes bytes, Time now);
  bool send(Stream& stream, QueuePair& qp, Time now);
  [[nodiscard]] i64 send_pieces(Stream& stream, std::span<const Bytes> from);
  void on_taken(Stream& stream, QueuePair& qp, u32 bytes, Time now);
  bool send_late(Stream& stream, QueuePair& qp, Time now);
  bool pass_out(Stream& stream, Time now);
  bool pass_in(Stream& stream, Time now);
  void on_peer_finished(Stream& stream, Time now);
  void note_copies(Stream& stream, const QueuePair& qp);
  void capture_sent(Stream& stream, u32 bytes);
  void watch(Stream& stream);
  void lose(Stream& stream, Time now);
  void finish_sending(Stream& stream, Time now);
  void close(Stream& stream);
  void sweep_orphans();
  [[nodiscard]] Stream* stream_of(QPN qpn);

  static constexpr u32 kStagingBytes = 128 << 10;
  static constexpr u32 kMaxAtOnce = 1 << 20;     // bytes received from one before the next
  static constexpr u32 kDirectBytes = 4096;      // and more are received where they belong
  static constexpr Duration kLinger = ms(2000);  // for the peer's end, after ours

  Device& device_;
  TCPPoll& poll_;
  std::unordered_map<u32, std::unique_ptr<Stream>> streams_;  // by QPN
  std::vector<u64> ended_;
  Stream* likely_ = nullptr;
  u64 orphans_ = 0;
  bool any_awaits_copies_ = false;
  Time next_timer_ = Time::never();
  StreamGather gather_;
  std::unique_ptr<u8[]> staging_;
  LinkCounters counters_;
  StreamFaults faults_;
};

}  // namespace verbena::host
