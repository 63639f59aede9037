#include "host/links/fabric/sa_client.h"

#include <cerrno>
#include <cstdlib>

#include "host/links/fabric/management_protocol.h"

namespace verbena::host {
namespace {

constexpr u32 kTimeoutMs = 500, kRetries = 3;
constexpr u32 kGSIQKey = 0x80010000;  // IBTA 10.2.4

struct SAConnection {
  Descriptor mads, control;
  u16 manager_lid = 0;
};

Expected<SAConnection> connect_to_administration() {
  const char* const text = std::getenv(kFabricVariable);
  const auto place = FabricPlace::parse(text != nullptr ? text : "");
  if (!place) return failure(ENODEV, "no fabric");
  SAConnection connection;
  for (Descriptor* const socket : {&connection.mads, &connection.control}) {
    Expected<Descriptor> connected = connect_to_fabric(place->name);
    if (!connected) return tl::unexpected(connected.error());
    *socket = std::move(*connected);
  }
  const auto port = ask_fabric<FabricPortAttributes>(connection.control.get(),
                                                     FabricPortQuery{.host = place->host});
  if (!port) return tl::unexpected(port.error());
  connection.manager_lid = port->sm_lid;
  if (port->sm_lid == 0) return failure(ENETDOWN, "the port has no subnet manager");
  const auto attached = ask_fabric<FabricMADAttached>(
      connection.mads.get(), FabricMADAttach{.host = place->host, .claim = place->claim});
  if (!attached) return tl::unexpected(attached.error());
  const auto registered = ask_fabric<FabricMADRegistered>(
      connection.control.get(),
      FabricMADRegister{
          .client = attached->client, .mgmt_class = u8{0x03}, .class_version = kSAClassVersion});
  if (!registered) return tl::unexpected(registered.error());
  if (registered->error != 0) return failure(registered->error, "cannot register for answers");
  return connection;
}

// The statuses of the class. IBTA 15.2.1.1.
int errno_of_status(u16 status) {
  switch (status >> 8) {
    case 1: return ENOMEM;
    case 2: return EINVAL;
    case 3: return EHOSTUNREACH;  // no records
    case 7: return EACCES;
    default: return (status & 0x1f) != 0 ? EAGAIN : EINVAL;
  }
}

}  // namespace

Expected<std::array<u8, kSARecordSize>> ask_subnet_administration(const SARequest& request) {
  const Expected<SAConnection> connection = connect_to_administration();
  if (!connection) return tl::unexpected(connection.error());
  std::array<u8, kMADSize> mad{};
  request.encode(mad);
  const FabricMAD header{.timeout_ms = kTimeoutMs,
                         .retries = kRetries,
                         .total_bytes = kMADSize,
                         .qp = 1,
                         .q_key = kGSIQKey,
                         .lid = connection->manager_lid};
  const int socket = connection->mads.get();
  if (const int error = send_fabric(socket, header, mad); error != 0)
    return failure(error, "the fabric's server does not listen");
  std::array<u8, kMaxFabricMessage> buffer;
  const Expected<std::size_t> size = await_fabric_message(socket, buffer);
  if (!size) return tl::unexpected(size.error());
  const auto message = FabricMessage::of(std::span(buffer).first(*size));
  const auto answer = message ? message->as<FabricMAD>() : std::nullopt;
  if (!answer) return failure(ECONNRESET, "the fabric's server has ended");
  if (answer->status != 0) return failure(answer->status, "no subnet administration answers");
  const std::span<const u8> bytes = message->rest<FabricMAD>();
  const auto answered = MADHeader::decode(bytes);
  if (!answered || bytes.size() < kMADSize) return failure(EPROTO, "a short answer");
  if (answered->status != 0)
    return failure(errno_of_status(answered->status), "the subnet administration refuses");
  std::array<u8, kSARecordSize> record;
  std::copy_n(bytes.begin() + kSARecordAt, kSARecordSize, record.begin());
  return record;
}

}  // namespace verbena::host
