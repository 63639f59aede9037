// SystemDefault: makes the drop-in libraries the ones that the dynamic loader finds first, for all
// programs of a system, and undoes it. The state is one file, /etc/ld.so.conf.d/00-verbena.conf:
// ld.so.conf includes the files of that folder in the order of their names, and ldconfig(8) gives
// the first folder that has a soname to the loader.
#pragma once

#include <filesystem>
#include <optional>

#include "cli/failure.h"
#include "cli/requests.h"

namespace verbena::cli {

class SystemDefault {
 public:
  // `root`: "/" or another system's root folder.
  explicit SystemDefault(std::filesystem::path root) : root_(std::move(root)) {}

  // The folder that comes first now; nullopt when the system has its own default.
  [[nodiscard]] std::optional<std::filesystem::path> folder() const;
  // Refuses a folder that other users can write to: all programs would load what they put there.
  [[nodiscard]] Expected<void> set_folder(const std::filesystem::path& folder) const;
  [[nodiscard]] Expected<void> clear() const;

 private:
  [[nodiscard]] std::filesystem::path file() const;

  std::filesystem::path root_;
};

// `verbena default`: returns the text to print. Runs ldconfig(8) after a change.
[[nodiscard]] Expected<std::string> system_default(const DefaultRequest& request);

}  // namespace verbena::cli
