#include "cli/stats_report.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/qp_text.h"
#include "device/port/counter_table.h"
#include "transport/qp_state_name.h"

namespace verbena::cli {
namespace {

using nlohmann::ordered_json;

// --- text

void add_counters(std::string& text, const DeviceStats& now, const DeviceStats* before) {
  const double seconds = seconds_between(before, now);
  std::vector<u64> earlier;
  if (seconds > 0)
    for_each_counter(before->observed.adapter.counters,
                     [&](auto, auto, auto, u64 value) { earlier.push_back(value); });
  auto at = earlier.begin();
  std::optional<CounterFolder> folder;
  for_each_counter(
      now.observed.adapter.counters, [&](std::string_view name, CounterFolder in, auto, u64 value) {
        if (folder != in) text += fmt::format("  {}\n", name_of(in));
        folder = in;
        text += fmt::format("    {:<34}{:>20}", name, value);
        if (seconds > 0)
          text += fmt::format("{:>16.1f}/s", static_cast<double>(value - *at++) / seconds);
        text += "\n";
      });
}

// Returns the columns that rows of QPs and rows of peers have in common.
std::string numbers_text(const QPTraffic& traffic, const EngineCounters& transport) {
  return fmt::format("{:>12} {:>16} {:>12} {:>16} {:>9} {:>6} {:>8} {:>6}", traffic.sent_packets,
                     traffic.sent_bytes, traffic.received_packets, traffic.received_bytes,
                     transport.retransmitted_packets, transport.rnr_nak_retry_err,
                     transport.local_ack_timeout_err,
                     transport.req_cqe_error + transport.resp_cqe_error);
}

constexpr std::string_view kNumbersTitle =
    "     tx_pkts         tx_bytes      rx_pkts         rx_bytes   retrans    rnr  timeout errors";

void add_qps(std::string& text, const std::vector<host::QPSnapshot>& qps) {
  if (qps.empty()) return;
  text +=
      fmt::format("  {:<9} {:<7} {:<5} {:<26} {}\n", "qp", "type", "state", "peer", kNumbersTitle);
  for (const host::QPSnapshot& qp : qps) {
    const std::string peer =
        qp.peer.is_zero() ? "-" : fmt::format("{} {}", peer_text(qp), qpn_text(qp.dest_qpn));
    text += fmt::format("  {:<9} {:<7} {:<5} {:<26} {}\n", qpn_text(qp.qpn), text_of(qp.type),
                        verbs_name_of(qp.state), peer, numbers_text(qp.traffic, qp.transport));
  }
}

void add_peers(std::string& text, const std::vector<PeerStats>& peers) {
  if (peers.empty()) return;
  text += fmt::format("  {:<9} {:<40} {}\n", "qps", "all with the peer", kNumbersTitle);
  for (const PeerStats& peer : peers)
    text += fmt::format("  {:<9} {:<40} {}\n", peer.qp_count, peer.peer.to_string(),
                        numbers_text(peer.traffic, peer.transport));
}

void add_subsystems(std::string& text, const std::vector<nvmf::SubsystemStats>& subsystems) {
  if (subsystems.empty()) return;
  text += fmt::format("  {:<40} {:>6} {:>12} {:>16} {:>12} {:>16} {:>8}\n", "NVMe subsystem",
                      "hosts", "reads", "bytes_read", "writes", "bytes_written", "errors");
  for (const auto& [nqn, counts, hosts] : subsystems)
    text +=
        fmt::format("  {:<40} {:>6} {:>12} {:>16} {:>12} {:>16} {:>8}\n", nqn, hosts, counts.reads,
                    counts.bytes_read, counts.writes, counts.bytes_written, counts.errors);
}

// --- JSON

ordered_json json_of(const nvmf::SubsystemStats& subsystem) {
  const nvmf::CommandCounts& counts = subsystem.counts;
  return {{"nqn", subsystem.nqn},    {"hosts", subsystem.hosts},
          {"reads", counts.reads},   {"bytes_read", counts.bytes_read},
          {"writes", counts.writes}, {"bytes_written", counts.bytes_written},
          {"errors", counts.errors}};
}

ordered_json json_of(const QPTraffic& traffic) {
  return {{"sent_packets", traffic.sent_packets},
          {"sent_bytes", traffic.sent_bytes},
          {"received_packets", traffic.received_packets},
          {"received_bytes", traffic.received_bytes}};
}

ordered_json json_of(const EngineCounters& transport) {
  ordered_json json = ordered_json::object();
  for (const NamedEngineCounter& counter : engine_counter_table())
    json[std::string(counter.name)] = transport.*counter.member;
  return json;
}

ordered_json json_of(const host::QPSnapshot& qp) {
  ordered_json json = {
      {"qpn", qp.qpn.value}, {"type", text_of(qp.type)}, {"state", verbs_name_of(qp.state)}};
  if (!qp.peer.is_zero()) {
    json["peer"] = qp.peer.to_string();
    json["dest_qpn"] = qp.dest_qpn.value;
  }
  json.update(json_of(qp.traffic));
  json["hw_counters"] = json_of(qp.transport);
  return json;
}

ordered_json json_of(const PeerStats& peer) {
  ordered_json json = {{"peer", peer.peer.to_string()}, {"qp_count", peer.qp_count}};
  json.update(json_of(peer.traffic));
  json["hw_counters"] = json_of(peer.transport);
  return json;
}

ordered_json json_of(const host::LinkCounters& link) {
  return {{"sent_frames", link.sent_frames},
          {"sent_bursts", link.sent_bursts},
          {"send_dropped", link.send_dropped},
          {"received_frames", link.received_frames},
          {"received_datagrams", link.received_datagrams},
          {"receive_dropped", link.receive_dropped},
          {"handed_on", link.handed_on},
          {"taken_over", link.taken_over},
          {"encrypted", link.encrypted},
          {"decrypted", link.decrypted},
          {"refused_unencrypted", link.refused_unencrypted},
          {"refused_spi", link.refused_spi},
          {"refused_source", link.refused_source},
          {"refused_icv", link.refused_icv},
          {"refused_replay", link.refused_replay},
          {"refused_vni", link.refused_vni},
          {"refused_vlan", link.refused_vlan},
          {"keys_agreed", link.keys_agreed},
          {"keys_issued", link.keys_issued},
          {"key_failures", link.key_failures},
          {"key_refusals", link.key_refusals}};
}

ordered_json json_of(const DeviceStats& device);

template <typename T>
ordered_json array_of(const std::vector<T>& items) {
  ordered_json array = ordered_json::array();
  for (const T& item : items) array.push_back(json_of(item));
  return array;
}

ordered_json json_of(const DeviceStats& device) {
  const host::ObservedAdapter& observed = device.observed;
  ordered_json json = {{"device", observed.adapter.device.data()},
                       {"interface", observed.adapter.interface.data()},
                       {"addresses", ordered_json::array()},
                       {"pid", observed.pid},
                       {"comm", device.command},
                       {"uid", observed.name.user}};
  for (const GID& gid : {observed.adapter.ipv4, observed.adapter.ipv6})
    if (!gid.is_zero()) json["addresses"].push_back(gid.to_string());
  for_each_counter(observed.adapter.counters,
                   [&](std::string_view name, CounterFolder folder, auto, u64 value) {
                     json[std::string(name_of(folder))][std::string(name)] = value;
                   });
  json["link"] = json_of(observed.adapter.link);
  json["qps"] = array_of(observed.qps);
  json["peers"] = array_of(peers_of(observed.qps));
  if (!device.subsystems.empty()) json["nvme_subsystems"] = array_of(device.subsystems);
  return json;
}

}  // namespace

std::vector<PeerStats> peers_of(const std::vector<host::QPSnapshot>& qps) {
  std::vector<PeerStats> peers;
  for (const host::QPSnapshot& qp : qps) {
    if (qp.peer.is_zero()) continue;
    auto peer = std::ranges::find(peers, qp.peer, &PeerStats::peer);
    if (peer == peers.end())
      peer = peers.insert(peers.end(), {.peer = qp.peer, .traffic = {}, .transport = {}});
    ++peer->qp_count;
    peer->traffic += qp.traffic;
    add(peer->transport, qp.transport);
  }
  return peers;
}

const DeviceStats* find_same(const StatsReport& report, const DeviceStats& device) {
  const auto same = std::ranges::find_if(report, [&](const DeviceStats& other) {
    return other.observed.pid == device.observed.pid && other.observed.name == device.observed.name;
  });
  return same == report.end() ? nullptr : &*same;
}

const host::QPSnapshot& find_same(const DeviceStats* before, const host::QPSnapshot& qp) {
  static const host::QPSnapshot none;
  if (before == nullptr) return none;
  const auto& qps = before->observed.qps;  // by number
  const auto same = std::ranges::lower_bound(qps, qp.qpn.value, {},
                                             [](const host::QPSnapshot& q) { return q.qpn.value; });
  const bool found = same != qps.end() && same->qpn == qp.qpn &&
                     same->traffic.sent_packets <= qp.traffic.sent_packets &&
                     same->traffic.received_packets <= qp.traffic.received_packets;
  return found ? *same : none;
}

double seconds_between(const DeviceStats* before, const DeviceStats& now) {
  if (before == nullptr) return 0;
  return static_cast<double>(now.observed.adapter.taken_ns - before->observed.adapter.taken_ns) *
         1e-9;
}

std::string addresses_text(const host::AdapterSnapshot& adapter) {
  std::vector<std::string> texts;
  for (const GID& gid : {adapter.ipv4, adapter.ipv6})
    if (!gid.is_zero()) texts.push_back(gid.to_string());
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string to_text(const StatsReport& now, const StatsReport* before) {
  if (now.empty()) return "no running program uses Verbena\n";
  std::string text;
  for (const DeviceStats& device : now) {
    const host::AdapterSnapshot& adapter = device.observed.adapter;
    text += fmt::format("{}  {}  {}  process {} ({})\n", adapter.device.data(),
                        adapter.interface.data(), addresses_text(adapter), device.observed.pid,
                        device.command);
    add_counters(text, device, before == nullptr ? nullptr : find_same(*before, device));
    add_qps(text, device.observed.qps);
    add_peers(text, peers_of(device.observed.qps));
    add_subsystems(text, device.subsystems);
  }
  return text;
}

std::string to_json(const StatsReport& now, int indent) {
  return array_of(now).dump(indent, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace verbena::cli
