#include "fabric/scenario/other_technologies.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "fabric/scenario/keys.h"

namespace verbena::fabric {
namespace {

bool has_use_for_section(Technology technology, std::string_view section) {
  const bool is_infiniband = technology == Technology::kInfiniBand;
  if (section == "infiniband") return is_infiniband;
  if (section == "tcp") return speaks_tcp(technology);
  if (section == "switch") return !is_infiniband;
  if (section == "compat") return technology == Technology::kRoCEv2;
  return true;
}

// `name`: of a congestion control of hosts.
bool has_use_for_control(Technology technology, const std::string& name) {
  if (speaks_tcp(technology)) return false;  // TCP has its own
  const bool is_general = name == "off" || name == "window";
  if (technology == Technology::kInfiniBand) return is_general || name == "ib_cc";
  return name != "ib_cc";
}

std::string name_of_control(const YAML::Node& control) {
  if (control.IsScalar()) return control.Scalar();
  const std::string key = find_key(control, "algorithm").spelling;
  return key.empty() || !control[key].IsScalar() ? "" : control[key].Scalar();
}

void leave_out_of_hosts(Technology technology, YAML::Node hosts,
                        std::vector<std::string>& left_out) {
  const std::string control = find_key(hosts, "congestion_control").spelling;
  if (!control.empty() && !has_use_for_control(technology, name_of_control(hosts[control])))
    leave_out(hosts, "hosts.congestion_control", left_out);
  if (speaks_tcp(technology)) leave_out(hosts, "hosts.retransmission", left_out);
  if (technology == Technology::kRoCEv2) return;
  leave_out(hosts, "hosts.functions", left_out);
  leave_out(hosts, "hosts.encryption", left_out);
}

void leave_out_stuck_pauses(YAML::Node root, std::vector<std::string>& left_out) {
  const std::string key = find_key(root, "faults").spelling;
  if (key.empty()) return;
  const auto is_of_pauses = [](const YAML::Node& fault) {
    return !find_key(fault, "stuck_pause").spelling.empty();
  };
  if (is_of_pauses(root[key])) return leave_out(root, "faults", left_out);
  if (!root[key].IsSequence()) return;
  YAML::Node others(YAML::NodeType::Sequence);
  for (const YAML::Node& fault : root[key])
    if (!is_of_pauses(fault)) others.push_back(fault);
  if (others.size() == root[key].size()) return;
  root[key] = others;
  left_out.emplace_back("faults.stuck_pause");
}

}  // namespace

std::optional<Technology> technology_given(const std::vector<Setting>& settings) {
  std::optional<Technology> given;
  for (const Setting& setting : settings)
    for (const Technology technology : kTechnologies)
      if (setting.key == "technology" && setting.value == name_of(technology)) given = technology;
  return given;
}

std::vector<Setting> settings_for(Technology technology, const std::vector<Setting>& settings,
                                  std::vector<std::string>& left_out) {
  std::vector<Setting> result;
  for (const Setting& setting : settings) {
    const std::string key = normalized(setting.key);
    if (key.find('.') == std::string::npos ||
        has_use_for_section(technology, key.substr(0, key.find('.'))))
      result.push_back(setting);
    else
      left_out.push_back(key);
  }
  std::ranges::stable_partition(result,
                                [](const Setting& setting) { return setting.key == "technology"; });
  return result;
}

void leave_out(YAML::Node section, const std::string& path, std::vector<std::string>& left_out) {
  const std::string key = find_key(section, last_part(path)).spelling;
  if (key.empty()) return;
  section.remove(key);
  left_out.push_back(path);
}

void leave_out_others(Technology technology, YAML::Node root, std::vector<std::string>& left_out) {
  constexpr std::array<std::string_view, 4> kSections = {"infiniband", "tcp", "switch", "compat"};
  for (const std::string_view section : kSections)
    if (!has_use_for_section(technology, section)) leave_out(root, std::string(section), left_out);
  if (const std::string hosts = find_key(root, "hosts").spelling; !hosts.empty())
    leave_out_of_hosts(technology, root[hosts], left_out);
  if (technology == Technology::kInfiniBand) leave_out_stuck_pauses(root, left_out);
}

std::string left_out_text(Technology technology, const std::vector<std::string>& left_out) {
  if (left_out.empty()) return "";
  return fmt::format("with {}, left out of the file, since other technologies have it: {}",
                     name_of(technology), fmt::join(left_out, ", "));
}

}  // namespace verbena::fabric
