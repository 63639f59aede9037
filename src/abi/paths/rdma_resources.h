// Lists of objects as `rdma resource show` gets them: which request asks for which kind, and the
// attributes of one object, as the kernel's nldev.c has them.
//
// Nothing is allocated, and no C++ runtime is needed: it runs in any program.
#pragma once

#include <linux/types.h>
#include <rdma/rdma_netlink.h>

#include "abi/paths/netlink_message.h"
#include "abi/paths/running_programs.h"

namespace verbena::abi::paths {

// One object of a running program. A QP and an object of another kind have their record; a context
// has none.
struct Resource {
  pid_t pid = 0;
  u32 slot = 0;    // of its process (qpn_slot.h)
  u32 number = 0;  // on this host
  const host::QPSnapshot* qp = nullptr;
  const ObjectInfo* object = nullptr;
};

struct ResourceKind {
  rdma_nldev_command command;
  u16 table, entry, number;  // attributes: the list, an object in it, what names one object
  host::StatsSubject subject;
  void (*put)(NetlinkWriter& writer, const Resource& resource);

  [[nodiscard]] bool is_context() const { return command == RDMA_NLDEV_CMD_RES_CTX_GET; }
  // nullptr where programs report no such objects, or where the request is for no list.
  [[nodiscard]] static const ResourceKind* of(u32 command);
};

// How many objects of each kind there are.
struct ResourceCounts {
  u64 qps = 0, contexts = 0;
  std::array<u64, kObjectKinds> objects{};
};
[[nodiscard]] ResourceCounts count_resources(const DeviceIdentity& device);
void put_summary(NetlinkWriter& writer, const ResourceCounts& counts);

// Numbers of objects other than QPs and MRs start again in each process. The upper half of a number
// on this host is the process's slot.
constexpr u32 number_on_host(u32 slot, u32 number) { return slot << 16 | (number & 0xffff); }

// Calls visit(resource) for each object of the kind until it returns false.
template <typename Visit>
void for_each_resource(const DeviceIdentity& device, const ResourceKind& kind, Visit&& visit) {
  alignas(u64) std::array<u8, host::kMaxStatsAnswerSize> buffer;
  RunningPrograms programs(RunningPrograms::kPatienceForListMs);
  programs.ask_all(kind.subject, kind.is_context() ? RunningPrograms::kNoQPs : 0);
  while (const auto answer = programs.next(buffer)) {
    const host::AdapterSnapshot& adapter = *answer->adapter;
    if (!device.is_of(adapter)) continue;
    if (adapter.next != 0) programs.ask_again(adapter.next);
    Resource resource{.pid = answer->pid, .slot = adapter.slot};
    for (const host::QPSnapshot& qp : answer->qps) {
      resource.qp = &qp;
      resource.number = qp.qpn.value;
      if (!visit(resource)) return;
    }
    for (const ObjectInfo& object : answer->objects) {
      resource.object = &object;
      resource.number = kind.subject == host::StatsSubject::kMRs
                            ? object.number
                            : number_on_host(adapter.slot, object.number);
      if (!visit(resource)) return;
    }
    for (u32 i = 0; kind.is_context() && i < adapter.context_count; ++i) {
      resource.number = number_on_host(adapter.slot, i);
      if (!visit(resource)) return;
    }
  }
}

}  // namespace verbena::abi::paths
