#include "cli/doctor_device.h"

#include <cerrno>
#include <cstdlib>
#include <fstream>

#include <fmt/format.h>

#include "host/adapter.h"
#include "host/doctor/port_holder.h"
#include "host/doctor/prober.h"
#include "host/network/gid_table.h"
#include "host/settings/link_kind.h"
#include "host/stats/stats_reader.h"
#include "wire/roce/icrc.h"

namespace verbena::cli {
namespace {

constexpr Duration kPatience = sec(2);
constexpr u32 kFullWindowBytes = 1 << 20;  // the most that a device uses
constexpr u64 kGoodRmemMax = 4 << 20;      // from which that follows
constexpr u32 kEthernetMTU = 1500;

std::string addresses_of(const host::LocalAddress& address) {
  std::vector<std::string> texts;
  for (const GID& gid : address.all()) texts.push_back(gid.to_string());
  return fmt::format("{}", fmt::join(texts, ", "));
}

Finding examine_interface(const host::LocalAddress& address) {
  const std::string speed = address.link_speed_mbps == 0
                                ? "speed not told"
                                : fmt::format("{} Mb/s", address.link_speed_mbps);
  return {Verdict::kOk, "interface", fmt::format("{}, {}", address.interface, speed)};
}

Finding examine_link(host::LinkKind link) {
  const bool chosen = std::getenv(host::kLinkVariable) != nullptr;
  return {Verdict::kOk, "link",
          fmt::format("{}{}", name_of(link),
                      chosen ? fmt::format(", as {} says", host::kLinkVariable) : ", the default")};
}

Finding examine_gids(const host::LocalAddress& address, host::LinkKind link) {
  std::vector<std::string> texts;
  const std::vector<GIDEntry> gids =
      host::gid_table(address, link, host::on_wire_from_environment());
  for (std::size_t i = 0; i < gids.size(); ++i)
    texts.push_back(fmt::format("{} {}{}", i, gids[i].gid.to_string(),
                                gids[i].type == GIDType::kRoCEv1 ? " (v1)" : ""));
  const std::string_view of = link == host::LinkKind::kIWARP ? "iWARP" : "RoCE v2";
  return {Verdict::kOk, "gids", fmt::format("{}, by index: {}", of, fmt::join(texts, ", "))};
}

Finding examine_mtu(const host::LocalAddress& address, MTU active) {
  const std::string text =
      fmt::format("link {}, so RoCE packets of up to {} bytes", address.mtu, bytes(active));
  if (address.mtu < kEthernetMTU)
    return {Verdict::kWarning, "mtu", text + ": small ones cost more than they need to",
            fmt::format("sudo ip link set dev {} mtu {}", address.interface, kEthernetMTU)};
  return {Verdict::kOk, "mtu", text};
}

u64 rmem_max() {
  u64 value = 0;
  std::ifstream("/proc/sys/net/core/rmem_max") >> value;
  return value;
}

std::string holder_text(const host::PortHolder& holder) {
  if (holder.processes.empty())
    return fmt::format("a socket of user {} whose process this user may not see",
                       holder.socket.user);
  const pid_t pid = holder.processes.front();
  return fmt::format("process {} ({}) of user {}", pid, host::process_name(pid),
                     holder.socket.user);
}

bool kernel_has_rxe() { return std::ifstream("/sys/module/rdma_rxe/refcnt").is_open(); }

Finding port_problem(const host::LocalAddress& address, const host::Error& error) {
  for (const GID& gid : address.all()) {
    const auto holders = host::holders_of_udp_port(gid, kRoCEv2Port);
    if (holders.empty() || error.error != EADDRINUSE) continue;
    if (holders.front().processes.empty() && kernel_has_rxe())
      return {Verdict::kProblem, "port",
              fmt::format("UDP {} of {} is taken, by the kernel's rdma_rxe", kRoCEv2Port,
                          gid.to_string()),
              "rdma link; sudo rdma link delete NAME, or choose another address: --address"};
    const pid_t pid = holders.front().processes.empty() ? 0 : holders.front().processes.front();
    return {Verdict::kProblem, "port",
            fmt::format("UDP {} of {} is taken, by {}", kRoCEv2Port, gid.to_string(),
                        holder_text(holders.front())),
            pid != 0 ? fmt::format("end it (kill {}), or choose another address: --address", pid)
                     : "sudo ss -ulpn sport = :4791 tells which; end it, or choose another "
                       "address: --address"};
  }
  if (error.error == EPERM || error.error == EACCES || error.error == EOPNOTSUPP)
    return {Verdict::kProblem, "link", error.message,
            fmt::format("{}=udp needs no privilege", host::kLinkVariable)};
  return {Verdict::kProblem, "port", error.message, "choose another address: --address ADDRESS"};
}

Finding examine_steering(const host::LocalAddress& address, host::Prober& first) {
  const auto second = host::Prober::open(address);
  if (!second)
    return {Verdict::kProblem, "steering", second.error().message,
            "end some programs that use Verbena"};
  if (first.is_steered_to(**second, kPatience))
    return {Verdict::kOk, "steering", "the BPF program brings packets to the right process"};
  return {Verdict::kProblem, "steering",
          "a packet for one of two processes on the port did not reach it",
          "is a firewall dropping UDP 4791? sudo nft list ruleset"};
}

Finding examine_exchange(const host::LocalAddress& address, host::Prober& prober) {
  const GID own = address.all().front();
  const auto result = prober.exchange({.destination = own}, kPatience);
  if (result)
    return {Verdict::kOk, "exchange",
            fmt::format("a packet to {} and its answer took {:.0f} us", own.to_string(),
                        result->round_trip.seconds() * 1e6)};
  return {Verdict::kProblem, "exchange",
          fmt::format("no packet comes back from {}", own.to_string()),
          "is a firewall dropping UDP 4791? sudo nft list ruleset"};
}

void examine_packets(const host::LocalAddress& address, Findings& findings) {
  const auto prober = host::Prober::open(address);
  if (!prober) {
    findings.push_back(port_problem(address, prober.error()));
    return;
  }
  findings.push_back(examine_steering(address, **prober));
  findings.push_back(examine_exchange(address, **prober));
}

}  // namespace

Finding judge_buffers(const BufferFacts& facts) {
  const std::string text =
      fmt::format("net.core.rmem_max {}, so a QP may have {} KiB and {} packets on their way",
                  facts.rmem_max, facts.window_bytes / 1024, facts.window_packets);
  if (facts.window_bytes >= kFullWindowBytes) return {Verdict::kOk, "buffers", text};
  return {Verdict::kWarning, "buffers", text + ", which may bound the bandwidth",
          fmt::format("sudo sysctl -w net.core.rmem_max={}", kGoodRmemMax)};
}

Findings examine_device(const host::LocalAddress& address, const std::string& why) {
  const auto link = host::link_kind_from_environment();
  if (!link)
    return {{Verdict::kProblem, "link", link.error().message, "choose one of them, or none"}};
  Findings findings = {{Verdict::kOk, "address",
                        fmt::format("{}: {}, {}", address.device_name, addresses_of(address), why)},
                       examine_interface(address),
                       examine_link(*link),
                       examine_gids(address, *link)};
  DeviceConfig config;
  {
    const auto adapter = host::Adapter::open(address);
    if (!adapter) {
      findings.push_back(port_problem(address, adapter.error()));
      return findings;
    }
    config = (*adapter)->device().config();
  }
  if (config.transport == Transport::kIWARP) return findings;  // TCP is the kernel's
  findings.push_back(examine_mtu(address, config.active_mtu));
  findings.push_back({Verdict::kOk, "port", fmt::format("UDP {} can be used", kRoCEv2Port)});
  examine_packets(address, findings);
  findings.push_back(judge_buffers({.window_bytes = config.path.window_bytes,
                                    .window_packets = config.path.window_packets,
                                    .rmem_max = rmem_max()}));
  return findings;
}

}  // namespace verbena::cli
