#include "jobs/storage/storage_section.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "fabric/scenario/units.h"

namespace verbena::jobs {
namespace {

using fabric::NodeIndex;
using fabric::Plan;

constexpr u32 kMostServers = 4096;

// "2GBps" and "2GB/s" are bytes; "16Gbps" as for links.
std::optional<Rate> read_rate_of(std::string_view text) {
  for (const std::string_view end : {"ps", "/s"})
    if (text.ends_with(end) && text.size() > 2 && text[text.size() - 3] == 'B') {
      const std::optional<u64> bytes = fabric::bytes_of(text.substr(0, text.size() - 2));
      return bytes ? std::optional(Rate::from_bps(*bytes * 8)) : std::nullopt;
    }
  return fabric::rate_of(text);
}

// Linked as that host is.
NodeIndex add_server_beside(Plan& plan, NodeIndex host, std::string name) {
  const NodeIndex server = plan.topology.add_host();
  plan.names.push_back(std::move(name));
  const std::size_t links = plan.topology.links.size();
  for (std::size_t i = 0; i < links; ++i) {
    const fabric::TopologyLink link = plan.topology.links[i];
    if (link.a == host || link.b == host)
      plan.topology.join(server, link.a == host ? link.b : link.a, link.config);
  }
  return server;
}

void add_servers(u64 count, Job& job) {
  const std::size_t hosts = job.plan.hosts.size();
  for (u64 i = 0; i < count; ++i)
    job.storage->servers.push_back(add_server_beside(job.plan, job.plan.hosts[i * hosts / count],
                                                     fmt::format("storage{}", i)));
}

void read_named_servers(fabric::Section& section, const std::vector<std::string>& names, Job& job) {
  for (const std::string& name : names) {
    const std::optional<NodeIndex> host = job.plan.host_named(name);
    if (!host)
      section.complain("servers", fmt::format("there is no host {}", name));
    else if (std::ranges::find(job.cluster.nics, *host) != job.cluster.nics.end())
      section.complain("servers", fmt::format("{} is a GPU's; `gpus` leaves hosts out", name));
    else
      job.storage->servers.push_back(*host);
  }
}

// A number, or names of hosts.
void read_servers(fabric::Section& section, Job& job) {
  const std::vector<std::string> words = section.texts("servers");
  if (words.size() > 1) return read_named_servers(section, words, job);
  u64 count = 1;
  const std::string word = words.empty() ? "1" : words[0];
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), count);
  if (error != std::errc() || end != word.data() + word.size())
    return read_named_servers(section, words, job);
  if (count == 0 || count > kMostServers)
    return section.complain("servers", fmt::format("1 to {}", kMostServers));
  add_servers(count, job);
}

// Returns false if the section asks for no reads.
bool read_rate(fabric::Section& section, StorageConfig& storage) {
  const std::string text = section.text("read", "");
  if (text.empty()) return true;
  if (text == "0" || text == "off") return false;
  storage.read = read_rate_of(text);
  if (!storage.read || *storage.read < mbps(1) || *storage.read > gbps(10'000)) {
    section.complain("read", fmt::format("'{}' is no rate of 1Mbps .. 10Tbps", text));
    storage.read = gbps(1);
  }
  return true;
}

}  // namespace

void read_storage(fabric::Section section, Job& job) {
  StorageConfig& storage = job.storage.emplace();
  const bool is_asked_for = read_rate(section, storage);
  storage.amount = section.bytes("amount", storage.amount, 1);
  storage.block_bytes = static_cast<u32>(
      std::min<u64>(section.bytes("block", storage.block_bytes, 512), u64{1} << 30));
  storage.queue_depth = static_cast<u32>(section.count("queue_depth", storage.queue_depth, 1, 256));
  storage.priority = static_cast<u8>(section.count("priority", job.run.priority, 0, 7));
  storage.medium = section.duration("medium", {});
  read_servers(section, job);
  if (job.plan.topology.nodes > fabric::kMaxNodes)
    section.complain("servers", fmt::format("there may be {} nodes in all", fabric::kMaxNodes));
  if (job.method != Method::kPackets)
    section.complain("", "reads beside a job need packets: method: packets");
  section.done();
  if (!is_asked_for || storage.servers.empty()) job.storage.reset();
}

}  // namespace verbena::jobs
