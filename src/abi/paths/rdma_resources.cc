#include "abi/paths/rdma_resources.h"

#include <unistd.h>

namespace verbena::abi::paths {
namespace {

constexpr u32 kOnlyPortOfQPs = 1;

enum KernelSRQType : u8 { kBasicSRQ = 0, kXRCSRQ = 1 };  // enum ib_srq_type

u8 kernel_type_of(QPType type) {  // enum ib_qp_type
  switch (type) {
    case QPType::kRC: return 2;
    case QPType::kUC: return 3;
    case QPType::kUD: return 4;
    case QPType::kRawPacket: return 8;
    case QPType::kXRCInitiator: return 9;
    case QPType::kXRCTarget: return 10;
  }
  return 0xff;  // of another process: not trusted
}

void put_process(NetlinkWriter& writer, const Resource& resource) {
  writer.put(RDMA_NLDEV_ATTR_RES_PID, static_cast<u32>(resource.pid));
}

void put_qp(NetlinkWriter& writer, const Resource& resource) {
  const host::QPSnapshot& qp = *resource.qp;
  writer.put(RDMA_NLDEV_ATTR_PORT_INDEX, kOnlyPortOfQPs);
  writer.put(RDMA_NLDEV_ATTR_RES_LQPN, qp.qpn.value);
  if (qp.type == QPType::kRC || qp.type == QPType::kUC) {
    writer.put(RDMA_NLDEV_ATTR_RES_RQPN, qp.dest_qpn.value);
    writer.put(RDMA_NLDEV_ATTR_RES_RQ_PSN, qp.rq_psn.value());
    writer.put(RDMA_NLDEV_ATTR_RES_PATH_MIG_STATE, u8{0});  // migrated
  }
  writer.put(RDMA_NLDEV_ATTR_RES_SQ_PSN, qp.sq_psn.value());
  writer.put(RDMA_NLDEV_ATTR_RES_TYPE, kernel_type_of(qp.type));
  writer.put(RDMA_NLDEV_ATTR_RES_STATE, static_cast<u8>(qp.state));  // numbered as ib_qp_state
  if (qp.pd != host::QPSnapshot::kNoPD)
    writer.put(RDMA_NLDEV_ATTR_RES_PDN, number_on_host(resource.slot, qp.pd));
  put_process(writer, resource);
}

void put_pd(NetlinkWriter& writer, const Resource& resource) {
  writer.put(RDMA_NLDEV_ATTR_RES_USECNT, u64{resource.object->uses});
  writer.put(RDMA_NLDEV_ATTR_RES_PDN, resource.number);
  put_process(writer, resource);
}

void put_cq(NetlinkWriter& writer, const Resource& resource) {
  writer.put(RDMA_NLDEV_ATTR_RES_CQE, static_cast<u32>(resource.object->size));
  writer.put(RDMA_NLDEV_ATTR_RES_USECNT, u64{resource.object->uses});
  writer.put(RDMA_NLDEV_ATTR_RES_CQN, resource.number);
  put_process(writer, resource);
}

// Only root sees keys, as from the kernel.
void put_mr(NetlinkWriter& writer, const Resource& resource) {
  const ObjectInfo& region = *resource.object;
  if (::geteuid() == 0) {
    writer.put(RDMA_NLDEV_ATTR_RES_RKEY, region.key);
    writer.put(RDMA_NLDEV_ATTR_RES_LKEY, region.key);
  }
  writer.put(RDMA_NLDEV_ATTR_RES_MRLEN, region.size);
  writer.put(RDMA_NLDEV_ATTR_RES_MRN, resource.number);
  writer.put(RDMA_NLDEV_ATTR_RES_PDN, number_on_host(resource.slot, region.pd));
  put_process(writer, resource);
}

// The list of its QPs is empty: `rdma` refuses an SRQ without one.
void put_srq(NetlinkWriter& writer, const Resource& resource) {
  const ObjectInfo& srq = *resource.object;
  writer.put(RDMA_NLDEV_ATTR_RES_SRQN, resource.number);
  writer.put(RDMA_NLDEV_ATTR_RES_TYPE, static_cast<u8>(srq.is_xrc ? kXRCSRQ : kBasicSRQ));
  writer.put(RDMA_NLDEV_ATTR_RES_PDN, number_on_host(resource.slot, srq.pd));
  writer.close_nest(writer.open_nest(RDMA_NLDEV_ATTR_RES_QP));
  put_process(writer, resource);
}

void put_context(NetlinkWriter& writer, const Resource& resource) {
  writer.put(RDMA_NLDEV_ATTR_RES_CTXN, resource.number);
  put_process(writer, resource);
}

using host::StatsSubject;

constexpr ResourceKind kKinds[] = {
    {RDMA_NLDEV_CMD_RES_QP_GET, RDMA_NLDEV_ATTR_RES_QP, RDMA_NLDEV_ATTR_RES_QP_ENTRY,
     RDMA_NLDEV_ATTR_RES_LQPN, StatsSubject::kQPs, put_qp},
    {RDMA_NLDEV_CMD_RES_PD_GET, RDMA_NLDEV_ATTR_RES_PD, RDMA_NLDEV_ATTR_RES_PD_ENTRY,
     RDMA_NLDEV_ATTR_RES_PDN, StatsSubject::kPDs, put_pd},
    {RDMA_NLDEV_CMD_RES_CQ_GET, RDMA_NLDEV_ATTR_RES_CQ, RDMA_NLDEV_ATTR_RES_CQ_ENTRY,
     RDMA_NLDEV_ATTR_RES_CQN, StatsSubject::kCQs, put_cq},
    {RDMA_NLDEV_CMD_RES_MR_GET, RDMA_NLDEV_ATTR_RES_MR, RDMA_NLDEV_ATTR_RES_MR_ENTRY,
     RDMA_NLDEV_ATTR_RES_MRN, StatsSubject::kMRs, put_mr},
    {RDMA_NLDEV_CMD_RES_SRQ_GET, RDMA_NLDEV_ATTR_RES_SRQ, RDMA_NLDEV_ATTR_RES_SRQ_ENTRY,
     RDMA_NLDEV_ATTR_RES_SRQN, StatsSubject::kSRQs, put_srq},
    {RDMA_NLDEV_CMD_RES_CTX_GET, RDMA_NLDEV_ATTR_RES_CTX, RDMA_NLDEV_ATTR_RES_CTX_ENTRY,
     RDMA_NLDEV_ATTR_RES_CTXN, StatsSubject::kQPs, put_context},
};

void put_count(NetlinkWriter& writer, std::string_view name, u64 count) {
  const std::size_t entry = writer.open_nest(RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY);
  writer.put_text(RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_NAME, name);
  writer.put(RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_CURR, count);
  writer.close_nest(entry);
}

}  // namespace

const ResourceKind* ResourceKind::of(u32 command) {
  for (const ResourceKind& kind : kKinds)
    if (kind.command == static_cast<rdma_nldev_command>(command)) return &kind;
  return nullptr;
}

ResourceCounts count_resources(const DeviceIdentity& device) {
  alignas(u64) std::array<u8, host::kMaxStatsAnswerSize> buffer;
  RunningPrograms programs(RunningPrograms::kPatienceForListMs);
  programs.ask_all(StatsSubject::kQPs, RunningPrograms::kNoQPs);
  ResourceCounts counts;
  while (const auto answer = programs.next(buffer)) {
    const host::AdapterSnapshot& adapter = *answer->adapter;
    if (!device.is_of(adapter)) continue;
    counts.qps += adapter.qp_count;
    counts.contexts += adapter.context_count;
    for (u32 kind = 0; kind < kObjectKinds; ++kind)
      counts.objects[kind] += adapter.object_counts[kind];
  }
  return counts;
}

// In the kernel's order of restrack types.
void put_summary(NetlinkWriter& writer, const ResourceCounts& counts) {
  const auto of = [&](ObjectKind kind) { return counts.objects[static_cast<u32>(kind)]; };
  const std::size_t table = writer.open_nest(RDMA_NLDEV_ATTR_RES_SUMMARY);
  put_count(writer, "pd", of(ObjectKind::kPD));
  put_count(writer, "cq", of(ObjectKind::kCQ));
  put_count(writer, "qp", counts.qps);
  put_count(writer, "mr", of(ObjectKind::kMR));
  put_count(writer, "ctx", counts.contexts);
  put_count(writer, "srq", of(ObjectKind::kSRQ));
  writer.close_nest(table);
}

}  // namespace verbena::abi::paths
