#include "tests/sim/host.h"

#include "tests/support/software_path.h"

namespace verbena::sim {
namespace {

constexpr u32 kCQEs = 4096;

void must(Status status) { CHECK(status == Status::kOk); }

QPModify to_state(QPState state) {
  QPModify change;
  change.state = state;
  return change.set(QPField::kState);
}

void to_init(Host& host, QueuePair* qp, const QPConfig& config) {
  QPModify change = to_state(QPState::kInit);
  change.remote_access = config.remote_access;
  change.set(QPField::kPKeyIndex).set(QPField::kPort).set(QPField::kAccessFlags);
  must(host.node.modify_qp(qp, change));
}

void to_rtr(Host& host, QueuePair* qp, const QPConfig& config, const Host& peer, QPN peer_qpn,
            PSN peer_psn) {
  QPModify change = to_state(QPState::kRTR);
  change.path = path_to(host, peer, config.traffic_class);
  change.path_mtu = config.path_mtu;
  change.dest_qp = peer_qpn;
  change.rq_psn = peer_psn;
  change.max_dest_rd_atomic = config.max_dest_rd_atomic;
  change.min_rnr_timer = config.min_rnr_timer;
  change.set(QPField::kAddressVector).set(QPField::kPathMTU).set(QPField::kDestQPN);
  change.set(QPField::kRQPSN);
  if (host.node.device().attributes_of(qp).type != QPType::kUC)
    change.set(QPField::kMaxDestRdAtomic).set(QPField::kMinRNRTimer);
  must(host.node.modify_qp(qp, change));
}

void to_rts(Host& host, QueuePair* qp, const QPConfig& config) {
  QPModify change = to_state(QPState::kRTS);
  change.sq_psn = config.psn;
  change.ack_timeout = config.ack_timeout;
  change.retry_count = config.retry_count;
  change.rnr_retry_count = config.rnr_retry_count;
  change.max_rd_atomic = config.max_rd_atomic;
  change.set(QPField::kSQPSN);
  if (host.node.device().attributes_of(qp).type != QPType::kUC)
    change.set(QPField::kTimeout)
        .set(QPField::kRetryCount)
        .set(QPField::kRNRRetry)
        .set(QPField::kMaxRdAtomic);
  must(host.node.modify_qp(qp, change));
}

}  // namespace

Host::Host(World& w, Node& n, u64 iova)
    : world(w),
      node(n),
      pd(*n.device().alloc_pd()),
      cq(*n.device().create_cq(kCQEs, this)),
      arena(n.device(), pd, iova, w.prng().fork()) {
  if (w.has_late_memory()) arena.use_late_memory();
}

void Host::add_srq(u32 depth, u32 max_sge) {
  srq = *node.device().create_srq(
      {.pd = pd, .limits = {.depth = depth, .max_sge = max_sge}, .user = this});
}

void Host::add_xrc_srq(u32 depth, u32 max_sge) {
  xrcd = *node.device().open_xrcd();
  srq = *node.device().create_srq({.pd = pd,
                                   .limits = {.depth = depth, .max_sge = max_sge},
                                   .xrcd = xrcd,
                                   .cq = cq,
                                   .user = this});
}

QueuePair* Host::create_xrc_target() {
  QueuePair* const qp =
      *node.device().create_qp({.type = QPType::kXRCTarget, .xrcd = xrcd, .user = this});
  qps.push_back(qp);
  return qp;
}

QueuePair* Host::create_qp(QPType type, const SendQueueLimits& send,
                           const ReceiveQueueLimits& receive, bool use_srq) {
  const Result<QueuePair*> qp = node.device().create_qp({.type = type,
                                                         .pd = pd,
                                                         .send_cq = cq,
                                                         .receive_cq = cq,
                                                         .srq = use_srq ? srq : nullptr,
                                                         .send = send,
                                                         .receive = receive,
                                                         .user = this});
  CHECK(qp.has_value());
  qps.push_back(*qp);
  return *qp;
}

void Host::reset(QueuePair* qp) { must(node.modify_qp(qp, to_state(QPState::kReset))); }

std::optional<std::string> Host::tear_down() {
  Device& device = node.device();
  EgressFrame frame;
  if (device.poll_frame(world.now(), frame)) return "a frame is left";
  if (device.next_timer() != Time::never()) return "a timer is left";
  for (QueuePair* const qp : qps) must(device.destroy_qp(qp));
  arena.close();
  if (srq != nullptr && device.destroy_srq(srq) != Status::kOk) return "the SRQ is in use";
  if (xrcd != nullptr && device.close_xrcd(xrcd) != Status::kOk) return "the XRC domain is in use";
  if (device.destroy_cq(cq) != Status::kOk) return "the CQ is in use";
  if (device.memory().size() != 0) return "keys are left";
  if (device.dealloc_pd(pd) != Status::kOk) return "the PD is in use";
  if (device.poll_frame(world.now(), frame)) return "a frame came of destroying";
  if (device.next_timer() != Time::never()) return "a timer came of destroying";
  if (device.poll_completion_event() || device.poll_async_event()) return "an event is left";
  return std::nullopt;
}

DeviceConfig device_config(u32 index, u64 seed, bool ipv6) {
  DeviceConfig config;
  GID gid = GID::from_ipv4(0x0a4d0002 + index);
  if (ipv6) {
    gid = {};
    gid.bytes[0] = 0xfd;
    gid.bytes[15] = static_cast<u8>(2 + index);
  }
  config.gids.push_back({.gid = gid});
  config.active_mtu = MTU::k4096;
  config.first_qpn = QPN{0x100 * (index + 1)};
  config.seed = seed;
  config.path = test::software_path(1024, us(50));
  return config;
}

AddressVector path_to(const Host& from, const Host& to, u8 traffic_class) {
  AddressVector path;
  path.source = from.node.device().config().gids[0].gid;
  path.destination = to.node.device().config().gids[0].gid;
  path.traffic_class = traffic_class;
  return path;
}

void connect(Host& a, QueuePair* qp_a, const QPConfig& config_a, Host& b, QueuePair* qp_b,
             const QPConfig& config_b) {
  const QPN qpn_a = a.node.device().attributes_of(qp_a).qpn;
  const QPN qpn_b = b.node.device().attributes_of(qp_b).qpn;
  to_init(a, qp_a, config_a);
  to_init(b, qp_b, config_b);
  to_rtr(a, qp_a, config_a, b, qpn_b, config_b.psn);
  to_rtr(b, qp_b, config_b, a, qpn_a, config_a.psn);
  to_rts(a, qp_a, config_a);
  to_rts(b, qp_b, config_b);
}

void bring_up_ud(Host& host, QueuePair* qp, QKey q_key, PSN psn) {
  QPModify init = to_state(QPState::kInit);
  init.q_key = q_key;
  must(host.node.modify_qp(qp,
                           init.set(QPField::kPKeyIndex).set(QPField::kPort).set(QPField::kQKey)));
  must(host.node.modify_qp(qp, to_state(QPState::kRTR)));
  QPModify rts = to_state(QPState::kRTS);
  rts.sq_psn = psn;
  must(host.node.modify_qp(qp, rts.set(QPField::kSQPSN)));
}

}  // namespace verbena::sim
