// verbena-nvmf: NVMe over Fabrics on libibverbs and librdmacm. `verbena nvmf` starts it.
#include <cstdio>

#include "nvmf_program/commands.h"

namespace {

using namespace verbena::nvmf_program;

Expected<void> run(const TargetOptions& options) { return serve(options); }
Expected<void> run(const DiscoverOptions& options) { return discover(options); }
Expected<void> run(const ConnectOptions& options) { return connect(options); }
Expected<void> run(const TransferOptions& options) { return transfer(options); }
Expected<void> run(const BenchOptions& options) { return bench(options); }

int report(const std::string& error, int status) {
  std::fprintf(stderr, "verbena nvmf: %s\n", error.c_str());
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  constexpr int kFailed = 1, kWrongUsage = 2;
  const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
  const auto options = read_options(arguments);
  if (!options) return report(options.error() + "; verbena nvmf --help explains", kWrongUsage);
  const auto done = std::visit([](const auto& chosen) { return run(chosen); }, *options);
  if (!done) return report(done.error(), kFailed);
  return std::fflush(stdout) == 0 ? 0 : report("cannot write to standard output", kFailed);
}
