// verbena nvmf bench: so many commands at a time, for so many seconds; rate and latency.
#include <algorithm>
#include <cinttypes>
#include <cstdio>

#include "base/prng.h"
#include "nvmf/status_text.h"
#include "nvmf_program/commands.h"
#include "nvmf_program/host_session.h"

namespace verbena::nvmf_program {
namespace {

using nvmf::Initiator;

class Bench {
 public:
  Bench(HostSession& session, const BenchOptions& options, const application::Region& memory,
        const nvme::IdentifyNamespace& space)
      : session_(session),
        options_(options),
        memory_(memory),
        blocks_(options.block_bytes >> space.block_log2),
        places_((space.blocks << space.block_log2) / options.block_bytes),
        begun_(options.depth) {
    latencies_us_.reserve(1 << 20);
  }

  [[nodiscard]] Expected<void> run() {
    begin_ = session_.node().now();
    end_ = begin_ + us(static_cast<i64>(options_.seconds * 1e6));
    for (u32 slot = 0; slot < options_.depth; ++slot) submit(slot);
    const bool is_done = session_.run_until([&] { return take_results(); });
    if (failed_ != nvme::Status::kSuccess) return tl::unexpected(nvmf::describe(failed_));
    if (!is_done && !session_.is_stopped()) return tl::unexpected(session_.initiator().failure());
    return {};
  }
  void print() {
    const double seconds = std::max(1e-9, (last_ - begin_).seconds());
    const double rate = static_cast<double>(latencies_us_.size()) / seconds;
    std::ranges::sort(latencies_us_);
    const char* const format =
        options_.json
            ? "{\"iops\": %.0f, \"mib_per_s\": %.1f, \"latency_us\": {\"median\": %.2f, \"p99\": "
              "%.2f, \"p999\": %.2f, \"max\": %.2f}, \"commands\": %zu, \"reconnects\": %" PRIu64
              "}\n"
            : "%.0f IOPS, %.1f MiB/s; latency in us: median %.2f, 99%% %.2f, 99.9%% %.2f, "
              "most %.2f; %zu commands, %" PRIu64 " reconnects\n";
    std::printf(format, rate, rate * options_.block_bytes / (1 << 20), part(0.5), part(0.99),
                part(0.999), part(1), latencies_us_.size(), session_.initiator().reconnects());
  }

 private:
  [[nodiscard]] double part(double fraction) const {
    if (latencies_us_.empty()) return 0;
    const auto at = static_cast<std::size_t>(fraction * static_cast<double>(latencies_us_.size()));
    return latencies_us_[std::min(at, latencies_us_.size() - 1)];
  }
  [[nodiscard]] u64 next_place() {
    const bool is_random = options_.pattern == BenchOptions::Pattern::kRandomRead ||
                           options_.pattern == BenchOptions::Pattern::kRandomWrite;
    return is_random ? prng_.below(places_) : next_++ % places_;
  }
  void submit(u32 slot) {
    const bool reads = options_.pattern == BenchOptions::Pattern::kRead ||
                       options_.pattern == BenchOptions::Pattern::kRandomRead;
    begun_[slot] = session_.node().now();
    session_.initiator().submit(
        {.opcode = reads ? nvme::IOOpcode::kRead : nvme::IOOpcode::kWrite,
         .nsid = options_.nsid,
         .lba = next_place() * blocks_,
         .blocks = blocks_,
         .data = slice_of(memory_, u64{slot} * options_.block_bytes, options_.block_bytes),
         .tag = slot});
    ++outstanding_;
  }
  [[nodiscard]] bool take_results() {
    for (Initiator::Result r; session_.initiator().poll_result(r);) {
      last_ = session_.node().now();
      --outstanding_;
      if (r.status != nvme::Status::kSuccess) failed_ = r.status;
      latencies_us_.push_back(static_cast<float>((last_ - begun_[r.tag]).seconds() * 1e6));
      if (last_ < end_ && failed_ == nvme::Status::kSuccess) submit(static_cast<u32>(r.tag));
    }
    return outstanding_ == 0;
  }

  HostSession& session_;
  const BenchOptions& options_;
  const application::Region memory_;
  const u32 blocks_;
  const u64 places_;
  PRNG prng_{1};
  u64 next_ = 0;
  u32 outstanding_ = 0;
  Time begin_, end_, last_;
  std::vector<Time> begun_;
  std::vector<float> latencies_us_;
  nvme::Status failed_ = nvme::Status::kSuccess;
};

// Why commands of so many bytes are not possible; "": they are.
std::string why_not(u32 bytes, const nvme::IdentifyNamespace& space, u32 most_bytes) {
  const u32 block = 1u << space.block_log2;
  const u64 size = space.blocks << space.block_log2;
  if (bytes % block != 0)
    return "is no multiple of the namespace's block size, " + std::to_string(block);
  if (bytes > size) return "is more than the namespace has: " + std::to_string(size) + " bytes";
  if (bytes > most_bytes)
    return "is too long: a command has at most " + std::to_string(most_bytes) + " bytes";
  return "";
}

}  // namespace

Expected<void> bench(const BenchOptions& options) {
  const StopDescriptor stop;
  auto session = HostSession::open(options.host, &stop);
  if (!session) return tl::unexpected(session.error());
  Initiator& initiator = (*session)->initiator();
  const auto space = initiator.namespaces().find(options.nsid);
  if (space == initiator.namespaces().end())
    return tl::unexpected("the subsystem has no namespace " + std::to_string(options.nsid));
  if (std::string why = why_not(options.block_bytes, space->second, initiator.max_transfer_bytes());
      !why.empty())
    return tl::unexpected("--block " + std::to_string(options.block_bytes) + " " + why);
  const auto memory = (*session)->node().allocate(u64{options.block_bytes} * options.depth,
                                                  application::Content::kBytes,
                                                  application::Access::kRemoteReadWrite);
  if (!memory) return tl::unexpected(std::string("no memory for data"));
  Bench work(**session, options, *memory, space->second);
  if (const auto done = work.run(); !done) return done;
  work.print();
  (*session)->close();
  return {};
}

}  // namespace verbena::nvmf_program
