#include <filesystem>
#include <thread>

#include <fmt/format.h>

#include "models/commands.h"
#include "models/fetcher.h"
#include "models/options.h"
#include "models/progress_bar.h"
#include "models/room.h"
#include "transfer/json.h"

namespace verbena::models {
namespace {

namespace fs = std::filesystem;
using transfer::Manifest;

struct FetchOptions {
  std::vector<std::string> sources{};
  std::string target{};  // "": memory
  Selection selection{};
  FetchSettings settings{};
  AgentSettings agent{};
  bool serves = true, stays = false, prints_json = false;
};

Expected<void> read_parallel(const std::string& text, Selection& selection) {
  const auto parts = split(text, '/');
  const auto part = parts.size() == 2 ? read_size(parts[0]) : std::nullopt;
  const auto count = parts.size() == 2 ? read_size(parts[1]) : std::nullopt;
  if (!part || !count || *count == 0 || *part >= *count || *count > 65536)
    return tl::unexpected("--tp " + text + ": RANK/SIZE is needed, as in 0/8");
  selection.part = static_cast<u32>(*part);
  selection.parts = static_cast<u32>(*count);
  return {};
}

Expected<FetchOptions> read_fetch_options(std::span<const std::string> arguments) {
  const auto options = Options::read(
      arguments, {.values = {"--tensor", "--tp", "--rows", "--columns", "--timeout", "--in-flight",
                             "--queue-pairs"},
                  .flags = {"--memory", "--no-serve", "--stay", "--no-verify", "--json"}});
  if (!options) return tl::unexpected(options.error());
  FetchOptions read;
  const bool is_memory = options->has("--memory");
  if (options->words().size() != (is_memory ? 1u : 2u))
    return tl::unexpected<std::string>(
        "model fetch needs a source, HOST:PORT, and a target (or --memory)");
  read.sources = split(options->words()[0], ',');
  if (read.sources.empty()) return tl::unexpected<std::string>("there is no source");
  if (!is_memory) read.target = options->words()[1];
  read.selection.names = options->all("--tensor");
  read.selection.rows = options->all("--rows");
  read.selection.columns = options->all("--columns");
  if (const std::string text = options->text("--tp"); !text.empty())
    if (const auto parsed = read_parallel(text, read.selection); !parsed)
      return tl::unexpected(parsed.error());
  const auto timeout = options->number("--timeout", 30, 1, 86400);
  const auto in_flight = options->number("--in-flight", read.settings.in_flight, 1, 64);
  const auto queue_pairs = options->number("--queue-pairs", 1, 1, 8);
  for (const auto& number : {timeout, in_flight, queue_pairs})
    if (!number) return tl::unexpected(number.error());
  read.settings.timeout_s = static_cast<double>(*timeout);
  read.settings.in_flight = static_cast<u32>(*in_flight);
  read.settings.verifies = !options->has("--no-verify");
  read.agent.queue_pairs = static_cast<u32>(*queue_pairs);
  read.serves =
      !options->has("--no-serve") && read.selection.is_everything() && read.settings.verifies;
  read.stays = options->has("--stay");
  if (read.stays && !read.serves)
    return tl::unexpected<std::string>(
        "--stay: a fetch of a part, --no-verify and --no-serve leave nothing to serve");
  const bool is_split = !options->all("--tp").empty();
  if (!is_split && !(read.selection.rows.empty() && read.selection.columns.empty()))
    return tl::unexpected<std::string>(
        "--rows and --columns say how --tp splits, which is missing");
  read.prints_json = options->has("--json");
  return read;
}

// Below the target's folder, or the target itself where the model is one file.
std::string path_of(const FetchOptions& options, const Plan& plan, const PlannedTarget& target) {
  const bool is_folder =
      plan.targets.size() > 1 || options.target.ends_with('/') || fs::is_directory(options.target);
  return is_folder ? (fs::path(options.target) / target.name).string() : options.target;
}

struct Targets {
  std::vector<MappedFile> files{};
  std::vector<bool> had{};  // an earlier attempt left something
};

// Makes the folders of the targets, and checks that all targets fit.
Expected<void> prepare_folders(const FetchOptions& options, const Plan& plan) {
  Room room;
  for (const PlannedTarget& planned : plan.targets) {
    const fs::path path = path_of(options, plan, planned);
    std::error_code error;
    if (path.has_parent_path()) fs::create_directories(path.parent_path(), error);
    if (error) return tl::unexpected(path.parent_path().string() + ": " + error.message());
    room.need(path.string(), planned.bytes);
  }
  return room.check(options.target);
}

Expected<Targets> make_targets(const FetchOptions& options, const Plan& plan) {
  Targets targets;
  if (!options.target.empty())
    if (const auto prepared = prepare_folders(options, plan); !prepared)
      return tl::unexpected(prepared.error());
  for (const PlannedTarget& planned : plan.targets) {
    auto file = options.target.empty()
                    ? MappedFile::make_memory(planned.bytes)
                    : MappedFile::make_target(path_of(options, plan, planned), planned.bytes);
    if (!file) return tl::unexpected(file.error());
    const std::span<const u8> header(reinterpret_cast<const u8*>(planned.header.data()),
                                     planned.header.size());
    if (!file->is_file())
      std::copy(header.begin(), header.end(), file->data());
    else if (const int wrong = file->write_at(0, header); wrong != 0)
      return tl::unexpected(file->write_failure(wrong));
    targets.had.push_back(file->had_bytes() != 0);
    targets.files.push_back(std::move(*file));
  }
  return targets;
}

// The chunk at which the turn-th fetcher begins: turns lie far apart, so that fetchers that start
// together read different chunks and can give them to each other.
u64 first_chunk_of(u32 turn, u64 chunks) {
  constexpr double kGoldenRatio = 0.6180339887498949;
  const double at = turn * kGoldenRatio;
  return static_cast<u64>((at - static_cast<double>(static_cast<u64>(at))) *
                          static_cast<double>(chunks));
}

// Serves what is fetched, in a thread of its own.
class Relay {
 public:
  static Expected<std::unique_ptr<Relay>> start(const Manifest& manifest,
                                                const std::vector<MappedFile>& files,
                                                Sources& sources) {
    std::vector<const MappedFile*> pointers;
    for (const MappedFile& file : files) pointers.push_back(&file);
    auto server = Server::make(manifest, pointers, {});
    if (!server) return tl::unexpected(server.error());
    auto relay = std::unique_ptr<Relay>(new Relay);
    relay->server_ = std::move(*server);
    for (const auto& source : sources.all())
      (void)sources.ask(*source, "serve", relay->server_->address());
    relay->thread_ = std::thread([raw = relay.get()] {
      raw->server_->run([raw] { return raw->is_over_.load(); }, [](const std::string&) {});
    });
    return relay;
  }
  ~Relay() {
    is_over_ = true;
    if (thread_.joinable()) thread_.join();
  }
  [[nodiscard]] Server* server() { return server_.get(); }

 private:
  Relay() = default;
  std::unique_ptr<Server> server_{};
  std::atomic<bool> is_over_ = false;
  std::thread thread_{};
};

void print_result(const FetchOptions& options, const Sources& sources, const Fetcher& fetcher,
                  double seconds) {
  const u64 fetched = fetcher.total_bytes() - fetcher.kept_bytes();
  const double rate = static_cast<double>(fetched) / seconds / 1e9;
  std::string by_source;
  for (const auto& source : sources.all()) {
    if (source->delivered == 0) continue;
    by_source += by_source.empty() ? "" : ", ";
    by_source +=
        options.prints_json
            ? fmt::format("{}: {}", transfer::json_string(source->address), source->delivered)
            : fmt::format("{} from {}", size_text(source->delivered), source->address);
  }
  if (options.prints_json) {
    fmt::print("{{\"bytes\": {}, \"kept_bytes\": {}, \"seconds\": {:.6f}, \"sources\": {{{}}}}}\n",
               fetcher.total_bytes(), fetcher.kept_bytes(), seconds, by_source);
  } else {
    fmt::print("fetched {} in {:.2f} s, {:.2f} GB/s", size_text(fetched), seconds, rate);
    if (fetcher.kept_bytes() != 0) fmt::print("; {} were there", size_text(fetcher.kept_bytes()));
    fmt::print("{}{}\n", by_source.empty() ? "" : ": ", by_source);
  }
  std::fflush(stdout);
}

Expected<void> fetch(const FetchOptions& options) {
  auto agent = make_agent("fetch", options.agent);
  if (!agent) return tl::unexpected(agent.error());
  Sources sources(std::move(*agent), options.settings.timeout_s);
  std::string why;
  for (const std::string& address : options.sources)
    if (const auto added = sources.add(address, true); !added)
      why += (why.empty() ? "" : "; ") + added.error();
  if (sources.all().empty() || (!why.empty() && why.find("another model") != std::string::npos))
    return tl::unexpected(why);
  if (!why.empty()) fmt::print(stderr, "verbena: warning: {}\n", why);
  Source& first = *sources.all().front();
  const auto manifest = sources.read_manifest(first);
  if (!manifest) return tl::unexpected(manifest.error());
  for (const auto& source : sources.all())
    if (const auto read = sources.refresh(*source, *manifest); !read) return read;
  Expected<Plan> plan =
      options.selection.is_everything()
          ? plan_everything(*manifest, first_chunk_of(first.turn, manifest->chunks()))
          : plan_selection(sources, first, *manifest, options.selection, "model.safetensors");
  if (!plan) return tl::unexpected(plan.error());
  auto targets = make_targets(options, *plan);
  if (!targets) return tl::unexpected(targets.error());
  std::unique_ptr<Relay> relay;
  if (options.serves) {
    auto started = Relay::start(*manifest, targets->files, sources);
    if (!started) return tl::unexpected(started.error());
    relay = std::move(*started);
  }
  const std::vector<bool> had = targets->had;
  Fetcher fetcher(sources, *manifest, std::move(*plan), targets->files,
                  relay ? relay->server() : nullptr, options.settings);
  if (options.settings.verifies) fetcher.check_existing(had);
  ProgressBar bar("fetching", fetcher.total_bytes());
  const auto fetched = fetcher.run([&](u64 done) { bar.show(done); });
  if (!fetched) return fetched;
  const double seconds = bar.seconds();
  for (MappedFile& file : targets->files)
    if (const auto completed = file.complete(); !completed) return completed;
  print_result(options, sources, fetcher, seconds);
  if (options.stays) catch_signals();
  while (options.stays && relay && !is_stopped())
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  return {};
}

}  // namespace

int fetch_model(std::span<const std::string> arguments) {
  const auto options = read_fetch_options(arguments);
  if (!options) return fail(kExitUsage, options.error());
  const auto done = fetch(*options);
  return done ? kExitOk : fail(kExitFailed, done.error());
}

}  // namespace verbena::models
