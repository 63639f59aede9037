#include "cli/mpi_ranks.h"

#include <dlfcn.h>

#include <array>
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include "cli/mpi/plugin.h"

namespace verbena::cli {
namespace {

namespace fs = std::filesystem;

struct Variables {
  const char *rank, *size;
};
constexpr std::array kVariables = {Variables{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                   Variables{"PMI_RANK", "PMI_SIZE"},
                                   Variables{"PMIX_RANK", "SLURM_NTASKS"}};

// Beside our libraries; else wherever the loader looks.
std::string plugin_path() {
  std::error_code error;
  const fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
  const std::string_view all = VERBENA_LIBRARY_RELATIVE_PATHS;
  for (std::size_t begin = 0; begin <= all.size();) {
    const std::size_t end = std::min(all.find(':', begin), all.size());
    const fs::path path = folder / all.substr(begin, end - begin) / kMPIPluginName;
    if (fs::exists(path, error)) return path;
    begin = end + 1;
  }
  return kMPIPluginName;
}

}  // namespace

std::optional<MPIPlace> mpi_place() {
  for (const Variables& variables : kVariables) {
    const char* const rank = std::getenv(variables.rank);
    const char* const size = std::getenv(variables.size);
    if (rank == nullptr || size == nullptr) continue;
    const MPIPlace place{.rank = std::atoi(rank), .size = std::atoi(size)};
    if (place.size > 1) return place;
  }
  return std::nullopt;
}

Expected<std::unique_ptr<MPIRanks>> MPIRanks::join(const MPIPlace& place) {
  void* const library = ::dlopen(plugin_path().c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr)
    return failure(kExitCannot,
                   fmt::format("this is one of {} processes of mpirun, and MPI cannot be loaded "
                               "({}): build Verbena where libopenmpi-dev is installed",
                               place.size, ::dlerror()));
  const auto calls = reinterpret_cast<decltype(&verbena_mpi_1)>(::dlsym(library, kMPIPluginSymbol));
  if (calls == nullptr)
    return failure(kExitCannot, fmt::format("{} is of another version", kMPIPluginName));
  MPIPlace joined;
  calls()->start(&joined.rank, &joined.size);
  if (joined.rank == place.rank && joined.size == place.size)
    return std::unique_ptr<MPIRanks>(new MPIRanks(*calls(), joined));
  calls()->finish();
  return failure(kExitCannot,
                 fmt::format("this is one of {} processes of mpirun, but the MPI that Verbena was "
                             "built with finds {}: use that one's mpirun",
                             place.size, joined.size));
}

MPIRanks::~MPIRanks() { calls_.finish(); }

void MPIRanks::send(int to, int tag, const std::string& text) {
  calls_.send(to, tag, text.data(), static_cast<int>(text.size()));
}

std::optional<MPIRanks::Message> MPIRanks::poll() {
  Message message;
  int length = 0;
  if (calls_.poll(&message.from, &message.tag, &length) == 0) return std::nullopt;
  message.text.resize(static_cast<std::size_t>(length));
  calls_.receive(message.from, message.tag, message.text.data(), length);
  return message;
}

}  // namespace verbena::cli
