// StreamCapture: the octets of one TCP connection in the capture file, as segments that Wireshark
// takes for those of TCP. The kernel shows no segments: addresses, ports, order and octets are
// right; sizes, acknowledgements and times of segments are ours. Checksums are left out.
#pragma once

#include "host/capture/capture_file.h"
#include "host/links/tcp/tcp_socket.h"

namespace verbena::host {

class StreamCapture {
 public:
  enum class Opener : u8 { kUs, kPeer };
  // Begins with a handshake. `file` outlives this.
  StreamCapture(CaptureFile& file, u32 interface, const TCPEndpoint& local,
                const TCPEndpoint& remote, Opener opener);
  ~StreamCapture();  // ends with our FIN
  StreamCapture(const StreamCapture&) = delete;
  StreamCapture& operator=(const StreamCapture&) = delete;

  void on_sent(Bytes octets) { add(ours_, theirs_, octets); }
  void on_received(Bytes octets) { add(theirs_, ours_, octets); }

 private:
  struct Side {
    TCPEndpoint at;
    pcapng::PacketDirection direction;
    u32 sequence = 0;  // of its next octet
  };
  static constexpr std::size_t kSegment = 16 << 10;

  void add(Side& from, const Side& to, Bytes octets);
  void add_segment(Side& from, const Side& to, u8 flags, Bytes octets);

  CaptureFile& file_;
  u32 interface_;
  Side ours_, theirs_;
};

}  // namespace verbena::host
