#include "host/cuda/copier.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "host/cuda/peer_region.h"
#include "host/cuda/region.h"

namespace verbena::host::cuda {
namespace {

constexpr u32 kSpins = 50;  // looks at running copies before the thread sleeps between them
constexpr auto kNap = std::chrono::microseconds(20);

thread_local bool is_copier_thread = false;

// The region is kept by its job.
const CudaRegion& region_of(const CopyJob& job) {
  return static_cast<const CudaRegion&>(*job.memory);
}

// Returns whether `next` continues `job`: one copy moves both.
bool continues(const CopyJob& job, const CopyJob& next) {
  const bool is_copy = job.op == CopyOp::kRead || job.op == CopyOp::kWrite;
  return is_copy && next.op == job.op && next.lane == job.lane && next.memory == job.memory &&
         next.offset == job.offset + job.length && next.bytes == job.bytes + job.length;
}

// Returns the length of the last word of a range that ends there: it is stored by itself.
u64 last_word(DevicePointer end, u64 length) {
  for (const u64 word : {u64{8}, u64{4}, u64{2}})
    if (length >= word && end % word == 0) return word;
  return 1;
}

// Copies all but the last word, then this. `copy(to, offset, bytes)` copies a part.
template <typename Copy>
Result copy_last_word_last(DevicePointer to, u64 length, Copy copy) {
  const u64 body = length - last_word(to + length, length);
  if (body != 0)
    if (const Result result = copy(to, 0, body); result != kSuccess) return result;
  return copy(to + body, body, length - body);
}

}  // namespace

Copier* Copier::of_process() {
  static std::mutex& mutex = *new std::mutex;
  static Copier* copier = nullptr;
  struct AtExit {
    ~AtExit() { copier->stop(); }
  };
  const std::lock_guard lock(mutex);
  if (copier == nullptr) {
    const DriverAPI* const driver = DriverAPI::find();
    if (driver == nullptr) return nullptr;
    copier = new Copier(*driver);
    static const AtExit at_exit;
  }
  return copier->process_ == ::getpid() ? copier : nullptr;
}

bool Copier::is_of_parent() { return DriverAPI::find() != nullptr && of_process() == nullptr; }

// The thread takes no signals, which are the application's.
Copier::Copier(const DriverAPI& driver) : driver_(driver), process_(::getpid()) {
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { serve(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Copier::stop() {
  if (process_ != ::getpid()) return;  // a forked child has no such thread
  {
    const std::lock_guard lock(mutex_);
    is_stopped_ = true;
  }
  work_.notify_one();
  thread_.join();
}

bool Copier::run(const std::function<void()>& task) {
  if (is_copier_thread) {
    task();
    return true;
  }
  const std::lock_guard one(one_task_);
  std::unique_lock lock(mutex_);
  if (is_stopped_) return false;
  task_ = task;
  work_.notify_one();
  done_.wait(lock, [this] { return !task_ || is_stopped_; });
  return !task_;
}

void Copier::run_later(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    if (is_stopped_ || process_ != ::getpid()) return;
    later_.push_back(std::move(task));
  }
  work_.notify_one();
}

CopyState Copier::begin(CopyJob& job) {
  if (process_ != ::getpid()) return CopyState::kGone;
  {
    const std::lock_guard lock(mutex_);
    if (is_stopped_) return CopyState::kGone;
    jobs_.push_back(&job);
  }
  work_.notify_one();
  return CopyState::kRunning;
}

Expected<std::shared_ptr<u8[]>> Copier::make_staging(Context context, std::size_t bytes) {
  void* const memory =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return failure(errno, "no memory to stage GPU copies in");
  Result result = kSuccess;
  const bool has_run = run([&] {
    result = driver_.context_push(context);
    if (result != kSuccess) return;
    result = driver_.host_register(memory, bytes, kHostRegisterPortable);
    Context popped;
    static_cast<void>(driver_.context_pop(&popped));
  });
  if (!has_run || result != kSuccess) {
    ::munmap(memory, bytes);
    return failure(ENOMEM, std::to_string(bytes >> 20) +
                               " MiB of host memory cannot be pinned to stage GPU copies in: " +
                               driver_.name_of(result));
  }
  return std::shared_ptr<u8[]>(static_cast<u8*>(memory), [this, context, bytes](u8* at) {
    static_cast<void>(run([&] { unpin(context, at); }));
    ::munmap(at, bytes);
  });
}

// A context that has died has unpinned it already.
void Copier::unpin(Context context, void* memory) {
  if (process_ != ::getpid() || driver_.context_push(context) != kSuccess) return;
  static_cast<void>(driver_.host_unregister(memory));
  Context popped;
  static_cast<void>(driver_.context_pop(&popped));
}

// --- the thread

// Returns false at the end. Does not wait while copies run.
bool Copier::wait_for_work(Work& work) {
  std::unique_lock lock(mutex_);
  if (batches_.empty())
    work_.wait(lock, [this] { return is_stopped_ || task_ || !later_.empty() || !jobs_.empty(); });
  work.jobs.clear();
  work.jobs.swap(jobs_);
  work.later.clear();
  work.later.swap(later_);
  work.task = task_ ? &task_ : nullptr;
  return !is_stopped_;
}

void Copier::serve() {
  is_copier_thread = true;
  Work work;
  u32 idle = 0;
  while (wait_for_work(work)) {
    if (work.task != nullptr) {
      (*work.task)();
      const std::lock_guard lock(mutex_);
      task_ = nullptr;
      done_.notify_all();
    }
    for (const std::function<void()>& task : work.later) task();
    start(work.jobs);
    if (collect() || !work.jobs.empty()) idle = 0;
    // Not yield(): on a busy machine others would get a whole time slice each.
    if (!batches_.empty() && ++idle >= kSpins) std::this_thread::sleep_for(kNap);
  }
  for (CopyJob* const job : work.jobs) job->end(CopyState::kGone);
  for (const Batch& batch : batches_)
    for (CopyJob* const job : batch.jobs) job->end(CopyState::kGone);
  done_.notify_all();
}

void Copier::start(std::span<CopyJob* const> jobs) {
  while (!jobs.empty()) {
    std::size_t run = 1;
    while (run < jobs.size() && continues(*jobs[run - 1], *jobs[run])) ++run;
    start_run(jobs.first(run));
    jobs = jobs.subspan(run);
  }
}

// Jobs of which each continues the one before. A context that was reset since the last copy gets
// new streams.
void Copier::start_run(std::span<CopyJob* const> run) {
  const CudaRegion& region = region_of(*run.front());
  wait_for_lane(run.front()->lane, region.context());
  for (u32 tries = 0; tries < 2; ++tries) {
    Streams& streams = streams_of(region.context());
    if (try_run(run, region, streams)) return;
    if (streams.works) break;  // the memory is gone, not the context
  }
  for (CopyJob* const job : run) job->end(CopyState::kGone);
}

bool Copier::try_run(std::span<CopyJob* const> run, const CudaRegion& region, Streams& streams) {
  if (!streams.works || !region.exists() || driver_.context_push(region.context()) != kSuccess)
    return false;
  const u32 number = run.front()->lane;
  const Stream stream = streams.streams[number % kStreams];
  Lane& lane = lanes_[number];
  lane.context = region.context();
  lane.running += static_cast<u32>(run.size());
  const bool is_started =
      copy(run, region, stream) == kSuccess && record(streams, region.context(), stream, run);
  if (!is_started) {
    // Part of it may be under way.
    if (driver_.stream_synchronize(stream) != kSuccess) streams.lose();
    lane.running -= static_cast<u32>(run.size());
    if (lane.running == 0) lanes_.erase(number);
  }
  Context popped;
  static_cast<void>(driver_.context_pop(&popped));
  return is_started;
}

// Order holds within a stream only.
void Copier::wait_for_lane(u32 lane, Context context) {
  for (auto at = lanes_.find(lane); at != lanes_.end() && at->second.context != context;
       at = lanes_.find(lane))
    if (!collect()) std::this_thread::yield();
}

Result Copier::copy(std::span<CopyJob* const> run, const CudaRegion& region, Stream stream) {
  CopyJob& first = *run.front();
  u64 length = 0;
  for (const CopyJob* const job : run) length += job->length;
  const DevicePointer at = region.at(first.offset);
  if (first.op == CopyOp::kRead) return driver_.copy_to_host(first.bytes, at, length, stream);
  if (first.op == CopyOp::kToPeer || first.op == CopyOp::kFromPeer)
    return copy_to_peer(first, region, stream);
  if (first.op != CopyOp::kWrite) return do_atomic(first, region, stream);
  return copy_last_word_last(at, length, [&](DevicePointer to, u64 offset, u64 bytes) {
    return driver_.copy_to_device(to, first.bytes + offset, bytes, stream);
  });
}

// Between the memories of two GPUs, or of one.
Result Copier::copy_to_peer(CopyJob& job, const CudaRegion& region, Stream stream) {
  CudaPeerRegion& peer = static_cast<CudaPeerRegion&>(*job.peer.region);
  const std::optional<DevicePointer> there = peer.at(job.peer.offset, job.length, region.context());
  if (!there) return kInvalidValue;
  const DevicePointer here = region.at(job.offset);
  const Result result =
      job.op == CopyOp::kFromPeer
          ? driver_.copy_on_device(here, *there, job.length, stream)
          : copy_last_word_last(*there, job.length, [&](DevicePointer to, u64 offset, u64 bytes) {
              return driver_.copy_on_device(to, here + offset, bytes, stream);
            });
  if (result != kSuccess) peer.close();
  return result;
}

// The original stays in job.bytes. The new value has its own place: the write may run after this.
Result Copier::do_atomic(CopyJob& job, const CudaRegion& region, Stream stream) {
  const DevicePointer at = region.at(job.offset);
  Result result = driver_.copy_to_host(job.bytes, at, sizeof(u64), stream);
  if (result == kSuccess) result = driver_.stream_synchronize(stream);
  if (result != kSuccess) return result;
  u64 value;
  std::memcpy(&value, job.bytes, sizeof value);
  const u64 result_value = job.atomic_result(value);
  if (result_value == value) return kSuccess;
  value = result_value;
  u8* const changed = job.bytes + sizeof value;  // a slot has room for both
  std::memcpy(changed, &value, sizeof value);
  result = driver_.copy_to_device(at, changed, sizeof value, stream);
  return result == kSuccess ? driver_.stream_synchronize(stream) : result;
}

bool Copier::record(Streams& streams, Context context, Stream stream,
                    std::span<CopyJob* const> run) {
  Event event = nullptr;
  if (!streams.free_events.empty()) {
    event = streams.free_events.back();
    streams.free_events.pop_back();
  } else if (driver_.event_create(&event, kEventDisableTiming) != kSuccess) {
    return false;
  }
  if (driver_.event_record(event, stream) != kSuccess) {
    streams.free_events.push_back(event);
    return false;
  }
  batches_.push_back({&streams, context, event, {run.begin(), run.end()}});
  return true;
}

// Ends the jobs whose events have come. Returns false if none has.
bool Copier::collect() {
  bool any = false;
  for (auto batch = batches_.begin(); batch != batches_.end();) {
    Result result = driver_.context_push(batch->context);
    if (result == kSuccess) {
      result = driver_.event_query(batch->event);
      Context popped;
      static_cast<void>(driver_.context_pop(&popped));
    }
    if (result == kNotReady) {
      ++batch;
      continue;
    }
    any = true;
    if (result == kSuccess)
      batch->streams->free_events.push_back(batch->event);
    else
      batch->streams->lose();  // the context has died
    for (CopyJob* const job : batch->jobs)
      end(*job, result == kSuccess ? CopyState::kDone : CopyState::kGone);
    batch = batches_.erase(batch);
  }
  return any;
}

void Copier::end(CopyJob& job, CopyState state) {
  const auto lane = lanes_.find(job.lane);
  if (--lane->second.running == 0) lanes_.erase(lane);
  job.end(state);
}

// A primary context that was reset keeps its handle, but not its streams and events.
Copier::Streams& Copier::streams_of(Context context) {
  Streams& streams = contexts_[context];
  if (streams.works || driver_.context_push(context) != kSuccess) return streams;
  streams.works = std::ranges::all_of(streams.streams, [this](Stream& stream) {
    return driver_.stream_create(&stream, kStreamNonBlocking) == kSuccess;
  });
  Context popped;
  static_cast<void>(driver_.context_pop(&popped));
  return streams;
}

}  // namespace verbena::host::cuda
