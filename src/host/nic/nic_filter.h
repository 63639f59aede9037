// NICFilter: the packets that a virtual function may send and receive. Pure: no I/O. The tenant's
// process is not trusted: the filter checks a copy of each packet, which the process cannot change.
#pragma once

#include <span>
#include <vector>

#include "device/port/frame.h"
#include "device/port/frame_check.h"

namespace verbena::host {

enum class NICRefusal : u8 {
  kNone,
  kMalformed,    // no RoCEv2 packet
  kSource,       // not an address of the function
  kDestination,  // of another family, or a multicast group that may not be, or by no datagram
  kPKey,         // of a partition, or with a membership, that the function does not have
  kQPN,          // a source QPN outside of the function's range
  kICRC,         // of what came from the network
  kTrafficClass  // of another class than its ring, and that class has had its rate
};
inline constexpr std::size_t kNICRefusals = 8;
[[nodiscard]] const char* name_of(NICRefusal refusal);

enum class NICGroups : u8 { kNone, kAll };  // multicast groups that a function may send to

class NICFilter {
 public:
  NICFilter(std::vector<GID> addresses, std::vector<PKey> p_keys, NICGroups groups)
      : addresses_(std::move(addresses)), p_keys_(std::move(p_keys)), groups_(groups) {}

  // `transport`: BTH .. end of pad. `slot`: of the sending device's QPNs.
  [[nodiscard]] NICRefusal check_sent(const GID& source, const GID& destination,
                                      std::span<const u8> transport, u32 slot) const;
  // A frame from the network, ICRC included where it is not authenticated.
  [[nodiscard]] NICRefusal check_received(const IngressFrame& frame, SeenFrames& seen) const;

 private:
  [[nodiscard]] bool may_go_to(const GID& destination, const BTH& bth) const;

  std::vector<GID> addresses_;
  std::vector<PKey> p_keys_;
  NICGroups groups_;
};

// Whether it asks for a connection: a CM REQ or a SIDR_REQ.
[[nodiscard]] bool asks_for_connection(std::span<const u8> transport);

}  // namespace verbena::host
