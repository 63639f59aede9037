#include "abi/rdmacm/subnet_group.h"

#include <rdma/rdma_cma.h>

#include <algorithm>

#include "abi/ibverbs/translate.h"
#include "host/links/fabric/sa_client.h"

namespace verbena::rdmacm {
namespace {

constexpr u16 kDefaultPKeyOfSubnet = 0xffff;
constexpr u16 kRDMACMSignature = 0x4001;  // where IPoIB's groups have 0x401b for IPv4
constexpr u64 kMembership =
    MCMemberRecord::kMGID | MCMemberRecord::kPortGID | MCMemberRecord::kJoinState;
constexpr u64 kCreation = kMembership | MCMemberRecord::kQKey | MCMemberRecord::kPKey |
                          MCMemberRecord::kTClass | MCMemberRecord::kSL |
                          MCMemberRecord::kFlowLabel;

host::Expected<MCMemberRecord> ask(MADMethod method, u64 components, const MCMemberRecord& record) {
  SARequest request{
      .method = method, .attribute = SAAttribute::kMCMemberRecord, .component_mask = components};
  record.encode(std::span(request.record).first<MCMemberRecord::kSize>());
  const auto answer = host::ask_subnet_administration(request);
  if (!answer) return tl::unexpected(answer.error());
  return *MCMemberRecord::decode(*answer);
}

// The port's own, entry 0 of the table.
const GID& port_gid_of(const OpenDevice& device) { return device.identity().gids[0]; }

}  // namespace

ibv_ah_attr SubnetGroup::address() const {
  ibv_ah_attr attr{};
  attr.dlid = mlid;
  attr.sl = sl;
  attr.is_global = 1;
  attr.grh.dgid = abi::to_ibv(mgid);
  attr.port_num = kPort;
  return attr;
}

bool is_on_subnet(const OpenDevice& device) {
  ibv_port_attr port{};
  return ibv_query_port(device.verbs, kPort, &port) == 0 &&
         port.link_layer == IBV_LINK_LAYER_INFINIBAND;
}

// ff12:4001:P_Key::a.b.c.d with 28 bits of an IPv4 group's address; of an IPv6 group's, the
// lower 80.
GID mgid_of(const SocketEndpoint& group, u16 p_key) {
  const GID& address = group.address;
  if (group.family == AF_IB) return address;
  GID mgid;
  mgid.bytes[0] = 0xff;
  mgid.bytes[1] = 0x12;
  store_be16(&mgid.bytes[2], kRDMACMSignature);
  store_be16(&mgid.bytes[4], p_key);
  if (group.is_ipv4())
    store_be32(&mgid.bytes[12], address.ipv4() & 0x0fffffff);
  else
    std::copy(address.bytes.begin() + 6, address.bytes.end(), mgid.bytes.begin() + 6);
  return mgid;
}

host::Expected<SubnetGroup> join_subnet_group(const OpenDevice& device, const SocketEndpoint& group,
                                              u8 join_state) {
  const MCMemberRecord wanted{.mgid = mgid_of(group, kDefaultPKeyOfSubnet),
                              .port_gid = port_gid_of(device),
                              .q_key = RDMA_UDP_QKEY,
                              .p_key = kDefaultPKeyOfSubnet,
                              .join_state = join_state};
  const host::Expected<MCMemberRecord> joined = ask(MADMethod::kSet, kCreation, wanted);
  if (!joined) return tl::unexpected(joined.error());
  return SubnetGroup{
      .mgid = joined->mgid, .mlid = joined->mlid, .q_key = joined->q_key, .sl = joined->sl};
}

void leave_subnet_group(const OpenDevice& device, const GID& mgid, u8 join_state) {
  (void)ask(kSADelete, kMembership,
            {.mgid = mgid, .port_gid = port_gid_of(device), .join_state = join_state});
}

}  // namespace verbena::rdmacm
