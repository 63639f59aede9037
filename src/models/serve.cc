#include <sys/stat.h>

#include <fmt/format.h>

#include "models/commands.h"
#include "models/options.h"
#include "models/progress_bar.h"
#include "models/server.h"

namespace verbena::models {
namespace {

using transfer::Manifest;

struct ServeOptions {
  std::string path{};
  u64 chunk_octets = 0;
  AgentSettings agent{};
  bool is_verbose = false;
};

Expected<ServeOptions> read_serve_options(std::span<const std::string> arguments) {
  const auto options = Options::read(
      arguments, {.values = {"--listen", "--chunk", "--queue-pairs"}, .flags = {"--verbose"}});
  if (!options) return tl::unexpected(options.error());
  if (options->words().size() != 1)
    return tl::unexpected<std::string>("model serve needs one folder or file");
  const auto chunk = options->number("--chunk", Manifest{}.chunk_octets, Manifest::kMinChunkOctets,
                                     Manifest::kMaxChunkOctets);
  const auto queue_pairs = options->number("--queue-pairs", 1, 1, 8);
  if (!chunk) return tl::unexpected(chunk.error());
  if (!queue_pairs) return tl::unexpected(queue_pairs.error());
  return ServeOptions{
      .path = options->words()[0],
      .chunk_octets = *chunk,
      .agent = {.listen = options->text("--listen"), .queue_pairs = static_cast<u32>(*queue_pairs)},
      .is_verbose = options->has("--verbose")};
}

}  // namespace

int serve_model(std::span<const std::string> arguments) {
  const auto options = read_serve_options(arguments);
  if (!options) return fail(kExitUsage, options.error());
  catch_signals();
  u64 hashed = 0;
  ProgressBar bar("hashing", 0);
  const auto model = open_model(options->path, options->chunk_octets, [&](u64 octets) {
    hashed += octets;
    bar.show(hashed);
  });
  if (!model) return fail(kExitFailed, model.error());
  std::vector<const MappedFile*> files;
  for (const MappedFile& file : model->files) files.push_back(&file);
  const auto server = Server::make(model->manifest, files, options->agent);
  if (!server) return fail(kExitFailed, server.error());
  (*server)->offer_all();
  fmt::print("serving {} files, {}, in {} chunks: verbena model fetch {} TARGET\n", files.size(),
             size_text(model->manifest.octets()), model->manifest.chunks(), (*server)->address());
  std::fflush(stdout);
  (*server)->run(is_stopped, [&](const std::string& event) {
    if (options->is_verbose) fmt::print(stderr, "{}\n", event);
  });
  return kExitOk;
}

}  // namespace verbena::models
