// verbena nvmf discover, and connect: what a target tells about itself.
#include <cinttypes>
#include <cstdio>

#include "nvmf_program/commands.h"
#include "nvmf_program/host_session.h"
#include "wire/nvme/discovery.h"

namespace verbena::nvmf_program {
namespace {

constexpr u8 kDiscoveryLog = 0x70;
constexpr u32 kLogBytes = 256 * 1024;  // at a time
constexpr u64 kMostRecords = 100'000;

// NQNs and addresses of others may have any bytes.
std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const bool is_plain = c >= ' ' && c < 0x7f && c != '"' && c != '\\';
    out += is_plain ? c : '?';
  }
  return out + "\"";
}

const char* name_of(nvme::DiscoveryEntry::Transport transport) {
  switch (transport) {
    case nvme::DiscoveryEntry::Transport::kRDMA: return "rdma";
    case nvme::DiscoveryEntry::Transport::kFibreChannel: return "fc";
    case nvme::DiscoveryEntry::Transport::kTCP: return "tcp";
  }
  return "other";
}

const char* name_of(nvme::DiscoveryEntry::Kind kind) {
  switch (kind) {
    case nvme::DiscoveryEntry::Kind::kReferral: return "referral";
    case nvme::DiscoveryEntry::Kind::kNVM: return "nvme";
    case nvme::DiscoveryEntry::Kind::kThisDiscovery: return "discovery";
  }
  return "other";
}

Expected<std::vector<nvme::DiscoveryEntry>> read_log(HostSession& session,
                                                     const application::Region& memory) {
  constexpr u32 kHeader = nvme::DiscoveryHeader::kSize, kEntry = nvme::DiscoveryEntry::kSize;
  if (const auto read = session.get_log(kDiscoveryLog, 0, slice_of(memory, 0, kHeader)); !read)
    return tl::unexpected(read.error());
  const auto header = nvme::DiscoveryHeader::decode(memory.bytes.first<kHeader>());
  if (header.records > kMostRecords)
    return tl::unexpected(std::string("the target tells of too many records"));
  std::vector<nvme::DiscoveryEntry> entries;
  while (entries.size() < header.records) {
    const u64 left = (header.records - entries.size()) * kEntry;
    const u32 bytes = static_cast<u32>(std::min<u64>(left, kLogBytes));
    const u64 offset = kHeader + entries.size() * kEntry;
    if (const auto read = session.get_log(kDiscoveryLog, offset, slice_of(memory, 0, bytes)); !read)
      return tl::unexpected(read.error());
    for (u32 at = 0; at < bytes; at += kEntry)
      entries.push_back(nvme::DiscoveryEntry::decode(
          std::span<const u8, kEntry>(memory.bytes.data() + at, kEntry)));
  }
  return entries;
}

void print(const std::vector<nvme::DiscoveryEntry>& entries, bool json) {
  if (json) std::printf("{\"records\": [");
  const char* separator = "";
  for (const nvme::DiscoveryEntry& e : entries) {
    if (json)
      std::printf(
          "%s{\"trtype\": \"%s\", \"subtype\": \"%s\", \"traddr\": %s, \"trsvcid\": %s, "
          "\"subnqn\": %s, \"portid\": %u}",
          std::exchange(separator, ", "), name_of(e.transport), name_of(e.kind),
          quoted(e.address).c_str(), quoted(e.service).c_str(), quoted(e.subsystem_nqn).c_str(),
          e.port_id);
    else
      std::printf("%s %s address %s port %s\n  subsystem %s\n", name_of(e.transport),
                  name_of(e.kind), quoted(e.address).c_str(), quoted(e.service).c_str(),
                  quoted(e.subsystem_nqn).c_str());
  }
  if (json) std::printf("]}\n");
  if (!json && entries.empty()) std::printf("no subsystem\n");
  std::fflush(stdout);
}

void print(nvmf::Initiator& initiator, bool json) {
  const nvme::IdentifyController& c = initiator.controller();
  if (json)
    std::printf(
        "{\"subnqn\": %s, \"cntlid\": %u, \"sn\": %s, \"mn\": %s, \"fr\": %s, "
        "\"queues\": %u, \"mdts\": %u, \"namespaces\": [",
        quoted(c.subsystem_nqn).c_str(), c.controller_id, quoted(c.serial).c_str(),
        quoted(c.model).c_str(), quoted(c.firmware).c_str(), initiator.queues() - 1,
        initiator.max_transfer_bytes());
  else
    std::printf("subsystem %s\ncontroller %u, model %s, serial %s, firmware %s, %u I/O queues\n",
                quoted(c.subsystem_nqn).c_str(), c.controller_id, quoted(c.model).c_str(),
                quoted(c.serial).c_str(), quoted(c.firmware).c_str(), initiator.queues() - 1);
  const char* separator = "";
  for (const auto& [id, space] : initiator.namespaces()) {
    const u64 bytes = space.blocks << space.block_log2;
    if (json)
      std::printf("%s{\"nsid\": %u, \"blocks\": %" PRIu64 ", \"block\": %u, \"bytes\": %" PRIu64
                  ", \"readonly\": %s}",
                  std::exchange(separator, ", "), id, space.blocks, 1u << space.block_log2, bytes,
                  space.is_read_only ? "true" : "false");
    else
      std::printf("namespace %u: %" PRIu64 " blocks of %u, %" PRIu64 " bytes%s\n", id, space.blocks,
                  1u << space.block_log2, bytes, space.is_read_only ? ", read only" : "");
  }
  if (json) std::printf("]}\n");
  std::fflush(stdout);
}

}  // namespace

// Events of a persistent discovery controller are armed again by reading the log.
Expected<void> discover(const DiscoverOptions& options) {
  const StopDescriptor stop;
  HostOptions host = options.host;
  if (!options.is_persistent) host.loss_timeout_s = 0;
  auto session = HostSession::open(host, &stop);
  if (!session) return tl::unexpected(session.error());
  const auto memory = (*session)->node().allocate(kLogBytes, application::Content::kBytes,
                                                  application::Access::kRemoteReadWrite);
  if (!memory) return tl::unexpected(std::string("no memory for the log page"));
  while (true) {
    const auto entries = read_log(**session, *memory);
    if (!entries) return tl::unexpected(entries.error());
    print(*entries, options.json);
    if (!options.is_persistent) break;
    const u64 reconnects = (*session)->initiator().reconnects();
    const bool has_changed = (*session)->run_until([&] {
      return (*session)->initiator().poll_event() ||
             (*session)->initiator().reconnects() != reconnects;
    });
    if (!has_changed) break;
  }
  (*session)->close();
  return {};
}

Expected<void> connect(const ConnectOptions& options) {
  const StopDescriptor stop;
  HostOptions host = options.host;
  if (!options.holds) host.loss_timeout_s = 0;
  auto session = HostSession::open(host, &stop);
  if (!session) return tl::unexpected(session.error());
  print((*session)->initiator(), options.json);
  if (options.holds) {
    const bool is_over = (*session)->run_until([] { return false; });
    if (!is_over && !(*session)->is_stopped())
      return tl::unexpected((*session)->initiator().failure());
  }
  (*session)->close();
  return {};
}

}  // namespace verbena::nvmf_program
