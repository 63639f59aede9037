#include "jobs/plan/nic_script.h"

#include <fmt/format.h>

#include "fabric/scenario/units.h"

namespace verbena::jobs {
namespace {

using namespace fmt::literals;

constexpr u32 kData = Tuning::kDataPriority, kNotification = Tuning::kNotificationPriority;
constexpr u64 kMostByteReset = 32767;  // of rpg_byte_reset

u64 megabits(Rate rate) { return rate.bps() / 1'000'000; }
i64 microseconds(Duration duration) { return duration.ps() / 1'000'000; }

// "0,0,0,1,0,0,0,0"
std::string mask(u32 priority) {
  std::string text;
  for (u32 i = 0; i < 8; ++i) text += fmt::format("{}{}", i == 0 ? "" : ",", i == priority ? 1 : 0);
  return text;
}

std::string byte_reset(u64 bytes) {
  if (bytes > kMostByteReset)
    return fmt::format("  # rpg_byte_reset takes {} at most, not {}: left as it is\n",
                       kMostByteReset, bytes);
  return fmt::format("  echo {} > \"$ecn/roce_rp/rpg_byte_reset\"\n", bytes);
}

std::string mlx5(const TuningRequest& request, const Tuning& tuning) {
  const DCQCNParameters& d = tuning.dcqcn;
  return fmt::format(
      R"(mlx5)
  mlnx_qos -i "$interface" --trust=dscp --pfc={mask} --cable_len={cable}
  mlnx_qos -i "$interface" --dscp2prio=set,{data_dscp},{data}
  mlnx_qos -i "$interface" --dscp2prio=set,{notification_dscp},{notification}
  set_default_tos
  echo $tos > "/sys/class/infiniband/$device/tc/1/traffic_class"
  ecn=/sys/class/net/$interface/ecn
  echo 1 > "$ecn/roce_np/enable/{data}"
  echo 1 > "$ecn/roce_rp/enable/{data}"
  echo {notification_dscp} > "$ecn/roce_np/cnp_dscp"
  echo {notification} > "$ecn/roce_np/cnp_802p_prio"
  echo {cnp_interval} > "$ecn/roce_np/min_time_between_cnps"
  echo {additive} > "$ecn/roce_rp/rpg_ai_rate"
  echo {hyper} > "$ecn/roce_rp/rpg_hai_rate"
  echo {least} > "$ecn/roce_rp/rpg_min_rate"
  echo {time_reset} > "$ecn/roce_rp/rpg_time_reset"
  echo {threshold} > "$ecn/roce_rp/rpg_threshold"
  echo {old_alpha} > "$ecn/roce_rp/dce_tcp_g"
  echo {alpha_interval} > "$ecn/roce_rp/dce_tcp_rtt"
{byte_reset}  ;;
)",
      "mask"_a = mask(kData), "cable"_a = request.cable_metres, "data_dscp"_a = Tuning::kDataDSCP,
      "data"_a = kData, "notification_dscp"_a = Tuning::kNotificationDSCP,
      "notification"_a = kNotification,
      "cnp_interval"_a = microseconds(tuning.notification.cnp_interval),
      "additive"_a = megabits(d.additive_increase), "hyper"_a = megabits(d.hyper_increase),
      "least"_a = megabits(d.min_rate), "time_reset"_a = microseconds(d.increase_interval),
      "threshold"_a = d.fast_recovery, "old_alpha"_a = dce_tcp_g(d),
      "alpha_interval"_a = microseconds(d.alpha_interval),
      "byte_reset"_a = byte_reset(d.byte_counter));
}

std::string irdma() {
  return fmt::format(R"(irdma)
  # lldpad must run. The parameters of DCQCN are left as they are: no public manual was found.
  ethtool -A "$interface" rx off tx off
  ethtool --set-priv-flags "$interface" fw-lldp-agent off
  lldptool -L -i "$interface" adminStatus=rxtx
  lldptool -T -i "$interface" -V PFC willing=no enabled={data}
  dcb app add dev "$interface" dscp-prio {data_dscp}:{data} {notification_dscp}:{notification}
  set_default_tos
  mkdir -p "/sys/kernel/config/irdma/$device"
  echo 1 > "/sys/kernel/config/irdma/$device/roce_dcqcn_enable"
  ;;
)",
                     "data"_a = kData, "data_dscp"_a = Tuning::kDataDSCP,
                     "notification_dscp"_a = Tuning::kNotificationDSCP,
                     "notification"_a = kNotification);
}

std::string bnxt() {
  return fmt::format(R"(bnxt_re)
  # The parameters of DCQCN are left as they are: no public manual was found.
  bnxt_setupcc.sh -d "$device" -i "$interface" -m 3 -s {} -r {} -p {} -c {}
  set_default_tos
  ;;
)",
                     Tuning::kDataDSCP, kData, Tuning::kNotificationDSCP, kNotification);
}

}  // namespace

std::string nic_script(const TuningRequest& request, const Tuning& tuning) {
  constexpr u32 kECT0 = 2;
  return fmt::format(R"(#!/bin/sh
# RoCEv2 on {rate} links, cables of {cable} m
# As root: sh THIS mlx5 eth2 mlx5_0
set -eu
if [ $# -ne 3 ]; then
  echo "usage: sh $0 mlx5|irdma|bnxt_re INTERFACE DEVICE" >&2
  exit 2
fi
interface=$2
device=$3
tos={tos}  # DSCP {dscp}, ECT(0)

set_default_tos() {{
  mkdir -p "/sys/kernel/config/rdma_cm/$device"
  echo $tos > "/sys/kernel/config/rdma_cm/$device/ports/1/default_roce_tos"
}}

case $1 in
)",
                     "rate"_a = fabric::rate_text(static_cast<double>(request.rate.bps())),
                     "cable"_a = request.cable_metres, "tos"_a = Tuning::kDataDSCP * 4 + kECT0,
                     "dscp"_a = Tuning::kDataDSCP) +
         mlx5(request, tuning) + irdma() + bnxt() +
         "*)\n  echo \"$1: none of mlx5, irdma, bnxt_re\" >&2\n  exit 2\n  ;;\nesac\n";
}

}  // namespace verbena::jobs
