// Tuning for NICs: a shell script of the vendors' tools. Its arguments are the NIC's driver,
// network interface and RDMA device.
//   mlx5     NVIDIA, MLNX_OFED Documentation v24.10: Quality of Service (QoS), mlnx_qos; Explicit
//            Congestion Notification (ECN), files of sysfs
//            NVIDIA, DCQCN CC Parameters (DOCA 3.4; before, Mellanox community DOC-2790): names,
//            units, ranges. dce_tcp_g is what remains of the old alpha: 1 - g of the paper
//            NVIDIA, doroce-linux, doRoCE.sh: traffic_class, and 106 for DSCP 26 with ECT(0)
//   irdma    Intel, Ethernet 800 Series Linux Flow Control Configuration Guide for RDMA Use Cases
//            (635330): "Example 4", "Step 3: UP to TC", "Congestion Control Parameter Settings"
//            lldptool-pfc(8)
//   bnxt_re  Broadcom, bnxt_setupcc.sh 236.1.155.0: its usage
//   all      Linux, Documentation/ABI/testing/configfs-rdma_cm: default_roce_tos
// The last two drivers' names and units of DCQCN's parameters were found in no public manual.
#pragma once

#include <string>

#include "jobs/plan/tuning.h"

namespace verbena::jobs {

[[nodiscard]] std::string nic_script(const TuningRequest& request, const Tuning& tuning);

}  // namespace verbena::jobs
