#include "connect/ip_cm.h"

#include <algorithm>

#include "base/check.h"

namespace verbena {
namespace {

constexpr int kPortBits = 16;

}  // namespace

std::optional<ServicePort> service_port_of(ServiceId id) {
  const ServicePort service{.space = PortSpace{static_cast<u16>(id.value >> kPortBits)},
                            .port = static_cast<u16>(id.value)};
  if (service_id_of(service) != id) return std::nullopt;  // bits above the port space
  switch (service.space) {
    case PortSpace::kIPoIB:
    case PortSpace::kTCP:
    case PortSpace::kUDP:
    case PortSpace::kIB: return service;
  }
  return std::nullopt;
}

Result<IPPrivateData> IPPrivateData::compose(const IPEndpoint& source, const GID& destination,
                                             std::span<const u8> data, std::size_t data_room) {
  CHECK(data_room <= kIPSIDRDataSize);
  const bool ipv4 = source.address.is_ipv4();
  if (ipv4 != destination.is_ipv4() || data.size() > data_room)
    return failure(Status::kInvalidArgument);
  IPPrivateData out;
  cm::IPCMHeader{.ip_version = ipv4 ? cm::IPVersion::k4 : cm::IPVersion::k6,
                 .source_port = source.port,
                 .source = source.address,
                 .destination = destination}
      .encode(std::span(out.bytes_).first<cm::IPCMHeader::kSize>());
  std::ranges::copy(data, out.bytes_.begin() + cm::IPCMHeader::kSize);
  out.size_ = cm::IPCMHeader::kSize + data.size();
  return out;
}

std::optional<IPRequest> parse_ip_request(ServiceId service_id, std::span<const u8> private_data) {
  const std::optional<ServicePort> service = service_port_of(service_id);
  const std::optional<cm::IPCMHeader> header = cm::IPCMHeader::decode(private_data);
  if (!service || !header) return std::nullopt;
  return IPRequest{.space = service->space,
                   .source = {.address = header->source, .port = header->source_port},
                   .destination = {.address = header->destination, .port = service->port},
                   .private_data = private_data.subspan(cm::IPCMHeader::kSize)};
}

}  // namespace verbena
