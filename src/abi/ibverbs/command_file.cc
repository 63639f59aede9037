#include "abi/ibverbs/command_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <sstream>

#include "host/os/random.h"

namespace verbena::abi {
namespace {

constexpr char kMagic[] = "verbena-device-2";
constexpr std::size_t kMaxBytes = 512;

// Returns the identity of this process. A child that it forks has another one.
std::string process_identity() {
  static const u64 nonce = host::random_u64();
  return std::to_string(::getpid()) + "-" + std::to_string(nonce);
}

}  // namespace

CommandFile CommandFile::describe(const host::LocalAddress& address,
                                  const std::optional<host::ExportPlace>& place) {
  const bool whole_interface = address.ipv4 && address.ipv6;
  const GID one = address.ipv4 ? *address.ipv4 : address.ipv6.value_or(GID{});
  return {.device_name = address.device_name,
          .choice = whole_interface ? address.interface : one.to_string(),
          .place = place,
          .of_this_process = true};
}

host::Descriptor CommandFile::write() const {
  std::ostringstream out;
  out << kMagic << ' ' << process_identity() << ' ' << device_name << ' ' << choice;
  if (place)
    out << ' ' << place->segment.pid << ' ' << place->segment.fd << ' ' << place->segment.nonce
        << ' ' << place->slot << ' ' << place->network;
  const std::string text = out.str();
  host::Descriptor file(::memfd_create("verbena-device", MFD_CLOEXEC));
  if (file.is_open() && ::write(file.get(), text.data(), text.size()) < 0) file.reset();
  return file;
}

std::optional<CommandFile> CommandFile::read(int fd) {
  std::array<char, kMaxBytes> bytes{};
  const ssize_t length = ::pread(fd, bytes.data(), bytes.size(), 0);
  if (length <= 0) return std::nullopt;
  std::istringstream text(std::string(bytes.data(), static_cast<std::size_t>(length)));
  std::string magic, process;
  CommandFile file;
  if (!(text >> magic >> process >> file.device_name >> file.choice) || magic != kMagic)
    return std::nullopt;
  host::ExportPlace place;
  if (text >> place.segment.pid >> place.segment.fd >> place.segment.nonce >> place.slot >>
      place.network)
    file.place = place;
  file.of_this_process = process == process_identity();
  return file;
}

}  // namespace verbena::abi
