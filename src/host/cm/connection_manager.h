// ConnectionManager: communication management on one adapter, for its whole process: a CMAgent with
// lock, clock and wire around it. Thread-safe; every call is short and none waits for the peer. Not
// to be called from a ConnectionTarget. See CMAgent for the effect and the result of each call.
//
// Abstract, and all its arguments plain data: librdmacm.so.1 calls it across the border to
// libibverbs.so.1, which has the adapter. Both are built together.
#pragma once

#include <vector>

#include "base/status.h"
#include "connect/cm_params.h"
#include "device/device_config.h"
#include "host/cm/connection_target.h"

namespace verbena::host {

// ConnectionIdentity: the properties of an adapter that the other side and rdma_cm's path records
// learn.
struct ConnectionIdentity {
  Transport transport = Transport::kInfiniBand;
  u32 slot = 0;           // qpn_slot.h
  std::vector<GID> gids;  // index = GID index
  MTU mtu = MTU::k1024;
  u8 max_rd_atomic = 0;
};

[[nodiscard]] ConnectionIdentity identity_of(const DeviceConfig& config);

class ConnectionManager {
 public:
  virtual ~ConnectionManager() = default;

  [[nodiscard]] virtual const ConnectionIdentity& identity() const = 0;  // never changes

  // The target is called until unlisten() returns. `user` of all parameters is ignored.
  [[nodiscard]] virtual Result<ListenerId> listen(const ListenParams& params,
                                                  ConnectionTarget& target) = 0;
  virtual void unlisten(ListenerId id) = 0;

  // The target is called until is_last(event), or until abandon() or a successful reject() or
  // sidr_reply() returns; maybe before this call has returned the ID.
  [[nodiscard]] virtual Result<CommId> connect(const ConnectParams& params,
                                               ConnectionTarget& target) = 0;
  [[nodiscard]] virtual Result<CommId> sidr_request(const SIDRRequestParams& params,
                                                    ConnectionTarget& target) = 0;
  virtual void abandon(CommId id) = 0;

  [[nodiscard]] virtual Status ready_to_use(CommId id) = 0;
  [[nodiscard]] virtual Status accept(CommId id, const AcceptParams& params) = 0;
  [[nodiscard]] virtual Status establish(CommId id) = 0;
  [[nodiscard]] virtual Status reject(CommId id, const RejectParams& params) = 0;
  [[nodiscard]] virtual Status sidr_reply(CommId id, const SIDRReplyParams& params) = 0;
  // Asks for the end, or answers the peer that did.
  [[nodiscard]] virtual Status disconnect(CommId id) = 0;
  // The program has read the request: it leaves the listener's backlog.
  [[nodiscard]] virtual Status take_request(CommId id) = 0;
};

}  // namespace verbena::host
