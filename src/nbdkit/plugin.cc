// nbdkit-verbena-plugin.so: a remote NVMe namespace as a plugin of nbdkit, so that programs of NBD
// use it: qemu-img, nbdcopy, fio's nbd engine, a mounted NBD device.
//
//   nbdkit ./nbdkit-verbena-plugin.so target=ADDRESS[:PORT] nqn=NQN [nsid=N] ...
//
// nbdkit's threads call the plugin at the same time. One of the calling threads drives the
// association until its own job has ended, and then another one that still waits; the others sleep.
// So a call that is alone needs no other thread. While there is no call, a thread of ours looks at
// the association now and then: for keep-alives, and for a lost target. Data goes through
// registered buffers, of which each job has one. A loss of the target delays jobs and fails none
// before ctrl-loss-tmo.
#define NBDKIT_API_VERSION 2
#include <nbdkit-plugin.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>

#include "nvmf/status_text.h"
#include "nvmf_program/host_session.h"

namespace {

using namespace verbena;
using namespace verbena::nvmf_program;
using nvmf::Initiator;

constexpr u32 kBuffers = 64;
constexpr Duration kStep = ms(500);
constexpr Duration kSpin = us(20);  // how long the driver polls after the last event
constexpr std::chrono::milliseconds kIdleLook{50};

struct Job {
  Initiator::Request request;
  bool is_done = false, must_drive = false;
  nvme::Status status = nvme::Status::kSuccess;
  std::condition_variable done{};
};

// The association. `mutex_` guards all that is not the driver's alone: the session is.
class Association {
 public:
  // Returns an error in words, or "".
  std::string start(const HostOptions& options, u32 nsid);
  void stop();

  [[nodiscard]] u64 bytes() const { return space_.blocks << space_.block_log2; }
  [[nodiscard]] u32 block() const { return 1u << space_.block_log2; }
  [[nodiscard]] u32 part_bytes() const { return part_bytes_; }
  [[nodiscard]] bool is_read_only() const { return space_.is_read_only; }
  [[nodiscard]] u16 optional_commands() const { return optional_commands_; }
  [[nodiscard]] u32 nsid() const { return nsid_; }

  [[nodiscard]] u32 take_buffer();
  void give_back_buffer(u32 buffer);
  [[nodiscard]] u8* bytes_of(u32 buffer) {
    return memory_.bytes.data() + u64{buffer} * part_bytes_;
  }
  // Executes the request with the data of that buffer. Blocks.
  [[nodiscard]] nvme::Status execute(Initiator::Request request, u32 buffer, u32 bytes);

 private:
  using Lock = std::unique_lock<std::mutex>;
  void look_while_idle();
  void drive(Lock& lock, const bool& is_over);
  void submit_jobs(Lock& lock);
  void take_results(Lock& lock);
  void rest(Lock& lock);
  void hand_over();

  std::unique_ptr<HostSession> session_;
  nvme::IdentifyNamespace space_{};
  application::Region memory_{};
  u32 part_bytes_ = 0, nsid_ = 1;
  u16 optional_commands_ = 0;
  std::thread thread_;
  int wake_ = -1;
  std::mutex mutex_;
  bool stops_ = false;
  bool is_driven_ = false;
  bool rests_ = false;           // the driver sleeps, and has to be woken for a job
  Time last_event_;              // that the driver saw
  std::deque<Job*> jobs_;        // to be submitted
  std::vector<Job*> submitted_;  // and not done
  std::condition_variable idle_;
  std::vector<u32> free_buffers_;
  std::condition_variable has_buffer_;
};

std::string Association::start(const HostOptions& options, u32 nsid) {
  HostOptions first = options;
  auto session = HostSession::open(first, nullptr);
  if (!session) return session.error();
  session_ = std::move(*session);
  const auto& namespaces = session_->initiator().namespaces();
  const auto found = namespaces.find(nsid);
  if (found == namespaces.end()) return "the subsystem has no namespace " + std::to_string(nsid);
  nsid_ = nsid;
  space_ = found->second;
  optional_commands_ = session_->initiator().controller().optional_commands;
  part_bytes_ = std::min(256u * 1024, session_->initiator().max_transfer_bytes());
  const auto memory =
      session_->node().allocate(u64{kBuffers} * part_bytes_, application::Content::kBytes,
                                application::Access::kRemoteReadWrite);
  if (!memory) return "no memory for data";
  memory_ = *memory;
  for (u32 i = kBuffers; i > 0; --i) free_buffers_.push_back(i - 1);
  wake_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (wake_ < 0) return std::string("eventfd: ") + std::strerror(errno);
  thread_ = std::thread([this] { look_while_idle(); });
  return "";
}

void Association::stop() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  idle_.notify_all();
  if (thread_.joinable()) thread_.join();
  if (session_ != nullptr) session_->close();
  session_.reset();
  if (wake_ >= 0) close(wake_);
  wake_ = -1;
}

void Association::look_while_idle() {
  Lock lock(mutex_);
  while (!stops_) {
    idle_.wait_for(lock, kIdleLook, [this] { return stops_; });
    if (stops_ || is_driven_) continue;
    is_driven_ = true;
    lock.unlock();
    session_->try_step();
    lock.lock();
    take_results(lock);
    hand_over();
  }
}

// Precondition: is_driven_, which the caller has set or which was handed over to it.
void Association::drive(Lock& lock, const bool& is_over) {
  last_event_ = session_->node().now();
  while (!is_over) {
    submit_jobs(lock);
    lock.unlock();
    session_->try_step();
    lock.lock();
    take_results(lock);
    if (!is_over && jobs_.empty()) rest(lock);
  }
  hand_over();
}

void Association::submit_jobs(Lock& lock) {
  if (jobs_.empty()) return;
  std::deque<Job*> jobs;
  jobs.swap(jobs_);
  submitted_.insert(submitted_.end(), jobs.begin(), jobs.end());
  lock.unlock();
  for (Job* const job : jobs) session_->initiator().submit(job->request);
  last_event_ = session_->node().now();
  lock.lock();
}

// A job may be gone as soon as the lock is released.
void Association::take_results(Lock&) {
  bool has_any = false;
  for (Initiator::Result result; session_->initiator().poll_result(result); has_any = true) {
    Job* const job = reinterpret_cast<Job*>(result.tag);
    std::erase(submitted_, job);
    job->status = result.status;
    job->is_done = true;
    job->done.notify_one();
  }
  if (has_any) last_event_ = session_->node().now();
}

// Sleeps until there is an event or a job, if there was none for a while.
void Association::rest(Lock& lock) {
  if (session_->node().now() < last_event_ + kSpin) return;
  rests_ = true;
  lock.unlock();
  const std::array descriptors{wake_};
  if (session_->step(kStep, descriptors)) {
    eventfd_t wakes = 0;
    (void)eventfd_read(wake_, &wakes);
  }
  lock.lock();
  rests_ = false;
  take_results(lock);
  last_event_ = session_->node().now();
}

// To a thread that waits, or to nobody.
void Association::hand_over() {
  Job* const next = !submitted_.empty() ? submitted_.front()
                    : !jobs_.empty()    ? jobs_.front()
                                        : nullptr;
  is_driven_ = next != nullptr;
  if (next == nullptr) return;
  next->must_drive = true;
  next->done.notify_one();
}

u32 Association::take_buffer() {
  std::unique_lock lock(mutex_);
  has_buffer_.wait(lock, [this] { return !free_buffers_.empty(); });
  const u32 buffer = free_buffers_.back();
  free_buffers_.pop_back();
  return buffer;
}

void Association::give_back_buffer(u32 buffer) {
  const std::lock_guard lock(mutex_);
  free_buffers_.push_back(buffer);
  has_buffer_.notify_one();
}

nvme::Status Association::execute(Initiator::Request request, u32 buffer, u32 bytes) {
  Job job{.request = request};
  job.request.nsid = nsid_;
  job.request.tag = reinterpret_cast<u64>(&job);
  if (bytes > 0) job.request.data = slice_of(memory_, u64{buffer} * part_bytes_, bytes);
  Lock lock(mutex_);
  jobs_.push_back(&job);
  if (std::exchange(is_driven_, true)) {
    if (std::exchange(rests_, false)) eventfd_write(wake_, 1);
    job.done.wait(lock, [&job] { return job.is_done || job.must_drive; });
    if (job.is_done && job.must_drive) hand_over();
  }
  if (!job.is_done) drive(lock, job.is_done);
  return job.status;
}

// --- what nbdkit calls

struct Settings {
  HostOptions host;
  u32 nsid = 1;
};
Settings& settings() {
  static Settings all;
  return all;
}
Association& association() {
  static Association one;
  return one;
}

int fail(const std::string& error) {
  nbdkit_error("%s", error.c_str());
  return -1;
}

int fail(nvme::Status status) {
  nbdkit_set_error(status == nvme::Status::kCapacityExceeded          ? ENOSPC
                   : status == nvme::Status::kNamespaceWriteProtected ? EPERM
                   : status == nvme::Status::kLBAOutOfRange           ? EINVAL
                                                                      : EIO);
  return fail(nvmf::describe(status));
}

// A seconds option of the plugin.
int set_seconds(double& to, const char* key, const char* value) {
  char* end = nullptr;
  to = std::strtod(value, &end);
  const bool is_between = to >= 0 && to <= 86400;  // NaN is not
  if (end == value || *end != '\0' || !is_between)
    return fail(std::string(key) + "=" + value + " is no number of seconds");
  return 0;
}

int on_config(const char* key, const char* value) {
  const std::string_view name = key;
  Settings& all = settings();
  if (name == "target") {
    const auto address = application::parse_address(value, nvme::kRDMAPort);
    if (!address) return fail(std::string("target=") + value + " is no address");
    all.host.target = *address;
  } else if (name == "nqn" || name == "host-nqn") {
    if (!nvme::is_nqn(value)) return fail(std::string(key) + "=" + value + " is no NQN");
    (name == "nqn" ? all.host.nqn : all.host.host_nqn) = value;
  } else if (name == "nsid") {
    const auto number = read_bytes(value);
    if (!number || *number == 0 || *number >= 0xffffffff)
      return fail(std::string("nsid=") + value + " is no namespace");
    all.nsid = static_cast<u32>(*number);
  } else if (name == "host-key" || name == "controller-key") {
    auto secret = read_secret(value);
    if (!secret) return fail(std::string(name) + "=" + value + " " + secret.error());
    (name == "host-key" ? all.host.host_key : all.host.controller_key) = std::move(*secret);
  } else if (name == "ctrl-loss-tmo") {
    return set_seconds(all.host.loss_timeout_s, key, value);
  } else if (name == "reconnect-delay") {
    return set_seconds(all.host.reconnect_delay_s, key, value);
  } else if (name == "keep-alive") {
    return set_seconds(all.host.keep_alive_s, key, value);
  } else {
    return fail("unknown parameter '" + std::string(name) + "'");
  }
  return 0;
}

int on_config_complete() {
  HostOptions& host = settings().host;
  if (host.target.port == 0) return fail(std::string("target=ADDRESS is missing"));
  if (host.nqn.empty()) return fail(std::string("nqn=NQN is missing"));
  if (host.host_nqn.empty()) host.host_nqn = default_host_nqn();
  if (const std::string wrong = check_keys(host); !wrong.empty()) return fail(wrong);
  return 0;
}

// After nbdkit has forked into the background: the device has threads.
int on_after_fork() {
  const std::string error = association().start(settings().host, settings().nsid);
  return error.empty() ? 0 : fail(error);
}

void on_unload() { association().stop(); }

void* on_open(int) { return NBDKIT_HANDLE_NOT_NEEDED; }
int64_t on_get_size(void*) { return static_cast<int64_t>(association().bytes()); }
int on_can_write(void*) { return association().is_read_only() ? 0 : 1; }
int on_can_flush(void*) { return 1; }
int on_can_fua(void*) { return NBDKIT_FUA_NATIVE; }
int on_can_multi_conn(void*) { return 1; }  // all connections share the association
int on_can_trim(void*) {
  return (association().optional_commands() & nvme::IdentifyController::kDatasetManagement) != 0;
}
int on_can_zero(void*) {
  return (association().optional_commands() & nvme::IdentifyController::kWriteZeroes) != 0;
}
int on_block_size(void*, uint32_t* minimum, uint32_t* preferred, uint32_t* maximum) {
  *minimum = association().block();
  *preferred = std::max(4096u, association().block());
  *maximum = 0xffffffff;
  return 0;
}

constexpr u32 kForceUnitAccess = 1u << 30;

// Moves a range in parts that fit a buffer. Offsets are whole blocks, as on_block_size() asks; a
// client that sends others gets EINVAL.
template <typename Move>
int for_each_part(u32 count, u64 offset, u32 part, const Move& move) {
  const u32 block = association().block();
  if (offset % block != 0 || count % block != 0) {
    nbdkit_set_error(EINVAL);
    return fail("offset or length is no multiple of " + std::to_string(block));
  }
  for (u32 at = 0; at < count;) {
    const u32 bytes = std::min(part, count - at);
    const nvme::Status status = move(offset + at, at, bytes);
    if (status != nvme::Status::kSuccess) return fail(status);
    at += bytes;
  }
  return 0;
}

Initiator::Request request_of(nvme::IOOpcode opcode, u64 offset, u32 bytes, uint32_t flags) {
  const u32 block = association().block();
  return {.opcode = opcode,
          .lba = offset / block,
          .blocks = bytes / block,
          .cdw12_flags = (flags & NBDKIT_FLAG_FUA) != 0 ? kForceUnitAccess : 0};
}

int on_pread(void*, void* to, uint32_t count, uint64_t offset, uint32_t) {
  Association& remote = association();
  const u32 buffer = remote.take_buffer();
  const int result =
      for_each_part(count, offset, remote.part_bytes(), [&](u64 from, u32 at, u32 bytes) {
        const nvme::Status status =
            remote.execute(request_of(nvme::IOOpcode::kRead, from, bytes, 0), buffer, bytes);
        if (status == nvme::Status::kSuccess)
          std::memcpy(static_cast<u8*>(to) + at, remote.bytes_of(buffer), bytes);
        return status;
      });
  remote.give_back_buffer(buffer);
  return result;
}

int on_pwrite(void*, const void* from, uint32_t count, uint64_t offset, uint32_t flags) {
  Association& remote = association();
  const u32 buffer = remote.take_buffer();
  const int result =
      for_each_part(count, offset, remote.part_bytes(), [&](u64 to, u32 at, u32 bytes) {
        std::memcpy(remote.bytes_of(buffer), static_cast<const u8*>(from) + at, bytes);
        return remote.execute(request_of(nvme::IOOpcode::kWrite, to, bytes, flags), buffer, bytes);
      });
  remote.give_back_buffer(buffer);
  return result;
}

int on_flush(void*, uint32_t) {
  const nvme::Status status = association().execute({.opcode = nvme::IOOpcode::kFlush}, 0, 0);
  return status == nvme::Status::kSuccess ? 0 : fail(status);
}

int on_zero(void*, uint32_t count, uint64_t offset, uint32_t flags) {
  const u32 part = association().block() * 0x8000;  // of 65536 blocks at most
  return for_each_part(count, offset, part, [&](u64 at, u32, u32 bytes) {
    return association().execute(request_of(nvme::IOOpcode::kWriteZeroes, at, bytes, flags), 0, 0);
  });
}

int on_trim(void*, uint32_t count, uint64_t offset, uint32_t flags) {
  Association& remote = association();
  const u32 buffer = remote.take_buffer();
  const int result = for_each_part(count, offset, ~u32{0}, [&](u64 at, u32, u32 bytes) {
    constexpr u32 kRange = 16, kDeallocate = 1 << 2;
    u8* const range = remote.bytes_of(buffer);
    std::memset(range, 0, kRange);
    store_le<u32>(range + 4, bytes / remote.block());
    store_le<u64>(range + 8, at / remote.block());
    return remote.execute({.opcode = nvme::IOOpcode::kDatasetManagement, .cdw11 = kDeallocate},
                          buffer, kRange);
  });
  remote.give_back_buffer(buffer);
  if (result == 0 && (flags & NBDKIT_FLAG_FUA) != 0) return on_flush(nullptr, 0);
  return result;
}

nbdkit_plugin make_plugin() {
  nbdkit_plugin plugin{};
  plugin.name = "verbena";
  plugin.longname = "NVMe over Fabrics by Verbena";
  plugin.description = "a namespace of an NVMe over Fabrics target, over RDMA";
  plugin.config = on_config;
  plugin.config_complete = on_config_complete;
  plugin.config_help =
      "target=ADDRESS[:PORT]  (required) The target.\n"
      "nqn=NQN                (required) The subsystem.\n"
      "nsid=N                 The namespace (1).\n"
      "host-nqn=NQN           The name of this host.\n"
      "host-key=FILE          Its key, where the target requires authentication.\n"
      "controller-key=FILE    The key with which the target authenticates itself.\n"
      "ctrl-loss-tmo=SECONDS  How long a lost target is waited for (600).\n"
      "reconnect-delay=SECONDS, keep-alive=SECONDS";
  plugin.magic_config_key = "target";
  plugin.after_fork = on_after_fork;
  plugin.unload = on_unload;
  plugin.open = on_open;
  plugin.get_size = on_get_size;
  plugin.can_write = on_can_write;
  plugin.can_flush = on_can_flush;
  plugin.can_fua = on_can_fua;
  plugin.can_multi_conn = on_can_multi_conn;
  plugin.can_trim = on_can_trim;
  plugin.can_zero = on_can_zero;
  plugin.block_size = on_block_size;
  plugin.pread = on_pread;
  plugin.pwrite = on_pwrite;
  plugin.flush = on_flush;
  plugin.zero = on_zero;
  plugin.trim = on_trim;
  return plugin;
}

}  // namespace

#define THREAD_MODEL NBDKIT_THREAD_MODEL_PARALLEL
extern "C" [[gnu::visibility("default")]] nbdkit_plugin* plugin_init() {
  static nbdkit_plugin plugin = make_plugin();
  plugin._struct_size = sizeof plugin;
  plugin._api_version = NBDKIT_API_VERSION;
  plugin._thread_model = THREAD_MODEL;
  return &plugin;
}
