#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "fabric/hpcc_ns3/conventions.h"
#include "fabric/scenario/congestion.h"
#include "fabric/scenario/parts.h"

namespace verbena::fabric {
namespace {

using hpcc_ns3::Control;

struct Named {
  std::string_view name;
  Control control;
};
constexpr std::array kControls = {
    Named{"off", Control::kNone},      Named{"window", Control::kNone},
    Named{"dcqcn", Control::kDCQCN},   Named{"hpcc", Control::kHPCC},
    Named{"timely", Control::kTIMELY}, Named{"dctcp", Control::kDCTCP},
};

// Returns the control of the hosts' algorithm; nullopt if the model does not have it.
std::optional<Control> control_of(Section hosts) {
  Section section = hosts.section("congestion_control", "algorithm");
  const std::string name = section.text("algorithm", "dcqcn");
  const auto* const found = std::ranges::find(kControls, name, &Named::name);
  if (found != kControls.end()) return found->control;
  section.complain("algorithm", fmt::format("HPCC's ns-3 model has no {}", name));
  return std::nullopt;
}

void follow_hpcc_ns3(Section& root, const Plan& plan, NetworkConfig& network) {
  Section hosts = root.section("hosts"), switches = root.section("switch");
  const std::optional<Control> control = control_of(hosts);
  if (!control) return;
  hpcc_ns3::Config settings = hpcc_ns3::published_config();
  settings.control = *control;
  if (hosts.has("mtu"))
    settings.packet_payload = bytes(network.host(plan.topology.links[0].config).device.active_mtu);
  const hpcc_ns3::Conventions conventions(settings, plan.topology);
  const CongestionSettings congestion = read_congestion(
      hosts.section("congestion_control", "algorithm"), rates_of_hosts(plan.topology), "dcqcn",
      [&](std::string_view, Rate line_rate) { return conventions.congestion(line_rate); });
  conventions.follow(network);
  if (!switches.section("forwarding", "mode").has("latency"))
    network.switches.forwarding.latency = Duration();
  network.host = [usual = network.host, conventions, congestion](const LinkConfig& link) {
    HostConfig host = usual(link);
    conventions.follow(host, link, congestion(link.rate));
    return host;
  };
  network.switch_port =
      [usual = network.switch_port, conventions, has_alpha = switches.has("alpha"),
       has_headroom = switches.text("headroom", "auto") != "auto"](const LinkConfig& link) {
        SwitchPortConfig port = usual(link);
        if (!has_alpha) port.buffer.alpha = conventions.buffer(link).alpha;
        if (!has_headroom) port.buffer.headroom = conventions.buffer(link).headroom;
        return port;
      };
}

}  // namespace

void read_compat(Section& root, const Plan& plan, NetworkConfig& network) {
  static constexpr std::array<std::string_view, 2> kModels = {"none", "hpcc_ns3"};
  if (root.choice("compat", 0, kModels) == 0) return;
  if (network.technology != Technology::kRoCEv2)
    return root.complain("compat",
                         fmt::format("that model has no {}", name_of(network.technology)));
  follow_hpcc_ns3(root, plan, network);
}

}  // namespace verbena::fabric
