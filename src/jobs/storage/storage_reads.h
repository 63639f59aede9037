// StorageReads: the GPUs' NICs as hosts of NVMe over Fabrics, and storage servers as its targets,
// on a simulated network. A read is what the RDMA transport makes of it (NVM Express over
// Fabrics 1.1, 7.3; NVMe RDMA Transport 1.0): a command capsule of 64 octets to the server, the
// data written by RDMA into the host's memory, a response capsule of 16 octets. Each GPU reads
// blocks at its rate, from its servers in turns; where as many are under way as its queue holds,
// the next one waits.
//
// Capsules go as RDMA WRITEs with immediate data, as all messages of an application do here: 20
// octets of headers more than the SENDs that they are on a real wire.
//
// Each call of the network belongs to one host, and touches what is that host's alone: a GPU's
// reads, or one of the servers' outboxes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fabric/network.h"
#include "jobs/cluster.h"
#include "jobs/storage/outbox.h"
#include "jobs/storage/storage_config.h"

namespace verbena::jobs {

// One that has ended.
struct StorageRead {
  u32 gpu = 0, server = 0;  // by its place among the servers
  Time begin, end;          // its command posted, the response there
};

class StorageReads final : public fabric::Application {
 public:
  static constexpr u32 kCommandOctets = 64, kResponseOctets = 16;

  // Its connections are those numbered `first_connection` and on. All arguments outlive it.
  StorageReads(const StorageConfig& config, const Cluster& cluster, fabric::Network& network,
               u32 first_connection, u32 word_mark, u64 seed);
  // What makes it impossible; "": nothing.
  [[nodiscard]] const std::string& mistake() const { return mistake_; }
  void start();  // now
  // Between the network's runs: what has ended until then, GPU after GPU.
  [[nodiscard]] std::vector<StorageRead> reads_until(Time end) const;

  void on_arrival(u32 connection, u32 word, Time now) override;
  void on_sent(u32 connection, Time now) override;
  void on_alarm(u32 word, Time now) override;

 private:
  struct alignas(64) Reader {
    Time next;                 // when the next read is due
    u64 begun = 0;             // reads
    std::vector<u32> free;     // slots of the queue
    std::vector<Time> posted;  // by slot
    std::vector<StorageRead> ended;
  };
  // Of a connection pair: commands one way, data and responses the other.
  struct Path {
    u32 gpu = 0, server = 0;
    Outbox commands, answers;
  };
  enum class Kind : u8 { kData, kResponse };

  void connect(u32 gpu, u32 server);
  void read(u32 gpu, Time now);
  void begin(u32 gpu, Time now);
  void answer(u32 path, u32 slot);
  void end(u32 path, u32 slot, Time now);
  [[nodiscard]] u64 blocks() const;
  [[nodiscard]] Duration interval() const;

  const StorageConfig config_;
  const Cluster& cluster_;
  fabric::Network& network_;
  const u32 first_connection_;
  const u32 word_mark_;  // set in the words of all its alarms
  const u32 paths_per_gpu_;
  std::vector<Reader> readers_;
  std::vector<Path> paths_;  // of each GPU one after another
  std::string mistake_;
};

}  // namespace verbena::jobs
