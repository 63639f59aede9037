// The command line of verbena-nvmf, which `verbena nvmf` starts.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include <tl/expected.hpp>

#include "application/address.h"
#include "nvmf/initiator.h"

namespace verbena::nvmf_program {

template <typename T>
using Expected = tl::expected<T, std::string>;  // an error in words for the user

enum class Direct : u8 { kAuto, kOn, kOff };  // O_DIRECT

struct NamespaceOptions {
  std::string file;  // "": memory
  u64 memory_bytes = 0;
  u8 block_log2 = 9;
  Direct direct = Direct::kAuto;
  bool is_read_only = false;
};
struct SubsystemOptions {
  std::string nqn;
  std::vector<NamespaceOptions> namespaces;
  std::vector<std::string> hosts;  // that may connect; none: all
  // Secrets of hosts, which must authenticate themselves, by NQN; and the subsystem's own.
  std::map<std::string, nvmf::AuthSecret> host_keys;
  std::optional<nvmf::AuthSecret> controller_key;
};
struct TargetOptions {
  std::vector<SubsystemOptions> subsystems;
  application::Address listen;
  u16 queue_entries = 128;
  u32 in_capsule_bytes = 8192;
  u16 threads = 1;
  bool polls = false;
  double drain_s = 10;
  nvmf::CHAPPolicy authentication{};
};

struct HostOptions {
  application::Address target;
  std::string nqn;
  std::string host_nqn;
  u16 queue_entries = 128, io_queues = 1;
  double keep_alive_s = 5, loss_timeout_s = 600, reconnect_delay_s = 1;
  bool polls = false;
  std::optional<nvmf::AuthSecret> host_key, controller_key;
  nvmf::CHAPPolicy authentication{};
};
struct DiscoverOptions {
  HostOptions host;
  bool json = false;
  bool is_persistent = false;
};
struct ConnectOptions {
  HostOptions host;
  bool json = false;
  bool holds = false;
};
struct TransferOptions {
  HostOptions host;
  u32 nsid = 1;
  u64 offset = 0;
  std::optional<u64> length;
  std::string file = "-";
  bool is_write = false;
};
struct BenchOptions {
  enum class Pattern : u8 { kRead, kWrite, kRandomRead, kRandomWrite };
  HostOptions host;
  u32 nsid = 1;
  Pattern pattern = Pattern::kRandomRead;
  u32 block_bytes = 4096, depth = 32;
  double seconds = 5;
  bool json = false;
};
using Options =
    std::variant<TargetOptions, DiscoverOptions, ConnectOptions, TransferOptions, BenchOptions>;

[[nodiscard]] Expected<Options> read_options(std::span<const std::string> arguments);

// "FILE" or "memory:SIZE", then ",block=512|4096", ",direct=on|off|auto", ",readonly".
[[nodiscard]] Expected<NamespaceOptions> read_namespace(std::string_view text);
// "4K", "64M", "1G", "2T", "100", bytes.
[[nodiscard]] std::optional<u64> read_bytes(std::string_view text);

// The first line of the file, as `nvme gen-dhchap-key` prints it.
[[nodiscard]] Expected<nvmf::AuthSecret> read_secret(const std::string& file);
// Why the keys of `host` do not go together; "": they do.
[[nodiscard]] std::string check_keys(const HostOptions& host);

// The host NQN of this machine by default, and an identifier that depends on it alone.
[[nodiscard]] std::string default_host_nqn();
[[nodiscard]] nvmf::InitiatorConfig initiator_config(const HostOptions& host);

}  // namespace verbena::nvmf_program
