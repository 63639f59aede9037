// The multicast groups that an ID has joined. rdma_join_multicast(3).
#pragma once

namespace verbena::rdmacm {

struct EventObject;
struct IdObject;

// The program reads that the ID has joined: its QP is attached. False: it has left again.
[[nodiscard]] bool on_read_join(EventObject& event);

// Before the ID's QP is destroyed.
void detach_qp(IdObject& id);

}  // namespace verbena::rdmacm
