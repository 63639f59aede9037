#include "host/doctor/port_holder.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

namespace verbena::host {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kIPv4Digits = 8, kIPv6Digits = 32;

template <typename T>
std::optional<T> parse(std::string_view text, int base) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Words of 32 bits in the host's order (x86: the lowest byte first), each as 8 hex digits.
std::optional<GID> parse_address(std::string_view text) {
  if (text.size() != kIPv4Digits && text.size() != kIPv6Digits) return std::nullopt;
  GID gid;
  for (std::size_t at = 0; at < text.size(); at += kIPv4Digits) {
    const auto word = parse<u32>(text.substr(at, kIPv4Digits), 16);
    if (!word) return std::nullopt;
    if (text.size() == kIPv4Digits)
      return *word == 0 ? GID{} : GID::from_ipv4(__builtin_bswap32(*word));
    for (std::size_t i = 0; i < 4; ++i) gid.bytes[at / 2 + i] = static_cast<u8>(*word >> (8 * i));
  }
  return gid;
}

// "  sl  local_address rem_address   st tx_queue:rx_queue tr:tm->when retrnsmt uid timeout inode"
std::optional<UDPSocket> parse_line(const std::string& line) {
  std::istringstream words(line);
  std::string slot, local, remote, state, queues, timer, retransmits, user, timeout, inode;
  words >> slot >> local >> remote >> state >> queues >> timer >> retransmits >> user >> timeout >>
      inode;
  const std::size_t colon = local.find(':');
  if (colon == std::string::npos) return std::nullopt;
  const auto address = parse_address(std::string_view(local).substr(0, colon));
  const auto port = parse<u16>(std::string_view(local).substr(colon + 1), 16);
  const auto uid = parse<uid_t>(user, 10);
  const auto number = parse<u64>(inode, 10);
  if (!address || !port || !uid || !number) return std::nullopt;
  return UDPSocket{.address = *address, .port = *port, .user = *uid, .inode = *number};
}

std::string text_of(const char* path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

bool has_open(const fs::path& process, const std::string& socket) {
  std::error_code error;
  for (const auto& fd : fs::directory_iterator(process / "fd", error))
    if (fs::read_symlink(fd, error) == socket) return true;
  return false;
}

std::vector<pid_t> processes_with(u64 inode) {
  const std::string socket = "socket:[" + std::to_string(inode) + "]";
  std::vector<pid_t> processes;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc", error)) {
    const auto pid = parse<pid_t>(entry.path().filename().string(), 10);
    if (pid && has_open(entry.path(), socket)) processes.push_back(*pid);
  }
  return processes;
}

}  // namespace

std::vector<UDPSocket> udp_sockets_in(std::string_view text, u16 port) {
  std::vector<UDPSocket> sockets;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);)
    if (const auto socket = parse_line(line); socket && socket->port == port)
      sockets.push_back(*socket);
  return sockets;
}

std::vector<PortHolder> holders_of_udp_port(const GID& address, u16 port) {
  std::vector<PortHolder> holders;
  for (const char* path : {"/proc/net/udp", "/proc/net/udp6"})
    for (const UDPSocket& socket : udp_sockets_in(text_of(path), port))
      if (socket.address == address || socket.address.is_zero())
        holders.push_back({socket, processes_with(socket.inode)});
  return holders;
}

}  // namespace verbena::host
