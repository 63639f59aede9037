#include "cli/bench.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <sstream>

#include <fmt/format.h>

#include "cli/library_folder.h"
#include "cli/run.h"
#include "fabric/scenario/units.h"
#include "jobs/host_path/host_path.h"
#include "jobs/nvlink_ports.h"

namespace verbena::cli {
namespace {

constexpr const char* kProgram = "verbena-gpu-paths";

// The child's own.
[[noreturn]] void become_program(const RunRequest& run, int output) {
  ::dup2(output, STDOUT_FILENO);
  const Failure failed = cli::run(run);
  fmt::print(stderr, "verbena: {}\n", failed.message);
  _exit(failed.exit_status);
}

// Returns the program's output. If the program fails, it prints the error itself.
Expected<std::string> output_of(const RunRequest& run) {
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0)
    return failure(kExitCannot, fmt::format("cannot make a pipe: {}", std::strerror(errno)));
  const pid_t pid = ::fork();
  if (pid == 0) become_program(run, pipe[1]);
  ::close(pipe[1]);
  std::string text;
  std::array<char, 4096> part;
  for (ssize_t got; (got = ::read(pipe[0], part.data(), part.size())) > 0;)
    text.append(part.data(), static_cast<std::size_t>(got));
  ::close(pipe[0]);
  int status = 0;
  if (pid < 0 || ::waitpid(pid, &status, 0) != pid || !WIFEXITED(status) ||
      WEXITSTATUS(status) != 0)
    return failure(kExitCannot, "");
  return text;
}

// The time of one message on an idle path, whose network has that rate.
Duration predicted_time(const jobs::HostPathModel& model, u64 bytes, Rate line) {
  constexpr u32 kCores = jobs::HostPathConfig{}.cores;
  Duration time;
  Rate slowest = line;
  for (const auto steps : {model.sending, model.receiving}) {
    const jobs::HostPathSums sums = jobs::sums_of(steps, kCores);
    time = time + sums.latency;
    if (sums.whole != Rate::unlimited()) time = time + jobs::time_at(sums.whole, bytes);
    slowest = std::min(slowest, sums.through);
  }
  return time + jobs::time_at(slowest, bytes);
}

Duration predicted_cpu(const jobs::HostPathModel& model, u64 bytes) {
  Duration cpu;
  for (const auto steps : {model.sending, model.receiving})
    for (const jobs::HostStep& step : steps) cpu = cpu + step.cpu_time(bytes);
  return cpu;
}

const std::optional<MeasuredPath>* measured_of(const MeasuredPaths& paths,
                                               jobs::HostPathKind kind) {
  switch (kind) {
    case jobs::HostPathKind::kKernelTCP: return &paths.kernel_tcp;
    case jobs::HostPathKind::kHostRDMA: return &paths.host_rdma;
    case jobs::HostPathKind::kGPUDirect: return &paths.gpudirect;
    case jobs::HostPathKind::kTCPOffload: return nullptr;
  }
  return nullptr;
}

std::string columns_of(const std::optional<MeasuredPath>* measured) {
  if (measured == nullptr || !*measured) return fmt::format("{:>12} {:>7} {:>12}", "-", "-", "-");
  return fmt::format("{:>9.1f} us {:>7} {:>9.1f} us", (*measured)->time_us, (*measured)->copies,
                     (*measured)->cpu_us);
}

}  // namespace

std::optional<MeasuredPaths> read_measured_paths(const std::string& lines) {
  MeasuredPaths paths;
  std::istringstream in(lines);
  std::string word;
  if (!(in >> word) || word != "device") return std::nullopt;
  std::getline(in >> std::ws, paths.device);
  std::string name;
  MeasuredPath path;
  while (in >> name >> path.time_us >> path.copies >> path.cpu_us) {
    if (name == "kernel_tcp") paths.kernel_tcp = path;
    if (name == "host_rdma") paths.host_rdma = path;
    if (name == "gpudirect") paths.gpudirect = path;
    if (name == "cuda_ipc") paths.cuda_ipc = path;
  }
  return in.eof() ? std::optional(paths) : std::nullopt;
}

std::string gpu_paths_table(const BenchRequest& request, const MeasuredPaths* measured) {
  std::string text = fmt::format(
      "One message of {} from GPU memory to GPU memory.\nMeasured: {}. Predicted: cards of PCIe "
      "5.0 x16 on a network of {}.\n\n{:<12} {:>12} {:>7} {:>12}   {:>12} {:>12}\n{:<12} {:>12} "
      "{:>7} {:>12}   {:>12} {:>12}\n",
      fabric::bytes_text(request.bytes),
      measured == nullptr ? "nothing" : measured->device + ", both ends on this host",
      fabric::rate_text(static_cast<double>(request.line.bps())), "", "measured", "", "",
      "predicted", "", "way", "time", "copies", "CPU", "time", "CPU");
  for (const jobs::HostPathKind kind : jobs::kHostPathKinds) {
    const jobs::HostPathModel& model = jobs::model_of(kind);
    text += fmt::format("{:<12} {}   {:>12} {:>12}\n", model.name,
                        columns_of(measured == nullptr ? nullptr : measured_of(*measured, kind)),
                        fabric::duration_text(predicted_time(model, request.bytes, request.line)),
                        fabric::duration_text(predicted_cpu(model, request.bytes)));
  }
  if (measured != nullptr)
    text += fmt::format("{:<12} {}   {:>12} {:>12}\n", "cuda_ipc", columns_of(&measured->cuda_ipc),
                        "-", "-");
  return text +
         "\ncopies: by the program, the driver and the kernel. The device itself copies twice for "
         "gpudirect,\nand once for cuda_ipc, on the GPU.\nverbena plan --host-path lists the "
         "steps.\n";
}

Expected<std::string> bench(const BenchRequest& request) {
  if (request.only_predicts) return gpu_paths_table(request, nullptr);
  const auto program = program_beside_library(kProgram);
  if (!program) return tl::unexpected(program.error());
  RunRequest run;
  run.address = request.address;
  run.command = {program->string(), request.driver, std::to_string(request.bytes),
                 std::to_string(request.count)};
  const auto lines = output_of(run);
  if (!lines) return tl::unexpected(lines.error());
  const auto measured = read_measured_paths(*lines);
  if (!measured) return failure(kExitCannot, "verbena-gpu-paths ended early");
  return gpu_paths_table(request, &*measured);
}

}  // namespace verbena::cli
