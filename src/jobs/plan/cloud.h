// The steps to get the cluster of a cloud's preset: a checklist, and a blueprint of Google's
// Cluster Toolkit. Presets of clusters that their owners build have neither.
//   Google Cloud, AI Hypercomputer: Obtain capacity; Choose a consumption option; Network profiles
//     for specific use cases (RoCE VPC networks); Use NCCL/gIB
//   Google Cloud, GKE: Maximize GPU network bandwidth (GPUDirect-TCPXO)
//   GoogleCloudPlatform/cluster-toolkit: modules/network/vpc, multivpc, gpu-rdma-vpc;
//     community/modules/compute/schedmd-slurm-gcp-v6-nodeset, -partition; scheduler/...-controller
// Nobody has tried the steps on the cloud.
#pragma once

#include "jobs/job.h"
#include "jobs/plan/plan_report.h"

namespace verbena::jobs {

// Returns the files, with the figures measured there, to compare with those of nccl-tests. Returns
// no files without a cloud's preset.
[[nodiscard]] std::vector<PlanFile> cloud_files(const Job& job, const std::vector<Candidate>& all);

}  // namespace verbena::jobs
