#include <sys/stat.h>

#include <fmt/format.h>

#include "models/commands.h"
#include "models/options.h"
#include "models/progress_bar.h"
#include "models/server.h"
#include "models/source_model.h"

namespace verbena::models {
namespace {

using transfer::Manifest;

struct ServeOptions {
  std::string path{};
  u64 chunk_bytes = 0;
  std::string hashes{};  // the cache's file, "off", or "": the one in the model's folder
  AgentSettings agent{};
  bool is_verbose = false;
};

Expected<ServeOptions> read_serve_options(std::span<const std::string> arguments) {
  const auto options = Options::read(
      arguments,
      {.values = {"--listen", "--chunk", "--queue-pairs", "--hashes"}, .flags = {"--verbose"}});
  if (!options) return tl::unexpected(options.error());
  if (options->words().size() != 1)
    return tl::unexpected<std::string>("model serve needs one folder or file");
  const auto chunk = options->number("--chunk", Manifest{}.chunk_bytes, Manifest::kMinChunkBytes,
                                     Manifest::kMaxChunkBytes);
  const auto queue_pairs = options->number("--queue-pairs", 1, 1, 8);
  if (!chunk) return tl::unexpected(chunk.error());
  if (!queue_pairs) return tl::unexpected(queue_pairs.error());
  return ServeOptions{
      .path = options->words()[0],
      .chunk_bytes = *chunk,
      .hashes = options->text("--hashes"),
      .agent = {.listen = options->text("--listen"), .queue_pairs = static_cast<u32>(*queue_pairs)},
      .is_verbose = options->has("--verbose")};
}

// Opens the model with the hashes of earlier runs, and keeps the hashes for later ones.
Expected<SourceModel> open_with_cache(const ServeOptions& options) {
  const bool uses_cache = options.hashes != "off";
  const std::string path = options.hashes.empty() ? hash_cache_path(options.path) : options.hashes;
  const HashCache before = uses_cache ? HashCache::load(path) : HashCache{};
  HashCache cache = before;
  u64 hashed = 0;
  ProgressBar bar("hashing", 0);
  auto model = open_model(options.path, options.chunk_bytes, cache, [&](u64 bytes) {
    hashed += bytes;
    bar.show(hashed);
  });
  if (!model || !uses_cache || cache == before) return model;
  // A model on a medium that is read-only is served as well.
  if (const auto saved = cache.save(path); !saved && !options.hashes.empty())
    fmt::print(stderr, "verbena: warning: {}\n", saved.error());
  return model;
}

}  // namespace

int serve_model(std::span<const std::string> arguments) {
  const auto options = read_serve_options(arguments);
  if (!options) return fail(kExitUsage, options.error());
  catch_signals();
  const auto model = open_with_cache(*options);
  if (!model) return fail(kExitFailed, model.error());
  for (const std::string& warning : model->warnings)
    fmt::print(stderr, "verbena: warning: {}\n", warning);
  std::vector<const MappedFile*> files;
  for (const MappedFile& file : model->files) files.push_back(&file);
  const auto server = Server::make(model->manifest, files, options->agent);
  if (!server) return fail(kExitFailed, server.error());
  (*server)->offer_all();
  const std::string kept =
      model->kept_chunks == 0 ? "" : fmt::format(" ({} were hashed before)", model->kept_chunks);
  fmt::print("serving {} files, {}, in {} chunks{}: verbena model fetch {} TARGET\n", files.size(),
             size_text(model->manifest.bytes()), model->manifest.chunks(), kept,
             (*server)->address());
  std::fflush(stdout);
  (*server)->run(is_stopped, [&](const std::string& event) {
    if (options->is_verbose) fmt::print(stderr, "{}\n", event);
  });
  return kExitOk;
}

}  // namespace verbena::models
