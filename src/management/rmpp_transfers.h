// RMPPTransfers: the Reliable Multi-Packet Protocol between the agents of a subnet: messages that
// are longer than a MAD go in segments, which the receiver acknowledges by windows. IBTA Vol
// 1, 13.6: the sender's and the receiver's flow of 13.6.3 and 13.6.4, without double-sided
// transfers.
//
// Sans-IO. Contract: after any call, drain poll_to_send(), then read next_timer().
#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "base/time.h"
#include "management/rmpp_header.h"
#include "management/subnet.h"

namespace verbena::management {

class RMPPTransfers {
 public:
  static constexpr u32 kWindow = 64;                 // segments that this one lets come
  static constexpr u32 kMostUnderWay = 256;          // that this one sends, whatever the window
  static constexpr Duration kAckTimeout = ms(500);   // then it sends again what is not acknowledged
  static constexpr u32 kMostRetries = 7;             // of one segment
  static constexpr Duration kIdleTimeout = sec(10);  // of a message whose segments stay away
  static constexpr std::size_t kMostTransfers = 1024;  // in each direction

  // `message`: headers once, then all data.
  void send(PortPlace at, Datagram message, Time now);
  // Whether not all of its segments are acknowledged yet.
  [[nodiscard]] bool is_sending(PortPlace at, const Datagram& message) const;
  // A MAD of RMPP that has come to `at`. Returns the whole message when it was the last segment.
  [[nodiscard]] std::optional<Datagram> on_mad(PortPlace at, const Datagram& mad, Time now);
  void on_timer(Time now);
  [[nodiscard]] Time next_timer() const;
  [[nodiscard]] std::optional<Delivery> poll_to_send();
  [[nodiscard]] std::size_t transfers() const { return outgoing_.size() + incoming_.size(); }

 private:
  struct Key {
    PortPlace at;
    u16 peer_lid = 0;
    u8 mgmt_class = 0;
    u64 transaction = 0;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct Outgoing {
    Key key;
    Datagram envelope;     // of each segment: the headers
    std::vector<u8> data;  // behind them, of the whole message
    u32 segments = 0, sent = 0, acknowledged = 0, window_last = 1;
    u32 retries = 0;
    Time due;
  };
  struct Incoming {
    Key key;
    Datagram message;  // as far as it has come
    u32 received = 0, window_last = 0;
    bool is_complete = false;  // kept for a while: an ACK may be lost
    Time due;
  };

  static Key key_of(PortPlace at, u16 peer_lid, std::span<const u8> mad);
  std::optional<Datagram> on_data(const Key& key, const Datagram& mad, Time now);
  std::optional<Datagram> take_segment(Incoming& transfer, const Datagram& mad, Time now);
  void on_ack(const Key& key, const Datagram& mad, Time now);
  void send_window(Outgoing& transfer, Time now);
  void send_segment(const Outgoing& transfer, u32 number);
  void answer(const Key& key, const Datagram& mad, const RMPPHeader& header);
  void abort(const Key& key, const Datagram& mad, RMPPStatus status);
  void end(const Key& key);
  [[nodiscard]] bool has_room_for_incoming();

  std::vector<Outgoing> outgoing_;
  std::vector<Incoming> incoming_;
  std::deque<Delivery> to_send_;
};

}  // namespace verbena::management
