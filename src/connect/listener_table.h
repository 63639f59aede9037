// ListenerTable: the listeners by ServiceID. IBTA Vol 1, 12.7.3. Bounded; each request searches it
// once.
#pragma once

#include <vector>

#include "base/status.h"
#include "connect/cm_params.h"

namespace verbena {

struct Listener {
  ListenerId id{};
  ListenParams params;
  u32 waiting = 0;  // requests that count against the backlog
};

class ListenerTable {
 public:
  explicit ListenerTable(u32 capacity) : capacity_(capacity) {}

  // Returns kBusy if a listener with the same parameters exists, kNoMemory if the table is full.
  [[nodiscard]] Result<ListenerId> add(const ListenParams& params);
  [[nodiscard]] Status remove(ListenerId id);
  // Returns the most specific listener: an exact address before a family, a family before any, and
  // then more bits of ServiceID before fewer. Returns nullptr if there is none.
  [[nodiscard]] Listener* find(ServiceId service_id, const GID& local_gid);
  [[nodiscard]] Listener* find(ListenerId id);
  [[nodiscard]] std::size_t size() const { return listeners_.size(); }

 private:
  std::vector<Listener> listeners_;
  u32 capacity_;
  u32 next_id_ = 1;
};

}  // namespace verbena
