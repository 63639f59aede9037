// verbena-gpu-paths: measures four ways between the memories of two GPUs on this machine (or of
// one, twice): through host memory and TCP, through host memory and RDMA, RDMA of GPU memory as
// between hosts, and RDMA of GPU memory between two processes of one host, which is a copy by CUDA
// IPC. `verbena bench gpu-paths` starts it and reads its lines, each "NAME MICROSECONDS COPIES
// CPU": what one message takes. The first line names the device.
//   verbena-gpu-paths DRIVER SIZE COUNT
#include <sys/wait.h>

#include <chrono>
#include <ctime>
#include <fstream>

#include "cli/gpu_paths/rdma_ends.h"
#include "cli/gpu_paths/tcp_way.h"

namespace verbena::gpu_paths {
namespace {

struct Request {
  const char* driver;
  std::size_t bytes;
  int count;
};

double cpu_us() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

template <typename Move>
void measure(const char* name, int copies, int count, Move move) {
  using Clock = std::chrono::steady_clock;
  for (int i = 0; i < count / 10 + 1; ++i) move();
  const auto begin = Clock::now();
  const double cpu_before = cpu_us();
  for (int i = 0; i < count; ++i) move();
  const std::chrono::duration<double, std::micro> time = Clock::now() - begin;
  std::printf("%s %.2f %d %.2f\n", name, time.count() / count, copies,
              (cpu_us() - cpu_before) / count);
}

void measure_host_ways(const Request& asked) {
  const Driver driver(asked.driver);
  driver.use();
  char name[256] = {};
  must(driver.device_name(name, sizeof name - 1, 0) == 0, "cuDeviceGetName");
  std::printf("device %s\n", name);
  const Buffers buffers(driver, asked.bytes);
  {
    fill(driver, buffers, asked.bytes, 1);
    TCPWay tcp(driver, buffers, asked.bytes);
    measure("kernel_tcp", 4, asked.count, [&] { tcp.move(); });
    compare(driver, buffers, asked.bytes, 1);
  }
  const Loop loop;
  const ibv_mr* const from = open_region(loop.client, buffers.host_from, asked.bytes);
  const ibv_mr* const to = open_region(loop.server, buffers.host_to, asked.bytes);
  fill(driver, buffers, asked.bytes, 2);
  measure("host_rdma", 2, asked.count, [&] {
    must(driver.to_host(buffers.host_from, buffers.from, asked.bytes) == 0, "cuMemcpyDtoH");
    write(loop.client, from, remote(to), static_cast<std::uint32_t>(asked.bytes));
    must(driver.to_device(buffers.to, buffers.host_to, asked.bytes) == 0, "cuMemcpyHtoD");
  });
  compare(driver, buffers, asked.bytes, 2);
}

// By packets, as between hosts.
void measure_gpudirect(const Request& asked) {
  must(::setenv("VERBENA_LOCAL", "off", 1) == 0, "setenv");
  const Driver driver(asked.driver);
  driver.use();
  const Buffers buffers(driver, asked.bytes);
  const Loop loop;
  const ibv_mr* const from = open_region(loop.client, buffers.from, asked.bytes);
  const ibv_mr* const to = open_region(loop.server, buffers.to, asked.bytes);
  fill(driver, buffers, asked.bytes, 3);
  measure("gpudirect", 0, asked.count,
          [&] { write(loop.client, from, remote(to), static_cast<std::uint32_t>(asked.bytes)); });
  compare(driver, buffers, asked.bytes, 3);
}

// --- by CUDA IPC, between two processes

template <typename T>
void tell(int fd, const T& what) {
  must(::write(fd, &what, sizeof what) == static_cast<ssize_t>(sizeof what), "write");
}
template <typename T>
T hear(int fd) {
  T what{};
  must(::read(fd, &what, sizeof what) == static_cast<ssize_t>(sizeof what), "read");
  return what;
}

void serve_cuda_ipc(const Request& asked, int in, int out) {
  const Driver driver(asked.driver);
  driver.use();
  const Buffers buffers(driver, asked.bytes);
  fill(driver, buffers, asked.bytes, 0);
  Listener listener;
  tell(out, listener.port());
  const ibv_mr* const to = open_region(listener.accept(), buffers.to, asked.bytes);
  tell(out, remote(to));
  if (hear<bool>(in)) compare(driver, buffers, asked.bytes, 4);
}

// The first message of a TCP connection is never a copy, nor is one before the peer has executed
// it.
constexpr int kFirstWrites = 20;
constexpr useconds_t kPause_us = 20'000;

// WRITEs that needed no packets.
std::uint64_t local_writes(const ibv_context* context) {
  std::ifstream file(std::string(context->device->ibdev_path) +
                     "/ports/1/hw_counters/local_write_requests");
  std::uint64_t count = 0;
  file >> count;
  return count;
}

// Prints nothing where the driver does not give or open handles: then there are packets.
void measure_cuda_ipc(const Request& asked, int in, int out) {
  const Driver driver(asked.driver);
  driver.use();
  const Buffers buffers(driver, asked.bytes);
  fill(driver, buffers, asked.bytes, 4);
  const rdma_cm_id* const end = connect_to(hear<unsigned>(in));
  const ibv_mr* const from = open_region(end, buffers.from, asked.bytes);
  const auto to = hear<RemoteRegion>(in);
  for (int i = 0; i < kFirstWrites && local_writes(end->verbs) == 0; ++i, ::usleep(kPause_us))
    write(end, from, to, static_cast<std::uint32_t>(asked.bytes));
  const bool is_direct = local_writes(end->verbs) != 0;
  if (is_direct)
    measure("cuda_ipc", 0, asked.count,
            [&] { write(end, from, to, static_cast<std::uint32_t>(asked.bytes)); });
  tell(out, is_direct);
}

// --- processes. CUDA does not work across fork(2), so this one never loads the driver.

template <typename Do>
pid_t start(Do work) {
  std::fflush(stdout);
  const pid_t child = ::fork();
  must(child >= 0, "fork");
  if (child != 0) return child;
  work();
  std::fflush(stdout);
  std::exit(0);
}
// Ends with it if it has ended badly: it has said why.
void wait_for(pid_t child) {
  int status = 0;
  must(::waitpid(child, &status, 0) == child, "waitpid");
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) std::_Exit(2);
}

void measure_between_processes(const Request& asked) {
  int to_server[2], to_client[2];
  must(::pipe(to_server) == 0 && ::pipe(to_client) == 0, "pipe");
  const pid_t server = start([&] {
    ::close(to_server[1]);
    serve_cuda_ipc(asked, to_server[0], to_client[1]);
  });
  ::close(to_client[1]);
  const pid_t client = start([&] { measure_cuda_ipc(asked, to_client[0], to_server[1]); });
  ::close(to_server[1]);
  wait_for(client);
  wait_for(server);
}

}  // namespace
}  // namespace verbena::gpu_paths

int main(int argc, char** argv) {
  using namespace verbena::gpu_paths;
  if (argc != 4) end_with("DRIVER SIZE COUNT");
  const Request asked{.driver = argv[1],
                      .bytes = static_cast<std::size_t>(std::strtoull(argv[2], nullptr, 10)),
                      .count = static_cast<int>(std::strtol(argv[3], nullptr, 10))};
  wait_for(start([&] { measure_host_ways(asked); }));
  wait_for(start([&] { measure_gpudirect(asked); }));
  measure_between_processes(asked);
  return 0;
}
