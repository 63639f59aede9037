#include "jobs/plan/bill.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "fabric/scenario/units.h"

namespace verbena::jobs {
namespace {

constexpr i64 kPicosecondsPerMetre = 5000;

std::string rate_text(Rate rate) { return fabric::rate_text(static_cast<double>(rate.bps())); }

std::string source_of(std::string_view source, u32 year) {
  return fmt::format("{}, {}", source, year);
}

class Builder {
 public:
  explicit Builder(const BillRequest& request) : request_(request) {}

  Bill build() {
    collect_ports();
    add_nics();
    add_switches();
    add_cables();
    for (const auto& [what, item] : items_) {
      bill_.items.push_back(item);
      bill_.dollars += item.dollars;
      bill_.watts += item.watts;
    }
    return std::move(bill_);
  }

 private:
  bool speaks(Technologies technologies) const {
    return (technologies & bit(request_.technology)) != 0;
  }
  // Counts the links of each rate at each node.
  void collect_ports() {
    ports_.resize(request_.plan.topology.nodes);
    for (const fabric::TopologyLink& link : request_.plan.topology.links)
      for (const fabric::NodeIndex node : {link.a, link.b}) ++ports_[node][link.config.rate];
  }
  void add(std::string_view what, double count, Range dollars, Range watts, std::string source) {
    BillItem& item = items_[std::string(what)];
    item.what = what;
    item.count += static_cast<u64>(count);
    item.dollars += dollars * count;
    item.watts += watts * count;
    item.source = std::move(source);
  }
  void miss(const std::string& what) {
    if (bill_.shortfall.find(what) == std::string::npos)
      bill_.shortfall += (bill_.shortfall.empty() ? "" : "; ") + what;
  }

  static double cards(const NICModel& nic, Rate rate) {
    return std::ceil(static_cast<double>(rate.bps()) / static_cast<double>(nic.rate.bps()));
  }
  const NICModel* nic_for(Rate rate) const {
    if (request_.preset != nullptr) {
      const NICModel* const own = nic_named(request_.preset->nic);
      if (own != nullptr && speaks(own->speaks) && own->rate >= rate) return own;
    }
    const NICModel* best = nullptr;
    for (const NICModel& nic : nic_models()) {
      if (!speaks(nic.speaks)) continue;
      const auto cost = [rate](const NICModel& one) {
        return std::pair(one.rate < rate, cards(one, rate) * one.dollars.middle());
      };
      if (best == nullptr || cost(nic) < cost(*best)) best = &nic;
    }
    return best;
  }
  void add_nics() {
    for (const fabric::NodeIndex host : request_.plan.hosts) {
      u64 bps = 0;
      for (const auto& [rate, count] : ports_[host]) bps += rate.bps() * count;
      const Rate rate = Rate::from_bps(bps);
      const NICModel* const nic = nic_for(rate);
      add(nic->name, cards(*nic, rate), nic->dollars, nic->watts,
          source_of(nic->dollars_source, nic->year));
      if (nic->rate < rate)
        miss(fmt::format("no NIC of the catalogue speaks {} at {}; {:.0f} x {} of {} are counted",
                         name_of(request_.technology), rate_text(rate), cards(*nic, rate),
                         nic->name, rate_text(nic->rate)));
    }
  }

  // Returns the part of the model's ports that `ports` take.
  static double part_of(const SwitchModel& model, const std::map<Rate, u32>& ports) {
    double part = 0;
    for (const auto& [rate, count] : ports) {
      const u64 split = std::max<u64>(1, model.port_rate.bps() / rate.bps());
      const double most =
          std::min<double>(static_cast<double>(model.ports * split), model.most_ports);
      const double each = rate > model.port_rate
                              ? std::ceil(static_cast<double>(rate.bps()) /
                                          static_cast<double>(model.port_rate.bps()))
                              : 1;
      part += count * each / most;
    }
    return part;
  }
  static double boxes(const SwitchModel& model, const std::map<Rate, u32>& ports) {
    const double part = part_of(model, ports);
    return part <= 1 + 1e-9 ? 1 : std::ceil(2 * part) + std::ceil(part);
  }
  const SwitchModel* switch_for(const std::map<Rate, u32>& ports) const {
    if (request_.preset != nullptr) {
      const SwitchModel* const own = switch_named(request_.preset->switch_model);
      if (own != nullptr && speaks(own->speaks)) return own;
    }
    const SwitchModel* best = nullptr;
    const auto cost = [&](const SwitchModel& one) {
      return std::pair(is_too_fast(one, ports), boxes(one, ports) * one.dollars.middle());
    };
    for (const SwitchModel& model : switch_models())
      if (speaks(model.speaks) && (best == nullptr || cost(model) < cost(*best))) best = &model;
    return best;
  }
  static bool is_too_fast(const SwitchModel& model, const std::map<Rate, u32>& ports) {
    return !ports.empty() && ports.rbegin()->first > model.port_rate;
  }
  void add_switches() {
    for (fabric::NodeIndex node = 0; node < request_.plan.topology.nodes; ++node) {
      if (!request_.plan.topology.is_switch[node]) continue;
      const SwitchModel* const model = switch_for(ports_[node]);
      add(model->name, boxes(*model, ports_[node]), model->dollars, model->watts,
          source_of(model->dollars_source, model->year));
      bill_.switch_buffer_bytes = model->buffer_bytes;
      if (is_too_fast(*model, ports_[node]))
        miss(fmt::format("no switch of the catalogue has {} at {}; several ports of {} are counted",
                         name_of(request_.technology), rate_text(ports_[node].rbegin()->first),
                         model->name));
    }
  }

  const CableModel* cable_for(Rate rate, u32 metres) const {
    const CableModel* best = nullptr;
    const auto cost = [&](const CableModel& one) {
      return std::pair(one.rate < rate || one.most_metres < metres, one.dollars.middle());
    };
    for (const CableModel& cable : cable_models())
      if (speaks(cable.speaks) && (best == nullptr || cost(cable) < cost(*best))) best = &cable;
    return best;
  }
  void add_cables() {
    for (const fabric::TopologyLink& link : request_.plan.topology.links) {
      const Rate rate = link.config.rate;
      const u32 metres =
          request_.cable_metres != 0 ? request_.cable_metres : metres_of(link.config.delay);
      const CableModel* const cable = cable_for(rate, metres);
      const double count =
          std::ceil(static_cast<double>(rate.bps()) / static_cast<double>(cable->rate.bps()));
      add(cable->name, count, cable->dollars, cable->watts, source_of(cable->source, cable->year));
    }
  }

  const BillRequest& request_;
  std::vector<std::map<Rate, u32>> ports_;  // by node
  std::map<std::string, BillItem> items_;
  Bill bill_;
};

}  // namespace

Bill bill_of(const BillRequest& request) { return Builder(request).build(); }

u32 metres_of(Duration delay) {
  return static_cast<u32>((delay.ps() + kPicosecondsPerMetre - 1) / kPicosecondsPerMetre);
}

}  // namespace verbena::jobs
