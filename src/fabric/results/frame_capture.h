// FrameCapture: the frames of chosen links, as a pcapng file that Wireshark reads: an interface for
// each link. Of InfiniBand's links: packets from the LRH on, with a VCRC of 0, in ERF records; flow
// control packets are not in it. Payload is not simulated: its bytes are 0, and the ICRC is that
// of zeros.
#pragma once

#include <vector>

#include "fabric/results/port_map.h"
#include "fabric/scenario/scenario.h"

namespace verbena::fabric {

class FrameCapture {
 public:
  static constexpr std::size_t kMostBytes = 256u << 20;  // then it ends

  FrameCapture(const Plan& plan, const std::vector<u32>& links, Technology technology);
  // Frames come in the order in which they were sent.
  void add(const SentFrame& sent, const LinkEnd& end);
  [[nodiscard]] const std::vector<u8>& file() const { return file_; }

 private:
  void add_roce(const SentFrame& sent, const LinkEnd& end);
  void add_infiniband(const SentFrame& sent, const LinkEnd& end);
  void add_pause(const SentFrame& sent, const LinkEnd& end);
  void append(const SentFrame& sent, const LinkEnd& end, std::vector<u8> frame);

  const Technology technology_;
  std::vector<u32> interface_of_;  // by link
  std::vector<u8> file_;
};

}  // namespace verbena::fabric
