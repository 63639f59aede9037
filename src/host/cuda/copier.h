// Copier: the thread that makes all calls of the CUDA driver, one for each process that registers
// CUDA memory. So no adapter's lock is held across such a call, and no thread of the program has
// its current context changed. It takes jobs from the devices' copy queues, copies between GPU
// memory and the pinned staging memory by streams of its own, and ends each job when the event
// behind its copy has come.
//
// Jobs of one lane use one stream of a context, so they take effect in order. A lane that turns to
// another context waits for the first. Atomics are done one at a time by this thread, which makes
// them atomic among themselves.
#pragma once

#include <array>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "host/cuda/driver_api.h"
#include "host/os/error.h"
#include "memory/far_memory.h"

namespace verbena::host::cuda {

class CudaRegion;

class Copier {
 public:
  // Returns the process's own copier. Returns nullptr if no driver is loaded, or if this is a
  // forked child of a process that had one: CUDA does not work across fork().
  [[nodiscard]] static Copier* of_process();
  // Returns true in such a child.
  [[nodiscard]] static bool is_of_parent();
  Copier(const Copier&) = delete;
  Copier& operator=(const Copier&) = delete;

  [[nodiscard]] const DriverAPI& driver() const { return driver_; }
  // Runs `task` in the thread and waits for it. Returns false if the thread has ended.
  [[nodiscard]] bool run(const std::function<void()>& task);
  // Runs `task` in the thread, some time later; never if the thread ends before.
  void run_later(std::function<void()> task);
  // Queues a job of a CudaRegion. kGone: the thread has ended.
  [[nodiscard]] CopyState begin(CopyJob& job);
  // Memory for a CopyQueue's slots, pinned in `context`.
  [[nodiscard]] Expected<std::shared_ptr<u8[]>> make_staging(Context context, std::size_t bytes);

 private:
  static constexpr u32 kStreams = 8;  // of each context

  struct Lane {  // jobs that have not ended
    Context context = nullptr;
    u32 running = 0;
  };
  struct Streams {
    bool works = false;
    std::array<Stream, kStreams> streams{};
    std::vector<Event> free_events;

    void lose() {
      works = false;
      free_events.clear();
    }
  };
  struct Batch {  // copies behind which one event comes
    Streams* streams;
    Context context;
    Event event;
    std::vector<CopyJob*> jobs;
  };

  explicit Copier(const DriverAPI& driver);  // never destroyed
  void stop();
  void unpin(Context context, void* memory);
  void serve();
  struct Work {
    std::vector<CopyJob*> jobs;
    std::function<void()>* task = nullptr;
    std::vector<std::function<void()>> later;
  };
  bool wait_for_work(Work& work);
  void start(std::span<CopyJob* const> jobs);
  void start_run(std::span<CopyJob* const> run);
  [[nodiscard]] bool try_run(std::span<CopyJob* const> run, const CudaRegion& region,
                             Streams& streams);
  void wait_for_lane(u32 lane, Context context);
  [[nodiscard]] Result copy(std::span<CopyJob* const> run, const CudaRegion& region, Stream stream);
  [[nodiscard]] Result copy_to_peer(CopyJob& job, const CudaRegion& region, Stream stream);
  [[nodiscard]] Result do_atomic(CopyJob& job, const CudaRegion& region, Stream stream);
  [[nodiscard]] bool record(Streams& streams, Context context, Stream stream,
                            std::span<CopyJob* const> run);
  bool collect();
  void end(CopyJob& job, CopyState state);
  Streams& streams_of(Context context);

  const DriverAPI& driver_;
  const int process_;
  std::mutex mutex_;
  std::condition_variable work_, done_;
  std::vector<CopyJob*> jobs_;  // with mutex_, as the next three
  std::function<void()> task_;  // at most one at a time
  std::vector<std::function<void()>> later_;
  bool is_stopped_ = false;
  std::mutex one_task_;

  // Only the thread uses these members.
  std::map<Context, Streams> contexts_;
  std::map<u32, Lane> lanes_;
  std::deque<Batch> batches_;
  std::thread thread_;
};

}  // namespace verbena::host::cuda
