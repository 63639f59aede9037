// EventObject: an event from where it happens until the program acknowledges it. What an event
// means for its ID is done when the program reads it (reading_events.cc), in the program's thread.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <variant>
#include <vector>

#include "abi/rdmacm/connection_path.h"
#include "abi/rdmacm/layout.h"
#include "wire/ib/cm/ece.h"
#include "wire/ib/cm/sidr_req.h"

namespace verbena::rdmacm {

struct IdObject;

struct EventObject : rdma_cm_event {
  // `type`: an rdma_cm_event_type, or one of newer_cma.h, which this header's enum does not have.
  EventObject(IdObject& about, int type, int status_of_it = 0);
  ~EventObject();  // destroys a request that was not read
  EventObject(const EventObject&) = delete;
  EventObject& operator=(const EventObject&) = delete;

  static EventObject& of(rdma_cm_event* event) { return *static_cast<EventObject*>(event); }

  void set_connection_data(std::span<const u8> private_data);
  void set_datagram_data(std::span<const u8> private_data);

  IdObject& owner;                    // whose account it is in: for a request, the listener
  std::unique_ptr<IdObject> request;  // of a connect request: the new ID, until it is read
  std::optional<PeerAnswer> answer;   // of a connect response
  cm::ECE ece;                        // of a connect response
  u64 membership = 0;                 // of a multicast join: its number
  const int type;

 private:
  std::array<u8, 255> data_{};  // as much as rdma_conn_param can tell
};

}  // namespace verbena::rdmacm
