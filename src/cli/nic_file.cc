#include "cli/nic_file.h"

#include <grp.h>
#include <pwd.h>

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include "faults/values.h"
#include "wire/eth/vxlan.h"

namespace verbena::cli {
namespace {

constexpr u32 kMostPKeys = 64, kMostWeight = 1000, kMaxVLANId = 4094, kMostGroups = 256;

// Reads one file; the first mistake ends it.
class NICFileReader {
 public:
  explicit NICFileReader(std::string name) : name_(std::move(name)) {}

  Expected<host::NICConfig> read(const std::string& text) {
    YAML::Node root;
    try {
      root = YAML::Load(text);
    } catch (const YAML::Exception& e) {
      return mistake(e.what());
    }
    host::NICConfig config;
    expect_keys(root, {"socket", "rate", "encryption", "link", "functions"}, "the file");
    config.socket = text_of(root, "socket", "");
    if (config.socket.empty()) note("socket: the path at which programs attach is needed");
    config.rate_bps = rate_of(root, "rate");
    if (const std::string words = text_of(root, "encryption", ""); !words.empty()) {
      const auto settings = host::encryption_settings(words);
      if (settings)
        config.encryption = *settings;
      else
        note(settings.error().message);
    }
    for (const YAML::Node& node : list_of(root, "functions"))
      config.functions.push_back(function_of(node, root, config.encryption.has_value()));
    if (config.functions.empty()) note("functions: at least one is needed");
    std::set<std::string> names;
    for (const host::NICFunctionConfig& function : config.functions)
      if (!names.insert(function.name).second) note("two functions are named " + function.name);
    check_networks(config);
    check_guaranteed(config);
    if (!mistake_.empty()) return mistake(mistake_);
    return config;
  }

 private:
  tl::unexpected<Failure> mistake(const std::string& what) const {
    return failure(kExitCannot, fmt::format("{}: {}", name_, what));
  }
  void note(const std::string& what) {
    if (mistake_.empty()) mistake_ = what;
  }

  void expect_keys(const YAML::Node& node, const std::set<std::string>& known,
                   const std::string& where) {
    if (!node.IsMap()) return note(where + " must be a map of names to values");
    std::set<std::string> seen;
    for (const auto& entry : node) {
      const std::string& key = entry.first.Scalar();
      if (!known.contains(key)) note(fmt::format("{}: no such key: {}", where, key));
      if (!seen.insert(key).second) note(fmt::format("{}: {} is there twice", where, key));
    }
  }
  // The keys may be in any node; of one that is no map there is none.
  static YAML::Node child(const YAML::Node& node, const char* key) {
    return node.IsMap() ? node[key] : YAML::Node(YAML::NodeType::Undefined);
  }
  std::string text_of(const YAML::Node& node, const char* key, const std::string& otherwise) {
    const YAML::Node value = child(node, key);
    if (!value.IsDefined() || value.IsNull()) return otherwise;
    if (!value.IsScalar()) {
      note(fmt::format("{}: one value is needed", key));
      return otherwise;
    }
    return value.Scalar();
  }
  std::vector<YAML::Node> list_of(const YAML::Node& node, const char* key) {
    std::vector<YAML::Node> out;
    const YAML::Node value = child(node, key);
    if (!value.IsDefined() || value.IsNull()) return out;
    if (!value.IsSequence()) {
      note(fmt::format("{}: a list is needed", key));
      return out;
    }
    for (const auto& item : value) out.push_back(item);
    return out;
  }
  u64 number_of(const YAML::Node& node, const char* key, u64 otherwise, u64 most) {
    const std::string text = text_of(node, key, "");
    if (text.empty()) return otherwise;
    const auto value = faults::parse_number(text);
    if (value && *value <= most) return *value;
    note(fmt::format("{}: {} is no number up to {}", key, text, most));
    return otherwise;
  }
  u64 rate_of(const YAML::Node& node, const char* key) {
    const std::string text = text_of(node, key, "");
    if (text.empty()) return 0;
    if (const auto value = faults::parse_rate(text)) return static_cast<u64>(*value);
    note(
        fmt::format("{}: {} is no rate: a number above 0 with bit, Kbit, Mbit, Gbit or Tbit, as "
                    "10Gbit; without the key there is no limit",
                    key, text));
    return 0;
  }

  // `root`: of the file, whose link is that of functions that have none.
  host::NICFunctionConfig function_of(const YAML::Node& node, const YAML::Node& root,
                                      bool is_encrypted) {
    host::NICFunctionConfig out;
    expect_keys(node,
                {"name",
                 "user",
                 "group",
                 "address",
                 "p_keys",
                 "weight",
                 "priority",
                 "guaranteed",
                 "max",
                 "burst",
                 "traffic_classes",
                 "link",
                 "vni",
                 "vlan",
                 "multicast",
                 "groups",
                 "programs",
                 "qps",
                 "mrs",
                 "cqes",
                 "registered_bytes",
                 "connections",
                 "streams"},
                "a function");
    out.name = text_of(node, "name", "");
    if (out.name.empty() || !std::ranges::all_of(out.name, is_of_name))
      note("name: letters, digits, '-', '_' and '.' are needed");
    out.user = user_of(text_of(node, "user", ""));
    out.group = group_of(text_of(node, "group", ""));
    out.address = text_of(node, "address", "");
    if (out.address.empty() || out.address.size() > 63 ||
        out.address.find_first_of(",\"\\") != std::string::npos)
      note(out.name + ": one address is needed");
    if (child(node, "p_keys").IsDefined()) out.p_keys = p_keys_of(list_of(node, "p_keys"));
    out.link = link_of(child(node, "link").IsDefined() ? node : root);
    out.vni = vni_of(node);
    out.vlan = vlan_of(node);
    out.has_multicast = has_multicast(node, !out.vni && !out.vlan && !is_encrypted);
    out.max_groups = static_cast<u32>(number_of(node, "groups", out.max_groups, kMostGroups));
    out.weight = static_cast<u32>(number_of(node, "weight", 1, kMostWeight));
    if (out.weight == 0) note("weight: 1 at least");
    out.priority = static_cast<u32>(number_of(node, "priority", 0, host::kMaxNICPriority));
    out.guaranteed_bps = rate_of(node, "guaranteed");
    out.max_bps = rate_of(node, "max");
    if (out.max_bps != 0 && out.guaranteed_bps > out.max_bps)
      note(out.name + ": guaranteed is more than max");
    out.burst_bytes = number_of(node, "burst", out.burst_bytes, 1u << 30);
    if (out.burst_bytes == 0) note("burst: 1 byte at least");
    out.classes = classes_of(list_of(node, "traffic_classes"));
    out.max_programs = static_cast<u32>(number_of(node, "programs", out.max_programs, 512));
    if (out.max_programs == 0) note("programs: 1 at least");
    out.max_qp = static_cast<u32>(number_of(node, "qps", 0, 16383));
    out.max_mr = static_cast<u32>(number_of(node, "mrs", 0, 1u << 20));
    out.max_cqe = static_cast<u32>(number_of(node, "cqes", 0, 4194303));
    out.max_registered_bytes = number_of(node, "registered_bytes", 0, u64{1} << 62);
    out.connections_per_second = static_cast<u32>(number_of(node, "connections", 0, 1u << 20));
    out.max_streams = streams_of(node);
    return out;
  }
  std::optional<u32> streams_of(const YAML::Node& node) {
    if (!child(node, "streams").IsDefined()) return std::nullopt;
    return static_cast<u32>(number_of(node, "streams", 0, 1u << 20));
  }
  // A DSCP that no entry names stays in its class of the default.
  host::TrafficClasses classes_of(const std::vector<YAML::Node>& nodes) {
    host::TrafficClasses out;
    std::set<u64> classes, dscps;
    for (const YAML::Node& node : nodes) {
      expect_keys(node, {"class", "dscp", "max"}, "traffic_classes: an entry");
      if (!child(node, "class").IsDefined()) note("traffic_classes: each entry needs a class");
      const u64 own = number_of(node, "class", 0, host::kTrafficClasses - 1);
      if (!classes.insert(own).second) note(fmt::format("class: {} is there twice", own));
      out.max_bps[own] = rate_of(node, "max");
      for (const YAML::Node& item : list_of(node, "dscp")) {
        const u64 dscp = dscp_of_item(item);
        if (!dscps.insert(dscp).second) note(fmt::format("dscp: {} is there twice", dscp));
        out.of_dscp[dscp] = static_cast<u8>(own);
      }
    }
    return out;
  }
  u64 dscp_of_item(const YAML::Node& node) {
    const auto value = node.IsScalar() ? faults::parse_number(node.Scalar()) : std::nullopt;
    if (value && *value < host::kDSCPs) return *value;
    note(fmt::format("dscp: numbers up to {} are needed", host::kDSCPs - 1));
    return 0;
  }
  std::optional<u32> vni_of(const YAML::Node& node) {
    if (!child(node, "vni").IsDefined()) return std::nullopt;
    return static_cast<u32>(number_of(node, "vni", 0, kMaxVNI));
  }
  // The first and the last one are no VLAN's (IEEE 802.1Q, 9.6).
  std::optional<u16> vlan_of(const YAML::Node& node) {
    if (!child(node, "vlan").IsDefined()) return std::nullopt;
    const u64 vlan = number_of(node, "vlan", 0, kMaxVLANId);
    if (vlan == 0) note(fmt::format("vlan: a number of 1 to {} is needed", kMaxVLANId));
    return static_cast<u16>(vlan);
  }
  host::LinkKind link_of(const YAML::Node& node) {
    const std::string text = text_of(node, "link", "udp");
    const std::optional<host::LinkKind> kind = host::link_kind_named(text);
    if (kind && *kind != host::LinkKind::kIWARP) return *kind;
    note(fmt::format("link: {} is none of udp, packet, xdp", text));
    return host::LinkKind::kUDP;
  }
  bool has_multicast(const YAML::Node& node, bool is_possible) {
    const std::string text = text_of(node, "multicast", is_possible ? "true" : "false");
    if (text != "true" && text != "false") note("multicast: true or false");
    if (text == "true" && !is_possible) note("multicast: not with vni, vlan or encryption");
    return text == "true";
  }
  // An address belongs to one network, and in a VLAN to one function.
  void check_networks(const host::NICConfig& config) {
    std::map<std::string, const host::NICFunctionConfig*> networks;
    for (const host::NICFunctionConfig& function : config.functions) {
      if (function.vlan && config.encryption) note(function.name + ": vlan: not with encryption");
      if (function.vlan && function.vni) note(function.name + ": vlan: not with vni");
      check_link(function, config.encryption.has_value());
      const auto [known, is_new] = networks.emplace(function.address, &function);
      if (is_new) continue;
      if (known->second->vni != function.vni)
        note(function.name + ": another function has its address with another vni");
      if (known->second->vlan || function.vlan)
        note(function.name + ": another function has its address, which a vlan needs for itself");
      if (is_on_xdp(*known->second) || is_on_xdp(function))
        note(function.name + ": another function has its address, which xdp needs for itself");
    }
  }
  static bool is_on_xdp(const host::NICFunctionConfig& function) {
    return function.link == host::LinkKind::kXDP;
  }
  void check_link(const host::NICFunctionConfig& function, bool is_encrypted) {
    if (function.link == host::LinkKind::kUDP) return;
    const std::string link = function.name + ": link: " + std::string(host::name_of(function.link));
    if (function.vlan || function.vni) note(link + ": not with vlan or vni");
    if (is_on_xdp(function) && is_encrypted) note(link + ": not with encryption");
  }
  void check_guaranteed(const host::NICConfig& config) {
    double sum = 0;  // whole numbers of bits far below 2^53 in practice, and no overflow
    for (const host::NICFunctionConfig& function : config.functions)
      sum += static_cast<double>(function.guaranteed_bps);
    if (config.rate_bps != 0 && sum > static_cast<double>(config.rate_bps))
      note("guaranteed: the functions have more together than rate");
  }
  static bool is_of_name(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.';
  }
  // The last one is the system's word for "none" (chown(2)).
  u32 id_of(const char* key, u64 number) {
    if (number < ~u32{0}) return static_cast<u32>(number);
    note(fmt::format("{}: {} is no ID", key, number));
    return 0;
  }
  std::optional<uid_t> user_of(const std::string& text) {
    if (text.empty()) return std::nullopt;
    if (const auto number = faults::parse_number(text)) return id_of("user", *number);
    if (const passwd* const known = ::getpwnam(text.c_str())) return known->pw_uid;
    note("user: there is no " + text);
    return std::nullopt;
  }
  std::optional<gid_t> group_of(const std::string& text) {
    if (text.empty()) return std::nullopt;
    if (const auto number = faults::parse_number(text)) return id_of("group", *number);
    if (const ::group* const known = ::getgrnam(text.c_str())) return known->gr_gid;
    note("group: there is no " + text);
    return std::nullopt;
  }
  std::vector<u16> p_keys_of(const std::vector<YAML::Node>& nodes) {
    std::vector<u16> out;
    for (const YAML::Node& node : nodes) {
      const auto value = node.IsScalar() ? faults::parse_number(node.Scalar()) : std::nullopt;
      if (!value || *value > 0xffff || (*value & 0x7fff) == 0)
        note("p_keys: 16 bits that are not 0 are needed, with bit 15 for full members");
      else
        out.push_back(static_cast<u16>(*value));
    }
    if (out.empty() || out.size() > kMostPKeys) note(fmt::format("p_keys: 1 to {}", kMostPKeys));
    return out;
  }

  std::string name_;
  std::string mistake_;
};

}  // namespace

Expected<host::NICConfig> read_nic_config(const std::string& text, const std::string& name) {
  return NICFileReader(name).read(text);
}

}  // namespace verbena::cli
