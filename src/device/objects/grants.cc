#include "device/objects/grants.h"

#include <algorithm>

#include "device/qp/engine_factory.h"

namespace verbena {
namespace {

bool fits(const SendQueueLimits& send, const DeviceLimits& limits) {
  return send.depth <= limits.max_qp_wr && send.max_sge <= limits.max_sge &&
         send.max_inline_bytes <= limits.max_inline_bytes;
}

bool fits(const ReceiveQueueLimits& receive, u32 max_depth, const DeviceLimits& limits) {
  return receive.depth <= max_depth && receive.max_sge <= limits.max_sge;
}

// Inline data takes the place of SGEs. Soft-RoCE grants as much, and programs rely on it.
u32 inline_room_of(u32 sges) {
  constexpr u32 kSGEBytes = 16;  // address, length, key
  return sges * kSGEBytes;
}

Result<QPInit> grant_xrc_target(const QPInit& asked) {
  if (asked.xrcd == nullptr) return failure(Status::kInvalidArgument);
  return QPInit{.type = asked.type,
                .xrcd = asked.xrcd,
                .send = {.depth = 0, .max_sge = 0},
                .receive = {.depth = 0, .max_sge = 0},
                .user = asked.user};
}

ReceiveQueueLimits at_least_one(const ReceiveQueueLimits& asked) {
  return {.depth = std::max(asked.depth, 1u), .max_sge = std::max(asked.max_sge, 1u)};
}

}  // namespace

Result<u32> grant_cqe(u32 asked, const DeviceLimits& limits) {
  if (asked > limits.max_cqe) return failure(Status::kInvalidArgument);
  return std::max(asked, 1u);
}

Result<ReceiveQueueLimits> grant_srq(const ReceiveQueueLimits& asked, const DeviceLimits& limits) {
  if (!fits(asked, limits.max_srq_wr, limits)) return failure(Status::kInvalidArgument);
  return at_least_one(asked);
}

Result<QPInit> grant_qp(const QPInit& asked, const DeviceConfig& config) {
  const DeviceLimits& limits = config.limits;
  if (!has_engine(asked.type, config.transport)) return failure(Status::kNotSupported);
  if (asked.type == QPType::kXRCTarget) return grant_xrc_target(asked);
  if (asked.pd == nullptr || asked.send_cq == nullptr) return failure(Status::kInvalidArgument);
  if (!fits(asked.send, limits)) return failure(Status::kInvalidArgument);
  QPInit granted = asked;
  granted.xrcd = nullptr;
  granted.send.depth = std::max(asked.send.depth, 1u);
  granted.send.max_sge = std::max(asked.send.max_sge, 1u);
  granted.send.max_inline_bytes =
      std::max(asked.send.max_inline_bytes, inline_room_of(granted.send.max_sge));
  if (asked.type == QPType::kXRCInitiator) {
    granted.receive_cq = nullptr;
    granted.srq = nullptr;
    granted.receive = {.depth = 0, .max_sge = 0};
    return granted;
  }
  if (asked.receive_cq == nullptr) return failure(Status::kInvalidArgument);
  if (asked.srq != nullptr) {
    granted.receive = {.depth = 0, .max_sge = 0};
    return granted;
  }
  if (!fits(asked.receive, limits.max_qp_wr, limits)) return failure(Status::kInvalidArgument);
  granted.receive = at_least_one(asked.receive);
  return granted;
}

}  // namespace verbena
