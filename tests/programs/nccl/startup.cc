// The calls of NCCL's InfiniBand transport, in its order and with its arguments:
// finds libibverbs by name and each symbol by version, looks for devices in verbs and in sysfs,
// chooses a GID, connects two processes, and passes messages as NCCL does: the receiver writes
// "clear to send" into the sender's memory, the sender writes the data and then its size as
// immediate data, and the receiver reads a byte from itself to flush.
//
//   startup                        data in host memory
//   startup DRIVER dmabuf|iova2    data in GPU memory of this CUDA driver, registered by a dma-buf,
//                                  or by its address as with nvidia_peermem
//
// Exit status 0: every step succeeded and all data was right. Says on standard output what it
// found.
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#undef ibv_query_port
#undef ibv_reg_mr

namespace {

constexpr int kMaxRequests = 64, kPort = 1, kMessages = 20;
constexpr std::size_t kMaxMessage = 4 << 20;  // bytes
constexpr auto kPatience = std::chrono::seconds(60);

void require(bool condition, const std::string& what) {
  if (condition) return;
  std::printf("FAILED: %s: %s\n", what.c_str(), std::strerror(errno));
  std::fflush(stdout);
  std::_Exit(1);
}

// --- the library

struct Verbs {
  ibv_device** (*get_device_list)(int*);
  void (*free_device_list)(ibv_device**);
  const char* (*get_device_name)(ibv_device*);
  ibv_context* (*open_device)(ibv_device*);
  int (*close_device)(ibv_context*);
  int (*get_async_event)(ibv_context*, ibv_async_event*);
  void (*ack_async_event)(ibv_async_event*);
  int (*query_device)(ibv_context*, ibv_device_attr*);
  int (*query_port)(ibv_context*, uint8_t, ibv_port_attr*);
  int (*query_gid)(ibv_context*, uint8_t, int, ibv_gid*);
  int (*query_qp)(ibv_qp*, ibv_qp_attr*, int, ibv_qp_init_attr*);
  ibv_pd* (*alloc_pd)(ibv_context*);
  int (*dealloc_pd)(ibv_pd*);
  ibv_mr* (*reg_mr)(ibv_pd*, void*, std::size_t, int);
  int (*dereg_mr)(ibv_mr*);
  ibv_cq* (*create_cq)(ibv_context*, int, void*, ibv_comp_channel*, int);
  int (*destroy_cq)(ibv_cq*);
  ibv_qp* (*create_qp)(ibv_pd*, ibv_qp_init_attr*);
  int (*modify_qp)(ibv_qp*, ibv_qp_attr*, int);
  int (*destroy_qp)(ibv_qp*);
  int (*fork_init)();
  const char* (*event_type_str)(ibv_event_type);
  // Not in every libibverbs:
  ibv_mr* (*reg_mr_iova2)(ibv_pd*, void*, std::size_t, uint64_t, unsigned);
  ibv_mr* (*reg_dmabuf_mr)(ibv_pd*, uint64_t, std::size_t, uint64_t, int, int);
  int (*query_ece)(ibv_qp*, ibv_ece*);
  int (*set_ece)(ibv_qp*, ibv_ece*);
} verbs;

template <typename Function>
void load(void* library, Function& function, const char* name, const char* version) {
  function = reinterpret_cast<Function>(dlvsym(library, name, version));
  require(function != nullptr, std::string(name) + "@" + version);
}

void load_library() {
  void* library = dlopen("libibverbs.so", RTLD_NOW);
  if (library == nullptr) library = dlopen("libibverbs.so.1", RTLD_NOW);
  require(library != nullptr, "dlopen");
  const char* const base = "IBVERBS_1.1";
  load(library, verbs.get_device_list, "ibv_get_device_list", base);
  load(library, verbs.free_device_list, "ibv_free_device_list", base);
  load(library, verbs.get_device_name, "ibv_get_device_name", base);
  load(library, verbs.open_device, "ibv_open_device", base);
  load(library, verbs.close_device, "ibv_close_device", base);
  load(library, verbs.get_async_event, "ibv_get_async_event", base);
  load(library, verbs.ack_async_event, "ibv_ack_async_event", base);
  load(library, verbs.query_device, "ibv_query_device", base);
  load(library, verbs.query_port, "ibv_query_port", base);
  load(library, verbs.query_gid, "ibv_query_gid", base);
  load(library, verbs.query_qp, "ibv_query_qp", base);
  load(library, verbs.alloc_pd, "ibv_alloc_pd", base);
  load(library, verbs.dealloc_pd, "ibv_dealloc_pd", base);
  load(library, verbs.reg_mr, "ibv_reg_mr", base);
  load(library, verbs.dereg_mr, "ibv_dereg_mr", base);
  load(library, verbs.create_cq, "ibv_create_cq", base);
  load(library, verbs.destroy_cq, "ibv_destroy_cq", base);
  load(library, verbs.create_qp, "ibv_create_qp", base);
  load(library, verbs.modify_qp, "ibv_modify_qp", base);
  load(library, verbs.destroy_qp, "ibv_destroy_qp", base);
  load(library, verbs.fork_init, "ibv_fork_init", base);
  load(library, verbs.event_type_str, "ibv_event_type_str", base);
  load(library, verbs.reg_mr_iova2, "ibv_reg_mr_iova2", "IBVERBS_1.8");
  load(library, verbs.reg_dmabuf_mr, "ibv_reg_dmabuf_mr", "IBVERBS_1.12");
  load(library, verbs.query_ece, "ibv_query_ece", "IBVERBS_1.10");
  load(library, verbs.set_ece, "ibv_set_ece", "IBVERBS_1.10");
}

// --- the device

std::string sysfs(const std::string& device, const std::string& file) {
  const std::string path = "/sys/class/infiniband/" + device + "/" + file;
  std::FILE* stream = std::fopen(path.c_str(), "r");
  require(stream != nullptr, path);
  std::array<char, 256> line{};
  require(std::fgets(line.data(), line.size(), stream) != nullptr, path);
  std::fclose(stream);
  std::string text(line.data());
  return text.substr(0, text.find('\n'));
}

bool is_ipv4_mapped(const ibv_gid& gid) {
  return gid.global.subnet_prefix == 0 && gid.raw[10] == 0xff && gid.raw[11] == 0xff;
}

// The first IPv4 address that is RoCEv2.
int choose_gid(ibv_context* context, const std::string& device, int table_length) {
  for (int i = 0; i < table_length; ++i) {
    ibv_gid gid;
    require(verbs.query_gid(context, kPort, i, &gid) == 0, "ibv_query_gid");
    const std::string type = sysfs(device, "ports/1/gid_attrs/types/" + std::to_string(i));
    if (type == "RoCE v2" && is_ipv4_mapped(gid)) return i;
  }
  return 0;
}

struct Device {
  ibv_context* context;
  ibv_port_attr port{};
  ibv_gid gid{};
  int gid_index = 0;
};

void watch_events(ibv_context* context) {
  ibv_async_event event;
  while (verbs.get_async_event(context, &event) == 0) {
    if (event.event_type != IBV_EVENT_COMM_EST)
      std::printf("event: %s\n", verbs.event_type_str(event.event_type));
    verbs.ack_async_event(&event);
  }
}

Device open_first(bool tells) {
  require(verbs.fork_init() == 0, "ibv_fork_init");
  int count = 0;
  ibv_device** const list = verbs.get_device_list(&count);
  require(list != nullptr && count > 0, "ibv_get_device_list");
  const std::string name = verbs.get_device_name(list[0]);
  Device device{.context = verbs.open_device(list[0])};
  require(device.context != nullptr, "ibv_open_device");
  verbs.free_device_list(list);
  ibv_device_attr attr{};
  require(verbs.query_device(device.context, &attr) == 0, "ibv_query_device");
  require(attr.max_qp > 0 && attr.phys_port_cnt == 1, "attributes of the device");
  require(verbs.query_port(device.context, kPort, &device.port) == 0, "ibv_query_port");
  require(device.port.state == IBV_PORT_ACTIVE, "port state");
  require(device.port.link_layer == IBV_LINK_LAYER_ETHERNET, "link layer");
  std::array<char, PATH_MAX> card{};
  const std::string link = "/sys/class/infiniband/" + name + "/device";
  require(realpath(link.c_str(), card.data()) != nullptr, link);
  device.gid_index = choose_gid(device.context, name, device.port.gid_tbl_len);
  require(verbs.query_gid(device.context, kPort, device.gid_index, &device.gid) == 0, "GID");
  std::thread(watch_events, device.context).detach();
  if (tells)
    std::printf("device %s at %s, GUID %s, GID %d, width %u, speed %u\n", name.c_str(), card.data(),
                sysfs(name, "node_guid").c_str(), device.gid_index, device.port.active_width,
                device.port.active_speed);
  return device;
}

// --- GPU memory

using GPUPointer = unsigned long long;  // CUdeviceptr

struct GPU {
  int (*init)(unsigned);
  int (*context_create)(void**, unsigned, int);
  int (*alloc)(GPUPointer*, std::size_t);
  int (*free)(GPUPointer);
  int (*to_host)(void*, GPUPointer, std::size_t);
  int (*to_device)(GPUPointer, const void*, std::size_t);
  int (*range_handle)(void*, GPUPointer, std::size_t, int, unsigned long long);
} gpu;

enum class DataIn { kHost, kDmabuf, kIova2 };

void load_driver(const char* path) {
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  require(library != nullptr, path);
  const auto find = [library]<typename Function>(Function*& to, const char* name) {
    to = reinterpret_cast<Function*>(dlsym(library, name));
    require(to != nullptr, name);
  };
  find(gpu.init, "cuInit");
  find(gpu.context_create, "cuCtxCreate_v2");
  find(gpu.alloc, "cuMemAlloc_v2");
  find(gpu.free, "cuMemFree_v2");
  find(gpu.to_host, "cuMemcpyDtoH_v2");
  find(gpu.to_device, "cuMemcpyHtoD_v2");
  find(gpu.range_handle, "cuMemGetHandleForAddressRange");
  void* context = nullptr;
  require(gpu.init(0) == 0 && gpu.context_create(&context, 0, 0) == 0, "cuCtxCreate");
}

// A call with no descriptor and no length: NCCL takes EOPNOTSUPP and EPROTONOSUPPORT for "the
// kernel has no dma-buf registration". Kernels that have it answer EBADF.
void probe_dmabuf(ibv_context* context) {
  ibv_pd* const pd = verbs.alloc_pd(context);
  require(pd != nullptr, "ibv_alloc_pd");
  errno = 0;
  require(verbs.reg_dmabuf_mr(pd, 0, 0, 0, -1, 0) == nullptr, "a region of no descriptor");
  require(errno == EBADF, "EBADF of ibv_reg_dmabuf_mr with no descriptor");
  require(verbs.dealloc_pd(pd) == 0, "ibv_dealloc_pd");
}

constexpr unsigned kDataAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                                 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_RELAXED_ORDERING;

// The descriptor is closed as soon as the region is there.
ibv_mr* register_dmabuf(ibv_pd* pd, GPUPointer at, std::size_t length) {
  int fd = -1;
  require(gpu.range_handle(&fd, at, length, 1, 0) == 0, "cuMemGetHandleForAddressRange");
  ibv_mr* const mr = verbs.reg_dmabuf_mr(pd, 0, length, at, fd, static_cast<int>(kDataAccess));
  require(mr != nullptr, "ibv_reg_dmabuf_mr");
  require(close(fd) == 0, "close");
  return mr;
}

// --- a queue pair

struct Queue {
  ibv_cq* cq;
  ibv_qp* qp;
};

Queue create_queue(const Device& device, ibv_pd* pd, int access) {
  Queue queue{};
  queue.cq = verbs.create_cq(device.context, 2 * kMaxRequests, nullptr, nullptr, 0);
  require(queue.cq != nullptr, "ibv_create_cq");
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = queue.cq;
  init.qp_type = IBV_QPT_RC;
  init.cap = {.max_send_wr = 2 * kMaxRequests,
              .max_recv_wr = kMaxRequests,
              .max_send_sge = 1,
              .max_recv_sge = 1,
              .max_inline_data = 64};
  queue.qp = verbs.create_qp(pd, &init);
  require(queue.qp != nullptr, "ibv_create_qp");
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = kPort;
  attr.qp_access_flags = static_cast<unsigned>(access);
  const int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
  require(verbs.modify_qp(queue.qp, &attr, mask) == 0, "to Init");
  return queue;
}

struct Address {
  uint32_t qpn;
  ibv_gid gid;
  ibv_mtu mtu;
  uint64_t memory;
  uint32_t r_key;
  uint64_t data;
  uint32_t data_r_key;
};

void connect(const Device& device, ibv_qp* qp, const Address& peer) {
  ibv_ece ece{};
  if (verbs.query_ece(qp, &ece) == 0 && ece.vendor_id != 0) (void)verbs.set_ece(qp, &ece);
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = std::min(device.port.active_mtu, peer.mtu);
  attr.dest_qp_num = peer.qpn;
  attr.max_dest_rd_atomic = 1;
  attr.min_rnr_timer = 12;
  attr.ah_attr.is_global = 1;
  attr.ah_attr.grh.dgid = peer.gid;
  attr.ah_attr.grh.sgid_index = static_cast<uint8_t>(device.gid_index);
  attr.ah_attr.grh.hop_limit = 255;
  attr.ah_attr.port_num = kPort;
  require(
      verbs.modify_qp(qp, &attr,
                      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                          IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0,
      "to Ready to Receive");
  attr = {};
  attr.qp_state = IBV_QPS_RTS;
  attr.timeout = 20;
  attr.retry_cnt = attr.rnr_retry = 7;
  attr.max_rd_atomic = 1;
  require(verbs.modify_qp(qp, &attr,
                          IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                              IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) == 0,
          "to Ready to Send");
}

ibv_wc wait_for(ibv_cq* cq) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  std::array<ibv_wc, 4> found{};
  while (std::chrono::steady_clock::now() < deadline) {
    const int count = ibv_poll_cq(cq, 1, found.data());
    require(count >= 0, "ibv_poll_cq");
    if (count == 0) continue;
    require(found[0].status == IBV_WC_SUCCESS, "status " + std::to_string(found[0].status));
    return found[0];
  }
  require(false, "a completion in time");
  return {};
}

void write(ibv_qp* qp, const ibv_sge& from, ibv_wr_opcode opcode, unsigned flags, uint64_t to,
           uint32_t r_key, uint32_t immediate = 0) {
  ibv_sge sge = from;
  ibv_send_wr wr{}, *bad = nullptr;
  wr.sg_list = sge.length != 0 ? &sge : nullptr;
  wr.num_sge = sge.length != 0 ? 1 : 0;
  wr.opcode = opcode;
  wr.send_flags = flags;
  wr.imm_data = immediate;
  wr.wr.rdma.remote_addr = to;
  wr.wr.rdma.rkey = r_key;
  require(ibv_post_send(qp, &wr, &bad) == 0, "ibv_post_send");
}

// --- the two processes

// Its memory: the "clear to send" of the peer, and the data, which may be in GPU memory.
struct ClearToSend {
  uint64_t number;
};
constexpr std::size_t kDataAt = 4096;

struct Process {
  Process(int socket, bool tells, DataIn data_in)
      : device(open_first(tells)), memory(kDataAt + kMaxMessage), peer_socket(socket) {
    probe_dmabuf(device.context);
    pd = verbs.alloc_pd(device.context);
    require(pd != nullptr, "ibv_alloc_pd");
    const auto address = reinterpret_cast<uint64_t>(memory.data());
    mr = verbs.reg_mr_iova2(pd, memory.data(), memory.size(), address, kDataAccess);
    require(mr != nullptr, "ibv_reg_mr_iova2");
    make_data(data_in);
    queue = create_queue(device, pd, IBV_ACCESS_REMOTE_WRITE);
    const Address own{queue.qp->qp_num, device.gid, device.port.active_mtu, address,
                      mr->rkey,         data,       data_mr->rkey};
    require(send(socket, &own, sizeof own, 0) == sizeof own, "send");
    require(recv(socket, &peer, sizeof peer, MSG_WAITALL) == sizeof peer, "recv");
    connect(device, queue.qp, peer);
    char ready = 0;
    require(send(socket, &ready, 1, 0) == 1 && recv(socket, &ready, 1, 0) == 1, "both are ready");
  }

  void make_data(DataIn where) {
    data = reinterpret_cast<uint64_t>(memory.data()) + kDataAt;
    data_mr = mr;
    if (where == DataIn::kHost) return;
    GPUPointer at = 0;
    require(gpu.alloc(&at, kMaxMessage) == 0, "cuMemAlloc");
    data = at;
    data_mr = where == DataIn::kDmabuf ? register_dmabuf(pd, at, kMaxMessage)
                                       : verbs.reg_mr_iova2(pd, reinterpret_cast<void*>(at),
                                                            kMaxMessage, at, kDataAccess);
    require(data_mr != nullptr, "GPU memory is registered");
  }
  bool is_on_gpu() const { return data_mr != mr; }
  // The first `size` bytes of the data are in `memory`, too.
  void to_data(std::size_t size) {
    if (is_on_gpu()) require(gpu.to_device(data, &memory[kDataAt], size) == 0, "cuMemcpyHtoD");
  }
  void from_data(std::size_t size) {
    if (is_on_gpu()) require(gpu.to_host(&memory[kDataAt], data, size) == 0, "cuMemcpyDtoH");
  }
  ibv_sge data_piece(std::size_t length) const {
    return {data, static_cast<uint32_t>(length), data_mr->lkey};
  }
  ibv_sge piece(std::size_t offset, std::size_t length) const {
    return {reinterpret_cast<uint64_t>(memory.data() + offset), static_cast<uint32_t>(length),
            mr->lkey};
  }
  void close() {
    require(verbs.destroy_qp(queue.qp) == 0, "ibv_destroy_qp");
    require(verbs.destroy_cq(queue.cq) == 0, "ibv_destroy_cq");
    if (is_on_gpu()) {
      require(verbs.dereg_mr(data_mr) == 0, "ibv_dereg_mr");
      require(gpu.free(data) == 0, "cuMemFree");
    }
    require(verbs.dereg_mr(mr) == 0, "ibv_dereg_mr");
    require(verbs.dealloc_pd(pd) == 0, "ibv_dealloc_pd");
  }

  Device device;
  std::vector<unsigned char> memory;
  int peer_socket;
  ibv_pd* pd;
  ibv_mr *mr, *data_mr;
  uint64_t data;
  Queue queue;
  Address peer{};
};

std::size_t size_of(int message) {
  return message == kMessages - 1 ? kMaxMessage : std::size_t{1} << message;
}
unsigned char byte_of(int message, std::size_t at) {
  return static_cast<unsigned char>(static_cast<std::size_t>(message) * 31 + at * 7 + (at >> 9));
}

void run_sender(Process& self) {
  const auto* cts = reinterpret_cast<volatile ClearToSend*>(self.memory.data());
  for (int message = 0; message < kMessages; ++message) {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (cts->number != static_cast<uint64_t>(message) + 1)
      require(std::chrono::steady_clock::now() < deadline, "a clear to send in time");
    const std::size_t size = size_of(message);
    for (std::size_t i = 0; i < size; ++i) self.memory[kDataAt + i] = byte_of(message, i);
    self.to_data(size);
    write(self.queue.qp, self.data_piece(size), IBV_WR_RDMA_WRITE, 0, self.peer.data,
          self.peer.data_r_key);
    write(self.queue.qp, self.piece(0, 0), IBV_WR_RDMA_WRITE_WITH_IMM, IBV_SEND_SIGNALED,
          self.peer.data, self.peer.data_r_key, static_cast<uint32_t>(size));
    wait_for(self.queue.cq);
  }
}

// As NCCL flushes what a card has written to a GPU: a READ by a QP that is connected to itself.
Queue create_flush(Process& self) {
  const Queue flush =
      create_queue(self.device, self.pd, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
  connect(self.device, flush.qp,
          {flush.qp->qp_num, self.device.gid, self.device.port.active_mtu, 0, 0, 0, 0});
  return flush;
}

void run_receiver(Process& self) {
  const Queue flush = create_flush(self);
  auto* cts = reinterpret_cast<ClearToSend*>(self.memory.data());
  for (int message = 0; message < kMessages; ++message) {
    ibv_recv_wr receive{}, *bad = nullptr;
    receive.wr_id = static_cast<uint64_t>(message);
    require(ibv_post_recv(self.queue.qp, &receive, &bad) == 0, "ibv_post_recv");
    cts->number = static_cast<uint64_t>(message) + 1;
    write(self.queue.qp, self.piece(0, sizeof *cts), IBV_WR_RDMA_WRITE,
          IBV_SEND_INLINE | IBV_SEND_SIGNALED, self.peer.memory, self.peer.r_key);
    ibv_wc wc = wait_for(self.queue.cq);
    if (wc.opcode == IBV_WC_RDMA_WRITE)
      wc = wait_for(self.queue.cq);
    else
      require(wait_for(self.queue.cq).opcode == IBV_WC_RDMA_WRITE, "the write completes");
    require(wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM && wc.imm_data == size_of(message) &&
                wc.wr_id == static_cast<uint64_t>(message),
            "the size as immediate data");
    write(flush.qp, self.piece(64, 1), IBV_WR_RDMA_READ, IBV_SEND_SIGNALED, self.data,
          self.data_mr->rkey);
    require(wait_for(flush.cq).opcode == IBV_WC_RDMA_READ, "flush");
    self.from_data(size_of(message));
    for (std::size_t i = 0; i < size_of(message); ++i)
      require(self.memory[kDataAt + i] == byte_of(message, i), "data");
  }
  require(verbs.destroy_qp(flush.qp) == 0 && verbs.destroy_cq(flush.cq) == 0, "no more flushes");
}

int run(int socket, bool is_sender, DataIn data_in, const char* driver) {
  if (driver != nullptr) load_driver(driver);
  load_library();
  Process self(socket, is_sender, data_in);
  is_sender ? run_sender(self) : run_receiver(self);
  char done = 0;  // neither goes while the other may still need it
  require(send(socket, &done, 1, 0) == 1 && recv(socket, &done, 1, 0) == 1, "both are done");
  self.close();
  std::printf("%s: %d messages\n", is_sender ? "sender" : "receiver", kMessages);
  std::fflush(stdout);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const char* const driver = argc == 3 ? argv[1] : nullptr;
  const DataIn data_in = driver == nullptr                  ? DataIn::kHost
                         : std::string(argv[2]) == "dmabuf" ? DataIn::kDmabuf
                                                            : DataIn::kIova2;
  std::array<int, 2> sockets{};
  require(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets.data()) == 0, "socketpair");
  const pid_t child = fork();
  if (child == 0) std::_Exit(run(sockets[1], false, data_in, driver));
  const int status = run(sockets[0], true, data_in, driver);
  int child_status = -1;
  require(waitpid(child, &child_status, 0) == child, "waitpid");
  std::_Exit(child_status == 0 ? status : 1);
}
