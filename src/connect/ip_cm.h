// IP addresses and ports in the CM messages of rdma_cm: the ServiceID holds the destination's port;
// the private data begins with both addresses and the source's port. IBTA Vol 1, Annex A11. AF_IB
// addresses (RDMA_PS_IB with a ServiceID of their own) have no such header.
#pragma once

#include <array>
#include <optional>
#include <span>

#include "base/status.h"
#include "wire/ib/cm/ids.h"
#include "wire/ib/cm/ip_cm_header.h"
#include "wire/ib/cm/req.h"
#include "wire/ib/cm/sidr_req.h"

namespace verbena {

// rdma_cm's enum rdma_port_space. The low byte is the IP protocol, if there is one.
enum class PortSpace : u16 { kIPoIB = 0x0002, kTCP = 0x0106, kUDP = 0x0111, kIB = 0x013f };

struct ServicePort {
  PortSpace space = PortSpace::kTCP;
  u16 port = 0;
  friend bool operator==(const ServicePort&, const ServicePort&) = default;
};

// 0x0000000001PPpppp: PP the protocol, pppp the port. A11.2.2; Linux's rdma_get_service_id().
constexpr ServiceId service_id_of(ServicePort service) {
  return ServiceId{(u64{static_cast<u16>(service.space)} << 16) | service.port};
}
// Returns nullopt if the ID is not of a port space.
[[nodiscard]] std::optional<ServicePort> service_port_of(ServiceId id);

struct IPEndpoint {
  GID address{};  // in GID's form of an IPv4 address, or IPv6
  u16 port = 0;
  friend bool operator==(const IPEndpoint&, const IPEndpoint&) = default;
};

// The room for the program in the private data.
inline constexpr std::size_t kIPConnectDataSize =
    cm::REQ::kPrivateDataSize - cm::IPCMHeader::kSize;  // 56 bytes
inline constexpr std::size_t kIPSIDRDataSize =
    cm::SIDRREQ::kPrivateDataSize - cm::IPCMHeader::kSize;  // 180 bytes

// Private data for ConnectParams or SIDRRequestParams: the header, then the program's data.
class IPPrivateData {
 public:
  // Returns kInvalidArgument for addresses of two families, or for more data than `data_room` (one
  // of the above).
  [[nodiscard]] static Result<IPPrivateData> compose(const IPEndpoint& source,
                                                     const GID& destination,
                                                     std::span<const u8> data,
                                                     std::size_t data_room);
  [[nodiscard]] std::span<const u8> bytes() const { return std::span(bytes_).first(size_); }

 private:
  std::array<u8, cm::SIDRREQ::kPrivateDataSize> bytes_{};
  std::size_t size_ = 0;
};

struct IPRequest {
  PortSpace space = PortSpace::kTCP;
  IPEndpoint source{}, destination{};
  std::span<const u8> private_data;  // the program's data, inside the array that was parsed
};

// Returns the addresses of a REQ or SIDR_REQ; nullopt if it is not of a port space, or its header
// is invalid.
[[nodiscard]] std::optional<IPRequest> parse_ip_request(ServiceId service_id,
                                                        std::span<const u8> private_data);

}  // namespace verbena
