// Media: the stores and subsystems of a target, as its options name them.
#pragma once

#include <memory>
#include <vector>

#include "nvmf/subsystem.h"
#include "nvmf_program/options.h"
#include "verbs/live_node.h"

namespace verbena::nvmf_program {

struct Media {
  std::vector<std::unique_ptr<nvmf::BlockStore>> stores;
  std::vector<std::unique_ptr<nvmf::Subsystem>> subsystems;
  std::vector<application::Region> memories;  // of the memory namespaces, in order
  std::vector<int> descriptors;               // readable when requests of stores have ended

  // Allocates memory on `node`, opens files, and tells about them.
  [[nodiscard]] static Expected<Media> open(const TargetOptions& options, verbs::LiveNode& node);
  // The same namespaces for another thread: with the memory of `first`, and files opened again.
  [[nodiscard]] static Expected<Media> open_beside(const TargetOptions& options,
                                                   const Media& first);
};

}  // namespace verbena::nvmf_program
