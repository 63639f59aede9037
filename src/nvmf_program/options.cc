#include "nvmf_program/options.h"

#include <unistd.h>

#include <array>
#include <charconv>
#include <fstream>
#include <functional>
#include <map>

#include "wire/nvme/fabrics.h"

namespace verbena::nvmf_program {
namespace {

using Setter = std::function<std::string(std::string_view)>;  // "": the value is good

constexpr u16 kMaxEntries = 1024, kMinEntries = 2;
constexpr u16 kMaxQueues = 64;
constexpr u32 kMaxDepth = 4096;
constexpr u16 kMaxThreads = 64;
constexpr u32 kMaxBlock = 1 << 20;

tl::unexpected<std::string> wrong(std::string text) { return tl::unexpected(std::move(text)); }

template <typename T>
std::optional<T> read_number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

template <typename T>
Setter number(T& to, T least, T most) {
  return [&to, least, most](std::string_view text) -> std::string {
    const auto value = read_number<T>(text);
    const bool is_between = value && *value >= least && *value <= most;  // NaN is not
    if (!is_between)
      return "is not a number from " + std::to_string(least) + " to " + std::to_string(most);
    to = *value;
    return "";
  };
}

Setter bytes(auto& to, u64 least, u64 most) {
  return [&to, least, most](std::string_view text) -> std::string {
    const auto value = read_bytes(text);
    if (!value || *value < least || *value > most)
      return "is not a size from " + std::to_string(least) + " to " + std::to_string(most);
    to = static_cast<std::remove_reference_t<decltype(to)>>(*value);
    return "";
  };
}

Setter nqn(std::string& to) {
  return [&to](std::string_view text) -> std::string {
    if (!nvme::is_nqn(text)) return "is no NQN: it has 1 to 223 bytes, and no spaces";
    to = text;
    return "";
  };
}

Setter words(std::string& to) {
  return [&to](std::string_view text) -> std::string {
    to = text;
    return "";
  };
}

Setter secret(std::optional<nvmf::AuthSecret>& to) {
  return [&to](std::string_view file) -> std::string {
    auto read = read_secret(std::string(file));
    if (!read) return read.error();
    to = std::move(*read);
    return "";
  };
}

// One name of `names` becomes the only element of the list.
template <typename Id, std::size_t N>
Setter only(std::vector<Id>& to, const std::array<std::pair<std::string_view, Id>, N>& names) {
  return [&to, &names](std::string_view text) -> std::string {
    std::string known;
    for (const auto& [name, id] : names) {
      known += known.empty() ? "is not one of " : ", ";
      known += name;
      if (name != text) continue;
      to = {id};
      return "";
    }
    return known;
  };
}

constexpr std::array<std::pair<std::string_view, nvme::AuthHash>, 3> kHashNames{
    {{"sha256", nvme::AuthHash::kSHA256},
     {"sha384", nvme::AuthHash::kSHA384},
     {"sha512", nvme::AuthHash::kSHA512}}};
constexpr std::array<std::pair<std::string_view, nvme::DHGroup>, 6> kGroupNames{
    {{"null", nvme::DHGroup::kNull},
     {"ffdhe2048", nvme::DHGroup::kFFDHE2048},
     {"ffdhe3072", nvme::DHGroup::kFFDHE3072},
     {"ffdhe4096", nvme::DHGroup::kFFDHE4096},
     {"ffdhe6144", nvme::DHGroup::kFFDHE6144},
     {"ffdhe8192", nvme::DHGroup::kFFDHE8192}}};

// Options with a value, and flags, by name.
struct Table {
  std::map<std::string, Setter, std::less<>> values;
  std::map<std::string, bool*, std::less<>> flags;
};

// Reads "--name value", "--name=value" and flags; the other arguments go to `rest`.
std::string read_table(std::span<const std::string> arguments, const Table& table,
                       std::vector<std::string>& rest) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (!argument.starts_with("--")) {
      rest.push_back(argument);
      continue;
    }
    const std::size_t equals = argument.find('=');
    const std::string name = argument.substr(0, equals);
    if (const auto flag = table.flags.find(name);
        flag != table.flags.end() && equals == std::string::npos) {
      *flag->second = true;
      continue;
    }
    const auto option = table.values.find(name);
    if (option == table.values.end()) return "unexpected argument '" + argument + "'";
    if (equals == std::string::npos && i + 1 == arguments.size()) return name + " needs a value";
    const std::string value =
        equals == std::string::npos ? arguments[++i] : argument.substr(equals + 1);
    if (const std::string error = option->second(value); !error.empty())
      return name + " " + value + " " + error;
  }
  return "";
}

void add_authentication_options(Table& table, nvmf::CHAPPolicy& policy) {
  table.values["--auth-hash"] = only(policy.hashes, kHashNames);
  table.values["--dh-group"] = only(policy.groups, kGroupNames);
}

void add_host_options(Table& table, HostOptions& host) {
  table.values["--nqn"] = nqn(host.nqn);
  table.values["--host-nqn"] = nqn(host.host_nqn);
  table.values["--queue-depth"] = number<u16>(host.queue_entries, kMinEntries, kMaxEntries);
  table.values["--queues"] = number<u16>(host.io_queues, 1, kMaxQueues);
  table.values["--keep-alive"] = number<double>(host.keep_alive_s, 0, 86400);
  table.values["--ctrl-loss-tmo"] = number<double>(host.loss_timeout_s, 0, 86400);
  table.values["--reconnect-delay"] = number<double>(host.reconnect_delay_s, 0.01, 3600);
  table.values["--host-key"] = secret(host.host_key);
  table.values["--controller-key"] = secret(host.controller_key);
  add_authentication_options(table, host.authentication);
  table.flags["--poll"] = &host.polls;
}

// The one positional argument is the target's address.
std::string finish_host(HostOptions& host, const std::vector<std::string>& rest, u16 port,
                        bool needs_nqn) {
  if (rest.empty()) return "the target's address is missing";
  if (rest.size() > 1) return "unexpected argument '" + rest[1] + "'";
  const auto address = application::parse_address(rest[0], port);
  if (!address) return rest[0] + " is no IP address, or address and port";
  host.target = *address;
  if (host.host_nqn.empty()) host.host_nqn = default_host_nqn();
  if (needs_nqn && host.nqn.empty()) return "--nqn is missing";
  return check_keys(host);
}

Expected<Options> read_target(std::span<const std::string> arguments) {
  TargetOptions options;
  std::string error;
  bool listens = false;
  Table table;
  table.values["--nqn"] = [&](std::string_view text) -> std::string {
    SubsystemOptions subsystem;
    std::string wrong_nqn = nqn(subsystem.nqn)(text);
    if (wrong_nqn.empty() && text == nvme::kDiscoveryNQN) wrong_nqn = "is reserved for discovery";
    for (const SubsystemOptions& other : options.subsystems)
      if (other.nqn == text) wrong_nqn = "is given twice";
    options.subsystems.push_back(std::move(subsystem));
    return wrong_nqn;
  };
  table.values["--namespace"] = [&](std::string_view text) -> std::string {
    if (options.subsystems.empty()) return "needs --nqn before it";
    auto space = read_namespace(text);
    if (!space) return space.error();
    options.subsystems.back().namespaces.push_back(*space);
    return "";
  };
  table.values["--allow-host"] = [&](std::string_view text) -> std::string {
    if (options.subsystems.empty()) return "needs --nqn before it";
    options.subsystems.back().hosts.emplace_back();
    return nqn(options.subsystems.back().hosts.back())(text);
  };
  table.values["--host-key"] = [&](std::string_view text) -> std::string {
    if (options.subsystems.empty()) return "needs --nqn before it";
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos) return "is not NQN=FILE";
    std::string host;
    if (std::string wrong_nqn = nqn(host)(text.substr(0, equals)); !wrong_nqn.empty())
      return wrong_nqn;
    auto key = read_secret(std::string(text.substr(equals + 1)));
    if (!key) return key.error();
    options.subsystems.back().host_keys[host] = std::move(*key);
    return "";
  };
  table.values["--controller-key"] = [&](std::string_view text) -> std::string {
    if (options.subsystems.empty()) return "needs --nqn before it";
    return secret(options.subsystems.back().controller_key)(text);
  };
  add_authentication_options(table, options.authentication);
  table.values["--listen"] = [&](std::string_view text) -> std::string {
    const auto address = application::parse_address(text, nvme::kRDMAPort);
    if (!address) return "is no IP address, or address and port";
    options.listen = *address;
    listens = true;
    return "";
  };
  table.values["--queue-depth"] = number<u16>(options.queue_entries, kMinEntries, kMaxEntries);
  table.values["--in-capsule"] = bytes(options.in_capsule_bytes, 0, 65536);
  table.values["--threads"] = number<u16>(options.threads, 1, kMaxThreads);
  table.values["--drain"] = number<double>(options.drain_s, 0, 3600);
  table.flags["--poll"] = &options.polls;
  std::vector<std::string> rest;
  error = read_table(arguments, table, rest);
  if (error.empty() && !rest.empty()) error = "unexpected argument '" + rest[0] + "'";
  if (error.empty() && options.subsystems.empty()) error = "--nqn is missing";
  if (error.empty() && !listens) error = "--listen is missing";
  if (error.empty() && options.in_capsule_bytes % 16 != 0)
    error = "--in-capsule is no multiple of 16";
  for (const SubsystemOptions& subsystem : options.subsystems) {
    if (error.empty() && subsystem.namespaces.empty())
      error = subsystem.nqn + " has no --namespace";
    if (error.empty() && subsystem.controller_key && subsystem.host_keys.empty())
      error = subsystem.nqn + " has --controller-key and no --host-key";
  }
  if (!error.empty()) return wrong(error);
  return options;
}

Expected<Options> read_discover(std::span<const std::string> arguments) {
  DiscoverOptions options;
  Table table;
  add_host_options(table, options.host);
  table.flags["--json"] = &options.json;
  table.flags["--persistent"] = &options.is_persistent;
  std::vector<std::string> rest;
  std::string error = read_table(arguments, table, rest);
  if (error.empty()) error = finish_host(options.host, rest, nvme::kRDMAPort, false);
  if (!error.empty()) return wrong(error);
  options.host.nqn = nvme::kDiscoveryNQN;
  return options;
}

Expected<Options> read_connect(std::span<const std::string> arguments) {
  ConnectOptions options;
  Table table;
  add_host_options(table, options.host);
  table.flags["--json"] = &options.json;
  table.flags["--hold"] = &options.holds;
  std::vector<std::string> rest;
  std::string error = read_table(arguments, table, rest);
  if (error.empty()) error = finish_host(options.host, rest, nvme::kRDMAPort, true);
  if (!error.empty()) return wrong(error);
  return options;
}

Expected<Options> read_transfer(std::span<const std::string> arguments, bool is_write) {
  TransferOptions options;
  options.is_write = is_write;
  Table table;
  add_host_options(table, options.host);
  u64 length = 0;
  bool has_length = false;
  table.values["--nsid"] = number<u32>(options.nsid, 1, 0xfffffffe);
  table.values["--offset"] = bytes(options.offset, 0, ~u64{0} >> 1);
  table.values["--length"] = [&](std::string_view text) {
    has_length = true;
    return bytes(length, 1, ~u64{0} >> 1)(text);
  };
  table.values[is_write ? "--input" : "--output"] = words(options.file);
  std::vector<std::string> rest;
  std::string error = read_table(arguments, table, rest);
  if (error.empty()) error = finish_host(options.host, rest, nvme::kRDMAPort, true);
  if (!error.empty()) return wrong(error);
  if (has_length) options.length = length;
  return options;
}

Expected<Options> read_bench(std::span<const std::string> arguments) {
  using Pattern = BenchOptions::Pattern;
  static const std::map<std::string, Pattern, std::less<>> kPatterns = {
      {"read", Pattern::kRead},
      {"write", Pattern::kWrite},
      {"randread", Pattern::kRandomRead},
      {"randwrite", Pattern::kRandomWrite}};
  BenchOptions options;
  Table table;
  add_host_options(table, options.host);
  table.values["--nsid"] = number<u32>(options.nsid, 1, 0xfffffffe);
  table.values["--rw"] = [&](std::string_view text) -> std::string {
    const auto found = kPatterns.find(text);
    if (found == kPatterns.end()) return "is not read, write, randread or randwrite";
    options.pattern = found->second;
    return "";
  };
  table.values["--block"] = bytes(options.block_bytes, 512, kMaxBlock);
  table.values["--depth"] = number<u32>(options.depth, 1, kMaxDepth);
  table.values["--seconds"] = number<double>(options.seconds, 0.1, 3600);
  table.flags["--json"] = &options.json;
  std::vector<std::string> rest;
  std::string error = read_table(arguments, table, rest);
  if (error.empty()) error = finish_host(options.host, rest, nvme::kRDMAPort, true);
  if (!error.empty()) return wrong(error);
  return options;
}

}  // namespace

std::optional<u64> read_bytes(std::string_view text) {
  constexpr std::string_view kUnits = "KMGT";
  u32 shift = 0;
  if (!text.empty()) {
    const char unit = text.back() >= 'a' ? static_cast<char>(text.back() - 'a' + 'A') : text.back();
    if (const std::size_t at = kUnits.find(unit); at != std::string_view::npos) {
      shift = 10 * (static_cast<u32>(at) + 1);
      text.remove_suffix(1);
    }
  }
  const auto value = read_number<u64>(text);
  if (!value || (shift > 0 && *value >> (64 - shift) != 0)) return std::nullopt;
  return *value << shift;
}

Expected<NamespaceOptions> read_namespace(std::string_view text) {
  NamespaceOptions options;
  std::size_t comma = text.find(',');
  const std::string_view where = text.substr(0, comma);
  constexpr std::string_view kMemory = "memory:";
  if (where.starts_with(kMemory)) {
    const auto size = read_bytes(where.substr(kMemory.size()));
    if (!size || *size == 0) return wrong("has no size: memory:SIZE");
    options.memory_bytes = *size;
  } else {
    options.file = where;
    if (options.file.empty()) return wrong("names no file");
  }
  while (comma != std::string_view::npos) {
    text = text.substr(comma + 1);
    comma = text.find(',');
    const std::string_view word = text.substr(0, comma);
    if (word == "block=512")
      options.block_log2 = 9;
    else if (word == "block=4096")
      options.block_log2 = 12;
    else if (word == "readonly")
      options.is_read_only = true;
    else if (word == "direct=on")
      options.direct = Direct::kOn;
    else if (word == "direct=off")
      options.direct = Direct::kOff;
    else if (word == "direct=auto")
      options.direct = Direct::kAuto;
    else
      return wrong("has '" + std::string(word) +
                   "', which is not block=512, block=4096, direct=on|off|auto or readonly");
  }
  if (options.memory_bytes > 0 && options.memory_bytes >> options.block_log2 == 0)
    return wrong("is smaller than a block");
  return options;
}

Expected<nvmf::AuthSecret> read_secret(const std::string& file) {
  std::ifstream stream(file);
  std::string line;
  if (!stream || !std::getline(stream, line)) return wrong("cannot be read, or is empty");
  auto read = nvmf::AuthSecret::parse(line);
  if (!read) return wrong("has no secret of the form DHHC-1:00:...:, or its CRC is wrong");
  return std::move(*read);
}

std::string check_keys(const HostOptions& host) {
  return host.controller_key && !host.host_key ? "--controller-key needs --host-key" : "";
}

std::string default_host_nqn() {
  std::array<char, 65> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) name[0] = '\0';
  return std::string("nqn.2026-01.verbena:host:") + (name[0] != '\0' ? name.data() : "unnamed");
}

nvmf::InitiatorConfig initiator_config(const HostOptions& host) {
  nvmf::InitiatorConfig config;
  const auto duration = [](double seconds) { return us(static_cast<i64>(seconds * 1e6)); };
  config.target = host.target;
  config.subsystem_nqn = host.nqn;
  config.host_nqn = host.host_nqn;
  config.queue_entries = host.queue_entries;
  config.io_queues = host.io_queues;
  config.keep_alive = duration(host.keep_alive_s);
  config.loss_timeout = duration(host.loss_timeout_s);
  config.reconnect_delay = duration(host.reconnect_delay_s);
  config.authentication = host.authentication;
  if (host.host_key) config.keys = nvmf::CHAPKeys{*host.host_key, host.controller_key};
  u64 hash = 0xcbf29ce484222325;  // FNV-1a
  for (std::size_t i = 0; i < config.host_id.size(); ++i) {
    for (const char c : host.host_nqn) hash = (hash ^ static_cast<u8>(c)) * 0x100000001b3;
    config.host_id[i] = static_cast<u8>(hash >> 32);
  }
  return config;
}

Expected<Options> read_options(std::span<const std::string> arguments) {
  if (arguments.empty())
    return wrong("a command is needed: target, discover, connect, read, write or bench");
  const auto rest = arguments.subspan(1);
  const std::string& command = arguments[0];
  if (command == "target") return read_target(rest);
  if (command == "discover") return read_discover(rest);
  if (command == "connect") return read_connect(rest);
  if (command == "read" || command == "write") return read_transfer(rest, command == "write");
  if (command == "bench") return read_bench(rest);
  return wrong("unexpected command '" + command +
               "': it is target, discover, connect, read, write or bench");
}

}  // namespace verbena::nvmf_program
