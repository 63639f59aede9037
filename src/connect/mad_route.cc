#include "connect/mad_route.h"

#include "wire/ib/cm/message.h"

namespace verbena {
namespace {

MADRoute by_service(ServiceId id) { return {.by = RouteBy::kServiceId, .service_id = id}; }
MADRoute by_comm_id(CommId id) { return {.by = RouteBy::kCommId, .comm_id = id}; }

struct Router {
  MADRoute operator()(const cm::REQ& req) const { return by_service(req.service_id); }
  MADRoute operator()(const cm::SIDRREQ& req) const { return by_service(req.service_id); }
  MADRoute operator()(const cm::SIDRREP& rep) const { return by_comm_id(rep.request_id); }
  MADRoute operator()(const cm::REJ& rej) const {
    return rej.remote_comm_id == CommId{} ? MADRoute{} : by_comm_id(rej.remote_comm_id);
  }
  MADRoute operator()(const auto& message) const { return by_comm_id(message.remote_comm_id); }
};

}  // namespace

std::optional<MADRoute> route_of(std::span<const u8> mad) {
  const std::optional<cm::Message> message = cm::Message::decode(mad);
  if (!message) return std::nullopt;
  return std::visit(Router{}, message->body);
}

}  // namespace verbena
