#include "host/sharing/directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>

#include "base/check.h"
#include "host/os/clock.h"

namespace verbena::host {
namespace {

constexpr u64 kDirectoryMagic = 0x31424e4552424556;  // "VERBENB1"; changes with the layout
constexpr Duration kRetryInterval = us(500);

struct FileHeader {
  u64 magic = kDirectoryMagic;
  u64 generation = 0;
  u64 count = 0;
  u64 checksum = 0;  // of the members
};

// FNV-1a, against a write cut short; not against malice, the file is our own user's.
u64 checksum_of(const std::vector<Membership>& members) {
  u64 hash = 0xcbf29ce484222325;
  const auto* bytes = reinterpret_cast<const u8*>(members.data());
  for (std::size_t i = 0; i < members.size() * sizeof(Membership); ++i)
    hash = (hash ^ bytes[i]) * 0x100000001b3;
  return hash;
}
static_assert(sizeof(Membership) == 24 && std::is_trivially_copyable_v<Membership>);

// "process 17", from /proc/locks: "1: FLOCK ADVISORY WRITE 17 00:1a:4711 0 EOF".
std::string holder_of(int fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) return "another Verbena process";
  const std::string inode = std::string(":").append(std::to_string(status.st_ino)).append(" ");
  std::ifstream locks("/proc/locks");
  for (std::string line; std::getline(locks, line);) {
    const std::size_t at = line.find(" WRITE ");
    if (at == std::string::npos || line.find(" FLOCK ") == std::string::npos ||
        line.find(inode) == std::string::npos || line.find("->") != std::string::npos)
      continue;
    std::istringstream rest(line.substr(at));
    std::string write;
    u32 pid = 0;
    if (rest >> write >> pid && pid != 0)
      return std::string("process ").append(std::to_string(pid));
  }
  return "another Verbena process";
}

// Abstract socket names and UDP ports belong to a network namespace; so does the file.
std::string file_name() {
  return "verbena-" + std::to_string(::geteuid()) + "-" + std::to_string(network_namespace());
}

bool is_ours(int fd) {
  struct stat file {};
  return ::fstat(fd, &file) == 0 && S_ISREG(file.st_mode) && file.st_uid == ::geteuid() &&
         file.st_nlink <= 1 && (file.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

bool read_all(int fd, void* out, std::size_t size, std::size_t at) {
  return ::pread(fd, out, size, static_cast<off_t>(at)) == static_cast<ssize_t>(size);
}

}  // namespace

u64 network_namespace() {
  struct stat ns {};
  return ::stat("/proc/self/ns/net", &ns) == 0 ? ns.st_ino : 0;
}

void DirectoryTable::forget(u32 slot) {
  const auto gone = std::ranges::stable_partition(
      members, [&](const Membership& member) { return member.slot != slot; });
  for (const Membership& lost : gone)
    for (Membership& member : members)
      if (member.address == lost.address) member.index = kUnknownIndex;
  members.erase(gone.begin(), gone.end());
}

std::vector<std::string> shared_file_paths() {
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  const std::string name = file_name();
  std::vector<std::string> paths;
  for (const std::string& folder :
       {std::string("/dev/shm"), std::string(runtime == nullptr ? "" : runtime),
        std::string("/tmp")})
    if (!folder.empty()) paths.push_back(folder + "/" + name);
  return paths;
}

Expected<Directory> Directory::open() {
  std::string tried;
  for (const std::string& path : shared_file_paths()) {
    Expected<Directory> opened = open_file(path);
    if (opened) return opened;
    if (!tried.empty()) tried += "; ";
    tried += opened.error().message;
  }
  return failure(EACCES, tried);
}

Expected<Descriptor> open_shared_file(const std::string& path) {
  Descriptor file(
      ::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600));
  if (!file.is_open()) return failure(errno, "cannot open " + path + ": " + std::strerror(errno));
  if (!is_ours(file.get()))
    return failure(EPERM, path + " is not a private file of this user; remove it");
  return file;
}

Expected<Directory> Directory::open_file(const std::string& path) {
  Expected<Descriptor> file = open_shared_file(path);
  if (!file) return tl::unexpected(file.error());
  return Directory(std::move(*file), path);
}

Directory::Lock::~Lock() {
  if (fd_ >= 0) ::flock(fd_, LOCK_UN);
}

Expected<Directory::Lock> Directory::lock(Duration patience) {
  return lock_shared_file(file_.get(), path_, patience);
}

Expected<Directory::Lock> lock_shared_file(int fd, const std::string& path, Duration patience) {
  const Time deadline = monotonic_now() + patience;
  while (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR)
      return failure(errno, "cannot lock " + path + ": " + std::strerror(errno));
    if (monotonic_now() >= deadline)
      return failure(EBUSY, path + " is locked by " + holder_of(fd) +
                                ", which does not go on: is it stopped?");
    const timespec pause = to_timespec(Time() + kRetryInterval);
    ::nanosleep(&pause, nullptr);
  }
  return Directory::Lock(fd);
}

DirectoryTable Directory::read() const {
  FileHeader header{};
  DirectoryTable table;
  if (!read_all(file_.get(), &header, sizeof(header), 0) || header.magic != kDirectoryMagic ||
      header.count > DirectoryTable::kMaxMembers)
    return {};
  table.generation = header.generation;
  table.members.resize(header.count);
  if (!read_all(file_.get(), table.members.data(), header.count * sizeof(Membership),
                sizeof(header)) ||
      checksum_of(table.members) != header.checksum)
    return {.generation = header.generation, .members = {}};
  return table;
}

void Directory::write(DirectoryTable& table) {
  CHECK(table.members.size() <= DirectoryTable::kMaxMembers);
  const FileHeader header{.generation = ++table.generation,
                          .count = table.members.size(),
                          .checksum = checksum_of(table.members)};
  const std::size_t size = table.members.size() * sizeof(Membership);
  const bool written =
      ::pwrite(file_.get(), table.members.data(), size, sizeof(header)) ==
          static_cast<ssize_t>(size) &&
      ::pwrite(file_.get(), &header, sizeof(header), 0) == static_cast<ssize_t>(sizeof(header));
  if (!written && ::ftruncate(file_.get(), 0) != 0) return;  // a bad checksum says it as well
}

}  // namespace verbena::host
