// A stand-in for libcuda.so.1, for machines without a GPU: the functions of the CUDA driver that
// Verbena and the tests call. Results that it gives are named a stand-in's wherever they are shown.
//
//   - "GPU" memory is host memory that the CPU cannot touch where the program sees it: the address
//     is mapped without any right, and the stand-in has another one for the same pages.
//   - Asynchronous copies take effect late: each stream is done step by step, in order, whenever
//     some function is called; streams pass each other. The order comes from a seed.
//   - Handles for other processes (cuIpcGetMemHandle) name the file behind the memory. CUDA leaves
//   open
//     what happens to opened memory that its owner frees: here copies to and from it are refused.
//   - Failures come by request: standin_control().
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace {

using Result = int;
using Pointer = unsigned long long;
constexpr Result kSuccess = 0, kInvalidValue = 1, kOutOfMemory = 2, kNotInitialized = 3,
                 kInvalidContext = 201, kNotReady = 600, kContextIsDestroyed = 709,
                 kNotSupported = 801;
constexpr std::size_t kGranularity = 2u << 20;
constexpr std::size_t kPage = 4096;

struct Context {
  bool is_dead = false;
};
struct Stream;
struct Event {
  std::uint64_t behind = 0;  // an operation of its stream
  Stream* stream = nullptr;
};
struct Operation {
  enum class Kind { kToDevice, kToHost, kOnDevice } kind;
  Pointer device;  // kOnDevice: the target
  void* host;
  Pointer source;  // kOnDevice
  std::size_t bytes;
  std::vector<char> early;  // pageable host memory is read at once, as the driver may
};
struct Stream {
  Context* context;
  std::deque<Operation> waiting;
  std::uint64_t begun = 0, done = 0;
};
struct Allocation {
  std::size_t bytes = 0;
  char* alias = nullptr;
  unsigned long long id = 0;
  Context* context = nullptr;  // nullptr for the virtual memory API or a pool
  bool is_managed = false;
  bool is_host = false;
  int fd =
      -1;  // of cuMemAlloc: behind the memory, which others open, there is a page of SharedState
  struct SharedState* shared = nullptr;
  bool is_opened = false;  // another process's
};
struct SharedState {
  std::atomic<std::uint32_t> is_freed;
};
struct Handle {  // CUipcMemHandle
  std::uint64_t magic, process, fd, inode, bytes, unused[3];
};
static_assert(sizeof(Handle) == 64);
constexpr std::uint64_t kHandleMagic = 0x5354414e44494e21;
struct Physical {
  std::size_t bytes;
  int fd;
};

struct State {
  std::recursive_mutex mutex;
  std::map<Pointer, Allocation> memory;  // by address
  std::map<Pointer, std::size_t> reserved;
  std::vector<std::unique_ptr<Stream>> streams;
  std::deque<Event> events;
  Context primary;
  unsigned long long next_id = 1;
  std::uint64_t random = 88172645463325252u;
  long allocations_left = -1, registrations_left = -1;  // -1: all succeed
  long opens_left = -1;
  bool has_no_dmabuf = false, has_no_handles = false;
  bool is_stuck = false;  // no asynchronous copy takes effect
  unsigned long long copies = 0, bytes = 0, copies_on_device = 0;
  pid_t process = ::getpid();  // the driver does not work in a forked child
};
State& state() {
  static State* const one = new State;
  return *one;
}
thread_local std::vector<Context*> current_contexts;

std::uint64_t random_below(std::uint64_t n) {
  std::uint64_t& x = state().random;
  x ^= x << 13;
  x ^= x >> 7;
  x ^= x << 17;
  return x % n;
}

// Returns the allocation that holds [at, at + bytes), or nullptr.
Allocation* find(Pointer at, std::size_t bytes, Pointer* start = nullptr) {
  auto next = state().memory.upper_bound(at);
  if (next == state().memory.begin()) return nullptr;
  const auto entry = std::prev(next);
  if (at - entry->first + bytes > entry->second.bytes) return nullptr;
  if (start != nullptr) *start = entry->first;
  return &entry->second;
}

Result add(int fd, std::size_t bytes, Context* context, Pointer* out) {
  void* const seen = ::mmap(nullptr, bytes, PROT_NONE, MAP_SHARED, fd, 0);
  void* const alias = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (seen == MAP_FAILED || alias == MAP_FAILED) return kOutOfMemory;
  *out = reinterpret_cast<Pointer>(seen);
  state().memory[*out] = {.bytes = bytes,
                          .alias = static_cast<char*>(alias),
                          .id = state().next_id++,
                          .context = context};
  return kSuccess;
}

bool take_one(long& left) {
  if (left == 0) return false;
  if (left > 0) --left;
  return true;
}
bool may_allocate() { return take_one(state().allocations_left); }

int make_file(std::size_t bytes) {
  const int fd = ::memfd_create("standin-gpu", MFD_CLOEXEC);
  if (fd >= 0 && ::ftruncate(fd, static_cast<off_t>(bytes)) == 0) return fd;
  return -1;
}

void share(Allocation& memory, int fd, std::size_t state_at) {
  void* const page =
      ::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, fd, static_cast<off_t>(state_at));
  memory.fd = fd;
  memory.shared = page == MAP_FAILED ? nullptr : static_cast<SharedState*>(page);
}

Result allocate(std::size_t bytes, Context* context, Pointer* out) {
  if (bytes == 0) return kInvalidValue;
  if (!may_allocate()) return kOutOfMemory;
  const int fd = make_file(bytes);
  if (fd < 0) return kOutOfMemory;
  const Result result = add(fd, bytes, context, out);
  ::close(fd);
  return result;
}

// As allocate(), for memory that has a handle.
Result allocate_shared(std::size_t bytes, Context* context, Pointer* out) {
  if (bytes == 0) return kInvalidValue;
  if (!may_allocate()) return kOutOfMemory;
  const std::size_t whole = (bytes + kPage - 1) / kPage * kPage;
  const int fd = make_file(whole + kPage);
  if (fd < 0) return kOutOfMemory;
  const Result result = add(fd, bytes, context, out);
  if (result == kSuccess) share(state().memory[*out], fd, whole);
  return result;
}

Result remove(Pointer at) {
  const auto entry = state().memory.find(at);
  if (entry == state().memory.end()) return kInvalidValue;
  if (entry->second.alias != nullptr) ::munmap(entry->second.alias, entry->second.bytes);
  ::munmap(reinterpret_cast<void*>(at), entry->second.bytes);
  if (SharedState* const shared = entry->second.shared) {
    if (!entry->second.is_opened) shared->is_freed = 1;
    ::munmap(shared, kPage);
  }
  if (entry->second.fd >= 0) ::close(entry->second.fd);
  state().memory.erase(entry);
  return kSuccess;
}

// Returns where the stand-in itself reaches [at, at + bytes), or nullptr if it is no GPU memory.
char* reach(Pointer at, std::size_t bytes) {
  Pointer start = 0;
  const Allocation* const there = find(at, bytes, &start);
  if (there == nullptr || there->alias == nullptr) return nullptr;
  if (there->shared != nullptr && there->shared->is_freed != 0) return nullptr;
  return there->alias + (at - start);
}

void perform(Operation& op) {
  char* const device = reach(op.device, op.bytes);
  if (device == nullptr) return;  // freed meanwhile: as on a card, lost
  if (op.kind == Operation::Kind::kOnDevice) {
    const char* const from = reach(op.source, op.bytes);
    if (from == nullptr) return;
    std::memmove(device, from, op.bytes);
    ++state().copies_on_device;
    return;
  }
  if (op.kind == Operation::Kind::kToDevice)
    std::memcpy(device, op.early.empty() ? op.host : op.early.data(), op.bytes);
  else
    std::memcpy(op.host, device, op.bytes);
  ++state().copies;
  state().bytes += op.bytes;
}

void step(Stream& stream) {
  if (stream.waiting.empty()) return;
  perform(stream.waiting.front());
  stream.waiting.pop_front();
  ++stream.done;
}

// Some streams get on, by chance.
void get_on() {
  if (state().is_stuck) return;
  for (const auto& stream : state().streams)
    if (!stream->context->is_dead)
      for (std::uint64_t i = random_below(4); i != 0; --i) step(*stream);
}

Context* current() { return current_contexts.empty() ? nullptr : current_contexts.back(); }

bool is_forked() { return state().process != ::getpid(); }

Result check_current() {
  if (is_forked()) return kNotInitialized;
  if (current() == nullptr) return kInvalidContext;
  return current()->is_dead ? kContextIsDestroyed : kSuccess;
}

Result enqueue(Operation op, Stream* stream) {
  if (const Result result = check_current(); result != kSuccess) return result;
  if (stream != nullptr && stream->context->is_dead) return kContextIsDestroyed;
  if (reach(op.device, op.bytes) == nullptr) return kInvalidValue;
  if (op.kind == Operation::Kind::kOnDevice && reach(op.source, op.bytes) == nullptr)
    return kInvalidValue;
  if (stream == nullptr) {
    perform(op);
    return kSuccess;
  }
  stream->waiting.push_back(std::move(op));
  ++stream->begun;
  return kSuccess;
}

// A reset: the context keeps its handle, and is there again with value 0. Its streams and its
// memory do not come back.
void kill_primary(bool dies) {
  static Context ended{.is_dead = true};
  state().primary.is_dead = dies;
  if (!dies) return;
  for (const auto& stream : state().streams) {
    if (stream->context != &state().primary) continue;
    stream->context = &ended;
    stream->waiting.clear();
  }
}

using Lock = std::lock_guard<std::recursive_mutex>;
#define STANDIN extern "C" __attribute__((visibility("default")))

}  // namespace

// --- control, for tests

// allocations, registrations, opens (of handles): so many more succeed (-1: all). no_dmabuf,
// no_handles, stuck: 1 or 0. seed.
// kill_context: the primary context dies (1), and is there anew (0).
STANDIN void standin_control(const char* what, long value) {
  const Lock lock(state().mutex);
  const std::string name = what;
  if (name == "allocations") state().allocations_left = value;
  if (name == "registrations") state().registrations_left = value;
  if (name == "opens") state().opens_left = value;
  if (name == "no_handles") state().has_no_handles = value != 0;
  if (name == "no_dmabuf") state().has_no_dmabuf = value != 0;
  if (name == "stuck") state().is_stuck = value != 0;
  if (name == "seed") state().random = static_cast<std::uint64_t>(value) * 2 + 1;
  if (name == "kill_context") kill_primary(value != 0);
}
// copies: between GPU and host memory; bytes: of these. copies_on_device: between GPU memory.
// opened: handles that are open now.
STANDIN unsigned long long standin_count(const char* what) {
  const Lock lock(state().mutex);
  const std::string name = what;
  if (name == "copies") return state().copies;
  if (name == "copies_on_device") return state().copies_on_device;
  if (name == "opened")
    return static_cast<unsigned long long>(std::ranges::count_if(
        state().memory, [](const auto& one) { return one.second.is_opened; }));
  return state().bytes;
}

// --- contexts

STANDIN Result cuInit(unsigned) { return kSuccess; }
STANDIN Result cuDriverGetVersion(int* version) { return *version = 12040, kSuccess; }
STANDIN Result cuDeviceGetCount(int* count) { return *count = 1, kSuccess; }
STANDIN Result cuDeviceGet(int* device, int ordinal) {
  *device = 0;
  return ordinal == 0 ? kSuccess : kInvalidValue;
}
STANDIN Result cuDeviceGetName(char* name, int size, int) {
  std::strncpy(name, "stand-in (no GPU)", static_cast<std::size_t>(size));
  return kSuccess;
}
STANDIN Result cuDevicePrimaryCtxRetain(Context** context, int device) {
  *context = &state().primary;
  return device == 0 ? kSuccess : kInvalidValue;
}
STANDIN Result cuDevicePrimaryCtxRelease_v2(int) { return kSuccess; }
STANDIN Result cuCtxCreate_v2(Context** context, unsigned, int) {
  *context = new Context;
  current_contexts.push_back(*context);
  return kSuccess;
}
STANDIN Result cuCtxDestroy_v2(Context* context) {
  const Lock lock(state().mutex);
  context->is_dead = true;  // kept: others may still name it
  return kSuccess;
}
STANDIN Result cuCtxGetCurrent(Context** context) { return *context = current(), kSuccess; }
STANDIN Result cuCtxSetCurrent(Context* context) {
  if (!current_contexts.empty()) current_contexts.pop_back();
  if (context != nullptr) current_contexts.push_back(context);
  return kSuccess;
}
STANDIN Result cuCtxPushCurrent_v2(Context* context) {
  if (context == nullptr) return kInvalidContext;
  if (context->is_dead) return kContextIsDestroyed;
  current_contexts.push_back(context);
  return kSuccess;
}
STANDIN Result cuCtxPopCurrent_v2(Context** context) {
  if (current_contexts.empty()) return kInvalidContext;
  *context = current_contexts.back();
  current_contexts.pop_back();
  return kSuccess;
}
STANDIN Result cuGetErrorName(Result result, const char** name) {
  switch (result) {
    case kInvalidValue: *name = "CUDA_ERROR_INVALID_VALUE"; return kSuccess;
    case kNotInitialized: *name = "CUDA_ERROR_NOT_INITIALIZED"; return kSuccess;
    case kOutOfMemory: *name = "CUDA_ERROR_OUT_OF_MEMORY"; return kSuccess;
    case kContextIsDestroyed: *name = "CUDA_ERROR_CONTEXT_IS_DESTROYED"; return kSuccess;
    case kNotSupported: *name = "CUDA_ERROR_NOT_SUPPORTED"; return kSuccess;
    default: return kInvalidValue;
  }
}

// --- memory

STANDIN Result cuMemAlloc_v2(Pointer* at, std::size_t bytes) {
  const Lock lock(state().mutex);
  if (const Result result = check_current(); result != kSuccess) return result;
  return allocate_shared(bytes, current(), at);
}
STANDIN Result cuMemFree_v2(Pointer at) {
  const Lock lock(state().mutex);
  return remove(at);
}
STANDIN Result cuMemAllocAsync(Pointer* at, std::size_t bytes, Stream*) {
  const Lock lock(state().mutex);
  return allocate(bytes, nullptr, at);
}
STANDIN Result cuMemFreeAsync(Pointer at, Stream*) { return cuMemFree_v2(at); }

// Both are memory that the CPU can touch.
Result allocate_plain(std::size_t bytes, bool is_managed, Pointer* at) {
  void* const memory =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return kOutOfMemory;
  *at = reinterpret_cast<Pointer>(memory);
  state().memory[*at] = {.bytes = bytes,
                         .id = state().next_id++,
                         .context = current(),
                         .is_managed = is_managed,
                         .is_host = !is_managed};
  return kSuccess;
}
STANDIN Result cuMemAllocManaged(Pointer* at, std::size_t bytes, unsigned) {
  const Lock lock(state().mutex);
  return allocate_plain(bytes, true, at);
}
STANDIN Result cuMemHostAlloc(void** at, std::size_t bytes, unsigned) {
  const Lock lock(state().mutex);
  Pointer memory = 0;
  const Result result = allocate_plain(bytes, false, &memory);
  *at = reinterpret_cast<void*>(memory);
  return result;
}
STANDIN Result cuMemFreeHost(void* at) { return cuMemFree_v2(reinterpret_cast<Pointer>(at)); }

// The virtual memory API: handles of physical memory, mapped at reserved addresses.
STANDIN Result cuMemAddressReserve(Pointer* at, std::size_t bytes, std::size_t, Pointer,
                                   unsigned long long) {
  const Lock lock(state().mutex);
  void* const memory =
      ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return kOutOfMemory;
  *at = reinterpret_cast<Pointer>(memory);
  state().reserved[*at] = bytes;
  return kSuccess;
}
STANDIN Result cuMemAddressFree(Pointer at, std::size_t bytes) {
  const Lock lock(state().mutex);
  state().reserved.erase(at);
  ::munmap(reinterpret_cast<void*>(at), bytes);
  return kSuccess;
}
STANDIN Result cuMemCreate(unsigned long long* handle, std::size_t bytes, const void*,
                           unsigned long long) {
  const Lock lock(state().mutex);
  if (bytes % kGranularity != 0) return kInvalidValue;
  if (!may_allocate()) return kOutOfMemory;
  const int fd = make_file(bytes);
  if (fd < 0) return kOutOfMemory;
  *handle = reinterpret_cast<unsigned long long>(new Physical{bytes, fd});
  return kSuccess;
}
STANDIN Result cuMemRelease(unsigned long long handle) {
  auto* const physical = reinterpret_cast<Physical*>(handle);
  ::close(physical->fd);
  delete physical;
  return kSuccess;
}
STANDIN Result cuMemMap(Pointer at, std::size_t bytes, std::size_t offset,
                        unsigned long long handle, unsigned long long) {
  const Lock lock(state().mutex);
  const auto* const physical = reinterpret_cast<const Physical*>(handle);
  if (offset + bytes > physical->bytes) return kInvalidValue;
  void* const alias = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, physical->fd,
                             static_cast<off_t>(offset));
  if (alias == MAP_FAILED) return kOutOfMemory;
  state().memory[at] = {
      .bytes = bytes, .alias = static_cast<char*>(alias), .id = state().next_id++};
  return kSuccess;
}
STANDIN Result cuMemSetAccess(Pointer, std::size_t, const void*, std::size_t) { return kSuccess; }
STANDIN Result cuMemUnmap(Pointer at, std::size_t bytes) {
  const Lock lock(state().mutex);
  const auto entry = state().memory.find(at);
  if (entry == state().memory.end() || entry->second.bytes != bytes) return kInvalidValue;
  ::munmap(entry->second.alias, bytes);
  state().memory.erase(entry);
  return kSuccess;
}

// --- handles for other processes

STANDIN Result cuIpcGetMemHandle(Handle* handle, Pointer at) {
  const Lock lock(state().mutex);
  if (state().has_no_handles) return kNotSupported;
  const Allocation* const found = find(at, 1);
  struct stat file {};
  if (found == nullptr || found->fd < 0 || found->is_opened || ::fstat(found->fd, &file) != 0)
    return kInvalidValue;
  *handle = {.magic = kHandleMagic,
             .process = static_cast<std::uint64_t>(::getpid()),
             .fd = static_cast<std::uint64_t>(found->fd),
             .inode = file.st_ino,
             .bytes = found->bytes,
             .unused = {}};
  return kSuccess;
}
STANDIN Result cuIpcOpenMemHandle_v2(Pointer* at, Handle handle, unsigned) {
  const Lock lock(state().mutex);
  if (const Result result = check_current(); result != kSuccess) return result;
  if (!take_one(state().opens_left) || handle.magic != kHandleMagic) return kInvalidValue;
  if (handle.process == static_cast<std::uint64_t>(::getpid())) return kInvalidContext;
  const std::string path =
      "/proc/" + std::to_string(handle.process) + "/fd/" + std::to_string(handle.fd);
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  struct stat file {};
  if (fd < 0 || ::fstat(fd, &file) != 0 || file.st_ino != handle.inode ||
      add(fd, handle.bytes, current(), at) != kSuccess) {
    ::close(fd);
    return kInvalidValue;
  }
  Allocation& opened = state().memory[*at];
  opened.is_opened = true;
  share(opened, fd, static_cast<std::size_t>(file.st_size) - kPage);
  return kSuccess;
}
STANDIN Result cuIpcCloseMemHandle(Pointer at) {
  const Lock lock(state().mutex);
  const Allocation* const found = find(at, 1);
  return found != nullptr && found->is_opened ? remove(at) : kInvalidValue;
}

// A descriptor that cannot be mapped, as that of most drivers.
STANDIN Result cuMemGetHandleForAddressRange(void* fd, Pointer at, std::size_t bytes, int type,
                                             unsigned long long) {
  const Lock lock(state().mutex);
  if (state().has_no_dmabuf || type != 1) return kNotSupported;
  if (find(at, bytes) == nullptr) return kInvalidValue;
  *static_cast<int*>(fd) = ::eventfd(0, EFD_CLOEXEC);
  return kSuccess;
}

STANDIN Result cuPointerGetAttributes(unsigned count, const int* attributes, void** values,
                                      Pointer at) {
  if (is_forked()) return kNotInitialized;
  const Lock lock(state().mutex);
  Pointer start = 0;
  const Allocation* const found = find(at, 1, &start);
  for (unsigned i = 0; i < count; ++i) {
    void* const to = values[i];
    const bool is_ours = found != nullptr;
    switch (attributes[i]) {
      case 1: *static_cast<Context**>(to) = is_ours ? found->context : nullptr; break;
      case 2: *static_cast<unsigned*>(to) = !is_ours ? 0 : found->is_host ? 1 : 2; break;
      case 7: *static_cast<unsigned long long*>(to) = is_ours ? found->id : 0; break;
      case 8: *static_cast<unsigned char*>(to) = is_ours && found->is_managed; break;
      case 9: *static_cast<int*>(to) = is_ours ? 0 : -2; break;
      case 11: *static_cast<Pointer*>(to) = is_ours ? start : 0; break;
      case 12: *static_cast<std::size_t*>(to) = is_ours ? found->bytes : 0; break;
      default: return kInvalidValue;
    }
  }
  return kSuccess;
}
STANDIN Result cuPointerSetAttribute(const void*, int attribute, Pointer at) {
  const Lock lock(state().mutex);
  return attribute == 6 && find(at, 1) != nullptr ? kSuccess : kInvalidValue;
}

STANDIN Result cuMemHostRegister_v2(void*, std::size_t, unsigned) {
  const Lock lock(state().mutex);
  long& left = state().registrations_left;
  if (left == 0) return kOutOfMemory;
  if (left > 0) --left;
  return check_current();
}
STANDIN Result cuMemHostUnregister(void*) { return kSuccess; }

// --- copies

STANDIN Result cuStreamCreate(Stream** stream, unsigned) {
  const Lock lock(state().mutex);
  if (const Result result = check_current(); result != kSuccess) return result;
  state().streams.push_back(std::make_unique<Stream>());
  *stream = state().streams.back().get();
  (*stream)->context = current();
  return kSuccess;
}
STANDIN Result cuStreamSynchronize(Stream* stream) {
  const Lock lock(state().mutex);
  if (const Result result = check_current(); result != kSuccess) return result;
  if (stream != nullptr && stream->context->is_dead) return kContextIsDestroyed;
  while (stream != nullptr && !stream->waiting.empty()) step(*stream);
  return kSuccess;
}
STANDIN Result cuEventCreate(Event** event, unsigned) {
  const Lock lock(state().mutex);
  *event = &state().events.emplace_back();
  return check_current();
}
STANDIN Result cuEventRecord(Event* event, Stream* stream) {
  const Lock lock(state().mutex);
  *event = {stream->begun, stream};
  return check_current();
}
STANDIN Result cuEventQuery(Event* event) {
  const Lock lock(state().mutex);
  if (const Result result = check_current(); result != kSuccess) return result;
  get_on();
  return event->stream->done >= event->behind ? kSuccess : kNotReady;
}
STANDIN Result cuMemcpyDtoHAsync_v2(void* to, Pointer from, std::size_t bytes, Stream* stream) {
  const Lock lock(state().mutex);
  return enqueue({Operation::Kind::kToHost, from, to, 0, bytes, {}}, stream);
}
STANDIN Result cuMemcpyHtoDAsync_v2(Pointer to, const void* from, std::size_t bytes,
                                    Stream* stream) {
  const Lock lock(state().mutex);
  return enqueue({Operation::Kind::kToDevice, to, const_cast<void*>(from), 0, bytes, {}}, stream);
}
STANDIN Result cuMemcpyDtoDAsync_v2(Pointer to, Pointer from, std::size_t bytes, Stream* stream) {
  const Lock lock(state().mutex);
  return enqueue({Operation::Kind::kOnDevice, to, nullptr, from, bytes, {}}, stream);
}
STANDIN Result cuMemcpyDtoH_v2(void* to, Pointer from, std::size_t bytes) {
  return cuMemcpyDtoHAsync_v2(to, from, bytes, nullptr);
}
STANDIN Result cuMemcpyHtoD_v2(Pointer to, const void* from, std::size_t bytes) {
  return cuMemcpyHtoDAsync_v2(to, from, bytes, nullptr);
}
