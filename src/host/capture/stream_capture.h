// StreamCapture: the bytes of one TCP connection in the capture file, as segments that Wireshark
// takes for those of TCP. The kernel shows no segments: addresses, ports, order and bytes are
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

  void on_sent(Bytes bytes) { add(ours_, theirs_, bytes); }
  void on_received(Bytes bytes) { add(theirs_, ours_, bytes); }

 private:
  struct Side {
    TCPEndpoint at;
    pcapng::PacketDirection direction;
    u32 sequence = 0;  // of its next byte
  };
  static constexpr std::size_t kSegment = 16 << 10;

  void add(Side& from, const Side& to, Bytes bytes);
  void add_segment(Side& from, const Side& to, u8 flags, Bytes bytes);

  CaptureFile& file_;
  u32 interface_;
  Side ours_, theirs_;
};

}  // namespace verbena::host
