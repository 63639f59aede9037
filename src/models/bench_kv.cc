// `verbena bench kv`: the prefill process writes the blocks of each layer into the cache of the
// decode process, while it computes the next one. Measures, in turn: that; the same bytes in one
// contiguous WRITE; and the same blocks over TCP. Each technology has two processes of its own.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "models/commands.h"
#include "models/handles.h"
#include "models/kv_mover.h"
#include "transfer/json.h"

namespace verbena::models {
namespace {

using transfer::KVLayout;

double micros_now() {
  return std::chrono::duration<double, std::micro>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

double median_of(std::vector<double> values) {
  std::ranges::sort(values);
  return values.empty() ? 0 : values[values.size() / 2];
}

bool send_bytes(int socket, const void* from, u64 bytes) {
  const char* at = static_cast<const char*>(from);
  while (bytes > 0) {
    const ssize_t sent = send(socket, at, bytes, MSG_NOSIGNAL);
    if (sent <= 0) return false;
    at += sent;
    bytes -= static_cast<u64>(sent);
  }
  return true;
}
bool receive_bytes(int socket, void* to, u64 bytes) {
  char* at = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t got = recv(socket, at, bytes, 0);
    if (got <= 0) return false;
    at += got;
    bytes -= static_cast<u64>(got);
  }
  return true;
}

// A pair of connected TCP sockets over loopback.
Expected<std::pair<int, int>> tcp_pair() {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  const int one = socket(AF_INET, SOCK_STREAM, 0);
  const bool is_good = bind(listener, reinterpret_cast<sockaddr*>(&address), length) == 0 &&
                       listen(listener, 1) == 0 &&
                       getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length) == 0 &&
                       connect(one, reinterpret_cast<sockaddr*>(&address), length) == 0;
  const int other = is_good ? accept(listener, nullptr, nullptr) : -1;
  close(listener);
  if (other < 0) return tl::unexpected<std::string>("no TCP connection over loopback");
  const int on = 1;
  setsockopt(one, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(other, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return std::pair{one, other};
}

// Each block of each layer, in the order in which TCP carries them.
template <typename Use>
bool for_each_block(const KVBenchOptions& options, KVSide side, u64 base, Use use) {
  const KVLayout layout = options.layout();
  for (const std::vector<u32>& table : block_tables(options, side))
    for (u32 layer = 0; layer < layout.layers; ++layer)
      for (const transfer::Block& block : transfer::kv_list(layout, base, 0, layer, table))
        if (!use(reinterpret_cast<void*>(block.address), block.length)) return false;
  return true;
}

// Medians, in microseconds; `why`: what failed.
struct Times {
  double whole = 0, added = 0, contiguous = 0, tcp = 0;
  std::array<char, 256> why{};
};

enum class Command : u8 { kTCP = 2, kEnd = 3 };

// --- the decode process: passive, but for the TCP baseline

int decode(const KVBenchOptions& options, int control, int tcp) {
  const KVCacheMemory cache(options.layout().bytes());
  if (cache.data() == nullptr) return fail(kExitFailed, "no memory for the cache");
  KVInstance instance;
  if (const auto opened = instance.open("decode", options, cache); !opened)
    return fail(kExitFailed, opened.error());
  const KVPlace place = instance.place();
  if (!send_bytes(control, &place, sizeof place)) return kExitFailed;
  while (true) {
    Command command{};
    if (!receive_bytes(control, &command, sizeof command) || command != Command::kTCP)
      return kExitOk;
    const u8 done = 1;
    if (!for_each_block(options, KVSide::kDecode, cache.base(),
                        [&](void* at, u64 bytes) { return receive_bytes(tcp, at, bytes); }) ||
        !send_bytes(tcp, &done, 1))
      return kExitFailed;
  }
}

// --- the prefill process: measures

class Prefill {
 public:
  Prefill(const KVBenchOptions& options, int control, int tcp)
      : options_(options), cache_(options.layout().bytes()), control_(control), tcp_(tcp) {}

  Expected<Times> run() {
    if (cache_.data() == nullptr) return tl::unexpected<std::string>("no memory for the cache");
    KVPlace peer;
    if (!receive_bytes(control_, &peer, sizeof peer))
      return tl::unexpected<std::string>("the decode process died");
    if (const auto opened = mover_.open(options_, cache_, peer); !opened)
      return tl::unexpected(opened.error());
    for (u32 i = 0; i <= options_.iterations; ++i) {
      const auto measured = iterate();
      if (!measured) return tl::unexpected(measured.error());
      if (i == 0) whole_ = added_ = contiguous_ = tcp_times_ = {};  // it was to warm up
    }
    const Command end = Command::kEnd;
    (void)send_bytes(control_, &end, sizeof end);
    return Times{.whole = median_of(whole_),
                 .added = median_of(added_),
                 .contiguous = median_of(contiguous_),
                 .tcp = median_of(tcp_times_)};
  }

 private:
  // A GPU computes: this thread has time to move what was started.
  void compute() {
    const double end = micros_now() + options_.compute_us;
    while (micros_now() < end) mover_.progress();
  }
  Expected<void> move_layers() {
    const u32 layers = options_.layout().layers;
    const double begin = micros_now();
    double computed = begin;
    for (u32 layer = 0; layer < layers; ++layer) {
      if (layer > 0 && options_.compute_us > 0) compute();
      computed = micros_now();
      if (const auto started = mover_.start(layer); !started) return started;
    }
    if (const auto done = mover_.finish(); !done) return done;
    const double end = micros_now();
    whole_.push_back(end - begin);
    added_.push_back(end - computed);
    return {};
  }
  Expected<void> move_contiguous() {
    const double begin = micros_now();
    if (const auto started = mover_.start_contiguous(); !started) return started;
    if (const auto done = mover_.finish(); !done) return done;
    contiguous_.push_back(micros_now() - begin);
    return {};
  }
  Expected<void> move_by_tcp() {
    const Command command = Command::kTCP;
    const double begin = micros_now();
    u8 done = 0;
    if (!send_bytes(control_, &command, sizeof command) ||
        !for_each_block(options_, KVSide::kPrefill, cache_.base(),
                        [&](void* at, u64 bytes) { return send_bytes(tcp_, at, bytes); }) ||
        !receive_bytes(tcp_, &done, 1))
      return tl::unexpected<std::string>("the TCP connection broke");
    tcp_times_.push_back(micros_now() - begin);
    return {};
  }
  Expected<void> iterate() {
    if (const auto moved = move_layers(); !moved) return moved;
    if (options_.has_contiguous)
      if (const auto moved = move_contiguous(); !moved) return moved;
    return options_.has_tcp ? move_by_tcp() : Expected<void>{};
  }

  const KVBenchOptions& options_;
  KVCacheMemory cache_;
  int control_, tcp_;
  KVMover mover_{};
  std::vector<double> whole_{}, added_{}, contiguous_{}, tcp_times_{};
};

int prefill(const KVBenchOptions& options, int control, int tcp, int result) {
  Prefill measuring(options, control, tcp);
  const auto times = measuring.run();
  Times told = times ? *times : Times{};
  if (!times) times.error().copy(told.why.data(), told.why.size() - 1);
  return send_bytes(result, &told, sizeof told) ? kExitOk : kExitFailed;
}

// --- both processes of a technology

struct Pair {
  int one = -1, other = -1;
  [[nodiscard]] bool make_local() {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return false;
    one = ends[0];
    other = ends[1];
    return true;
  }
  ~Pair() {
    if (one >= 0) close(one);
    if (other >= 0) close(other);
  }
};

template <typename Body>
pid_t start_process(KVTechnology technology, Body body) {
  std::fflush(stdout);
  const pid_t pid = fork();
  if (pid != 0) return pid;
  if (technology == KVTechnology::kIWARP) {
    setenv("VERBENA_LINK", "iwarp", 1);
    unsetenv("VERBENA_FAULT");  // its rules are of packets
  }
  _exit(body());
}

Expected<Times> measure(const KVBenchOptions& options, KVTechnology technology) {
  Pair control, result, tcp;
  const auto sockets = tcp_pair();
  if (!sockets) return tl::unexpected(sockets.error());
  tcp.one = sockets->first;
  tcp.other = sockets->second;
  if (!control.make_local() || !result.make_local())
    return tl::unexpected<std::string>(std::strerror(errno));
  const pid_t sink = start_process(technology, [&] {
    close(std::exchange(control.one, -1));
    close(std::exchange(tcp.one, -1));
    return decode(options, control.other, tcp.other);
  });
  const pid_t source = start_process(technology, [&] {
    close(std::exchange(control.other, -1));
    close(std::exchange(tcp.other, -1));
    return prefill(options, control.one, tcp.one, result.other);
  });
  for (int* const end : {&control.one, &control.other, &tcp.one, &tcp.other, &result.other})
    close(std::exchange(*end, -1));  // so that a process sees when the other one dies
  Times times;
  const bool is_told = receive_bytes(result.one, &times, sizeof times);
  for (const pid_t pid : {source, sink})
    if (pid > 0) waitpid(pid, nullptr, 0);
  if (!is_told) return tl::unexpected<std::string>("the prefill process died");
  if (times.why[0] != 0) return tl::unexpected(std::string(times.why.data()));
  return times;
}

// --- what is printed

struct Row {
  std::string name{};
  Times times{};
};

double gigabytes(const KVBenchOptions& options, double micros) {
  const double bytes = static_cast<double>(options.requests * options.request_bytes());
  return micros > 0 ? bytes / micros / 1e3 : 0;
}

double blocks_of(const KVBenchOptions& options) {
  const KVLayout layout = options.layout();
  return static_cast<double>(options.requests) * options.blocks * layout.halves() * layout.layers;
}

void print_json(const KVBenchOptions& options, const Row& row) {
  fmt::print(
      "{{\"technology\": {}, \"model\": {}, \"bytes\": {}, \"blocks\": {:.0f}, "
      "\"block_bytes\": {}, \"us\": {:.1f}, \"ttft_added_us\": {:.1f}, \"gbps\": {:.3f}, "
      "\"blocks_per_s\": {:.0f}, \"contiguous_gbps\": {:.3f}, \"tcp_gbps\": {:.3f}}}\n",
      transfer::json_string(row.name), transfer::json_string(options.model.name),
      options.requests * options.request_bytes(), blocks_of(options), options.layout().block_bytes,
      row.times.whole, row.times.added, gigabytes(options, row.times.whole),
      blocks_of(options) / row.times.whole * 1e6, gigabytes(options, row.times.contiguous),
      gigabytes(options, row.times.tcp));
}

void print_table(const KVBenchOptions& options, const std::vector<Row>& rows) {
  const KVLayout layout = options.layout();
  fmt::print("{}: {} layers, {} blocks of {} in each, {} at a time, {} iterations (medians)\n",
             options.model.name, layout.layers, u64{options.blocks} * layout.halves(),
             size_text(layout.block_bytes), options.requests, options.iterations);
  fmt::print("{:<20} {:>10} {:>10} {:>10} {:>12}\n", "", "ms", "GB/s", "blocks/s", "TTFT +ms");
  const auto line = [&](const std::string& name, double micros, double added) {
    if (micros > 0)
      fmt::print("{:<20} {:>10.3f} {:>10.2f} {:>10.0f} {:>12.3f}\n", name, micros / 1e3,
                 gigabytes(options, micros), blocks_of(options) / micros * 1e6, added / 1e3);
  };
  for (const Row& row : rows) {
    line(row.name, row.times.whole, row.times.added);
    line(row.name + ", one WRITE", row.times.contiguous, row.times.contiguous);
  }
  line("tcp", rows.front().times.tcp, rows.front().times.tcp);
}

}  // namespace

int bench_kv(std::span<const std::string> arguments) {
  const auto options = read_kv_bench_options(arguments);
  if (!options) return fail(kExitUsage, options.error());
  std::vector<Row> rows;
  for (const KVTechnology technology : options->technologies) {
    const std::string name = technology == KVTechnology::kIWARP ? "iwarp" : "rocev2";
    const auto times = measure(*options, technology);
    if (!times) return fail(kExitFailed, name + ": " + times.error());
    rows.push_back({name, *times});
    if (options->prints_json) print_json(*options, rows.back());
  }
  if (!options->prints_json) print_table(*options, rows);
  return kExitOk;
}

}  // namespace verbena::models
