#include "nvmf_program/media.h"

#include <cinttypes>
#include <cstdio>
#include <functional>

#include "nvmf/memory_store.h"
#include "nvmf_program/file_store.h"

namespace verbena::nvmf_program {
namespace {

using FindMemory = std::function<Expected<application::Region>(u64 bytes)>;

Expected<std::unique_ptr<nvmf::BlockStore>> open_store(const NamespaceOptions& options,
                                                       Media& media, const FindMemory& memory) {
  if (options.file.empty()) {
    const auto region = memory(options.memory_bytes & ~((u64{1} << options.block_log2) - 1));
    if (!region) return tl::unexpected(region.error());
    media.memories.push_back(*region);
    return std::make_unique<nvmf::MemoryStore>(*region, options.block_log2,
                                               options.is_read_only
                                                   ? nvmf::MemoryStore::Protection::kReadOnly
                                                   : nvmf::MemoryStore::Protection::kWritable);
  }
  auto file = FileStore::open(options);
  if (!file) return tl::unexpected(file.error());
  if ((*file)->descriptor() >= 0) media.descriptors.push_back((*file)->descriptor());
  return std::move(*file);
}

Expected<Media> open_all(const TargetOptions& options, const FindMemory& memory) {
  Media media;
  for (const SubsystemOptions& wanted : options.subsystems) {
    auto subsystem = std::make_unique<nvmf::Subsystem>(wanted.nqn);
    for (const NamespaceOptions& space : wanted.namespaces) {
      auto store = open_store(space, media, memory);
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

void tell_files(const TargetOptions& options, const Media& media) {
  auto store = media.stores.begin();
  for (const SubsystemOptions& subsystem : options.subsystems)
    for (const NamespaceOptions& space : subsystem.namespaces) {
      const auto* const file = dynamic_cast<const FileStore*>((store++)->get());
      if (file == nullptr) continue;
      std::fprintf(stderr, "verbena nvmf: %s: %" PRIu64 " bytes, %.*s%s\n", space.file.c_str(),
                   file->bytes(), static_cast<int>(file->method().size()), file->method().data(),
                   file->is_direct() ? ", O_DIRECT" : "");
    }
}

}  // namespace

Expected<Media> Media::open(const TargetOptions& options, verbs::LiveNode& node) {
  auto media = open_all(options, [&](u64 bytes) -> Expected<application::Region> {
    const auto region =
        node.allocate(bytes, application::Content::kBytes, application::Access::kLocal);
    if (!region) return tl::unexpected(std::string("memory: there is not so much of it"));
    return *region;
  });
  if (media) tell_files(options, *media);
  return media;
}

Expected<Media> Media::open_beside(const TargetOptions& options, const Media& first) {
  auto next = first.memories.begin();
  return open_all(options, [&](u64) -> Expected<application::Region> { return *next++; });
}

}  // namespace verbena::nvmf_program
