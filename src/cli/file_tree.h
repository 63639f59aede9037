// The folder that `verbena run` makes for the files of the devices (device_files.h), and takes away
// when nobody can use it any more.
#pragma once

#include <filesystem>
#include <vector>

#include "cli/device_files.h"
#include "cli/failure.h"

namespace verbena::cli {

// A new folder in `parent`, which others may read and nobody else may write.
[[nodiscard]] Expected<std::filesystem::path> make_tree_folder(const std::filesystem::path& parent);

// Writes the files below it: FOLDER/sys/class/infiniband/...
[[nodiscard]] Expected<void> write_file_tree(const std::filesystem::path& folder,
                                             const std::vector<DeviceFile>& files);

// Has the folder removed when this process, what it becomes by exec(), and all that they start have
// ended. They hold a descriptor by which a process of its own in the background knows.
[[nodiscard]] Expected<void> remove_when_unused(const std::filesystem::path& folder);

}  // namespace verbena::cli
