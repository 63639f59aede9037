#include "cli/program.h"

#include <elf.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>

#include <fmt/format.h>

#include "base/types.h"

namespace verbena::cli {
namespace {

namespace fs = std::filesystem;

// Why the file cannot be executed; 0: it can, ENOENT: it is not there.
int execution_error(const fs::path& file) {
  struct stat status {};
  if (stat(file.c_str(), &status) != 0) return errno;
  if (S_ISDIR(status.st_mode)) return EISDIR;
  return access(file.c_str(), X_OK) == 0 ? 0 : errno;
}

tl::unexpected<Failure> cannot_execute(const fs::path& file, int error) {
  return failure(kExitNotExecutable,
                 fmt::format("cannot execute {}: {}", file.string(), std::strerror(error)));
}

bool gains_privilege(const fs::path& program) {
  struct stat status {};
  if (stat(program.c_str(), &status) != 0) return false;
  if ((status.st_mode & S_ISUID) != 0 && status.st_uid != geteuid()) return true;
  if ((status.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) && status.st_gid != getegid())
    return true;
  return geteuid() != 0 && getxattr(program.c_str(), "security.capability", nullptr, 0) > 0;
}

constexpr u8 own_class() { return sizeof(void*) == 8 ? ELFCLASS64 : ELFCLASS32; }

// Returns nullopt if the file ends before the value does.
template <typename T>
std::optional<T> read_at(std::ifstream& file, std::size_t offset) {
  T value;
  file.seekg(static_cast<std::streamoff>(offset));
  if (!file.read(reinterpret_cast<char*>(&value), sizeof(value))) return std::nullopt;
  return value;
}

std::optional<u16> own_machine() {
  std::ifstream self("/proc/self/exe", std::ios::binary);
  const auto header = read_at<Elf64_Ehdr>(self, 0);  // e_machine lies alike in both classes
  return header ? std::optional<u16>(header->e_machine) : std::nullopt;
}

bool names_an_interpreter(std::ifstream& file, const Elf64_Ehdr& header) {
  for (std::size_t i = 0; i < header.e_phnum; ++i) {
    const auto segment = read_at<Elf64_Phdr>(file, header.e_phoff + i * header.e_phentsize);
    if (!segment) return true;  // odd; the kernel will say what it thinks of it
    if (segment->p_type == PT_INTERP) return true;
  }
  return false;
}

}  // namespace

Expected<fs::path> find_program(const std::string& name, const std::string& search_path) {
  if (name.find('/') != std::string::npos) {
    const int error = execution_error(name);
    if (error == 0) return name;
    if (error != ENOENT) return cannot_execute(name, error);
    return failure(kExitNotFound, fmt::format("{}: no such file", name));
  }
  std::optional<std::pair<fs::path, int>> refused;
  std::istringstream folders(search_path);
  for (std::string folder; !name.empty() && std::getline(folders, folder, ':');) {
    const fs::path file = fs::path(folder.empty() ? "." : folder) / name;
    const int error = execution_error(file);
    if (error == 0) return file;
    std::error_code ignored;  // a folder that we may not look into is passed over, as shells do
    if (!refused && fs::exists(file, ignored)) refused = {file, error};
  }
  if (refused) return cannot_execute(refused->first, refused->second);
  return failure(kExitNotFound, fmt::format("{}: no such program in PATH", name));
}

LibraryUse library_use(const fs::path& program) {
  if (gains_privilege(program)) return LibraryUse::kPrivileged;
  std::ifstream file(program, std::ios::binary);
  const auto header = read_at<Elf64_Ehdr>(file, 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return LibraryUse::kLoads;
  if (header->e_ident[EI_CLASS] != own_class() || header->e_machine != own_machine())
    return LibraryUse::kOtherMachine;
  if (own_class() != ELFCLASS64 || names_an_interpreter(file, *header)) return LibraryUse::kLoads;
  return LibraryUse::kStatic;
}

}  // namespace verbena::cli
