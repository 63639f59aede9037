// Opens a LiveAdapter: its device's limits, its link, and what the environment asks for.
#include <algorithm>

#include "host/cm/port_directory.h"
#include "host/links/local_link.h"
#include "host/links/nic/nic_link.h"
#include "host/links/nic/nic_stream_opener.h"
#include "host/links/raw/raw_link.h"
#include "host/links/source_ports.h"
#include "host/links/tcp/kernel_stream_opener.h"
#include "host/links/udp_link.h"
#include "host/live_adapter.h"
#include "host/network/gid_table.h"
#include "host/os/random.h"
#include "host/settings/congestion_settings.h"
#include "host/settings/fault_settings.h"
#include "host/settings/hardening_settings.h"
#include "host/settings/mpa_settings.h"
#include "host/settings/retransmission_settings.h"
#include "host/sharing/qpn_slot.h"

namespace verbena::host {
namespace {

// A peer that is descheduled for a time slice is not lost packets.
constexpr Duration kMinACKTimeout = ms(1);
constexpr Duration kMinProbeTimeout = ms(4);
constexpr Duration kPeerPatience = ms(400);  // in a fabric: real time

// The data in flight to one QP is limited to a part of the peer's receive buffer, which we assume
// to be like ours. The kernel charges a small packet with about 2 KB.
constexpr u32 kBufferShare = 4;
constexpr u32 kBufferBytesPerPacket = 2048;
constexpr u32 kMinWindowBytes = 64 << 10, kMaxWindowBytes = 1 << 20;
constexpr u32 kMinWindowPackets = 64, kMaxWindowPackets = 1024;
// The window of all QPs together. It is less than 4 ms of small packets, after which silence would
// look like loss.
constexpr u32 kSharedWindowPackets = 4096;

PathAllowances path_for_sockets(u32 receive_buffer_bytes) {
  const u32 share = receive_buffer_bytes / kBufferShare;
  return {.window_packets =
              std::clamp(share / kBufferBytesPerPacket, kMinWindowPackets, kMaxWindowPackets),
          .window_bytes = std::clamp(share, kMinWindowBytes, kMaxWindowBytes),
          .loss_response = LossResponse::kHalveWindow,
          .shared_window_packets = kSharedWindowPackets,
          .min_probe_timeout = kMinProbeTimeout,
          .min_ack_timeout = kMinACKTimeout};
}

DeviceConfig config_for(const LocalAddress& address, LinkKind kind, const UDPLink& link,
                        const CongestionSettings& congestion, Retransmission retransmission) {
  DeviceConfig config;
  config.node_guid = address.node_guid;
  config.gids = gid_table(address, kind, link.encrypts() ? OnWire::kEncrypted : OnWire::kClear);
  config.active_mtu = largest_mtu_for_link(address.mtu).value_or(MTU::k256);
  config.first_qpn = first_qpn_of(link.slot());
  config.limits.max_qp = kQPNsPerSlot;
  config.seed = random_u64();
  config.path = path_for_sockets(link.receive_buffer_bytes());
  config.egress.qps_with_own_port = SourcePorts::kMaxPorts;
  config.retransmission = retransmission;
  config.congestion = congestion.congestion;
  config.pacing = congestion.pacing;
  return config;
}

void limit_to_function(const NICAttached& function, DeviceConfig& config) {
  DeviceLimits& limits = config.limits;
  if (function.max_qp != 0) limits.max_qp = std::min(function.max_qp, kQPNsPerSlot);
  if (function.max_mr != 0) limits.max_mr = function.max_mr;
  if (function.max_cqe != 0) limits.max_cqe = function.max_cqe;
  if (function.max_registered_bytes != 0)
    limits.max_registered_bytes = function.max_registered_bytes;
}

DeviceConfig config_on_nic(const LocalAddress& address, const NICAttached& function,
                           const CongestionSettings& congestion, Retransmission retransmission,
                           const HardeningSettings& hardening) {
  DeviceConfig config;
  config.node_guid = address.node_guid;
  config.gids = gid_table(address, LinkKind::kUDP);
  const u32 mtu = address.mtu - std::min(address.mtu, function.packet_overhead);
  config.active_mtu = largest_mtu_for_link(mtu).value_or(MTU::k256);
  config.first_qpn = first_qpn_of(function.slot);
  config.limits.max_qp = kQPNsPerSlot;
  limit_to_function(function, config);
  config.limits.max_multicast_groups = function.max_groups;
  config.p_keys.clear();
  for (u32 i = 0; i < std::min(function.p_key_count, NICAttached::kMaxPKeysOfFunction); ++i)
    config.p_keys.push_back(PKey{function.p_keys[i]});
  config.seed = random_u64();
  config.path = path_for_sockets(function.receive_buffer_bytes);
  config.egress.qps_with_own_port = SourcePorts::kMaxPorts;
  config.retransmission = retransmission;
  config.congestion = congestion.congestion;
  config.pacing = congestion.pacing;
  config.hardening = hardening.device;
  return config;
}

// Its QPs' congestion control, retransmission and windows are TCP's, in the kernel.
DeviceConfig config_of_iwarp(const LocalAddress& address, u32 slot) {
  DeviceConfig config;
  config.transport = Transport::kIWARP;
  config.node_guid = address.node_guid;
  config.gids = gid_table(address, LinkKind::kIWARP);
  config.active_mtu = largest_mtu_for_link(address.mtu).value_or(MTU::k256);
  config.first_qpn = first_qpn_of(slot);
  config.limits.max_qp = kQPNsPerSlot;
  config.limits.max_init_rd_atomic = config.limits.max_rd_atomic;  // an idle QP takes little memory
  config.seed = random_u64();
  return config;
}

// Keys that are there now; those that a manager adds later are there when the device is opened
// anew.
// Behind the port's GID lies the address that rdma_cm connects by.
void be_on_subnet(const FabricPortAttributes& port, const LocalAddress& address,
                  DeviceConfig& config) {
  config.node_guid = port.node_guid;
  config.gids = {{gid_of(port), GIDType::kInfiniBand}};
  if (address.ipv4) config.gids.push_back({*address.ipv4, GIDType::kRoCEv2});
  config.p_keys.clear();
  for (const u16 key : port.p_keys) config.p_keys.push_back(PKey{key});
}

// The simulated network has no receive buffer to overflow, so that the windows are the largest. But
// peers are processes, and answer as late as those do, in real time.
DeviceConfig config_in_fabric(const LocalAddress& address, u32 slot, const FabricAttached& settings,
                              const CongestionSettings& congestion, Retransmission retransmission) {
  DeviceConfig config;
  config.node_guid = address.node_guid;
  config.gids = gid_table(address, LinkKind::kUDP);
  if (settings.is_infiniband) be_on_subnet(settings.port, address, config);
  config.active_mtu = mtu_from_bytes(settings.mtu).value_or(MTU::k1024);
  config.first_qpn = first_qpn_of(slot);
  config.limits.max_qp = kQPNsPerSlot;
  config.seed = random_u64();
  config.retransmission = retransmission;
  config.congestion = congestion.congestion;
  config.pacing = congestion.pacing;
  config.egress = {.run_packets = 1, .acknowledgements = AcknowledgementOrder::kFirst};
  config.path = {.window_packets = kMaxWindowPackets,
                 .window_bytes = kMaxWindowBytes,
                 .loss_response = LossResponse::kHalveWindow,
                 .min_probe_timeout = kPeerPatience / settings.clock.scale,
                 .min_ack_timeout = kPeerPatience / settings.clock.scale};
  return config;
}

std::unique_ptr<Link> with_local_frames(std::unique_ptr<Link> link, LocalPath* local) {
  if (local == nullptr) return link;
  return std::make_unique<LocalLink>(std::move(link), *local);
}

// Nothing goes in clear where encryption is asked for.
tl::unexpected<Error> cannot_encrypt(const std::string& what) {
  return failure(EOPNOTSUPP,
                 std::string(kEncryptionVariable) + ": not with " + what + "; unset one of them");
}

}  // namespace

Expected<std::shared_ptr<LiveAdapter>> LiveAdapter::open(const LocalAddress& address) {
  const Expected<std::optional<FabricPlace>> place = FabricLink::place_from_environment();
  if (!place) return tl::unexpected(place.error());
  const Expected<std::optional<EncryptionSettings>> encryption =
      encryption_settings_from_environment();
  if (!encryption) return tl::unexpected(encryption.error());
  if (*place && *encryption) return cannot_encrypt("a simulated fabric");
  if (*place) return open_in_fabric(address, **place);
  const Expected<LinkKind> kind = link_kind_from_environment();
  if (!kind) return tl::unexpected(kind.error());
  const std::string nic = nic_from_environment();
  if (!nic.empty() && *encryption) return cannot_encrypt("a virtual function, whose NIC encrypts");
  if (!nic.empty() && *kind == LinkKind::kIWARP) return open_iwarp_on_nic(address, nic);
  if (!nic.empty()) return open_on_nic(address, nic);
  if (*kind == LinkKind::kIWARP) return open_iwarp(address, *encryption);
  Expected<std::unique_ptr<UDPLink>> link = UDPLink::open(address, random_u64(), *encryption);
  if (!link) return tl::unexpected(link.error());
  // Removes the entries that the last owner of our slot has left.
  if (Expected<PortDirectory> ports = PortDirectory::open()) ports->forget((*link)->slot());
  const Expected<CongestionSettings> congestion =
      congestion_from_environment(address.link_speed_mbps);
  if (!congestion) return tl::unexpected(congestion.error());
  const Expected<Retransmission> retransmission = retransmission_from_environment();
  if (!retransmission) return tl::unexpected(retransmission.error());
  const Expected<HardeningSettings> hardening = hardening_from_environment();
  if (!hardening) return tl::unexpected(hardening.error());
  DeviceConfig config = config_for(address, *kind, **link, *congestion, *retransmission);
  config.hardening = hardening->device;
  if (*encryption)
    config.active_mtu = largest_mtu_for_link(address.mtu - std::min(address.mtu, kPSPOverheadBytes))
                            .value_or(MTU::k256);
  Expected<std::unique_ptr<LocalPath>> local = LocalPath::open((*link)->slot(), config.gids);
  if (!local) return tl::unexpected(local.error());
  if (*local != nullptr) config.local = (*local)->ports();
  Expected<std::unique_ptr<Link>> on_wire = RawLink::on(std::move(*link), address, *kind);
  if (!on_wire) return tl::unexpected(on_wire.error());
  std::unique_ptr<Link> with_local = with_local_frames(std::move(*on_wire), local->get());
  Expected<std::shared_ptr<LiveAdapter>> adapter =
      start(config, std::move(with_local), std::move(*local));
  if (!adapter) return adapter;
  if (const auto done = (*adapter)->apply_environment(address); !done)
    return tl::unexpected(done.error());
  return adapter;
}

// Its limits and partitions are the function's; that it keeps to them is the NIC's affair.
Expected<std::shared_ptr<LiveAdapter>> LiveAdapter::open_on_nic(const LocalAddress& address,
                                                                const std::string& path) {
  // The function whose address this device has, though another could be had as well.
  Expected<std::unique_ptr<NICLink>> link = NICLink::open(path, address.all().front().to_string());
  if (!link) return tl::unexpected(link.error());
  const Expected<CongestionSettings> congestion =
      congestion_from_environment(address.link_speed_mbps);
  if (!congestion) return tl::unexpected(congestion.error());
  const Expected<Retransmission> retransmission = retransmission_from_environment();
  if (!retransmission) return tl::unexpected(retransmission.error());
  const Expected<HardeningSettings> hardening = hardening_from_environment();
  if (!hardening) return tl::unexpected(hardening.error());
  const NICAttached& function = (*link)->function();
  if (Expected<PortDirectory> ports = PortDirectory::open()) ports->forget(function.slot);
  const DeviceConfig config =
      config_on_nic(address, function, *congestion, *retransmission, *hardening);
  NICLink* const nic = link->get();
  Expected<std::shared_ptr<LiveAdapter>> adapter = start(config, std::move(*link));
  if (!adapter) return adapter;
  {
    const Session session = (*adapter)->enter();
    (*adapter)->port_watch_.watch(nic);
  }
  if (const auto done = (*adapter)->apply_environment(address); !done)
    return tl::unexpected(done.error());
  return adapter;
}

// The parts of an iWARP adapter.
struct LiveAdapter::StreamParts {
  std::unique_ptr<TCPLink> link{};
  std::unique_ptr<LocalPath> local{};  // nullptr: none
  std::unique_ptr<StreamOpener> opener{};
  std::unique_ptr<StreamEncryption> encryption{};  // nullptr: none here
  NICPresence* nic = nullptr;                      // the opener, if it has one
};

Expected<std::shared_ptr<LiveAdapter>> LiveAdapter::open_iwarp(
    const LocalAddress& address, const std::optional<EncryptionSettings>& encryption) {
  StreamParts parts{.opener = std::make_unique<KernelStreamOpener>(address.interface_index)};
  if (encryption) {
    Expected<std::unique_ptr<StreamEncryption>> opened = StreamEncryption::open(*encryption);
    if (!opened) return tl::unexpected(opened.error());
    parts.encryption = std::move(*opened);
  }
  Expected<std::unique_ptr<TCPLink>> link = TCPLink::open(random_u64());
  if (!link) return tl::unexpected(link.error());
  parts.link = std::move(*link);
  DeviceConfig config = config_of_iwarp(address, parts.link->slot());
  Expected<std::unique_ptr<LocalPath>> local = LocalPath::open(parts.link->slot(), config.gids);
  if (!local) return tl::unexpected(local.error());
  parts.local = std::move(*local);
  if (parts.local != nullptr) config.local = parts.local->ports();
  return start_iwarp(config, address, std::move(parts));
}

// The NIC has the sockets and the keys. Programs of functions share no memory.
Expected<std::shared_ptr<LiveAdapter>> LiveAdapter::open_iwarp_on_nic(const LocalAddress& address,
                                                                      const std::string& path) {
  Expected<std::unique_ptr<TCPLink>> link = TCPLink::open(random_u64());
  if (!link) return tl::unexpected(link.error());
  Expected<std::unique_ptr<NICStreamOpener>> opener =
      NICStreamOpener::open(path, address.all().front().to_string(), (*link)->poll());
  if (!opener) return tl::unexpected(opener.error());
  DeviceConfig config = config_of_iwarp(address, (*link)->slot());
  limit_to_function((*opener)->function(), config);
  NICStreamOpener* const nic = opener->get();
  return start_iwarp(config, address,
                     {.link = std::move(*link), .opener = std::move(*opener), .nic = nic});
}

Expected<std::shared_ptr<LiveAdapter>> LiveAdapter::start_iwarp(const DeviceConfig& config,
                                                                const LocalAddress& address,
                                                                StreamParts parts) {
  const Expected<MPAConfig> mpa = mpa_settings_from_environment();
  if (!mpa) return tl::unexpected(mpa.error());
  TCPLink& tcp = *parts.link;
  LocalPath* const local = parts.local.get();
  if (Expected<PortDirectory> ports = PortDirectory::open()) ports->forget(tcp.slot());
  Expected<std::shared_ptr<LiveAdapter>> adapter =
      start(config, std::move(parts.link), std::move(parts.local));
  if (!adapter) return adapter;
  {
    const Session session = (*adapter)->enter();
    LiveAdapter& self = **adapter;
    self.stream_side_ = std::make_unique<StreamSide>(
        self, self.device_, tcp, *mpa, std::move(parts.opener), local, std::move(parts.encryption));
    self.instruments_.use_streams(self.stream_side_.get());
    if (parts.nic != nullptr) self.port_watch_.watch(parts.nic);
  }
  if (const auto done = (*adapter)->apply_environment(address); !done)
    return tl::unexpected(done.error());
  return adapter;
}

Expected<std::shared_ptr<LiveAdapter>> LiveAdapter::open_in_fabric(const LocalAddress& address,
                                                                   const FabricPlace& place) {
  Expected<std::unique_ptr<FabricLink>> link = FabricLink::open(place, random_u64());
  if (!link) return tl::unexpected(link.error());
  if (Expected<PortDirectory> ports = PortDirectory::open()) ports->forget((*link)->slot());
  const FabricAttached& settings = (*link)->settings();
  const Expected<CongestionSettings> congestion =
      congestion_in_fabric(Rate::from_bps(settings.rate_bps), settings.clock.scale);
  if (!congestion) return tl::unexpected(congestion.error());
  const Expected<Retransmission> retransmission = retransmission_from_environment();
  if (!retransmission) return tl::unexpected(retransmission.error());
  const DeviceConfig config =
      config_in_fabric(address, (*link)->slot(), settings, *congestion, *retransmission);
  FabricLink* const fabric = link->get();
  Expected<std::shared_ptr<LiveAdapter>> adapter = start(config, std::move(*link), nullptr, fabric);
  if (!adapter) return adapter;
  if (const auto done = (*adapter)->apply_environment(address); !done)
    return tl::unexpected(done.error());
  return adapter;
}

Expected<void> LiveAdapter::apply_environment(const LocalAddress& address) {
  Expected<FaultSettings> faults = faults_from_environment();
  if (!faults) return tl::unexpected(faults.error());
  const Expected<CaptureFile*> capture = CaptureFile::of_process();
  if (!capture) return tl::unexpected(capture.error());
  {
    const Session session = enter();
    if (*capture != nullptr) instruments_.capture_to(**capture, address.interface);
    instruments_.explain_with(Explainer::from_environment());
    if (const auto done =
            instruments_.set_faults(std::move(faults->rules), faults->seed, session.real_now());
        !done)
      return tl::unexpected(done.error());
  }
  open_stats(address);
  return {};
}

}  // namespace verbena::host
