// verbena-gpu-paths: measures three ways between the memories of two GPUs on this machine (or of
// one, twice): through host memory and TCP, through host memory and RDMA, and RDMA with GPU memory.
// `verbena bench gpu-paths` starts it and reads its lines, each "NAME MICROSECONDS COPIES CPU":
// what one message takes. The first line names the device.
//   verbena-gpu-paths DRIVER SIZE COUNT
#include <arpa/inet.h>
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <rdma/rdma_cma.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <thread>
#include <vector>

namespace {

using Pointer = unsigned long long;  // CUdeviceptr

[[noreturn]] void end_with(const std::string& why) {
  std::fprintf(stderr, "verbena bench gpu-paths: %s\n", why.c_str());
  std::_Exit(2);
}
void must(bool holds, const char* what) {
  if (!holds) end_with(std::string(what) + " has failed");
}

// The functions of the CUDA driver that a program uses.
struct Driver {
  explicit Driver(const char* path) : library(::dlopen(path, RTLD_NOW | RTLD_GLOBAL)) {
    if (library == nullptr) end_with("there is no CUDA driver here: " + std::string(::dlerror()));
    load(init, "cuInit");
    load(device_get, "cuDeviceGet");
    load(device_name, "cuDeviceGetName");
    load(primary_context, "cuDevicePrimaryCtxRetain");
    load(context_set, "cuCtxSetCurrent");
    load(allocate, "cuMemAlloc_v2");
    load(allocate_host, "cuMemHostAlloc");
    load(to_host, "cuMemcpyDtoH_v2");
    load(to_device, "cuMemcpyHtoD_v2");
  }
  // Makes the first device's context that of the calling thread.
  void use() const {
    int device = 0;
    void* context = nullptr;
    must(init(0) == 0, "cuInit");
    must(device_get(&device, 0) == 0, "cuDeviceGet");
    must(primary_context(&context, device) == 0, "cuDevicePrimaryCtxRetain");
    must(context_set(context) == 0, "cuCtxSetCurrent");
  }

  void* library;
  int (*init)(unsigned) = nullptr;
  int (*device_get)(int*, int) = nullptr;
  int (*device_name)(char*, int, int) = nullptr;
  int (*primary_context)(void**, int) = nullptr;
  int (*context_set)(void*) = nullptr;
  int (*allocate)(Pointer*, std::size_t) = nullptr;
  int (*allocate_host)(void**, std::size_t, unsigned) = nullptr;
  int (*to_host)(void*, Pointer, std::size_t) = nullptr;
  int (*to_device)(Pointer, const void*, std::size_t) = nullptr;

 private:
  template <typename Function>
  void load(Function*& to, const char* name) {
    to = reinterpret_cast<Function*>(::dlsym(library, name));
    if (to == nullptr) end_with(std::string("the CUDA driver lacks ") + name);
  }
};

struct Buffers {
  Buffers(const Driver& driver, std::size_t bytes) {
    must(driver.allocate(&from, bytes) == 0 && driver.allocate(&to, bytes) == 0, "cuMemAlloc");
    must(driver.allocate_host(&host_from, bytes, 0) == 0 &&
             driver.allocate_host(&host_to, bytes, 0) == 0,
         "cuMemHostAlloc");
  }
  Pointer from = 0, to = 0;
  void *host_from = nullptr, *host_to = nullptr;
};

// A connection to ourselves, with a thread at its other end that puts messages into GPU memory.
class TCPWay {
 public:
  TCPWay(const Driver& driver, const Buffers& buffers, std::size_t bytes)
      : driver_(driver), buffers_(buffers), bytes_(bytes) {
    connect();
    receiver_ = std::thread([this] { receive(); });
  }
  ~TCPWay() {
    ::shutdown(sender_, SHUT_RDWR);
    receiver_.join();
    ::close(sender_);
    ::close(other_end_);
  }
  void move() {
    must(driver_.to_host(buffers_.host_from, buffers_.from, bytes_) == 0, "cuMemcpyDtoH");
    const char* at = static_cast<const char*>(buffers_.host_from);
    for (std::size_t left = bytes_; left != 0;) {
      const ssize_t sent = ::send(sender_, at, left, 0);
      must(sent > 0, "send");
      at += sent;
      left -= static_cast<std::size_t>(sent);
    }
    ++moved_;
    while (arrived_.load(std::memory_order_acquire) != moved_) std::this_thread::yield();
  }

 private:
  void connect() {
    const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    must(::bind(listener, generic, size) == 0 && ::listen(listener, 1) == 0 &&
             ::getsockname(listener, generic, &size) == 0,
         "listen");
    sender_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    must(::connect(sender_, generic, size) == 0, "connect");
    other_end_ = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    must(other_end_ >= 0, "accept");
    const int on = 1;
    ::setsockopt(sender_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    ::close(listener);
  }
  void receive() {
    driver_.use();
    for (;;) {
      char* at = static_cast<char*>(buffers_.host_to);
      for (std::size_t left = bytes_; left != 0;) {
        const ssize_t got = ::recv(other_end_, at, left, 0);
        if (got <= 0) return;
        at += got;
        left -= static_cast<std::size_t>(got);
      }
      must(driver_.to_device(buffers_.to, buffers_.host_to, bytes_) == 0, "cuMemcpyHtoD");
      arrived_.fetch_add(1, std::memory_order_release);
    }
  }

  const Driver& driver_;
  const Buffers& buffers_;
  const std::size_t bytes_;
  int sender_ = -1, other_end_ = -1;
  std::uint64_t moved_ = 0;
  std::atomic<std::uint64_t> arrived_{0};
  std::thread receiver_;
};

// Two connected QPs of one device, of RoCEv2 or iWARP: rdma_cm connects both.
class RDMAWay {
 public:
  RDMAWay() {
    const sockaddr_storage address = address_of_first_device();
    listener_ = make_endpoint(address, 0, RAI_PASSIVE);
    must(rdma_listen(listener_, 1) == 0, "rdma_listen");
    std::thread acceptor([this] {
      must(rdma_get_request(listener_, &server_) == 0, "rdma_get_request");
      rdma_conn_param param = parameters();
      must(rdma_accept(server_, &param) == 0, "rdma_accept");
    });
    client_ = make_endpoint(address, ntohs(rdma_get_src_port(listener_)), 0);
    rdma_conn_param param = parameters();
    must(rdma_connect(client_, &param) == 0, "rdma_connect");
    acceptor.join();
  }
  ibv_mr* open_source(void* memory, std::size_t bytes) { return open(client_, memory, bytes); }
  ibv_mr* open_target(void* memory, std::size_t bytes) { return open(server_, memory, bytes); }
  void write(const ibv_mr* from, const ibv_mr* to, std::uint32_t bytes) {
    ibv_sge sge{reinterpret_cast<std::uint64_t>(from->addr), bytes, from->lkey};
    ibv_send_wr wr{}, *bad = nullptr;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.rdma.remote_addr = reinterpret_cast<std::uint64_t>(to->addr);
    wr.wr.rdma.rkey = to->rkey;
    must(ibv_post_send(client_->qp, &wr, &bad) == 0, "ibv_post_send");
    ibv_wc wc{};
    while (ibv_poll_cq(client_->send_cq, 1, &wc) == 0) {
    }
    if (wc.status != IBV_WC_SUCCESS)
      end_with(std::string("a WRITE has ended in: ") + ibv_wc_status_str(wc.status));
  }

 private:
  static rdma_conn_param parameters() {
    rdma_conn_param param{};
    param.responder_resources = param.initiator_depth = 1;
    param.retry_count = param.rnr_retry_count = 7;
    return param;
  }
  static ibv_mr* open(const rdma_cm_id* id, void* memory, std::size_t bytes) {
    ibv_mr* const mr =
        ibv_reg_mr(id->pd, memory, bytes,
                   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
    if (mr == nullptr) end_with("ibv_reg_mr: " + std::string(std::strerror(errno)));
    return mr;
  }
  // A GID of RoCEv2 or iWARP is an IP address.
  static sockaddr_storage address_of_first_device() {
    int count = 0;
    ibv_device** const devices = ibv_get_device_list(&count);
    if (devices == nullptr || count == 0) end_with("there is no RDMA device");
    ibv_context* const context = ibv_open_device(devices[0]);
    must(context != nullptr, "ibv_open_device");
    sockaddr_storage address{};
    ibv_gid gid{};
    for (int i = 0; i < 16 && address.ss_family != AF_INET; ++i)
      if (ibv_query_gid(context, 1, i, &gid) == 0) take_address(gid, address);
    if (address.ss_family == AF_UNSPEC) end_with("the device has no IP address");
    must(ibv_close_device(context) == 0, "ibv_close_device");
    return address;
  }
  // An IPv4 address, or the first IPv6 address that is not link-local.
  static void take_address(const ibv_gid& gid, sockaddr_storage& out) {
    in6_addr ip{};
    std::memcpy(&ip, gid.raw, sizeof ip);
    if (IN6_IS_ADDR_V4MAPPED(&ip)) {
      sockaddr_in four{};
      four.sin_family = AF_INET;
      std::memcpy(&four.sin_addr, gid.raw + 12, sizeof four.sin_addr);
      std::memcpy(&out, &four, sizeof four);
    } else if (out.ss_family == AF_UNSPEC && !IN6_IS_ADDR_UNSPECIFIED(&ip) &&
               !IN6_IS_ADDR_LINKLOCAL(&ip)) {
      sockaddr_in6 six{};
      six.sin6_family = AF_INET6;
      six.sin6_addr = ip;
      std::memcpy(&out, &six, sizeof six);
    }
  }
  static rdma_cm_id* make_endpoint(const sockaddr_storage& address, unsigned port, int flags) {
    char host[INET6_ADDRSTRLEN] = {};
    const void* const ip =
        address.ss_family == AF_INET
            ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in&>(address).sin_addr)
            : &reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
    must(::inet_ntop(address.ss_family, ip, host, sizeof host) != nullptr, "inet_ntop");
    rdma_addrinfo hints{}, *found = nullptr;
    hints.ai_flags = flags;
    hints.ai_port_space = RDMA_PS_TCP;
    ibv_qp_init_attr init{};
    init.qp_type = IBV_QPT_RC;
    init.cap = {.max_send_wr = 4,
                .max_recv_wr = 1,
                .max_send_sge = 1,
                .max_recv_sge = 1,
                .max_inline_data = 0};
    rdma_cm_id* id = nullptr;
    must(rdma_getaddrinfo(host, std::to_string(port).c_str(), &hints, &found) == 0,
         "rdma_getaddrinfo");
    must(rdma_create_ep(&id, found, nullptr, &init) == 0, "rdma_create_ep");
    rdma_freeaddrinfo(found);
    return id;
  }

  rdma_cm_id *listener_ = nullptr, *client_ = nullptr, *server_ = nullptr;
};

double cpu_us() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

// Bytes of a way's own in the source, none in the destination.
void fill(const Driver& driver, const Buffers& buffers, std::size_t bytes, char seed) {
  std::vector<char> all(bytes, 0);
  must(driver.to_device(buffers.to, all.data(), bytes) == 0, "cuMemcpyHtoD");
  for (std::size_t i = 0; i < bytes; ++i)
    all[i] = static_cast<char>(seed + static_cast<char>(i * 7));
  must(driver.to_device(buffers.from, all.data(), bytes) == 0, "cuMemcpyHtoD");
}
void compare(const Driver& driver, const Buffers& buffers, std::size_t bytes) {
  std::vector<char> sent(bytes), got(bytes);
  must(driver.to_host(sent.data(), buffers.from, bytes) == 0 &&
           driver.to_host(got.data(), buffers.to, bytes) == 0,
       "cuMemcpyDtoH");
  if (sent != got) end_with("a message has arrived with wrong bytes");
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

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) end_with("DRIVER SIZE COUNT");
  const Driver driver(argv[1]);
  const auto bytes = static_cast<std::size_t>(std::strtoull(argv[2], nullptr, 10));
  const int count = static_cast<int>(std::strtol(argv[3], nullptr, 10));
  driver.use();
  char name[256] = {};
  must(driver.device_name(name, sizeof name - 1, 0) == 0, "cuDeviceGetName");
  std::printf("device %s\n", name);
  const Buffers buffers(driver, bytes);
  {
    fill(driver, buffers, bytes, 1);
    TCPWay tcp(driver, buffers, bytes);
    measure("kernel_tcp", 4, count, [&] { tcp.move(); });
    compare(driver, buffers, bytes);
  }
  RDMAWay rdma;
  const auto length = static_cast<std::uint32_t>(bytes);
  const ibv_mr* const host_from = rdma.open_source(buffers.host_from, bytes);
  const ibv_mr* const host_to = rdma.open_target(buffers.host_to, bytes);
  fill(driver, buffers, bytes, 2);
  measure("host_rdma", 2, count, [&] {
    must(driver.to_host(buffers.host_from, buffers.from, bytes) == 0, "cuMemcpyDtoH");
    rdma.write(host_from, host_to, length);
    must(driver.to_device(buffers.to, buffers.host_to, bytes) == 0, "cuMemcpyHtoD");
  });
  compare(driver, buffers, bytes);
  const ibv_mr* const from = rdma.open_source(reinterpret_cast<void*>(buffers.from), bytes);
  const ibv_mr* const to = rdma.open_target(reinterpret_cast<void*>(buffers.to), bytes);
  fill(driver, buffers, bytes, 3);
  measure("gpudirect", 0, count, [&] { rdma.write(from, to, length); });
  compare(driver, buffers, bytes);
  return 0;
}
