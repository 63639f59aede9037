// The multicast groups that an ID has joined. rdma_join_multicast(3).
#pragma once

namespace verbena::rdmacm {

struct EventObject;
struct IdObject;

// The program reads that the ID has joined: its QP is attached. False: it has left again.
[[nodiscard]] bool on_read_join(EventObject& event);

// Before the ID's QP is destroyed.
void detach_qp(IdObject& id);
// Before the ID is destroyed: leaves the groups of an InfiniBand subnet.
void leave_groups(IdObject& id);

}  // namespace verbena::rdmacm
