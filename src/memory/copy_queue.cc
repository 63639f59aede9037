#include "memory/copy_queue.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <utility>
#include <vector>

#include "base/check.h"

namespace verbena {

// The slots, and the jobs that they belong to. A job that runs keeps the pool.
class CopyPool {
 public:
  explicit CopyPool(std::shared_ptr<u8[]> staging)
      : staging_(std::move(staging)), jobs_(new CopyJob[CopyQueue::kSlots]) {
    for (u32 i = 0; i < CopyQueue::kSlots; ++i) free_.push_back(i);
    for (u32 i = 0; i < CopyQueue::kSlots; ++i)
      jobs_[i].bytes = staging_.get() + std::size_t{i} * kCopySlotBytes;
  }
  // Returns nullptr if no job is free.
  [[nodiscard]] CopyJob* take() {
    if (free_.empty()) reclaim();
    if (free_.empty()) return nullptr;
    CopyJob* const job = &jobs_[free_.front()];
    free_.pop_front();
    return job;
  }
  [[nodiscard]] bool has_free(std::size_t slots) {
    if (free_.size() < slots) reclaim();
    return free_.size() >= slots;
  }
  // Returns true if a job runs that its lane has given back.
  [[nodiscard]] bool has_orphans() {
    reclaim();
    return !orphans_.empty();
  }
  // The job may still run.
  void give_back(CopyJob* job) {
    const u32 index = static_cast<u32>(job - jobs_.get());
    if (job->state() == CopyState::kRunning)
      orphans_.push_back(index);
    else
      free_.push_back(index);
  }

 private:
  void reclaim() {
    std::erase_if(orphans_, [this](u32 index) {
      const bool is_free = jobs_[index].state() != CopyState::kRunning;
      if (is_free) free_.push_back(index);
      return is_free;
    });
  }

  const std::shared_ptr<u8[]> staging_;
  const std::unique_ptr<CopyJob[]> jobs_;
  std::deque<u32> free_;  // the oldest first, so that slots beside each other stay together
  std::vector<u32> orphans_;
};

namespace {

u32 next_lane_number() {
  static std::atomic<u32> next{0};
  return next.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

// --- CopyLane

struct CopyLane::Jobs {
  static constexpr u32 kOriginals = 512;  // more than responder resources and responses

  struct Write {
    CopyJob* job;
    CopyMark mark;
    CopyOp op;
    [[nodiscard]] bool is_atomic() const {
      return op == CopyOp::kCompareSwap || op == CopyOp::kFetchAdd;
    }
    [[nodiscard]] bool is_of_peer() const {
      return op == CopyOp::kToPeer || op == CopyOp::kFromPeer;
    }
  };
  struct Read {
    u64 place;
    u32 length;
    CopyJob* job;
    u64 attempt;  // the last that used it
  };

  explicit Jobs(std::shared_ptr<CopyPool> from) : pool(std::move(from)) {}
  ~Jobs() {
    for (const Write& write : writes) pool->give_back(write.job);
    drop_reads([](const Read&) { return true; });
  }
  template <typename Which>
  void drop_reads(Which which) {
    std::erase_if(reads, [&](const Read& read) {
      if (!which(read)) return false;
      pool->give_back(read.job);
      return true;
    });
  }
  [[nodiscard]] Read* find(u64 place, u32 length) {
    const auto found = std::ranges::find_if(
        reads, [=](const Read& read) { return read.place == place && read.length == length; });
    return found == reads.end() ? nullptr : &*found;
  }
  [[nodiscard]] bool takes_write() const { return !failure && writes.size() < kMaxWrites; }

  const u32 number = next_lane_number();
  const std::shared_ptr<CopyPool> pool;
  std::deque<Write> writes;
  std::deque<std::pair<u64, u64>> originals;  // ticket, value
  std::optional<Failure> failure;
  std::vector<Read> reads;
  u32 message = 0;  // that they are for
  u64 attempt = 0;
  bool is_delivered = false;  // the last attempt got all it asked for
};

CopyLane::CopyLane() = default;
CopyLane::~CopyLane() = default;

void CopyLane::clear() {
  jobs_.reset();
  ended_ = begun_;
  reads_running_ = false;
}

std::optional<CopyLane::Failure> CopyLane::failure() const {
  return jobs_ == nullptr ? std::nullopt : jobs_->failure;
}

std::optional<u64> CopyLane::original(u64 ticket) const {
  if (jobs_ == nullptr) return std::nullopt;
  const auto found = std::ranges::find(jobs_->originals, ticket, &std::pair<u64, u64>::first);
  return found == jobs_->originals.end() ? std::nullopt : std::optional(found->second);
}

// Counts writes as ended in the order of their tickets.
void CopyLane::retire() {
  while (jobs_ != nullptr && !jobs_->writes.empty() && !jobs_->failure) {
    const Jobs::Write& write = jobs_->writes.front();
    const CopyState state = write.job->state();
    if (state == CopyState::kRunning) return;
    if (state == CopyState::kGone && !write.is_of_peer()) {
      jobs_->failure = Failure{.ticket = ended_ + 1, .mark = write.mark};
      return;
    }
    ++ended_;
    if (state == CopyState::kGone) refused_ = ended_;
    if (write.is_atomic()) {
      u64 value;
      std::memcpy(&value, write.job->bytes, sizeof value);
      if (jobs_->originals.size() == Jobs::kOriginals) jobs_->originals.pop_front();
      jobs_->originals.emplace_back(ended_, value);
    }
    jobs_->pool->give_back(write.job);
    jobs_->writes.pop_front();
  }
}

// --- CopyQueue

CopyQueue::CopyQueue() = default;
CopyQueue::~CopyQueue() = default;

void CopyQueue::use_staging(std::shared_ptr<u8[]> memory) {
  CHECK(pool_ == nullptr);
  pool_ = std::make_shared<CopyPool>(std::move(memory));
}

bool CopyQueue::has_orphans() { return pool_ != nullptr && pool_->has_orphans(); }

// Returns nullptr if the lane takes no late jobs.
CopyLane::Jobs* CopyQueue::jobs_of(CopyLane* lane) {
  if (lane == nullptr || pool_ == nullptr) return nullptr;
  if (lane->jobs_ == nullptr) lane->jobs_ = std::make_unique<CopyLane::Jobs>(pool_);
  return lane->jobs_.get();
}

CopyJob* CopyQueue::begin_late(const FarRegions::Place& place, CopyLane::Jobs& jobs,
                               const Late& what) {
  CopyJob* const job = pool_->take();
  if (job == nullptr) return nullptr;
  job->op = what.op;
  job->lane = jobs.number;
  job->offset = place.offset;
  job->length = what.length;
  job->compare = what.atomic.compare;
  job->operand = what.atomic.operand;
  job->compare_mask = what.atomic.compare_mask;
  job->swap_mask = what.atomic.swap_mask;
  if (what.peer != nullptr) job->peer = *what.peer;
  if (what.from != nullptr) std::memcpy(job->bytes, what.from, what.length);
  job->memory = place.memory;
  job->pool = pool_;
  job->start();
  FarMemory& memory = *place.memory;
  memory.running_.fetch_add(1, std::memory_order_relaxed);
  const CopyState state = memory.begin(*job);
  if (state != CopyState::kRunning) job->end(state);
  return job;
}

// The bytes of the packet before have been sent.
void CopyQueue::begin_gather(CopyLane* lane) {
  CopyLane::Jobs* const jobs = jobs_of(lane);
  if (jobs == nullptr) return;
  if (std::exchange(jobs->message, lane->message_) != lane->message_)
    jobs->drop_reads([](const auto&) { return true; });
  if (std::exchange(jobs->is_delivered, false))
    jobs->drop_reads([jobs](const auto& read) { return read.attempt == jobs->attempt; });
  ++jobs->attempt;
}

void CopyQueue::end_gather(CopyLane* lane) {
  if (CopyLane::Jobs* const jobs = jobs_of(lane)) jobs->is_delivered = true;
}

std::optional<Bytes> CopyQueue::read(const FarRegions& regions, CopyLane* lane, const u8* from,
                                     u32 length, u64 ahead, u32 at, CopyResult& why) {
  static constexpr std::array<u8, kCopySlotBytes> kZeros{};
  why = CopyResult::kGone;
  if (at > kCopySlotBytes || length > kCopySlotBytes - at) return std::nullopt;
  why = CopyResult::kDone;
  if (from == nullptr) return Bytes(kZeros).first(length);
  const FarRegions::Place place = regions.find(from);
  if (place.memory->is_late())
    return read_late(place, lane, reinterpret_cast<u64>(from), length, ahead, why);
  if (copy_ == nullptr) copy_ = std::make_unique<std::array<u8, kCopySlotBytes>>();
  CopyJob job;
  job.offset = place.offset;
  job.bytes = copy_->data() + at;
  job.length = length;
  if (place.memory->begin(job) == CopyState::kDone) return Bytes(job.bytes, length);
  why = CopyResult::kGone;
  return std::nullopt;
}

// Returns false if no slot is free.
bool CopyQueue::add_read(const FarRegions::Place& place, CopyLane::Jobs& jobs, u64 from,
                         u32 length) {
  if (jobs.find(from, length) != nullptr) return true;
  CopyJob* const job = begin_late(place, jobs, {.op = CopyOp::kRead, .length = length});
  if (job != nullptr) jobs.reads.push_back({from, length, job, 0});
  return job != nullptr;
}

// Many reads begin together, so that a kind can join them to one copy. Half of the slots are left
// to writes and to reads that are waited for: bytes that were read ahead of a peer that takes none
// would hold them.
void CopyQueue::read_ahead(const FarRegions::Place& place, CopyLane::Jobs& jobs, u64 from,
                           u32 length, u64 ahead) {
  if (jobs.reads.size() > CopyLane::kReadAhead / 2) return;
  for (u64 at = 0; at < ahead && jobs.reads.size() < CopyLane::kReadAhead; at += length) {
    if (!pool_->has_free(kSlots / 2)) return;
    const u32 next = static_cast<u32>(std::min<u64>(length, ahead - at));
    if (!add_read({place.memory, place.offset + at}, jobs, from + at, next)) return;
  }
}

// A piece that was not read ahead begins a new run: the rest of the run before was for packets that
// are not sent now.
std::optional<Bytes> CopyQueue::read_late(const FarRegions::Place& place, CopyLane* lane, u64 from,
                                          u32 length, u64 ahead, CopyResult& why) {
  CopyLane::Jobs* const jobs = jobs_of(lane);
  why = CopyResult::kGone;
  if (jobs == nullptr) return std::nullopt;
  if (jobs->find(from, length) == nullptr)
    jobs->drop_reads([jobs](const auto& read) { return read.attempt != jobs->attempt; });
  if (add_read(place, *jobs, from, length))
    read_ahead({place.memory, place.offset + length}, *jobs, from + length, length, ahead);
  CopyLane::Jobs::Read* const read = jobs->find(from, length);
  if (read != nullptr) {
    read->attempt = jobs->attempt;
    const CopyState state = read->job->state();
    if (state == CopyState::kDone) {
      why = CopyResult::kDone;
      return Bytes(read->job->bytes, length);
    }
    if (state == CopyState::kGone) {
      jobs->drop_reads([](const auto&) { return true; });
      return std::nullopt;
    }
  }
  lane->reads_running_ = true;
  why = CopyResult::kLater;
  return std::nullopt;
}

// Begins a write or an atomic, which gets the lane's next ticket.
CopyResult CopyQueue::begin_write(const FarRegions::Place& place, CopyLane* lane,
                                  const Late& what) {
  CopyLane::Jobs* const jobs = jobs_of(lane);
  if (jobs == nullptr || jobs->failure) return CopyResult::kGone;
  if (!jobs->takes_write()) return CopyResult::kLater;
  CopyJob* const job = begin_late(place, *jobs, what);
  if (job == nullptr) return CopyResult::kLater;
  ++lane->begun_;
  jobs->writes.push_back({.job = job, .mark = lane->mark_, .op = what.op});
  return CopyResult::kDone;
}

CopyResult CopyQueue::write(const FarRegions& regions, CopyLane* lane, u8* to, Bytes from) {
  if (to == nullptr || from.empty()) return CopyResult::kDone;
  const FarRegions::Place place = regions.find(to);
  if (!place.memory->is_late()) {
    CopyJob job;
    job.op = CopyOp::kWrite;
    job.offset = place.offset;
    job.bytes = const_cast<u8*>(from.data());  // a write only reads it
    job.length = static_cast<u32>(from.size());
    return place.memory->begin(job) == CopyState::kDone ? CopyResult::kDone : CopyResult::kGone;
  }
  for (u64 at = 0; at < from.size(); at += kCopySlotBytes) {
    const u32 length = static_cast<u32>(std::min<u64>(from.size() - at, kCopySlotBytes));
    const CopyResult result =
        begin_write({place.memory, place.offset + at}, lane,
                    {.op = CopyOp::kWrite, .length = length, .from = from.data() + at});
    if (result != CopyResult::kDone) return result;
  }
  return CopyResult::kDone;
}

CopyResult CopyQueue::atomic(const FarRegions& regions, CopyLane* lane, u8* at,
                             const CopyAtomic& what) {
  const FarRegions::Place place = regions.find(at);
  if (!place.memory->is_late()) return CopyResult::kGone;
  return begin_write(place, lane, {.op = what.op, .length = sizeof(u64), .atomic = what});
}

CopyResult CopyQueue::copy_peer(const FarRegions& regions, CopyLane* lane, CopyOp op, u8* at,
                                u32 length, const PeerPlace& peer) {
  return begin_write(regions.find(at), lane, {.op = op, .length = length, .peer = &peer});
}

bool CopyQueue::has_room(const CopyLane* lane, u32 writes) {
  if (pool_ == nullptr || lane == nullptr) return true;
  if (lane->jobs_ != nullptr) {
    if (lane->jobs_->failure) return true;
    if (lane->jobs_->writes.size() + writes > CopyLane::kMaxWrites) return false;
  }
  return pool_->has_free(writes);
}

void CopyQueue::poll(const FarRegions& regions, CopyLane& lane) {
  for (const std::shared_ptr<FarMemory>& memory : regions.all())
    if (memory != nullptr) memory->poll();
  lane.retire();
  lane.reads_running_ = false;  // until the owner asks again
}

}  // namespace verbena
