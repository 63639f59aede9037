// The functions of verbena/collectives.h: arguments are checked here, and become a Call.
#include <cstring>
#include <exception>
#include <limits>
#include <memory>
#include <string>

#include <verbena/collectives.h>
#include "coll/reduce/reduce.h"
#include "collectives/make_schedule.h"
#include "communicator/gpu_buffers.h"
#include "communicator/groups.h"
#include "communicator/world.h"

using verbena::i64;
using verbena::u32;
using verbena::u64;
using verbena::u8;
namespace coll = verbena::coll;

struct verbena_comm {
  std::shared_ptr<coll::World> world;
  std::shared_ptr<coll::Communicator> comm;
  void* gpu_stream = nullptr;  // CUstream
};

struct verbena_request {
  std::shared_ptr<coll::World> world;
  std::shared_ptr<coll::Communicator> comm;
  std::shared_ptr<coll::Request> request;
  std::unique_ptr<coll::GPUBuffers> staged;  // nullptr if no buffer is GPU memory
  std::string error;
};

namespace {

constexpr u32 kWorldId = 1;

thread_local std::string last_error;

int report(const coll::Error& error) {
  last_error = error.text;
  return error.status;
}

coll::Error invalid(std::string text) { return {VERBENA_COLL_INVALID, std::move(text)}; }

// Memory may run out anywhere below.
template <typename Function>
int guarded(Function function) {
  last_error.clear();
  try {
    return function();
  } catch (const std::exception& exception) {
    return report({VERBENA_COLL_SYSTEM, std::string("not enough memory: ") + exception.what()});
  }
}

// --- arguments

bool is_type(int type) { return type >= 0 && type < static_cast<int>(coll::kDataTypes); }
bool is_op(int op) { return op >= 0 && op < static_cast<int>(coll::kReduceOps); }

bool is_aligned(const void* address, u32 bytes) {
  return reinterpret_cast<std::uintptr_t>(address) % bytes == 0;
}

struct Buffer {
  const char* name;
  const void* address;
  u64 bytes;
};

std::string wrong_buffer(const Buffer& buffer, coll::DataType type) {
  if (buffer.bytes == 0) return "";
  if (buffer.address == nullptr) return std::string(buffer.name) + " is NULL";
  if (!is_aligned(buffer.address, size_of(type)))
    return std::string(buffer.name) + " is not aligned to the " + std::to_string(size_of(type)) +
           " bytes of a " + std::string(name_of(type));
  return "";
}

bool overlap(const Buffer& a, const Buffer& b) {
  const u8* const x = static_cast<const u8*>(a.address);
  const u8* const y = static_cast<const u8*>(b.address);
  return a.bytes != 0 && b.bytes != 0 && x < y + b.bytes && y < x + a.bytes;
}

// The part of the larger buffer that the smaller may be, for a call in place.
bool is_in_place(const coll::Call& call, u32 rank) {
  const u8* const send = static_cast<const u8*>(call.send);
  const u8* const recv = static_cast<const u8*>(call.recv);
  switch (call.kind) {
    case coll::Kind::kAllGather:
    case coll::Kind::kGather: return send == recv + rank * call.bytes();
    case coll::Kind::kReduceScatter:
    case coll::Kind::kScatter: return recv == send + rank * call.bytes();
    case coll::Kind::kAllReduce:
    case coll::Kind::kReduce:
    case coll::Kind::kBroadcast: return send == recv;
    case coll::Kind::kAllToAll:
    case coll::Kind::kAllToAllV:
    case coll::Kind::kBarrier:
    case coll::Kind::kShareIds: return false;
  }
  return false;
}

u64 blocks_end(const coll::Blocks& blocks, u64 element) {
  u64 end = 0;
  for (std::size_t i = 0; i < blocks.counts.size(); ++i)
    end = std::max(end, (blocks.offsets[i] + blocks.counts[i]) * element);
  return end;
}

Buffer send_buffer(const coll::Call& call, u32 rank, u32 ranks) {
  using coll::Kind;
  const bool many = call.kind == Kind::kReduceScatter || call.kind == Kind::kAllToAll ||
                    call.kind == Kind::kScatter;
  const bool none = call.kind == Kind::kScatter && rank != call.root;
  const u64 bytes = call.kind == Kind::kAllToAllV ? blocks_end(call.send_blocks, size_of(call.type))
                    : none                        ? 0
                                                  : call.bytes() * (many ? ranks : 1);
  return {"the send buffer", call.send, bytes};
}

Buffer recv_buffer(const coll::Call& call, u32 rank, u32 ranks) {
  using coll::Kind;
  const bool many =
      call.kind == Kind::kAllGather || call.kind == Kind::kAllToAll || call.kind == Kind::kGather;
  const bool none = (call.kind == Kind::kGather || call.kind == Kind::kReduce) && rank != call.root;
  const u64 bytes = call.kind == Kind::kAllToAllV ? blocks_end(call.recv_blocks, size_of(call.type))
                    : none                        ? 0
                                                  : call.bytes() * (many ? ranks : 1);
  return {"the receive buffer", call.recv, bytes};
}

// Returns why this call cannot be done; "" if it can.
std::string wrong(const coll::Call& call, int type, int op, int root, u32 rank, u32 ranks) {
  if (!is_type(type)) return "there is no type " + std::to_string(type);
  if (reduces(call.kind)) {
    if (!is_op(op)) return "there is no reduction " + std::to_string(op);
    if (!coll::has_operation(call.type, call.op))
      return "no " + std::string(name_of(call.op)) + " of " + std::string(name_of(call.type));
  }
  if (has_root(call.kind) && (root < 0 || root >= static_cast<int>(ranks)))
    return "root " + std::to_string(root) + " is no rank: there are " + std::to_string(ranks);
  if (call.count > verbena::collectives::kMaxBytes / size_of(call.type) / ranks)
    return std::to_string(call.count) + " elements are more than 1 TiB";
  const Buffer send = send_buffer(call, rank, ranks), recv = recv_buffer(call, rank, ranks);
  for (const Buffer& buffer : {send, recv})
    if (std::string why = wrong_buffer(buffer, call.type); !why.empty()) return why;
  if (overlap(send, recv) && !is_in_place(call, rank))
    return "the buffers overlap, and it is not in place";
  return "";
}

coll::Call call_of(coll::Kind kind, int type, int op, int root, u64 count) {
  return {.kind = kind,
          .type = is_type(type) ? static_cast<coll::DataType>(type) : coll::DataType::kUint8,
          .op = is_op(op) ? static_cast<coll::ReduceOp>(op) : coll::ReduceOp::kSum,
          .root = root < 0 ? 0 : static_cast<u32>(root),
          .count = count};
}

// --- requests

// The operation is done: what was staged goes to GPU memory, once.
int report_end(const coll::Error& error, coll::GPUBuffers* staged) {
  if (error.status != VERBENA_COLL_OK || staged == nullptr) return report(error);
  return report(staged->copy_out());
}

coll::Error error_of(const verbena_request& request) {
  const coll::World::Guard guard(*request.world);
  return request.request->error();
}

// Starts a request. Waits for it if the program wants no handle, under the same lock.
template <typename Start>
int begin(const verbena_comm& comm, std::unique_ptr<coll::GPUBuffers> staged, verbena_request** out,
          Start start) {
  std::shared_ptr<coll::Request> started;
  coll::Error error;
  {
    coll::World::Guard guard(*comm.world);
    started = start();
    if (out == nullptr) error = comm.world->wait(guard, *started);
  }
  if (out == nullptr) return report_end(error, staged.get());
  *out = new verbena_request{comm.world, comm.comm, std::move(started), std::move(staged), {}};
  if (!(*out)->request->is_done()) comm.world->wake_thread();
  return VERBENA_COLL_OK;
}

// Moves buffers in GPU memory to host memory. Returns why that cannot be done; "" if it is done.
std::string stage(coll::Call& call, u32 rank, u32 ranks, void* stream,
                  std::unique_ptr<coll::GPUBuffers>& staged) {
  const Buffer send = send_buffer(call, rank, ranks), recv = recv_buffer(call, rank, ranks);
  // The root of a broadcast reads its only buffer.
  const bool is_only_read = call.kind == coll::Kind::kBroadcast && rank == call.root;
  auto made = coll::GPUBuffers::stage(
      stream, {{send.address, send.bytes, true}, {recv.address, recv.bytes, is_only_read}});
  if (!made) return made.error().text;
  staged = std::move(*made);
  if (staged == nullptr) return "";
  call.send = staged->place_of(call.send);
  call.recv = staged->place_of(call.recv);
  return "";
}

int start(verbena_comm* comm, coll::Call call, int type, int op, int root,
          verbena_request** request) {
  if (comm == nullptr) return report(invalid("there is no communicator"));
  std::string why = wrong(call, type, op, root, comm->comm->rank(), comm->comm->size());
  std::unique_ptr<coll::GPUBuffers> staged;
  if (why.empty())
    why = stage(call, comm->comm->rank(), comm->comm->size(), comm->gpu_stream, staged);
  if (!why.empty()) {
    const coll::Error error = invalid(std::string(name_of(call.kind)) + ": " + why);
    const coll::World::Guard guard(*comm->world);
    comm->comm->refuse(error);
    return report(error);
  }
  return begin(*comm, std::move(staged), request,
               [&] { return comm->comm->call(std::move(call)); });
}

verbena_comm* handle_of(const std::shared_ptr<coll::World>& world,
                        std::shared_ptr<coll::Communicator> comm) {
  return new verbena_comm{world, std::move(comm)};
}

template <typename Make>
int make_group(verbena_comm* comm, verbena_comm** out, Make make) {
  if (comm == nullptr || out == nullptr) return report(invalid("there is no communicator"));
  *out = nullptr;
  auto made = make(*comm->world, *comm->comm);
  if (!made) return report(made.error());
  if (*made != nullptr) *out = handle_of(comm->world, std::move(*made));
  return VERBENA_COLL_OK;
}

// --- options

verbena_coll_options read_options(const verbena_coll_options* options) {
  verbena_coll_options result{};
  if (options != nullptr) std::memcpy(&result, options, std::min(options->size, sizeof result));
  return result;
}

const char* given(const char* option, const char* variable) {
  return option != nullptr ? option : std::getenv(variable);
}

coll::Expected<coll::WorldConfig> config_of(const char* address, int rank, int ranks,
                                            const verbena_coll_options& options) {
  if (address == nullptr) return tl::unexpected(invalid("there is no rendezvous address"));
  auto at = coll::read_rendezvous(address, rank, ranks);
  if (!at) return tl::unexpected(at.error());
  coll::WorldConfig config{.at = std::move(*at), .store = options.store};
  if (config.at.form == coll::Rendezvous::Form::kStore && options.store == nullptr)
    return tl::unexpected(invalid("store:// needs options->store"));
  if (options.job != nullptr) config.at.job = options.job;
  if (options.timeout_s < 0) return tl::unexpected(invalid("the timeout is negative"));
  if (options.timeout_s > 0) config.timeout_s = options.timeout_s;
  if (const char* names = given(options.devices, "VERBENA_COLL_DEVICES")) config.devices = names;
  if (const char* name = given(options.algorithm, "VERBENA_COLL_ALGORITHM")) {
    const auto number = coll::algorithm_number(name);
    if (!number) return tl::unexpected(invalid("there is no algorithm " + std::string(name)));
    config.choice.forced = coll::Algorithm{*number, 0};
  }
  if (const char* path = given(options.table, "VERBENA_COLL_TABLE")) {
    auto table = coll::Table::read(path);
    if (!table) return tl::unexpected(table.error());
    config.choice.table = std::move(*table);
  }
  return config;
}

}  // namespace

int verbena_coll_init(verbena_comm** comm, const char* address, int rank, int ranks,
                      const verbena_coll_options* options) {
  return guarded([&] {
    if (comm == nullptr) return report(invalid("there is no place for the communicator"));
    *comm = nullptr;
    const auto config = config_of(address, rank, ranks, read_options(options));
    if (!config) return report(config.error());
    auto world = coll::World::open(*config);
    if (!world) return report(world.error());
    std::vector<u32> members((*world)->size());
    for (u32 i = 0; i < members.size(); ++i) members[i] = i;
    const coll::World::Guard guard(**world);
    *comm = handle_of(*world, (*world)->make_communicator(kWorldId, std::move(members)));
    return static_cast<int>(VERBENA_COLL_OK);
  });
}

int verbena_coll_destroy(verbena_comm* comm) {
  return guarded([&] {
    if (comm == nullptr) return report(invalid("there is no communicator"));
    const std::unique_ptr<verbena_comm> owned(comm);
    const std::shared_ptr<coll::World> world = comm->world;
    {
      const coll::World::Guard guard(*world);
      if (comm->comm->current() != nullptr)
        comm->comm->fail({VERBENA_COLL_ABORTED, "rank " + std::to_string(comm->comm->rank()) +
                                                    " destroyed the communicator"},
                         coll::Communicator::Tell::kOthers);
    }
    world->wait_until(coll::now_ns() + 2'000'000'000,
                      [&] { return comm->comm->current() == nullptr; });
    bool is_last = false;
    {
      const coll::World::Guard guard(*world);
      world->remove_communicator(*comm->comm);
      is_last = !world->has_communicators();
    }
    if (is_last) world->leave();
    return static_cast<int>(VERBENA_COLL_OK);
  });
}

int verbena_coll_rank(const verbena_comm* comm) { return static_cast<int>(comm->comm->rank()); }
int verbena_coll_size(const verbena_comm* comm) { return static_cast<int>(comm->comm->size()); }

int verbena_coll_set_timeout(verbena_comm* comm, double seconds) {
  return guarded([&] {
    if (comm == nullptr || !(seconds > 0)) return report(invalid("the timeout is not above 0"));
    const coll::World::Guard guard(*comm->world);
    comm->comm->timeout_s = seconds;
    return static_cast<int>(VERBENA_COLL_OK);
  });
}

int verbena_coll_set_gpu_stream(verbena_comm* comm, void* stream) {
  return guarded([&] {
    if (comm == nullptr) return report(invalid("there is no communicator"));
    comm->gpu_stream = stream;
    return static_cast<int>(VERBENA_COLL_OK);
  });
}

int verbena_coll_set_algorithm(verbena_comm* comm, const char* algorithm, size_t chunk) {
  return guarded([&] {
    if (comm == nullptr) return report(invalid("there is no communicator"));
    const auto number = coll::algorithm_number(algorithm == nullptr ? "direct" : algorithm);
    if (!number) return report(invalid("there is no algorithm " + std::string(algorithm)));
    const coll::World::Guard guard(*comm->world);
    if (algorithm == nullptr)
      comm->comm->choice.forced = comm->world->choice().forced;
    else
      comm->comm->choice.forced = coll::Algorithm{*number, chunk};
    return static_cast<int>(VERBENA_COLL_OK);
  });
}

int verbena_coll_split(verbena_comm* comm, int color, int key, verbena_comm** part) {
  return guarded([&] {
    return make_group(comm, part, [&](coll::World& world, coll::Communicator& whole) {
      return coll::split(world, whole, color, key);
    });
  });
}

int verbena_coll_shrink(verbena_comm* comm, verbena_comm** survivors) {
  return guarded([&] { return make_group(comm, survivors, coll::shrink); });
}

int verbena_coll_abort(verbena_comm* comm, const char* why) {
  return guarded([&] {
    if (comm == nullptr) return report(invalid("there is no communicator"));
    const coll::World::Guard guard(*comm->world);
    comm->comm->fail(
        {VERBENA_COLL_ABORTED, "rank " + std::to_string(comm->comm->rank()) + " aborted" +
                                   (why == nullptr ? "" : std::string(": ") + why)},
        coll::Communicator::Tell::kOthers);
    return static_cast<int>(VERBENA_COLL_OK);
  });
}

int verbena_coll_register(verbena_comm* comm, void* address, size_t length) {
  return guarded([&] {
    if (comm == nullptr || address == nullptr || length == 0)
      return report(invalid("there is nothing to register"));
    const coll::World::Guard guard(*comm->world);
    return report(comm->world->add_registration(address, length));
  });
}

int verbena_coll_deregister(verbena_comm* comm, void* address) {
  return guarded([&] {
    if (comm == nullptr) return report(invalid("there is no communicator"));
    const coll::World::Guard guard(*comm->world);
    return report(comm->world->remove_registration(address));
  });
}

// --- operations

namespace {

int collective(coll::Kind kind, const void* send, void* recv, size_t count, int type, int op,
               int root, verbena_comm* comm, verbena_request** request) {
  return guarded([&] {
    coll::Call call = call_of(kind, type, op, root, count);
    call.send = send;
    call.recv = recv;
    return start(comm, std::move(call), type, op, root, request);
  });
}

constexpr int kNoOp = VERBENA_SUM;

}  // namespace

int verbena_coll_all_reduce(const void* send, void* recv, size_t count, verbena_coll_type type,
                            verbena_coll_op op, verbena_comm* comm, verbena_request** request) {
  return collective(coll::Kind::kAllReduce, send, recv, count, type, op, 0, comm, request);
}

int verbena_coll_reduce_scatter(const void* send, void* recv, size_t recv_count,
                                verbena_coll_type type, verbena_coll_op op, verbena_comm* comm,
                                verbena_request** request) {
  return collective(coll::Kind::kReduceScatter, send, recv, recv_count, type, op, 0, comm, request);
}

int verbena_coll_all_gather(const void* send, void* recv, size_t send_count, verbena_coll_type type,
                            verbena_comm* comm, verbena_request** request) {
  return collective(coll::Kind::kAllGather, send, recv, send_count, type, kNoOp, 0, comm, request);
}

int verbena_coll_reduce(const void* send, void* recv, size_t count, verbena_coll_type type,
                        verbena_coll_op op, int root, verbena_comm* comm,
                        verbena_request** request) {
  return collective(coll::Kind::kReduce, send, recv, count, type, op, root, comm, request);
}

int verbena_coll_broadcast(void* buffer, size_t count, verbena_coll_type type, int root,
                           verbena_comm* comm, verbena_request** request) {
  return collective(coll::Kind::kBroadcast, buffer, buffer, count, type, kNoOp, root, comm,
                    request);
}

int verbena_coll_gather(const void* send, void* recv, size_t count, verbena_coll_type type,
                        int root, verbena_comm* comm, verbena_request** request) {
  return collective(coll::Kind::kGather, send, recv, count, type, kNoOp, root, comm, request);
}

int verbena_coll_scatter(const void* send, void* recv, size_t count, verbena_coll_type type,
                         int root, verbena_comm* comm, verbena_request** request) {
  return collective(coll::Kind::kScatter, send, recv, count, type, kNoOp, root, comm, request);
}

int verbena_coll_all_to_all(const void* send, void* recv, size_t count, verbena_coll_type type,
                            verbena_comm* comm, verbena_request** request) {
  return collective(coll::Kind::kAllToAll, send, recv, count, type, kNoOp, 0, comm, request);
}

int verbena_coll_all_to_allv(const void* send, const size_t* send_counts,
                             const size_t* send_offsets, void* recv, const size_t* recv_counts,
                             const size_t* recv_offsets, verbena_coll_type type, verbena_comm* comm,
                             verbena_request** request) {
  return guarded([&] {
    if (comm == nullptr || send_counts == nullptr || send_offsets == nullptr ||
        recv_counts == nullptr || recv_offsets == nullptr)
      return report(invalid("AllToAllv: counts or offsets are NULL"));
    coll::Call call = call_of(coll::Kind::kAllToAllV, type, kNoOp, 0, 0);
    call.send = send;
    call.recv = recv;
    const u32 ranks = comm->comm->size();
    call.send_blocks = {{send_counts, send_counts + ranks}, {send_offsets, send_offsets + ranks}};
    call.recv_blocks = {{recv_counts, recv_counts + ranks}, {recv_offsets, recv_offsets + ranks}};
    return start(comm, std::move(call), type, kNoOp, 0, request);
  });
}

int verbena_coll_barrier(verbena_comm* comm, verbena_request** request) {
  return collective(coll::Kind::kBarrier, nullptr, nullptr, 0, VERBENA_UINT8, kNoOp, 0, comm,
                    request);
}

// --- Send and Recv

namespace {

std::string wrong_message(const verbena_comm* comm, const void* buffer, u64 count, int type,
                          int peer) {
  if (comm == nullptr) return "there is no communicator";
  if (!is_type(type)) return "there is no type " + std::to_string(type);
  const auto element = static_cast<coll::DataType>(type);
  if (count > verbena::collectives::kMaxBytes / size_of(element))
    return std::to_string(count) + " elements are more than 1 TiB";
  if (peer < 0 || peer >= static_cast<int>(comm->comm->size()))
    return "there is no rank " + std::to_string(peer);
  return wrong_buffer({"the buffer", buffer, count * size_of(element)}, element);
}

}  // namespace

namespace {

coll::Expected<std::unique_ptr<coll::GPUBuffers>> stage_message(const verbena_comm& comm,
                                                                const void* buffer, u64 count,
                                                                int type, bool is_source) {
  return coll::GPUBuffers::stage(
      comm.gpu_stream, {{buffer, count * size_of(static_cast<coll::DataType>(type)), is_source}});
}

}  // namespace

int verbena_coll_send(const void* buffer, size_t count, verbena_coll_type type, int to,
                      uint32_t tag, verbena_comm* comm, verbena_request** request) {
  return guarded([&] {
    std::string why = wrong_message(comm, buffer, count, type, to);
    if (why.empty() && to == static_cast<int>(comm->comm->rank())) why = "the rank is the own one";
    if (!why.empty()) return report(invalid("Send: " + why));
    auto staged = stage_message(*comm, buffer, count, type, true);
    if (!staged) return report(staged.error());
    const void* const place = *staged == nullptr ? buffer : (*staged)->place_of(buffer);
    return begin(*comm, std::move(*staged), request, [&] {
      return comm->comm->send(place, count * size_of(static_cast<coll::DataType>(type)),
                              static_cast<u32>(to), tag);
    });
  });
}

int verbena_coll_recv(void* buffer, size_t count, verbena_coll_type type, int from, uint32_t tag,
                      verbena_comm* comm, verbena_request** request) {
  return guarded([&] {
    const bool any = from == VERBENA_ANY_RANK;
    std::string why = wrong_message(comm, buffer, count, type, any ? 0 : from);
    if (why.empty() && from == static_cast<int>(comm->comm->rank()))
      why = "the rank is the own one";
    if (!why.empty()) return report(invalid("Recv: " + why));
    auto staged = stage_message(*comm, buffer, count, type, false);
    if (!staged) return report(staged.error());
    void* const place = *staged == nullptr ? buffer : (*staged)->place_of(buffer);
    return begin(*comm, std::move(*staged), request, [&] {
      return comm->comm->recv(place, count * size_of(static_cast<coll::DataType>(type)),
                              any ? std::nullopt : std::optional(static_cast<u32>(from)), tag);
    });
  });
}

// --- requests

int verbena_coll_wait(verbena_request* request) {
  return guarded([&] {
    if (request == nullptr) return report(invalid("there is no request"));
    return report_end(request->world->wait(*request->request), request->staged.get());
  });
}

int verbena_coll_test(verbena_request* request, int* done) {
  return guarded([&] {
    if (request == nullptr || done == nullptr) return report(invalid("there is no request"));
    request->world->make_progress();
    {
      const coll::World::Guard guard(*request->world);
      *done = request->request->is_done() ? 1 : 0;
    }
    return *done != 0 ? report_end(error_of(*request), request->staged.get())
                      : static_cast<int>(VERBENA_COLL_OK);
  });
}

int verbena_coll_source(const verbena_request* request) {
  if (request == nullptr) return -1;
  const coll::World::Guard guard(*request->world);
  return request->request->source();
}

const char* verbena_coll_request_error(const verbena_request* request) {
  if (request == nullptr) return "";
  const coll::World::Guard guard(*request->world);
  return request->request->error().text.c_str();
}

void verbena_coll_release(verbena_request* request) { delete request; }

const char* verbena_coll_error(void) { return last_error.c_str(); }

size_t verbena_coll_size_of(verbena_coll_type type) {
  return is_type(type) ? size_of(static_cast<coll::DataType>(type)) : 0;
}
