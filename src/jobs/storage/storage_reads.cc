#include "jobs/storage/storage_reads.h"

#include <algorithm>

#include "base/check.h"
#include "base/prng.h"

namespace verbena::jobs {
namespace {

// The alarm of a reader, or of an answer: its lowest bit.
constexpr u32 kReads = 0, kAnswers = 1;

}  // namespace

StorageReads::StorageReads(const StorageConfig& config, const Cluster& cluster,
                           fabric::Network& network, u32 first_connection, u32 word_mark, u64 seed)
    : config_(config),
      cluster_(cluster),
      network_(network),
      first_connection_(first_connection),
      word_mark_(word_mark),
      paths_per_gpu_(
          std::min(static_cast<u32>(config.servers.size()), StorageConfig::kMostServersOfGPU)),
      readers_(cluster.ranks()) {
  CHECK(u64{cluster.ranks()} * paths_per_gpu_ * config_.queue_depth * 2 < word_mark_);
  PRNG prng(seed);
  const u32 servers = static_cast<u32>(config_.servers.size());
  for (u32 gpu = 0; gpu < readers_.size() && mistake_.empty(); ++gpu) {
    Reader& reader = readers_[gpu];
    reader.posted.resize(config_.queue_depth);
    for (u32 slot = config_.queue_depth; slot > 0; --slot) reader.free.push_back(slot - 1);
    if (config_.read)  // GPUs do not read at the same moment
      reader.next = Time() + ps(static_cast<i64>(prng.below(static_cast<u64>(interval().ps()))));
    for (u32 i = 0; i < paths_per_gpu_; ++i) connect(gpu, (gpu * paths_per_gpu_ + i) % servers);
  }
}

void StorageReads::connect(u32 gpu, u32 server) {
  const u32 number = first_connection_ + 2 * static_cast<u32>(paths_.size());
  const u32 depth = 2 * config_.queue_depth;
  paths_.push_back({gpu, server, Outbox(number, depth), Outbox(number + 1, depth)});
  fabric::ConnectionConfig ends{.source = cluster_.nics[gpu],
                                .destination = config_.servers[server],
                                .depth = depth,
                                .priority = config_.priority};
  bool is_connected = network_.connect(ends);
  std::swap(ends.source, ends.destination);
  is_connected = is_connected && network_.connect(ends);
  if (!is_connected)
    mistake_ =
        "there is no way between the NIC of rank " + std::to_string(gpu) + " and a storage server";
}

Duration StorageReads::interval() const {
  return ps(static_cast<i64>(static_cast<double>(config_.block_octets) * 8e12 /
                             static_cast<double>(config_.read->bps())));
}

u64 StorageReads::blocks() const {
  return config_.amount == ~u64{0}
             ? config_.amount
             : (config_.amount + config_.block_octets - 1) / config_.block_octets;
}

void StorageReads::start() {
  for (u32 gpu = 0; gpu < readers_.size(); ++gpu)
    network_.set_alarm(cluster_.nics[gpu], std::max(readers_[gpu].next, network_.now()),
                       word_mark_ | gpu << 1 | kReads);
}

// As many as are due, and as there is room for. Then it comes again at the next one's time, or at
// the end of one.
void StorageReads::read(u32 gpu, Time now) {
  Reader& reader = readers_[gpu];
  while (!reader.free.empty() && reader.begun < blocks() && reader.next <= now) begin(gpu, now);
  if (!reader.free.empty() && reader.begun < blocks())
    network_.set_alarm(cluster_.nics[gpu], reader.next, word_mark_ | gpu << 1 | kReads);
}

void StorageReads::begin(u32 gpu, Time now) {
  Reader& reader = readers_[gpu];
  const u32 slot = reader.free.back();
  reader.free.pop_back();
  reader.posted[slot] = now;
  const u32 path = gpu * paths_per_gpu_ + static_cast<u32>(reader.begun++ % paths_per_gpu_);
  if (config_.read) reader.next = reader.next + interval();
  paths_[path].commands.send(kCommandOctets, slot, network_);
}

// At the server: the medium has the data.
void StorageReads::answer(u32 path, u32 slot) {
  Outbox& answers = paths_[path].answers;
  answers.send(config_.block_octets, slot << 1 | static_cast<u32>(Kind::kData), network_);
  answers.send(kResponseOctets, slot << 1 | static_cast<u32>(Kind::kResponse), network_);
}

void StorageReads::end(u32 path, u32 slot, Time now) {
  const u32 gpu = paths_[path].gpu;
  Reader& reader = readers_[gpu];
  reader.ended.push_back(
      {.gpu = gpu, .server = paths_[path].server, .begin = reader.posted[slot], .end = now});
  const bool was_full = reader.free.empty();
  reader.free.push_back(slot);
  if (was_full) read(gpu, now);
}

void StorageReads::on_arrival(u32 connection, u32 word, Time now) {
  const u32 number = connection - first_connection_, path = number / 2;
  if (number % 2 == 1) {
    if (word % 2 == static_cast<u32>(Kind::kResponse)) end(path, word >> 1, now);
    return;
  }
  if (config_.medium == Duration()) return answer(path, word);
  network_.set_alarm(config_.servers[paths_[path].server], now + config_.medium,
                     word_mark_ | (path * config_.queue_depth + word) << 1 | kAnswers);
}

void StorageReads::on_sent(u32 connection, Time) {
  const u32 number = connection - first_connection_;
  Path& path = paths_[number / 2];
  (number % 2 == 0 ? path.commands : path.answers).on_sent(network_);
}

void StorageReads::on_alarm(u32 marked, Time now) {
  const u32 word = marked & ~word_mark_, about = word >> 1;
  if (word % 2 == kReads) return read(about, now);
  answer(about / config_.queue_depth, about % config_.queue_depth);
}

std::vector<StorageRead> StorageReads::reads_until(Time end) const {
  std::vector<StorageRead> reads;
  for (const Reader& reader : readers_)
    std::ranges::copy_if(reader.ended, std::back_inserter(reads),
                         [&](const StorageRead& one) { return one.end <= end; });
  return reads;
}

}  // namespace verbena::jobs
