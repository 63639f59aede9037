// SourcePort: a socket that a UDP link sends from, which knows the IPv4 Identification that the
// kernel will give to each datagram: the ICRC covers it. Path MTU discovery is in probe mode. Then
// the Identification is 0 from an unconnected socket, and counts up by one a datagram, from a
// random start, on a connected one; where a datagram is cut (UDP_SEGMENT), its segments count on
// from the datagram's. (Linux, ip_select_ident_segs() and inet_gso_segment().)
//
// A socket that has sent to one destination for a while is connected to it: then the kernel no
// longer looks up the route, a tenth of the cost of a small datagram. The first Identification of
// its count is read from a datagram to this host itself, which the kernel shows with its headers on
// the error queue as it does for timestamps (SOF_TIMESTAMPING_TX_SCHED). If the kernel does not
// show it, the socket stays unconnected. It receives nothing.
#pragma once

#include <optional>
#include <span>

#include "host/network/socket_address.h"
#include "host/os/descriptor.h"
#include "wire/ib/gid.h"
#include "wire/roce/icrc.h"

namespace verbena::host {

inline constexpr u8 kSocketHopLimit = 64;  // TTL or hop limit of what says nothing else

class SourcePort {
 public:
  static constexpr u32 kSteady = 100;  // datagrams in a row to one destination: it is connected
  static constexpr u32 kSteadySegments = 16;

  SourcePort() = default;
  // Bound to `address` and `number`; on failure not open, and errno says why.
  // Sends to `destination_port` of its destinations.
  SourcePort(const GID& address, u16 number, u32 interface_index,
             u16 destination_port = kRoCEv2Port);

  [[nodiscard]] bool is_open() const { return socket_.is_open(); }
  [[nodiscard]] int fd() const { return socket_.get(); }
  [[nodiscard]] u16 number() const { return number_; }
  [[nodiscard]] u16 destination_port() const { return destination_port_; }

  // The hop limit of unicast datagrams that do not say one. To set it for the socket is quicker
  // than to say it with each of them.
  [[nodiscard]] u8 hop_limit() const { return hop_limit_; }
  void set_hop_limit(u8 wanted);

  // Returns the segment length into which the kernel cuts a datagram that names none; 0 if it is
  // not cut. As with the hop limit, but it changes often: the socket's own is the length of the
  // last kSteadySegments datagrams in a row.
  [[nodiscard]] u32 segment_size() const { return segment_size_; }
  void note_cut(u32 segment_size) {
    if (segment_size != last_segment_size_) {
      last_segment_size_ = segment_size;
      cut_in_a_row_ = 0;
    }
    if (++cut_in_a_row_ == kSteadySegments && segment_size != segment_size_)
      set_segment_size(segment_size);
  }
  void set_segment_size(u32 wanted);

  // The Identification of the next datagram, or of its first segment. Precondition: all that it was
  // asked for are sent in this order, but for the last, which may be given back.
  [[nodiscard]] u16 take_identification() { return counts_ ? next_identification_++ : u16{0}; }
  void give_back() {
    if (counts_) --next_identification_;
  }

  // Sends a datagram whose ICRC is never checked.
  void send_alone(std::span<const u8> payload, const SocketAddress& to);

  [[nodiscard]] bool is_connected() const { return peer_.has_value(); }
  // Where a datagram needs to name no destination.
  [[nodiscard]] bool is_connected_to(const GID& destination) const {
    return peer_.has_value() && *peer_ == destination;
  }
  // Notes where a datagram has gone; true: it is time to connect().
  [[nodiscard]] bool note_sent(const GID& destination) {
    if (destination != steady_) {
      steady_ = destination;
      in_a_row_ = 0;
    }
    return ++in_a_row_ == kSteady && may_connect_ && !is_connected_to(destination);
  }
  // To where the last datagrams went. Precondition: no Identification is taken and not yet used.
  void connect();
  // Call it after the kernel has refused a datagram, because it may have counted it. The count
  // begins at 0 again, also for datagrams whose Identifications were taken. If strict receivers
  // drop those, they are sent again.
  void disconnect();
  void close();

 private:
  std::optional<u16> learn_identification() const;  // of the next datagram

  Descriptor socket_;
  GID address_{}, steady_{};
  std::optional<GID> peer_;
  u32 interface_index_ = 0, in_a_row_ = 0;
  u32 segment_size_ = 0, last_segment_size_ = 0, cut_in_a_row_ = 0;
  u16 number_ = 0, destination_port_ = kRoCEv2Port, next_identification_ = 0;
  u8 hop_limit_ = kSocketHopLimit;
  bool counts_ = false;  // IPv4, and connected
  bool may_connect_ = true;
};

}  // namespace verbena::host
