#include "jobs/plan/cloud.h"

#include <array>

#include <fmt/format.h>

#include "fabric/scenario/units.h"

namespace verbena::jobs {
namespace {

struct Cloud {
  std::string_view preset, machine, gpus, rate;
  fabric::Technology technology;
  std::string_view network;  // step of the checklist
  std::string_view plugin;   // likewise
  std::string_view zone;     // an example
};

constexpr std::array kClouds = {
    Cloud{
        .preset = "cloud_roce_3200",
        .machine = "a3-ultragpu-8g",
        .gpus = "8 H200",
        .rate = "3,200 Gb/s of RoCE",
        .technology = fabric::Technology::kRoCEv2,
        .network =
            R"(- [ ] Two ordinary VPC networks for the two Titanium NICs (management, storage), MTU 8896
- [ ] One VPC network with the RoCE network profile of the zone:
      `gcloud compute network-profiles list --filter=roce`, then
      `gcloud compute networks create NAME --network-profile=ZONE-vpc-roce --subnet-mode=custom --mtu=8896`
- [ ] In it a subnet for each of the 8 RDMA NICs, with addresses for all nodes
- [ ] Each VM: 2 interfaces of type GVNIC, 8 of type MRDMA, one in each subnet
- [ ] PFC, ECN and congestion control are the cloud's: nothing is to be tuned
)",
        .plugin =
            R"(- [ ] NCCL with the cloud's plugin for RoCE (gIB): `NCCL_NET=gIB`, and source its `set_nccl_env.sh`
- [ ] `ibv_devinfo` shows 8 devices, PORT_ACTIVE; `nvidia-smi topo -m` shows a NIC beside each GPU
)",
        .zone = "europe-west1-b"},
    Cloud{
        .preset = "cloud_tcp_1600",
        .machine = "a3-megagpu-8g",
        .gpus = "8 H100",
        .rate = "1,600 Gb/s of GPUDirect-TCPXO",
        .technology = fabric::Technology::kTCP,
        .network =
            R"(- [ ] One VPC network for management, and 8 more for the GPUs' NICs, each with its own subnet, MTU 8244
- [ ] Firewall rules: all TCP, UDP and ICMP between the nodes in each of the 8
- [ ] Each VM: 9 interfaces of type GVNIC, one in each network
)",
        .plugin =
            R"(- [ ] The image has dmabuf-import-helper and the GPUDirect-TCPXO devices are bound
- [ ] On each node the receive datapath manager (RxDM) runs before a job and ends after it
- [ ] NCCL with the TCPXO plugin (FasTrak): its folder in `LD_LIBRARY_PATH`, its environment sourced
)",
        .zone = "us-central1-a"},
};

const Cloud* cloud_of(const Job& job) {
  for (const Cloud& cloud : kClouds)
    if (job.preset == cloud.preset) return &cloud;
  return nullptr;
}

const Candidate* of_cloud(const Cloud& cloud, const std::vector<Candidate>& all) {
  for (const Candidate& candidate : all)
    if (candidate.technology == cloud.technology && candidate.is_done() &&
        candidate.topology.empty())
      return &candidate;
  return nullptr;
}

std::string expectation(const Candidate* simulated) {
  if (simulated == nullptr) return "";
  const Measured& m = simulated->measured;
  return fmt::format(
      "- [ ] Compare with the simulation: {}, busbw {:.0f} GB/s ({}). Much less: look "
      "for a NIC that is down, a\n      node outside of the block, ranks that are not "
      "in the order of the GPUs\n",
      fabric::duration_text(m.time), m.bus_bandwidth / 1e9, m.name);
}

std::string test_program(const Job& job) {
  if (job.shapes.empty()) return "all_reduce_perf";
  switch (job.shapes.front().operation) {
    case collectives::Operation::kAllReduce: return "all_reduce_perf";
    case collectives::Operation::kAllGather: return "all_gather_perf";
    case collectives::Operation::kReduceScatter: return "reduce_scatter_perf";
    case collectives::Operation::kAllToAll: return "alltoall_perf";
    case collectives::Operation::kBroadcast: return "broadcast_perf";
    case collectives::Operation::kSendReceive: return "sendrecv_perf";
  }
  CHECK_UNREACHABLE();
}

std::string checklist(const Cloud& cloud, const Job& job, const Candidate* simulated) {
  using namespace fmt::literals;
  const u32 nodes = job.cluster.ranks() / job.cluster.gpus_per_node;
  const u64 size = job.shapes.empty() ? 1u << 30 : job.shapes.front().bytes;
  return fmt::format(R"(# {nodes} x {machine}: {gpus} and {rate} each

From `verbena plan`, preset {preset}. Written from the cloud's documentation, not tried: check each
command against the release that you use.

## Capacity
- [ ] Choose one: a reservation of {nodes} VMs close together (dense deployment), asked for from the account
      team; DWS calendar mode, for a fixed time from a fixed date; DWS flex-start, as soon as there are
      that many, for up to 7 days; spot, for what may be ended at any time
- [ ] Quota in the region: {total} GPUs of that kind, {nodes} VMs, local SSD, addresses
- [ ] `gcloud compute reservations describe NAME --zone=ZONE` shows {nodes} x {machine}, with its blocks

## Placement
- [ ] All nodes in one block, or in neighbouring sub-blocks: a compact placement policy (`resourcePolicies`),
      or the block's name in the reservation affinity (`NAME/reservationBlocks/BLOCK`)
- [ ] Slurm's or Kueue's topology awareness is on, so that ranks in order are neighbours, as simulated

## Networks
{network}
## Blueprint
- [ ] Fill in project, zone and reservation in blueprint.yaml
- [ ] `gcluster create blueprint.yaml`, read what it plans, `gcluster deploy DEPLOYMENT`

## Software
{plugin}
## Verify
- [ ] Two nodes: `{program} -b 1M -e 8G -f 2 -g 1` with 16 ranks; then all {total} ranks:
      `{program} -b {size} -e {size} -g 1`
{expectation}- [ ] Keep the output; run it again after each maintenance
)",
                     "nodes"_a = nodes, "machine"_a = cloud.machine, "gpus"_a = cloud.gpus,
                     "rate"_a = cloud.rate, "preset"_a = cloud.preset,
                     "total"_a = job.cluster.ranks(), "network"_a = cloud.network,
                     "plugin"_a = cloud.plugin, "program"_a = test_program(job), "size"_a = size,
                     "expectation"_a = expectation(simulated));
}

// Networks of the GPUs' NICs, and how nodes are joined to them.
std::string networks_of(const Cloud& cloud) {
  if (cloud.technology == fabric::Technology::kTCP)
    return R"(
  - id: gpu_networks  # one for each NIC
    source: modules/network/multivpc
    settings:
      network_name_prefix: $(vars.deployment_name)-gpu
      global_ip_address_range: 10.0.0.0/9
      network_count: 8
      subnetwork_cidr_suffix: 20
)";
  return R"(
  - id: second_network  # of the second Titanium NIC
    source: modules/network/vpc
    settings:
      network_name: $(vars.deployment_name)-net-1
      mtu: 8896

  - id: gpu_networks  # one, with a subnet for each NIC
    source: modules/network/gpu-rdma-vpc
    settings:
      network_name: $(vars.deployment_name)-rdma
      network_profile: https://www.googleapis.com/compute/beta/projects/$(vars.project_id)/global/networkProfiles/$(vars.zone)-vpc-roce
      network_routing_mode: REGIONAL
      subnetworks_template:
        name_prefix: $(vars.deployment_name)-rdma-sub
        count: 8
        ip_range: 192.168.128.0/18
        region: $(vars.region)
)";
}

std::string interfaces_of(const Cloud& cloud) {
  if (cloud.technology == fabric::Technology::kTCP) return "    use: [network, gpu_networks]\n";
  return "    use: [network]\n";
}

std::string additional_of(const Cloud& cloud) {
  if (cloud.technology == fabric::Technology::kTCP) return "";
  return R"(      additional_networks:
        $(concat(
          [{network=null, subnetwork=second_network.subnetwork_self_link,
            subnetwork_project=vars.project_id, nic_type="GVNIC", queue_count=null, network_ip="",
            stack_type=null, access_config=[], ipv6_access_config=[], alias_ip_range=[]}],
          gpu_networks.subnetwork_interfaces))
)";
}

std::string blueprint(const Cloud& cloud, const Job& job) {
  using namespace fmt::literals;
  const std::string_view zone = cloud.zone;
  return fmt::format(
      R"(# {nodes} x {machine} under Slurm, for Google's Cluster Toolkit. From `verbena plan`, preset {preset};
# not tried: compare with the toolkit's own example for {machine}, which also builds an image.
blueprint_name: verbena-{machine}

vars:
  project_id:   # yours
  deployment_name: verbena
  region: {region}
  zone: {zone}
  reservation_name:   # yours; with DWS flex-start leave it empty and set dws_flex below
  instance_image:   # with driver, NCCL plugin and Slurm: family and project
    family: verbena-{machine}
    project: $(vars.project_id)

deployment_groups:
- group: primary
  modules:
  - id: network
    source: modules/network/vpc
    settings:
      network_name: $(vars.deployment_name)-net-0
      mtu: {mtu}
{networks}
  - id: home
    source: modules/file-system/filestore
    use: [network]
    settings:
      filestore_tier: HIGH_SCALE_SSD
      size_gb: 10240
      local_mount: /home

- group: cluster
  modules:
  - id: nodes
    source: community/modules/compute/schedmd-slurm-gcp-v6-nodeset
{use}    settings:
      machine_type: {machine}
      node_count_static: {nodes}
      node_count_dynamic_max: 0
      enable_placement: false  # the reservation is dense
      reservation_name: $(vars.reservation_name)
      dws_flex: {{enabled: false}}
      on_host_maintenance: TERMINATE
      bandwidth_tier: gvnic_enabled
      instance_image_custom: true
{additional}
  - id: partition
    source: community/modules/compute/schedmd-slurm-gcp-v6-partition
    use: [nodes]
    settings:
      partition_name: gpus
      is_default: true
      exclusive: false

  - id: login
    source: community/modules/scheduler/schedmd-slurm-gcp-v6-login
    use: [network]
    settings: {{machine_type: n2-standard-8, instance_image_custom: true}}

  - id: controller
    source: community/modules/scheduler/schedmd-slurm-gcp-v6-controller
    use: [network, partition, login, home]
    settings: {{machine_type: n2-standard-32, instance_image_custom: true}}
)",
      "nodes"_a = job.cluster.ranks() / job.cluster.gpus_per_node, "machine"_a = cloud.machine,
      "preset"_a = cloud.preset, "region"_a = zone.substr(0, zone.rfind('-')), "zone"_a = zone,
      "mtu"_a = cloud.technology == fabric::Technology::kTCP ? 8244 : 8896,
      "networks"_a = networks_of(cloud), "use"_a = interfaces_of(cloud),
      "additional"_a = additional_of(cloud));
}

}  // namespace

std::vector<PlanFile> cloud_files(const Job& job, const std::vector<Candidate>& all) {
  const Cloud* const cloud = cloud_of(job);
  if (cloud == nullptr) return {};
  return {{"deployment.md", checklist(*cloud, job, of_cloud(*cloud, all))},
          {"blueprint.yaml", blueprint(*cloud, job)}};
}

}  // namespace verbena::jobs
