// StorageReads: the GPUs' NICs as hosts of NVMe over Fabrics, and storage servers as its targets,
// on a simulated network: the code of `verbena nvmf` (nvmf/target.h, nvmf/initiator.h), with
// namespaces that have no contents. Each GPU reads blocks at its rate, from its servers in turns;
// where as many are outstanding as its queue holds, the next one waits. Reading begins when the
// GPU's controllers are connected.
//
// Each call of the network belongs to one host, and touches what is that host's alone.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fabric/network.h"
#include "fabric/nodes/simulated_nodes.h"
#include "jobs/cluster.h"
#include "jobs/storage/storage_config.h"

namespace verbena::jobs {

// StorageRead: a read that has ended.
struct StorageRead {
  u32 gpu = 0, server = 0;  // by its place among the servers
  Time begin, end;          // its command posted, the response there
};

class StorageReads final : public fabric::Application {
 public:
  // Its connections are those numbered `first_connection` and on. All arguments outlive it.
  StorageReads(const StorageConfig& config, const Cluster& cluster, fabric::Network& network,
               u32 first_connection, u32 word_mark, u64 seed);
  ~StorageReads() override;
  StorageReads(const StorageReads&) = delete;
  StorageReads& operator=(const StorageReads&) = delete;
  // Returns the reason why the reads are impossible, or "".
  [[nodiscard]] const std::string& mistake() const { return mistake_; }
  void start();  // now
  // Call between the network's runs. Returns the reads that have ended until then, GPU after GPU.
  [[nodiscard]] std::vector<StorageRead> reads_until(Time end) const;

  void on_arrival(u32 connection, u32 word, Time now) override {
    nodes_->on_arrival(connection, word, now);
  }
  void on_sent(u32 connection, Time now) override { nodes_->on_sent(connection, now); }
  void on_alarm(u32 word, Time now) override { nodes_->on_alarm(word, now); }

 private:
  class Server;
  class Reader;
  class Host;

  [[nodiscard]] u32 servers_of_gpu() const;
  [[nodiscard]] u32 server_of(u32 gpu, u32 path) const;
  void make_servers();
  void make_hosts(u64 seed);

  const StorageConfig& config_;
  const Cluster& cluster_;
  std::string mistake_;
  std::unique_ptr<fabric::SimulatedNodes> nodes_;
  std::vector<std::unique_ptr<Server>> servers_;
  std::vector<std::unique_ptr<Host>> hosts_;      // by NIC, in the order of the first GPU
  std::vector<std::unique_ptr<Reader>> readers_;  // by GPU
};

}  // namespace verbena::jobs
