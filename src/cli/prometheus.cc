#include "cli/prometheus.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "cli/qp_text.h"
#include "device/port/counter_table.h"

namespace verbena::cli {
namespace {

// A label's value: \, " and the end of a line are escaped.
std::string escaped(std::string_view value) {
  std::string out;
  for (const char c : value) {
    if (c == '\\' || c == '"') out += '\\';
    out += c == '\n' ? std::string("\\n") : std::string(1, c);
  }
  return out;
}

// Lines of one name together, names in the order of their first line.
class Exposition {
 public:
  void add(const std::string& name, std::string_view type, std::string_view help,
           const std::string& labels, u64 value) {
    auto metric = std::ranges::find(metrics_, name, &Metric::name);
    if (metric == metrics_.end()) {
      metrics_.push_back(
          {name, fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type)});
      metric = metrics_.end() - 1;
    }
    metric->text += labels.empty() ? fmt::format("{} {}\n", name, value)
                                   : fmt::format("{}{{{}}} {}\n", name, labels, value);
  }
  [[nodiscard]] std::string text() const {
    std::string all;
    for (const Metric& metric : metrics_) all += metric.text;
    return all;
  }

 private:
  struct Metric {
    std::string name, text;
  };
  std::vector<Metric> metrics_;
};

std::string labels_of(const DeviceStats& device) {
  return fmt::format(R"(device="{}",pid="{}",comm="{}")",
                     escaped(device.observed.adapter.device.data()), device.observed.pid,
                     escaped(device.command));
}

// `of`: "qp" or "peer".
void add_traffic(Exposition& out, std::string_view of, const std::string& labels,
                 const QPTraffic& traffic, const EngineCounters& transport) {
  const auto add = [&](std::string_view name, std::string_view help, u64 value) {
    out.add(fmt::format("verbena_{}_{}_total", of, name), "counter", help, labels, value);
  };
  add("sent_packets", "packets sent", traffic.sent_packets);
  add("sent_bytes", "bytes sent, BTH to ICRC", traffic.sent_bytes);
  add("received_packets", "packets received", traffic.received_packets);
  add("received_bytes", "bytes received, BTH to ICRC", traffic.received_bytes);
  for (const NamedEngineCounter& counter : engine_counter_table())
    add(counter.name, counter.meaning, transport.*counter.member);
}

void add_subsystem(Exposition& out, const std::string& labels,
                   const nvmf::SubsystemStats& subsystem) {
  const nvmf::CommandCounts& counts = subsystem.counts;
  out.add("verbena_nvme_hosts", "gauge", "hosts connected to the subsystem", labels,
          subsystem.hosts);
  const auto add = [&](std::string_view name, std::string_view help, u64 value) {
    out.add(fmt::format("verbena_nvme_{}_total", name), "counter", help, labels, value);
  };
  add("reads", "Read commands that have succeeded", counts.reads);
  add("read_bytes", "bytes read", counts.bytes_read);
  add("writes", "Write commands that have succeeded", counts.writes);
  add("written_bytes", "bytes written", counts.bytes_written);
  add("errors", "commands that have failed", counts.errors);
}

void add_device(Exposition& out, const DeviceStats& device) {
  const host::ObservedAdapter& observed = device.observed;
  const std::string labels = labels_of(device);
  out.add("verbena_qps", "gauge", "queue pairs", labels, observed.adapter.qp_count);
  for_each_counter(observed.adapter.counters, [&](std::string_view name, CounterFolder,
                                                  std::string_view meaning, u64 value) {
    if (name == "lifespan") return;  // a setting of sysfs
    out.add(fmt::format("verbena_{}_total", name), "counter", meaning, labels, value);
  });
  for (std::size_t i = 0; i < std::min(observed.qps.size(), kMaxQPs); ++i) {
    const host::QPSnapshot& qp = observed.qps[i];
    add_traffic(out, "qp",
                fmt::format(R"({},qp="{}",peer="{}")", labels, qpn_text(qp.qpn), peer_text(qp)),
                qp.traffic, qp.transport);
  }
  const std::vector<PeerStats> peers = peers_of(observed.qps);
  for (std::size_t i = 0; i < std::min(peers.size(), kMaxPeers); ++i)
    add_traffic(out, "peer", fmt::format(R"({},peer="{}")", labels, peers[i].peer.to_string()),
                peers[i].traffic, peers[i].transport);
  for (const nvmf::SubsystemStats& subsystem : device.subsystems)
    add_subsystem(out, fmt::format(R"({},subsystem="{}")", labels, escaped(subsystem.nqn)),
                  subsystem);
}

}  // namespace

std::string to_prometheus(const StatsReport& report) {
  Exposition out;
  out.add("verbena_devices", "gauge", "devices of running programs", "", report.size());
  for (const DeviceStats& device : report) add_device(out, device);
  return out.text();
}

}  // namespace verbena::cli
