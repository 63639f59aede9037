#include "management/performance_agent.h"

#include <algorithm>

#include "base/bytes.h"

namespace verbena::management {
namespace {

constexpr std::size_t kDataAt = 64;  // behind 40 reserved bytes
constexpr u8 kVersion = 1, kAllPorts = 0xff;
constexpr Component kPortSelect{8, 8}, kCounterSelect{16, 16}, kCounterSelect2{144, 8};

// Counter: a counter of PortCounters: its place, the bit of CounterSelect that clears it, and the
// quantity that it counts.
struct Counter {
  Component component;
  u8 select_bit;
  u64 PortTraffic::*total;
  u32 bytes_of_unit = 1;
};
constexpr u8 kSecondSelect = 16;  // bit 0 of CounterSelect2
constexpr std::array kClassic = {
    Counter{{32, 16}, 0, &PortTraffic::symbol_errors},
    Counter{{48, 8}, 1, &PortTraffic::link_error_recovery},
    Counter{{56, 8}, 2, &PortTraffic::link_downed},
    Counter{{64, 16}, 3, &PortTraffic::receive_errors},
    Counter{{96, 16}, 5, &PortTraffic::receive_switch_relay_errors},
    Counter{{112, 16}, 6, &PortTraffic::transmit_discards},
    Counter{{136, 8}, 8, &PortTraffic::receive_constraint_errors},
    Counter{{152, 4}, 9, &PortTraffic::local_link_integrity_errors},
    Counter{{156, 4}, 10, &PortTraffic::excessive_buffer_overrun_errors},
    Counter{{176, 16}, 11, &PortTraffic::vl15_dropped},
    Counter{{192, 32}, 12, &PortTraffic::sent_bytes, 4},
    Counter{{224, 32}, 13, &PortTraffic::received_bytes, 4},
    Counter{{256, 32}, 14, &PortTraffic::sent_packets},
    Counter{{288, 32}, 15, &PortTraffic::received_packets},
    Counter{{320, 32}, kSecondSelect, &PortTraffic::transmit_wait}};
constexpr std::array kExtended = {Counter{{64, 64}, 0, &PortTraffic::sent_bytes, 4},
                                  Counter{{128, 64}, 1, &PortTraffic::received_bytes, 4},
                                  Counter{{192, 64}, 2, &PortTraffic::sent_packets},
                                  Counter{{256, 64}, 3, &PortTraffic::received_packets},
                                  Counter{{320, 64}, 4, &PortTraffic::sent_unicast},
                                  Counter{{384, 64}, 5, &PortTraffic::received_unicast},
                                  Counter{{448, 64}, 6, &PortTraffic::sent_multicast},
                                  Counter{{512, 64}, 7, &PortTraffic::received_multicast}};

u64 value_of(const NodePort& port, const Counter& counter) {
  const u64 since = port.traffic.*counter.total - port.cleared.*counter.total;
  const u64 most =
      counter.component.width == 64 ? ~u64{0} : (u64{1} << counter.component.width) - 1;
  return std::min(since / counter.bytes_of_unit, most);  // they stop at their largest value
}

using Ports = std::span<NodePort>;

// The ports that a request names; none: it names no port of the node.
Ports ports_of(Node& node, u8 select) {
  if (select == kAllPorts) return std::span(node.ports).subspan(1);
  if (select > node.config.ports || (select == 0 && !node.is_switch())) return {};
  return std::span(node.ports).subspan(select, 1);
}

void read(Ports ports, std::span<const Counter> counters, std::span<u8> data) {
  for (const Counter& counter : counters) {
    u64 sum = 0;
    for (const NodePort& port : ports) sum += value_of(port, counter);
    const u8 width = counter.component.width;
    put(data, counter.component, width == 64 ? sum : std::min(sum, (u64{1} << width) - 1));
  }
}

void clear(Ports ports, std::span<const Counter> counters, u32 select) {
  for (NodePort& port : ports)
    for (const Counter& counter : counters)
      if ((select >> counter.select_bit & 1) != 0)
        port.cleared.*counter.total = port.traffic.*counter.total;
}

MADStatus counters(Node& node, std::span<const Counter> all, bool is_set, u32 select,
                   std::span<u8> data) {
  const Ports ports = ports_of(node, static_cast<u8>(get(data, kPortSelect)));
  if (ports.empty()) return MADStatus::kInvalidField;
  if (is_set) clear(ports, all, select);
  std::ranges::fill(data.subspan(4), u8{0});
  read(ports, all, data);
  return MADStatus::kOk;
}

MADStatus class_port_info(bool is_set, std::span<u8> data) {
  using namespace class_port_info;
  if (is_set) return MADStatus::kUnsupportedAttribute;
  std::ranges::fill(data, u8{0});
  put(data, kBaseVersion, 1);
  put(data, kClassVersion, kVersion);
  put(data, kCapabilityMask, kAllPortSelect | kIsExtendedWidthSupported | kIsPortXmitWaitSupported);
  put(data, kRespTimeValue, 8);
  return MADStatus::kOk;
}

MADStatus attribute(Node& node, u16 id, bool is_set, std::span<u8> data) {
  const auto select = static_cast<u32>(get(data, kCounterSelect));
  switch (PerfAttribute{id}) {
    case PerfAttribute::kClassPortInfo: return class_port_info(is_set, data);
    case PerfAttribute::kPortCounters:
      return counters(node, kClassic, is_set,
                      select | static_cast<u32>(get(data, kCounterSelect2)) << kSecondSelect, data);
    case PerfAttribute::kPortCountersExtended:
      return counters(node, kExtended, is_set, select, data);
  }
  return MADStatus::kUnsupportedAttribute;
}

}  // namespace

bool answer_performance(Node& node, u8 /*in*/, std::span<u8, kMADSize> mad) {
  const std::optional<MADHeader> header = MADHeader::decode(mad);
  if (!header) return false;
  const bool is_set = header->method == MADMethod::kSet;
  if (header->method != MADMethod::kGet && !is_set) return false;
  MADHeader answer = *header;
  answer.method = MADMethod::kGetResp;
  answer.status =
      static_cast<u16>(header->class_version == kVersion
                           ? attribute(node, header->attribute_id, is_set, mad.subspan(kDataAt))
                           : MADStatus::kBadClassOrVersion);
  answer.encode(mad.first<MADHeader::kSize>());
  return true;
}

}  // namespace verbena::management
