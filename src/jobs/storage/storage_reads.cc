#include "jobs/storage/storage_reads.h"

#include <algorithm>
#include <map>
#include <utility>

#include "application/shared_node.h"
#include "base/check.h"
#include "base/prng.h"
#include "nvmf/initiator.h"
#include "nvmf/memory_store.h"
#include "nvmf/simulated_store.h"
#include "nvmf/target.h"

namespace verbena::jobs {
namespace {

constexpr std::string_view kTrainingData = "nqn.2026-01.io.verbena:training-data";
constexpr u16 kStoragePort = 4420;
constexpr u32 kChannels = 2;  // of an association: the admin queue, and one for I/O
// With few receives a sender runs out of credits, and a message waits for an acknowledgement.
constexpr u32 kSpareMessages = 8;
constexpr u16 kAdminEntries = 4;
constexpr u64 kBlocks = 1024;  // of a namespace, in blocks of a read

// A command reads 65536 logical blocks at most.
u8 block_log2_for(u32 bytes) {
  u8 log2 = 9;
  while (bytes >> log2 > 65536 || (bytes % (u32{1} << (log2 + 1)) == 0 && log2 < 12)) ++log2;
  return log2;
}
u32 whole_blocks(u32 bytes) {
  const u32 block = u32{1} << block_log2_for(bytes);
  return (bytes + block - 1) / block * block;
}
u8 pages_log2_for(u32 bytes) {
  u8 log2 = 0;
  while (u64{4096} << log2 < bytes) ++log2;
  return log2;
}

nvmf::TargetConfig target_config(const StorageConfig& config, fabric::NodeIndex node, u32 readers) {
  nvmf::TargetConfig target;
  target.listen = fabric::node_address(node, kStoragePort);
  target.limits.max_queue_entries = static_cast<u16>(std::max(config.queue_depth + 1, 8u));
  target.limits.in_capsule_bytes = 0;
  target.limits.max_transfer_pages_log2 =
      std::max<u8>(pages_log2_for(whole_blocks(config.block_bytes)), 1);
  target.content = application::Content::kCounted;
  target.admin_data_bytes = nvme::kIdentifySize;
  target.small_buffers = 0;
  target.large_buffers = readers * config.queue_depth;
  return target;
}

}  // namespace

// The target on one storage server.
class StorageReads::Server final : public application::Program {
 public:
  Server(const StorageConfig& config, application::Node& node, fabric::NodeIndex host, u32 readers)
      : shared_(node),
        clock_(shared_.add_view()),
        store_(make_store(config)),
        subsystem_(std::string(kTrainingData)),
        target_(shared_.add_view(), target_config(config, host, readers)) {
    subsystem_.add_namespace(*store_);
    target_.add_subsystem(subsystem_);
    CHECK(target_.start() == Status::kOk);
  }
  void on_ready() override {
    shared_.dispatch();
    for (application::Event event; clock_.poll(event);) {
    }
    target_.on_ready();
  }

 private:
  std::unique_ptr<nvmf::BlockStore> make_store(const StorageConfig& config) {
    const u64 bytes = kBlocks * whole_blocks(config.block_bytes);
    const u8 log2 = block_log2_for(config.block_bytes);
    if (config.medium != Duration())
      return std::make_unique<nvmf::SimulatedStore>(clock_, bytes, log2, config.medium);
    const auto region =
        clock_.allocate(bytes, application::Content::kCounted, application::Access::kLocal);
    return std::make_unique<nvmf::MemoryStore>(*region, log2);
  }

  application::SharedNode shared_;
  application::Node& clock_;
  const std::unique_ptr<nvmf::BlockStore> store_;
  nvmf::Subsystem subsystem_;
  nvmf::Target target_;
};

// Reader: the reads of one GPU.
class StorageReads::Reader {
 public:
  // `shared` outlives it. `first`: from the connection of the controllers to the first read.
  Reader(const StorageConfig& config, u32 gpu, application::SharedNode& shared, Time first)
      : config_(config),
        gpu_(gpu),
        bytes_(whole_blocks(config.block_bytes)),
        shared_(shared),
        clock_(shared.add_view()),
        data_(*clock_.allocate(u64{bytes_} * config.queue_depth, application::Content::kCounted,
                               application::Access::kRemoteReadWrite)),
        posted_(config.queue_depth),
        next_(first) {
    for (u32 slot = config.queue_depth; slot > 0; --slot) free_.push_back(slot - 1);
  }

  void add_server(u32 server, fabric::NodeIndex host) {
    nvmf::InitiatorConfig initiator;
    initiator.target = fabric::node_address(host, kStoragePort);
    initiator.subsystem_nqn = kTrainingData;
    initiator.host_nqn = "nqn.2026-01.io.verbena:gpu" + std::to_string(gpu_);
    initiator.queue_entries = static_cast<u16>(config_.queue_depth + 1);
    initiator.admin_entries = kAdminEntries;
    initiator.keep_alive = Duration();
    paths_.push_back({server, std::make_unique<nvmf::Initiator>(shared_.add_view(), initiator)});
  }

  void start() {
    for (Path& path : paths_) path.initiator->start();
  }

  void on_ready() {
    for (application::Event event; clock_.poll(event);) {
    }
    for (Path& path : paths_) {
      path.initiator->on_ready();
      for (nvmf::Initiator::Result result; path.initiator->poll_result(result);)
        end(path, static_cast<u32>(result.tag));
    }
    read();
  }

  [[nodiscard]] const std::vector<StorageRead>& ended() const { return ended_; }

 private:
  struct Path {
    u32 server = 0;
    std::unique_ptr<nvmf::Initiator> initiator;
  };

  [[nodiscard]] Duration interval() const {
    return ps(static_cast<i64>(static_cast<double>(config_.block_bytes) * 8e12 /
                               static_cast<double>(config_.read->bps())));
  }
  [[nodiscard]] u64 blocks() const {
    return config_.amount == ~u64{0}
               ? config_.amount
               : (config_.amount + config_.block_bytes - 1) / config_.block_bytes;
  }

  // Begins as many reads as are due and as there is room for. The function runs again at the time
  // of the next read, or at the end of a read.
  void read() {
    const bool can_read = std::ranges::all_of(paths_, [](const Path& path) {
      return path.initiator->state() == nvmf::Initiator::State::kLive;
    });
    if (!can_read) return;
    const Time now = clock_.now();
    if (!std::exchange(is_live_, true)) next_ = now + (next_ - Time());  // the first is due then
    while (!free_.empty() && begun_ < blocks() && next_ <= now) begin(now);
    if (!free_.empty() && begun_ < blocks()) clock_.set_alarm(next_);
  }

  void begin(Time now) {
    const u32 slot = free_.back();
    free_.pop_back();
    posted_[slot] = now;
    Path& path = paths_[begun_ % paths_.size()];
    const u8 log2 = block_log2_for(config_.block_bytes);
    path.initiator->submit(
        {.lba = (begun_ % kBlocks * bytes_) >> log2,
         .blocks = bytes_ >> log2,
         .data = {data_.address + u64{slot} * bytes_, bytes_, data_.l_key, data_.r_key},
         .tag = slot});
    ++begun_;
    if (config_.read) next_ = next_ + interval();
  }

  void end(const Path& path, u32 slot) {
    ended_.push_back(
        {.gpu = gpu_, .server = path.server, .begin = posted_[slot], .end = clock_.now()});
    free_.push_back(slot);
  }

  const StorageConfig& config_;
  const u32 gpu_, bytes_;
  application::SharedNode& shared_;
  application::Node& clock_;
  const application::Region data_;
  std::vector<Path> paths_;
  std::vector<Time> posted_;  // by slot of the queue
  std::vector<u32> free_;     // slots
  Time next_;                 // when the next read is due
  bool is_live_ = false;
  u64 begun_ = 0;
  std::vector<StorageRead> ended_;
};

// A NIC, with the readers of its GPUs.
class StorageReads::Host final : public application::Program {
 public:
  explicit Host(application::Node& node) : shared_(node) {}
  [[nodiscard]] application::SharedNode& shared() { return shared_; }
  void add(Reader& reader) { readers_.push_back(&reader); }
  void on_ready() override {
    shared_.dispatch();
    for (Reader* const reader : readers_) reader->on_ready();
  }

 private:
  application::SharedNode shared_;
  std::vector<Reader*> readers_;
};

u32 StorageReads::servers_of_gpu() const {
  return std::min(static_cast<u32>(config_.servers.size()), StorageConfig::kMostServersOfGPU);
}

u32 StorageReads::server_of(u32 gpu, u32 path) const {
  return (gpu * servers_of_gpu() + path) % static_cast<u32>(config_.servers.size());
}

StorageReads::StorageReads(const StorageConfig& config, const Cluster& cluster,
                           fabric::Network& network, u32 first_connection, u32 word_mark, u64 seed)
    : config_(config), cluster_(cluster) {
  fabric::NodesConfig nodes;
  nodes.priority = config.priority;
  nodes.depth = 2 * config.queue_depth + kSpareMessages;
  nodes.first_connection = first_connection;
  nodes.word_mark = word_mark;
  for (u32 gpu = 0; gpu < cluster.ranks(); ++gpu)
    for (u32 path = 0; path < servers_of_gpu(); ++path)
      nodes.pairs.push_back({cluster.nics[gpu], config.servers[server_of(gpu, path)], kChannels});
  nodes_ = std::make_unique<fabric::SimulatedNodes>(network, nodes);
  if (!nodes_->is_connected()) {
    mistake_ = "there is no path between the NIC of a rank and a storage server";
    return;
  }
  make_servers();
  make_hosts(seed);
}

StorageReads::~StorageReads() = default;

void StorageReads::make_servers() {
  std::vector<u32> readers(config_.servers.size());
  for (u32 gpu = 0; gpu < cluster_.ranks(); ++gpu)
    for (u32 path = 0; path < servers_of_gpu(); ++path) ++readers[server_of(gpu, path)];
  for (u32 server = 0; server < readers.size(); ++server) {
    if (readers[server] == 0) continue;
    const fabric::NodeIndex host = config_.servers[server];
    servers_.push_back(
        std::make_unique<Server>(config_, nodes_->node(host), host, readers[server]));
    nodes_->run_on(host, *servers_.back());
  }
}

// GPUs do not read at the same moment.
void StorageReads::make_hosts(u64 seed) {
  PRNG prng(seed);
  std::map<fabric::NodeIndex, Host*> by_nic;
  for (u32 gpu = 0; gpu < cluster_.ranks(); ++gpu) {
    Host*& host = by_nic[cluster_.nics[gpu]];
    if (host == nullptr) {
      hosts_.push_back(std::make_unique<Host>(nodes_->node(cluster_.nics[gpu])));
      host = hosts_.back().get();
      nodes_->run_on(cluster_.nics[gpu], *host);
    }
    Time first;
    if (config_.read) {
      const double interval_ps = static_cast<double>(config_.block_bytes) * 8e12 /
                                 static_cast<double>(config_.read->bps());
      first = Time() + ps(static_cast<i64>(prng.below(static_cast<u64>(interval_ps))));
    }
    readers_.push_back(std::make_unique<Reader>(config_, gpu, host->shared(), first));
    for (u32 path = 0; path < servers_of_gpu(); ++path) {
      const u32 server = server_of(gpu, path);
      readers_.back()->add_server(server, config_.servers[server]);
    }
    host->add(*readers_.back());
  }
}

void StorageReads::start() {
  for (const auto& reader : readers_) reader->start();
}

std::vector<StorageRead> StorageReads::reads_until(Time end) const {
  std::vector<StorageRead> reads;
  for (const auto& reader : readers_)
    std::ranges::copy_if(reader->ended(), std::back_inserter(reads),
                         [&](const StorageRead& one) { return one.end <= end; });
  return reads;
}

}  // namespace verbena::jobs
