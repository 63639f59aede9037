// verbena nvmf target.
#include <cinttypes>
#include <cstdio>
#include <memory>

#include "nvmf/memory_store.h"
#include "nvmf/target.h"
#include "nvmf_program/commands.h"
#include "nvmf_program/file_store.h"
#include "nvmf_program/openssl_cryptography.h"
#include "nvmf_program/stats_service.h"
#include "nvmf_program/stop_descriptor.h"
#include "verbs/live_node.h"

namespace verbena::nvmf_program {
namespace {

constexpr Duration kWait = sec(1);

// The stores and subsystems of a target, and what its main loop waits for.
struct Media {
  std::vector<std::unique_ptr<nvmf::BlockStore>> stores;
  std::vector<std::unique_ptr<nvmf::Subsystem>> subsystems;
  std::vector<int> descriptors;
};

Expected<std::unique_ptr<nvmf::BlockStore>> open_store(const NamespaceOptions& options,
                                                       verbs::LiveNode& node, Media& media) {
  if (options.file.empty()) {
    const u64 octets = options.memory_octets & ~((u64{1} << options.block_log2) - 1);
    const auto region =
        node.allocate(octets, application::Content::kBytes, application::Access::kLocal);
    if (!region) return tl::unexpected(std::string("memory: there is not so much of it"));
    return std::make_unique<nvmf::MemoryStore>(*region, options.block_log2);
  }
  auto file = FileStore::open(options);
  if (!file) return tl::unexpected(file.error());
  if ((*file)->descriptor() >= 0) media.descriptors.push_back((*file)->descriptor());
  std::fprintf(stderr, "verbena nvmf: %s: %" PRIu64 " octets, %.*s%s\n", options.file.c_str(),
               (*file)->octets(), static_cast<int>((*file)->method().size()),
               (*file)->method().data(), (*file)->is_direct() ? ", O_DIRECT" : "");
  return std::move(*file);
}

Expected<Media> open_media(const TargetOptions& options, verbs::LiveNode& node) {
  Media media;
  for (const SubsystemOptions& wanted : options.subsystems) {
    auto subsystem = std::make_unique<nvmf::Subsystem>(wanted.nqn);
    for (const NamespaceOptions& space : wanted.namespaces) {
      auto store = open_store(space, node, media);
      if (!store) return tl::unexpected(store.error());
      media.stores.push_back(std::move(*store));
      subsystem->add_namespace(*media.stores.back());
    }
    for (const std::string& host : wanted.hosts) subsystem->allow_host(host);
    for (const auto& [host, key] : wanted.host_keys)
      subsystem->require_authentication(host, {key, wanted.controller_key});
    media.subsystems.push_back(std::move(subsystem));
  }
  return media;
}

void run_until_stopped(verbs::LiveNode& node, nvmf::Target& target, const Media& media,
                       const StopDescriptor& stop, bool polls) {
  const StatsService statistics;
  std::vector<int> descriptors = media.descriptors;
  descriptors.push_back(stop.fd());
  if (statistics.descriptor() >= 0) descriptors.push_back(statistics.descriptor());
  while (!stop.take()) {
    if (const int question = statistics.take_question(); question >= 0)
      StatsService::answer(question, target.stats());
    constexpr u32 kRoundsPerLook = 1024;  // a look at the descriptors is system calls
    bool is_readable = false;
    for (u32 round = 0; round < kRoundsPerLook && !is_readable; ++round) {
      if (polls)
        node.spin();
      else
        is_readable = node.wait(kWait, descriptors);
      target.on_ready();
    }
  }
}

}  // namespace

Expected<void> serve(const TargetOptions& options) {
  const StopDescriptor stop;
  auto node = verbs::LiveNode::open_local(options.listen);
  if (!node) return tl::unexpected(node.error());
  auto media = open_media(options, **node);
  if (!media) return tl::unexpected(media.error());
  nvmf::TargetConfig config;
  config.listen = options.listen;
  config.address_text = options.listen.ip.to_string();
  config.limits.max_queue_entries = options.queue_entries;
  config.limits.in_capsule_octets = options.in_capsule_octets;
  OpenSSLCryptography cryptography;
  config.cryptography = &cryptography;
  config.authentication = options.authentication;
  nvmf::Target target(**node, config);
  for (const auto& subsystem : media->subsystems) target.add_subsystem(*subsystem);
  if (target.start() != Status::kOk)
    return tl::unexpected("cannot listen on " + config.address_text + " port " +
                          std::to_string(options.listen.port) + ": is it in use?");
  std::printf("listening on %s port %u\n", config.address_text.c_str(), options.listen.port);
  std::fflush(stdout);
  run_until_stopped(**node, target, *media, stop, options.polls);

  target.drain();
  const Time limit = (*node)->now() + us(static_cast<i64>(options.drain_s * 1e6));
  while (target.queues() > 0 && (*node)->now() < limit && !stop.take()) {
    (*node)->wait(ms(10), media->descriptors);
    target.on_ready();
  }
  const nvmf::TargetCounters& c = target.counters();
  std::printf("connections %" PRIu64 ", refused %" PRIu64 ", commands %" PRIu64 ", errors %" PRIu64
              ", keep-alive expirations %" PRIu64 ", octets read %" PRIu64 ", written %" PRIu64
              "\n",
              c.connections, c.refused_connections, c.commands, c.errors, c.keep_alive_expirations,
              c.octets_read, c.octets_written);
  return {};
}

}  // namespace verbena::nvmf_program
