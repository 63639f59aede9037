// ImportedRegion: a region of another process of this host, as memory that a region of ours is made
// of. ibv_import_mr(3).
#pragma once

#include "host/local/process_memory.h"
#include "memory/imported_memory.h"

namespace verbena::host {

class ImportedRegion final : public ImportedMemory {
 public:
  ImportedRegion(std::shared_ptr<ProcessMemory> exporter, const PublishedKey& region)
      : exporter_(std::move(exporter)), region_(region) {}

  [[nodiscard]] bool read(u64 offset, MutableBytes to) override {
    return exporter_->read(region_, offset, to);
  }
  [[nodiscard]] bool write(u64 offset, Bytes from) override {
    return exporter_->write(region_, offset, from);
  }

 private:
  const std::shared_ptr<ProcessMemory> exporter_;
  const PublishedKey region_;
};

}  // namespace verbena::host
