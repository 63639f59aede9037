// `verbena bench kv`: the prefill process writes the blocks of each layer into the cache of the
// decode process, while it computes the next one. Measures, in turn: that; the same octets in one
// contiguous WRITE; and the same blocks over TCP.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include <fmt/format.h>

#include "base/prng.h"
#include "models/commands.h"
#include "models/handles.h"
#include "models/kv_bench_options.h"
#include "transfer/block_pool.h"
#include "transfer/json.h"

namespace verbena::models {
namespace {

using transfer::BlockPool;
using transfer::KVLayout;

constexpr double kSeconds = 60;

double micros_now() {
  return std::chrono::duration<double, std::micro>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

double median_of(std::vector<double> values) {
  std::ranges::sort(values);
  return values.empty() ? 0 : values[values.size() / 2];
}

// The memory of a cache. A contiguous WRITE of a request's octets uses its begin.
struct Cache {
  u8* data = nullptr;
  u64 octets = 0;
  explicit Cache(u64 size) : octets(size) {
    void* const at =
        mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return;
    data = static_cast<u8*>(at);
    madvise(data, size, MADV_HUGEPAGE);
    std::memset(data, 1, size);
  }
  ~Cache() {
    if (data != nullptr) munmap(data, octets);
  }
  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;
};

// Scattered block tables, as those of a cache that was in use for a while.
std::vector<std::vector<u32>> block_tables(const KVBenchOptions& options, u64 seed) {
  const KVLayout layout = options.layout();
  std::vector<u32> all(layout.blocks);
  for (u32 i = 0; i < layout.blocks; ++i) all[i] = i;
  PRNG prng(seed);
  for (u32 i = layout.blocks; i > 1; --i) std::swap(all[i - 1], all[prng.below(i)]);
  std::vector<std::vector<u32>> tables;
  for (u32 i = 0; i < options.requests; ++i)
    tables.emplace_back(all.begin() + i * options.blocks, all.begin() + (i + 1) * options.blocks);
  return tables;
}
constexpr u64 kPrefillSeed = 1, kDecodeSeed = 2;

std::vector<verbena_descriptor> descriptors(const KVLayout& layout, u64 base, u32 layer,
                                            std::span<const u32> blocks) {
  std::vector<verbena_descriptor> list;
  for (const transfer::Block& block : transfer::kv_list(layout, base, 0, layer, blocks))
    list.push_back({block.address, block.length, 0});
  return list;
}

bool send_octets(int socket, const void* from, u64 octets) {
  const char* at = static_cast<const char*>(from);
  while (octets > 0) {
    const ssize_t sent = send(socket, at, octets, MSG_NOSIGNAL);
    if (sent <= 0) return false;
    at += sent;
    octets -= static_cast<u64>(sent);
  }
  return true;
}
bool receive_octets(int socket, void* to, u64 octets) {
  char* at = static_cast<char*>(to);
  while (octets > 0) {
    const ssize_t got = recv(socket, at, octets, 0);
    if (got <= 0) return false;
    at += got;
    octets -= static_cast<u64>(got);
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

// What the processes tell each other before: where the decode process's cache is.
struct Introduction {
  char address[64] = {};
  u64 base = 0;
};
enum class Command : u8 { kTCP, kEnd };

// --- the decode process: passive, but for the TCP baseline

void receive_by_tcp(const KVBenchOptions& options, const KVLayout& layout, u64 base, int socket) {
  for (const std::vector<u32>& table : block_tables(options, kDecodeSeed))
    for (u32 layer = 0; layer < layout.layers; ++layer)
      for (const verbena_descriptor& block : descriptors(layout, base, layer, table))
        if (!receive_octets(socket, reinterpret_cast<void*>(block.address), block.length)) return;
  const u8 done = 1;
  (void)send_octets(socket, &done, 1);
}

int decode(const KVBenchOptions& options, int control, int tcp) {
  const KVLayout layout = options.layout();
  const Cache cache(layout.octets());
  if (cache.data == nullptr) return fail(kExitFailed, "no memory for the cache");
  const auto agent = make_agent("decode", {});
  if (!agent) return fail(kExitFailed, agent.error());
  const auto region = add_region(agent->get(), cache.data, cache.octets, 0);
  if (!region) return fail(kExitFailed, region.error());
  Introduction introduction{.base = reinterpret_cast<u64>(cache.data)};
  std::strncpy(introduction.address, verbena_agent_address(agent->get()),
               sizeof introduction.address - 1);
  if (!send_octets(control, &introduction, sizeof introduction)) return kExitFailed;
  Command command{};
  while (receive_octets(control, &command, sizeof command) && command == Command::kTCP)
    receive_by_tcp(options, layout, reinterpret_cast<u64>(cache.data), tcp);
  return kExitOk;
}

// --- the prefill process: measures

struct Times {
  std::vector<double> whole{}, added{}, contiguous{}, tcp{};  // microseconds
};

class Prefill {
 public:
  Prefill(const KVBenchOptions& options, int control, int tcp)
      : options_(options),
        layout_(options.layout()),
        cache_(layout_.octets()),
        control_(control),
        tcp_(tcp) {}

  Expected<Times> run() {
    if (cache_.data == nullptr) return tl::unexpected<std::string>("no memory for the cache");
    if (const auto opened = open(); !opened) return tl::unexpected(opened.error());
    Times times;
    for (u32 i = 0; i <= options_.iterations; ++i) {  // the first one warms up
      const auto measured = iterate(times);
      if (!measured) return tl::unexpected(measured.error());
      if (i == 0) times = {};
    }
    const Command end = Command::kEnd;
    (void)send_octets(control_, &end, sizeof end);
    return times;
  }

 private:
  Expected<void> open() {
    Introduction peer;
    if (!receive_octets(control_, &peer, sizeof peer))
      return tl::unexpected<std::string>("the decode process died");
    auto agent = make_agent("prefill", {});
    if (!agent) return tl::unexpected(agent.error());
    agent_ = std::move(*agent);
    const auto region = add_region(agent_.get(), cache_.data, cache_.octets, 0);
    if (!region) return tl::unexpected(region.error());
    const auto met = meet(agent_.get(), peer.address);
    if (!met) return tl::unexpected(met.error());
    const auto from = block_tables(options_, kPrefillSeed);
    const auto to = block_tables(options_, kDecodeSeed);
    for (u32 layer = 0; layer < layout_.layers; ++layer)
      for (u32 request = 0; request < options_.requests; ++request) {
        const bool is_last = layer + 1 == layout_.layers;
        auto transfer = prepare(*met, descriptors(layout_, base(), layer, from[request]),
                                descriptors(layout_, peer.base, layer, to[request]), is_last);
        if (!transfer) return tl::unexpected(transfer.error());
        layers_.push_back(std::move(*transfer));
      }
    const u64 octets = options_.requests * options_.request_octets();
    auto contiguous = prepare(*met, {{base(), octets, 0}}, {{peer.base, octets, 0}}, true);
    if (!contiguous) return tl::unexpected(contiguous.error());
    contiguous_ = std::move(*contiguous);
    return {};
  }

  Expected<TransferPtr> prepare(const std::string& peer,
                                const std::vector<verbena_descriptor>& local,
                                const std::vector<verbena_descriptor>& remote, bool notifies) {
    verbena_transfer_options options{};
    options.size = sizeof options;
    options.notification = notifies ? "done" : nullptr;
    options.notification_size = notifies ? 4 : 0;
    verbena_transfer* transfer = nullptr;
    if (verbena_transfer_create(agent_.get(), VERBENA_WRITE, local.data(), local.size(),
                                remote.data(), remote.size(), peer.c_str(), &options,
                                &transfer) != VERBENA_TRANSFER_OK)
      return tl::unexpected<std::string>(verbena_agent_error());
    return TransferPtr(transfer);
  }

  static Expected<void> post(const TransferPtr& transfer) {
    if (verbena_transfer_post(transfer.get()) != VERBENA_TRANSFER_OK)
      return tl::unexpected<std::string>(verbena_agent_error());
    return {};
  }

  // A GPU computes: this thread has time to move what is posted.
  void compute(const TransferPtr& posted) const {
    const double end = micros_now() + options_.compute_us;
    while (micros_now() < end) (void)verbena_transfer_status(posted.get());
  }

  Expected<void> move_layers(Times& times) {
    const double begin = micros_now();
    double computed = begin;
    for (u32 layer = 0; layer < layout_.layers; ++layer) {
      if (layer > 0 && options_.compute_us > 0) compute(layers_[(layer - 1) * options_.requests]);
      computed = micros_now();
      for (u32 request = 0; request < options_.requests; ++request)
        if (const auto posted = post(layers_[layer * options_.requests + request]); !posted)
          return posted;
    }
    for (const TransferPtr& layer : layers_)
      if (const auto done = finish(layer, kSeconds); !done) return done;
    const double end = micros_now();
    times.whole.push_back(end - begin);
    times.added.push_back(end - computed);
    return {};
  }

  Expected<void> move_by_tcp(Times& times) {
    const Command command = Command::kTCP;
    if (!send_octets(control_, &command, sizeof command))
      return tl::unexpected<std::string>("the decode process died");
    const double begin = micros_now();
    for (const std::vector<u32>& table : block_tables(options_, kPrefillSeed))
      for (u32 layer = 0; layer < layout_.layers; ++layer)
        for (const verbena_descriptor& block : descriptors(layout_, base(), layer, table))
          if (!send_octets(tcp_, reinterpret_cast<void*>(block.address), block.length))
            return tl::unexpected<std::string>("the TCP connection broke");
    u8 done = 0;
    if (!receive_octets(tcp_, &done, 1))
      return tl::unexpected<std::string>("the TCP connection broke");
    times.tcp.push_back(micros_now() - begin);
    return {};
  }

  Expected<void> iterate(Times& times) {
    if (const auto moved = move_layers(times); !moved) return moved;
    if (options_.has_contiguous) {
      const double begin = micros_now();
      if (const auto posted = post(contiguous_); !posted) return posted;
      if (const auto done = finish(contiguous_, kSeconds); !done) return done;
      times.contiguous.push_back(micros_now() - begin);
    }
    return options_.has_tcp ? move_by_tcp(times) : Expected<void>{};
  }

  [[nodiscard]] u64 base() const { return reinterpret_cast<u64>(cache_.data); }

  const KVBenchOptions& options_;
  KVLayout layout_;
  Cache cache_;
  int control_, tcp_;
  AgentPtr agent_{};
  std::vector<TransferPtr> layers_{};
  TransferPtr contiguous_{};
};

// --- what is printed

void print_times(const KVBenchOptions& options, const std::string& link, const Times& times) {
  const KVLayout layout = options.layout();
  const double octets = static_cast<double>(options.requests * options.request_octets());
  const double blocks =
      static_cast<double>(options.requests) * options.blocks * layout.halves() * layout.layers;
  const double whole = median_of(times.whole), added = median_of(times.added);
  const auto rate = [&](double micros) { return micros > 0 ? octets / micros / 1e3 : 0; };
  const std::string technology = link == "iwarp" ? "iwarp" : "rocev2";
  if (options.prints_json) {
    fmt::print(
        "{{\"technology\": {}, \"model\": {}, \"octets\": {:.0f}, \"blocks\": {:.0f}, "
        "\"block_octets\": {}, \"us\": {:.1f}, \"ttft_added_us\": {:.1f}, \"gbps\": {:.3f}, "
        "\"blocks_per_s\": {:.0f}, \"contiguous_gbps\": {:.3f}, \"tcp_gbps\": {:.3f}}}\n",
        transfer::json_string(technology), transfer::json_string(options.model.name), octets,
        blocks, layout.block_octets, whole, added, rate(whole), blocks / whole * 1e6,
        rate(median_of(times.contiguous)), rate(median_of(times.tcp)));
    return;
  }
  fmt::print("{:<11} {:>10} {:>10} {:>10} {:>12} {:>12}\n", "", "ms", "GB/s", "blocks/s",
             "TTFT +ms", "relative");
  const auto row = [&](const std::string& name, double micros, double late) {
    fmt::print("{:<11} {:>10.3f} {:>10.2f} {:>10.0f} {:>12.3f} {:>12.2f}\n", name, micros / 1e3,
               rate(micros), blocks / micros * 1e6, late / 1e3, whole / micros);
  };
  row(technology, whole, added);
  if (options.has_contiguous) {
    const double micros = median_of(times.contiguous);
    row("contiguous", micros, micros);
  }
  if (options.has_tcp) {
    const double micros = median_of(times.tcp);
    row("tcp", micros, micros);
  }
}

void print_head(const KVBenchOptions& options) {
  if (options.prints_json) return;
  const KVLayout layout = options.layout();
  fmt::print("{}: {} layers, {} blocks of {} in each, {} at a time, {} iterations (medians)\n",
             options.model.name, layout.layers, u64{options.blocks} * layout.halves(),
             size_text(layout.block_octets), options.requests, options.iterations);
}

}  // namespace

int bench_kv(std::span<const std::string> arguments) {
  const auto options = read_kv_bench_options(arguments);
  if (!options) return fail(kExitUsage, options.error());
  int control[2];
  const auto tcp = tcp_pair();
  if (!tcp) return fail(kExitFailed, tcp.error());
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, control) != 0)
    return fail(kExitFailed, std::strerror(errno));
  const pid_t child = fork();
  if (child < 0) return fail(kExitFailed, std::strerror(errno));
  if (child == 0) {
    close(control[0]);
    close(tcp->first);
    _exit(decode(*options, control[1], tcp->second));
  }
  close(control[1]);
  close(tcp->second);
  Expected<Times> times;
  {
    Prefill prefill(*options, control[0], tcp->first);
    times = prefill.run();
  }
  close(control[0]);  // ends the other process, whatever it does
  close(tcp->first);
  int status = 0;
  waitpid(child, &status, 0);
  if (!times) return fail(kExitFailed, times.error());
  print_head(*options);
  print_times(*options, options->links[0], *times);
  return kExitOk;
}

}  // namespace verbena::models
