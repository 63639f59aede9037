// ProcessGroupVerbena: a backend of torch.distributed over libverbena-coll, for CPU tensors.
// Written for torch 1.13; what 2.x has otherwise is guarded.
//
// A Work holds the library's requests. Whoever waits for it makes progress in the library itself. A
// Future (which DistributedDataParallel asks for) needs somebody who waits, so the group has a
// thread that completes futures, and only those.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <c10/core/impl/VirtualGuardImpl.h>
#include <pybind11/chrono.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/version.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>
#if TORCH_VERSION_MAJOR >= 2
#include <torch/csrc/distributed/c10d/Backend.hpp>
#endif

#include <verbena/collectives.h>

namespace verbena::torch_backend {
namespace {

using c10d::OpType;
using c10d::Work;
using Tensors = std::vector<at::Tensor>;
#if TORCH_VERSION_MAJOR >= 2
using Base = c10d::Backend;
#else
using Base = c10d::ProcessGroup;
#endif

constexpr std::chrono::milliseconds kLeastForRendezvous{30'000};
constexpr std::uint32_t kBarrierTag = 0xfffffff0;

// Programs of PyTorch look for " Timed out " in the text of a timeout, which gloo has.
std::string text_of(int status, const std::string& error) {
  return std::string("verbena: ") + (status == VERBENA_COLL_TIMEOUT ? "Timed out : " : "") + error;
}

void check(int status) {
  TORCH_CHECK(status == VERBENA_COLL_OK, text_of(status, verbena_coll_error()));
}

// --- types

verbena_coll_type type_of(at::ScalarType type) {
  switch (type) {
    case at::kBool:
    case at::kByte: return VERBENA_UINT8;
    case at::kChar: return VERBENA_INT8;
    case at::kInt: return VERBENA_INT32;
    case at::kLong: return VERBENA_INT64;
    case at::kHalf: return VERBENA_FLOAT16;
    case at::kBFloat16: return VERBENA_BFLOAT16;
    case at::kFloat: return VERBENA_FLOAT32;
    case at::kDouble: return VERBENA_FLOAT64;
    default: TORCH_CHECK(false, "verbena: no reductions of ", type);
  }
}

// Maps a sum of bools to "any" (maximum), and a product of bools to "all" (minimum).
verbena_coll_op op_of(const c10d::ReduceOp& op, at::ScalarType type) {
  const bool is_bool = type == at::kBool;
  switch (op) {
    case c10d::ReduceOp::SUM: return is_bool ? VERBENA_MAX : VERBENA_SUM;
    case c10d::ReduceOp::AVG: return VERBENA_AVERAGE;
    case c10d::ReduceOp::PRODUCT: return is_bool ? VERBENA_MIN : VERBENA_PRODUCT;
    case c10d::ReduceOp::MIN: return VERBENA_MIN;
    case c10d::ReduceOp::MAX: return VERBENA_MAX;
    case c10d::ReduceOp::BAND: return VERBENA_BIT_AND;
    case c10d::ReduceOp::BOR: return VERBENA_BIT_OR;
    case c10d::ReduceOp::BXOR: return VERBENA_BIT_XOR;
    default: TORCH_CHECK(false, "verbena: no such reduction");
  }
}

const at::Tensor& only(const Tensors& tensors) {
  TORCH_CHECK(tensors.size() == 1, "verbena: one tensor for each rank, not ", tensors.size());
  const at::Tensor& tensor = tensors[0];
  TORCH_CHECK(tensor.device().is_cpu() || tensor.device().is_cuda(),
              "verbena: CPU and CUDA tensors only");
  TORCH_CHECK(tensor.layout() == at::kStrided, "verbena: dense tensors only");
  return tensor;
}

std::size_t bytes_of(const at::Tensor& tensor) { return tensor.nbytes(); }

// Waits for the work that the program has queued on the device's current stream, because the
// library copies afterwards.
void* data_of(const at::Tensor& tensor) {
  if (!tensor.device().is_cpu()) {
    const c10::impl::VirtualGuardImpl guard(tensor.device().type());
    guard.getStream(tensor.device()).synchronize();
  }
  return tensor.data_ptr();
}

// --- Work

class VerbenaWork final : public Work {
 public:
  // `keep`: tensors that the operation uses. `finish`: runs when the operation has succeeded.
  VerbenaWork(int rank, OpType type, Tensors outputs, Tensors keep, std::function<void()> finish)
      : Work(rank, type),
        outputs_(std::move(outputs)),
        keep_(std::move(keep)),
        finish_(std::move(finish)) {}
  ~VerbenaWork() override {
    for (verbena_request* const request : requests_) {
      verbena_coll_wait(request);  // the tensors must outlive it
      verbena_coll_release(request);
    }
  }

  void add(verbena_request* request) { requests_.push_back(request); }
  verbena_request** slot() {
    requests_.push_back(nullptr);
    return &requests_.back();
  }

  bool isCompleted() override {
    const std::lock_guard<std::mutex> guard(once_);
    if (is_done_) return true;
    for (verbena_request* const request : requests_) {
      int done = 0;
      verbena_coll_test(request, &done);
      if (done == 0) return false;
    }
    complete_locked();
    return true;
  }
  bool isSuccess() const override { return exception() == nullptr; }
  std::exception_ptr exception() const override {
    const std::lock_guard<std::mutex> guard(mutex_);
    return exception_;
  }
  int sourceRank() const override { return source_; }
  std::vector<at::Tensor> result() override { return outputs_; }
  void synchronize() override { complete(); }

  bool wait(std::chrono::milliseconds timeout) override {
    if (timeout != kNoTimeout && !is_done_in(timeout))
      TORCH_CHECK(false,
                  text_of(VERBENA_COLL_TIMEOUT, opTypeToString(opType_) + " is not done after " +
                                                    std::to_string(timeout.count()) + " ms"));
    complete();
    if (const std::exception_ptr failed = exception()) std::rethrow_exception(failed);
    return true;
  }

  void complete() {
    const std::lock_guard<std::mutex> guard(once_);
    complete_locked();
  }

  c10::intrusive_ptr<c10::ivalue::Future> future() {
    if (!future_)
      future_ =
          c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()));
    return future_;
  }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
  void resolve() {
    complete();
    if (const std::exception_ptr failed = exception())
      future_->setError(failed);
    else
      future_->markCompleted(at::IValue(outputs_));
  }
  std::function<void(c10::intrusive_ptr<VerbenaWork>)> on_future{};

 private:
  bool is_done_in(std::chrono::milliseconds timeout) {
    // timedelta.max is more than a clock can count.
    constexpr std::chrono::milliseconds kLongest = std::chrono::hours(24 * 365);
    const auto end = std::chrono::steady_clock::now() + std::min(timeout, kLongest);
    while (!isCompleted()) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::yield();
    }
    return true;
  }
  void complete_locked() {
    if (is_done_) return;
    std::exception_ptr failed;
    for (verbena_request* const request : requests_) {
      const int status = verbena_coll_wait(request);
      if (status != VERBENA_COLL_OK && failed == nullptr)
        failed = std::make_exception_ptr(
            std::runtime_error(text_of(status, verbena_coll_request_error(request))));
      if (opType_ == OpType::RECVANYSOURCE) source_ = verbena_coll_source(request);
      verbena_coll_release(request);
    }
    requests_.clear();
    if (failed == nullptr && finish_) finish_();
    keep_.clear();
    is_done_ = true;
    finish(failed);
  }

  std::mutex once_;
  bool is_done_ = false;
  std::vector<verbena_request*> requests_;
  Tensors outputs_, keep_;
  std::function<void()> finish_;
  int source_ = -1;
  c10::intrusive_ptr<c10::ivalue::Future> future_;
};

using WorkPtr = c10::intrusive_ptr<VerbenaWork>;

c10::intrusive_ptr<c10::ivalue::Future> VerbenaWork::getFuture() {
  const bool is_new = !future_;
  auto made = future();
  if (is_new) on_future(c10::intrusive_ptr<VerbenaWork>::reclaim_copy(this));
  return made;
}

// Completes works in the order in which they come.
class Completer {
 public:
  // Completes what is left. The caller may hold Python's GIL, which futures need that Python waits
  // for, and tensors that Python made.
  void end() {
    std::optional<pybind11::gil_scoped_release> released;
    if (PyGILState_Check() != 0) released.emplace();
    {
      const std::lock_guard<std::mutex> guard(mutex_);
      ends_ = true;
    }
    changed_.notify_one();
    if (thread_.joinable()) thread_.join();
  }
  void add(WorkPtr work) {
    {
      const std::lock_guard<std::mutex> guard(mutex_);
      if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
      works_.push_back(std::move(work));
    }
    changed_.notify_one();
  }

 private:
  void run() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return ends_ || !works_.empty(); });
      if (works_.empty()) return;
      WorkPtr work = std::move(works_.front());
      works_.pop_front();
      lock.unlock();
      work->resolve();
      work.reset();
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<WorkPtr> works_;
  bool ends_ = false;
  std::thread thread_;
};

// --- the group

class ProcessGroupVerbena final : public Base {
 public:
  ProcessGroupVerbena(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                      std::chrono::milliseconds timeout)
      : Base(rank, size), store_(store), timeout_(timeout) {
    const verbena_coll_store through{this, set, get};
    verbena_coll_options options{};
    options.size = sizeof options;
    // Ranks may come late to a group whose operations have little time.
    options.timeout_s =
        std::chrono::duration<double>(std::max(timeout, kLeastForRendezvous)).count();
    options.store = &through;
    check(verbena_coll_init(&comm_, "store://", rank, size, &options));
    check(verbena_coll_set_timeout(comm_, std::chrono::duration<double>(timeout).count()));
  }
  ~ProcessGroupVerbena() override {
    completer_.end();
    if (comm_ != nullptr) verbena_coll_destroy(comm_);
  }
  const std::string getBackendName() const override { return "verbena"; }

  c10::intrusive_ptr<Work> broadcast(Tensors& tensors,
                                     const c10d::BroadcastOptions& options) override {
    const at::Tensor& tensor = only(tensors);
    const at::Tensor flat = tensor.contiguous();
    return begin(OpType::BROADCAST, tensors, {flat}, copy_back(flat, tensor),
                 [&](verbena_request** request) {
                   return verbena_coll_broadcast(data_of(flat), bytes_of(flat), VERBENA_UINT8,
                                                 static_cast<int>(options.rootRank), comm_,
                                                 request);
                 });
  }

  c10::intrusive_ptr<Work> allreduce(Tensors& tensors,
                                     const c10d::AllreduceOptions& options) override {
    const at::Tensor& tensor = only(tensors);
    const at::Tensor flat = reducible(tensor);
    return begin(OpType::ALLREDUCE, tensors, {flat}, copy_back(flat, tensor),
                 all_reduce_of(flat, options.reduceOp));
  }

  c10::intrusive_ptr<Work> allreduce_coalesced(
      Tensors& tensors, const c10d::AllreduceCoalescedOptions& options) override {
    TORCH_CHECK(!tensors.empty(), "verbena: no tensors");
    Tensors rows;
    for (const at::Tensor& tensor : tensors) {
      TORCH_CHECK(tensor.scalar_type() == tensors[0].scalar_type(),
                  "verbena: tensors of one allreduce_coalesced have one type");
      rows.push_back(tensor.reshape({-1}));
    }
    const at::Tensor flat = reducible(at::cat(rows));
    const auto split = [flat, tensors] {
      std::int64_t at = 0;
      for (at::Tensor tensor : tensors) {
        tensor.copy_(flat.narrow(0, at, tensor.numel()).view(tensor.sizes()));
        at += tensor.numel();
      }
    };
    return begin(OpType::ALLREDUCE_COALESCED, tensors, {flat}, split,
                 all_reduce_of(flat, options.reduceOp));
  }

  c10::intrusive_ptr<Work> reduce(Tensors& tensors, const c10d::ReduceOptions& options) override {
    const at::Tensor& tensor = only(tensors);
    const at::Tensor flat = reducible(tensor);
    const bool is_root = options.rootRank == getRank();
    return begin(OpType::REDUCE, tensors, {flat},
                 is_root ? copy_back(flat, tensor) : std::function<void()>(),
                 [&](verbena_request** request) {
                   return verbena_coll_reduce(data_of(flat), data_of(flat), count_of(flat),
                                              type_of(flat.scalar_type()),
                                              op_of(options.reduceOp, flat.scalar_type()),
                                              static_cast<int>(options.rootRank), comm_, request);
                 });
  }

  c10::intrusive_ptr<Work> allgather(std::vector<Tensors>& outputs, Tensors& inputs,
                                     const c10d::AllgatherOptions&) override {
    const at::Tensor in = only(inputs).contiguous();
    TORCH_CHECK(outputs.size() == 1 && outputs[0].size() == static_cast<std::size_t>(getSize()),
                "verbena: allgather needs an output for each rank");
    const at::Tensor all = rows_like(in);
    return begin(OpType::ALLGATHER, outputs[0], {in, all}, spread(all, outputs[0]),
                 all_gather_of(in, all));
  }

  c10::intrusive_ptr<Work> _allgather_base(at::Tensor& output, at::Tensor& input,
                                           const c10d::AllgatherOptions&) override {
    const at::Tensor in = input.contiguous(), all = output.contiguous();
    TORCH_CHECK(all.numel() == in.numel() * getSize() && all.scalar_type() == in.scalar_type(),
                "verbena: the output has the input's elements for each rank");
    return begin(OpType::_ALLGATHER_BASE, {output}, {in, all}, copy_back(all, output),
                 all_gather_of(in, all));
  }

  c10::intrusive_ptr<Work> allgather_coalesced(std::vector<Tensors>& outputs, Tensors& inputs,
                                               const c10d::AllgatherOptions&) override {
    Tensors keep;
    std::vector<std::function<void()>> finishes;
    std::vector<std::pair<at::Tensor, at::Tensor>> pairs;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const at::Tensor in = inputs[i].contiguous(), all = rows_like(in);
      Tensors targets;
      for (const Tensors& of_rank : outputs) targets.push_back(of_rank.at(i));
      finishes.push_back(spread(all, targets));
      pairs.emplace_back(in, all);
      keep.push_back(in);
      keep.push_back(all);
    }
    const WorkPtr work = make(OpType::ALLGATHER_COALESCED, {}, std::move(keep), [finishes] {
      for (const auto& finish : finishes) finish();
    });
    for (const auto& [in, all] : pairs) start(*work, all_gather_of(in, all));
    return work;
  }

  c10::intrusive_ptr<Work> gather(std::vector<Tensors>& outputs, Tensors& inputs,
                                  const c10d::GatherOptions& options) override {
    const at::Tensor in = only(inputs).contiguous();
    const bool is_root = options.rootRank == getRank();
    TORCH_CHECK(outputs.size() == (is_root ? 1u : 0u) &&
                    (!is_root || outputs[0].size() == static_cast<std::size_t>(getSize())),
                "verbena: the root of a gather needs an output for each rank, others none");
    const at::Tensor all = is_root ? rows_like(in) : at::empty({0}, in.options());
    const Tensors targets = is_root ? outputs[0] : Tensors();
    return begin(
        OpType::GATHER, targets, {in, all}, spread(all, targets), [&](verbena_request** request) {
          return verbena_coll_gather(data_of(in), data_of(all), bytes_of(in), VERBENA_UINT8,
                                     static_cast<int>(options.rootRank), comm_, request);
        });
  }

  c10::intrusive_ptr<Work> scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                                   const c10d::ScatterOptions& options) override {
    const at::Tensor& output = only(outputs);
    const bool is_root = options.rootRank == getRank();
    TORCH_CHECK(inputs.size() == (is_root ? 1u : 0u) &&
                    (!is_root || inputs[0].size() == static_cast<std::size_t>(getSize())),
                "verbena: the root of a scatter needs an input for each rank, others none");
    const at::Tensor all = is_root ? joined(inputs[0], output) : at::empty({0}, output.options());
    const at::Tensor out = output.contiguous();
    return begin(OpType::SCATTER, outputs, {all, out}, copy_back(out, output),
                 [&](verbena_request** request) {
                   return verbena_coll_scatter(data_of(all), data_of(out), bytes_of(out),
                                               VERBENA_UINT8, static_cast<int>(options.rootRank),
                                               comm_, request);
                 });
  }

  c10::intrusive_ptr<Work> reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                                          const c10d::ReduceScatterOptions& options) override {
    const at::Tensor& output = only(outputs);
    TORCH_CHECK(inputs.size() == 1 && inputs[0].size() == static_cast<std::size_t>(getSize()),
                "verbena: reduce_scatter needs an input for each rank");
    return reduce_scatter_of(OpType::REDUCE_SCATTER, output, joined(inputs[0], output),
                             options.reduceOp);
  }

  c10::intrusive_ptr<Work> _reduce_scatter_base(
      at::Tensor& output, at::Tensor& input, const c10d::ReduceScatterOptions& options) override {
    TORCH_CHECK(input.numel() == output.numel() * getSize(),
                "verbena: the input has the output's elements for each rank");
    return reduce_scatter_of(OpType::_REDUCE_SCATTER_BASE, output, input, options.reduceOp);
  }

  c10::intrusive_ptr<Work> alltoall_base(at::Tensor& output, at::Tensor& input,
                                         std::vector<std::int64_t>& output_splits,
                                         std::vector<std::int64_t>& input_splits,
                                         const c10d::AllToAllOptions&) override {
    const at::Tensor in = input.contiguous(), out = output.contiguous();
    return all_to_all(OpType::ALLTOALL_BASE, {output}, in, split_bytes(in, input_splits), out,
                      split_bytes(out, output_splits), copy_back(out, output));
  }

  c10::intrusive_ptr<Work> alltoall(Tensors& outputs, Tensors& inputs,
                                    const c10d::AllToAllOptions&) override {
    TORCH_CHECK(
        inputs.size() == static_cast<std::size_t>(getSize()) && outputs.size() == inputs.size(),
        "verbena: alltoall needs an input and an output for each rank");
    Tensors rows;
    std::vector<std::size_t> sent, received;
    std::int64_t elements = 0;
    for (const at::Tensor& tensor : inputs) {
      rows.push_back(tensor.reshape({-1}));
      sent.push_back(bytes_of(tensor));
    }
    for (const at::Tensor& tensor : outputs) {
      received.push_back(bytes_of(tensor));
      elements += tensor.numel();
    }
    const at::Tensor in = at::cat(rows), out = at::empty({elements}, in.options());
    const auto split = [out, outputs] {
      std::int64_t at = 0;
      for (at::Tensor tensor : outputs) {
        tensor.copy_(out.narrow(0, at, tensor.numel()).view(tensor.sizes()));
        at += tensor.numel();
      }
    };
    return all_to_all(OpType::ALLTOALL, outputs, in, sent, out, received, split);
  }

  c10::intrusive_ptr<Work> barrier(const c10d::BarrierOptions&) override {
    return begin(OpType::BARRIER, {}, {}, {},
                 [&](verbena_request** request) { return verbena_coll_barrier(comm_, request); });
  }

  // Rank 0 hears of every other rank, or says which one is missing.
  void monitoredBarrier(const c10d::BarrierOptions& options, bool wait_all_ranks) override {
    const bool is_given = options.timeout != c10d::kUnsetTimeout;
    const std::chrono::milliseconds timeout = is_given ? options.timeout : timeout_;
    TORCH_CHECK(timeout.count() > 0, "Rank ", getRank(), " timed out in monitoredBarrier after ",
                timeout.count(), " ms");
    check(verbena_coll_set_timeout(comm_, std::chrono::duration<double>(timeout).count()));
    const std::string why = getRank() == 0 ? hear_all(timeout, wait_all_ranks) : tell_first();
    check(verbena_coll_set_timeout(comm_, std::chrono::duration<double>(timeout_).count()));
    TORCH_CHECK(why.empty(), why);
  }

  c10::intrusive_ptr<Work> send(Tensors& tensors, int to, int tag) override {
    const at::Tensor flat = only(tensors).contiguous();
    return begin(OpType::SEND, {}, {flat}, {}, [&](verbena_request** request) {
      return verbena_coll_send(data_of(flat), bytes_of(flat), VERBENA_UINT8, to,
                               static_cast<std::uint32_t>(tag), comm_, request);
    });
  }
  c10::intrusive_ptr<Work> recv(Tensors& tensors, int from, int tag) override {
    return receive(OpType::RECV, tensors, from, tag);
  }
  c10::intrusive_ptr<Work> recvAnysource(Tensors& tensors, int tag) override {
    return receive(OpType::RECVANYSOURCE, tensors, VERBENA_ANY_RANK, tag);
  }

  void setSequenceNumberForGroup() override {}
  std::uint64_t getSequenceNumberForGroup() override { return operations_; }

 private:
  using Start = std::function<int(verbena_request**)>;

  static std::size_t count_of(const at::Tensor& tensor) {
    return static_cast<std::size_t>(tensor.numel());
  }
  // Contiguous, of a type that the library reduces.
  static at::Tensor reducible(const at::Tensor& tensor) {
    return (tensor.scalar_type() == at::kShort ? tensor.to(at::kInt) : tensor).contiguous();
  }
  static std::function<void()> copy_back(const at::Tensor& from, const at::Tensor& to) {
    if (from.is_same(to)) return {};
    return [from, target = to]() mutable { target.copy_(from.view(target.sizes())); };
  }
  [[nodiscard]] at::Tensor rows_like(const at::Tensor& tensor) const {
    return at::empty({getSize(), tensor.numel()}, tensor.options());
  }
  static std::function<void()> spread(const at::Tensor& rows, const Tensors& targets) {
    return [rows, targets] {
      for (std::size_t i = 0; i < targets.size(); ++i) {
        at::Tensor target = targets[i];
        target.copy_(rows[static_cast<std::int64_t>(i)].view(target.sizes()));
      }
    };
  }
  static at::Tensor joined(const Tensors& tensors, const at::Tensor& like) {
    Tensors rows;
    for (const at::Tensor& tensor : tensors) {
      TORCH_CHECK(tensor.numel() == like.numel() && tensor.scalar_type() == like.scalar_type(),
                  "verbena: all tensors have one size and type");
      rows.push_back(tensor.reshape({-1}));
    }
    return at::cat(rows);
  }
  [[nodiscard]] std::vector<std::size_t> split_bytes(const at::Tensor& tensor,
                                                     const std::vector<std::int64_t>& sizes) const {
    const std::size_t ranks = static_cast<std::size_t>(getSize());
    if (sizes.empty()) {
      TORCH_CHECK(tensor.size(0) % getSize() == 0,
                  "verbena: the first dimension is no multiple of the number of ranks");
      return std::vector<std::size_t>(ranks, bytes_of(tensor) / ranks);
    }
    TORCH_CHECK(sizes.size() == ranks, "verbena: a split size for each rank");
    const std::size_t rows = static_cast<std::size_t>(std::max<std::int64_t>(1, tensor.size(0)));
    std::vector<std::size_t> bytes;
    std::int64_t sum = 0;
    for (const std::int64_t size : sizes) {
      bytes.push_back(static_cast<std::size_t>(size) * (bytes_of(tensor) / rows));
      sum += size;
    }
    TORCH_CHECK(sum == tensor.size(0), "verbena: the split sizes are not the tensor's");
    return bytes;
  }

  [[nodiscard]] WorkPtr make(OpType type, Tensors outputs, Tensors keep,
                             std::function<void()> finish) {
    auto work = c10::make_intrusive<VerbenaWork>(getRank(), type, std::move(outputs),
                                                 std::move(keep), std::move(finish));
    work->on_future = [this](WorkPtr waiting) { completer_.add(std::move(waiting)); };
    ++operations_;
    return work;
  }
  static void start(VerbenaWork& work, const Start& call) {
    verbena_request* request = nullptr;
    check(call(&request));
    work.add(request);
  }
  [[nodiscard]] WorkPtr begin(OpType type, Tensors outputs, Tensors keep,
                              std::function<void()> finish, const Start& call) {
    WorkPtr work = make(type, std::move(outputs), std::move(keep), std::move(finish));
    start(*work, call);
    return work;
  }

  [[nodiscard]] Start all_reduce_of(const at::Tensor& flat, const c10d::ReduceOp& op) {
    return [this, flat, op](verbena_request** request) {
      return verbena_coll_all_reduce(data_of(flat), data_of(flat), count_of(flat),
                                     type_of(flat.scalar_type()), op_of(op, flat.scalar_type()),
                                     comm_, request);
    };
  }
  [[nodiscard]] Start all_gather_of(const at::Tensor& in, const at::Tensor& all) {
    return [this, in, all](verbena_request** request) {
      return verbena_coll_all_gather(data_of(in), data_of(all), bytes_of(in), VERBENA_UINT8, comm_,
                                     request);
    };
  }
  [[nodiscard]] WorkPtr reduce_scatter_of(OpType type, const at::Tensor& output,
                                          const at::Tensor& input, const c10d::ReduceOp& op) {
    const at::Tensor in = reducible(input), out = reducible(output);
    return begin(type, {output}, {in, out}, copy_back(out, output), [&](verbena_request** request) {
      return verbena_coll_reduce_scatter(data_of(in), data_of(out), count_of(out),
                                         type_of(in.scalar_type()), op_of(op, in.scalar_type()),
                                         comm_, request);
    });
  }
  [[nodiscard]] WorkPtr all_to_all(OpType type, Tensors outputs, const at::Tensor& in,
                                   const std::vector<std::size_t>& sent, const at::Tensor& out,
                                   const std::vector<std::size_t>& received,
                                   std::function<void()> finish) {
    const auto offsets = [](const std::vector<std::size_t>& counts) {
      std::vector<std::size_t> at(counts.size(), 0);
      for (std::size_t i = 1; i < counts.size(); ++i) at[i] = at[i - 1] + counts[i - 1];
      return at;
    };
    const std::vector<std::size_t> sent_at = offsets(sent), received_at = offsets(received);
    return begin(
        type, std::move(outputs), {in, out}, std::move(finish), [&](verbena_request** request) {
          return verbena_coll_all_to_allv(data_of(in), sent.data(), sent_at.data(), data_of(out),
                                          received.data(), received_at.data(), VERBENA_UINT8, comm_,
                                          request);
        });
  }
  [[nodiscard]] WorkPtr receive(OpType type, const Tensors& tensors, int from, int tag) {
    const at::Tensor& tensor = only(tensors);
    const at::Tensor flat = tensor.contiguous();
    return begin(type, tensors, {flat}, copy_back(flat, tensor), [&](verbena_request** request) {
      return verbena_coll_recv(data_of(flat), bytes_of(flat), VERBENA_UINT8, from,
                               static_cast<std::uint32_t>(tag), comm_, request);
    });
  }

  // --- monitoredBarrier. The texts of errors are gloo's, which programs look for.
  std::string hear_all(std::chrono::milliseconds timeout, bool wait_all_ranks) {
    char word = 0;
    std::string missing;
    int count = 0;
    for (int rank = 1; rank < getSize(); ++rank) {
      if (verbena_coll_recv(&word, 1, VERBENA_UINT8, rank, kBarrierTag, comm_, nullptr) ==
          VERBENA_COLL_OK)
        continue;
      missing += (missing.empty() ? "" : ", ") + std::to_string(rank);
      ++count;
      if (!wait_all_ranks) break;
    }
    if (!missing.empty())
      return (count == 1 ? "Rank " : "Ranks ") + missing + " failed to pass monitoredBarrier in " +
             std::to_string(timeout.count()) + " ms";
    for (int rank = 1; rank < getSize(); ++rank)
      check(verbena_coll_send(&word, 1, VERBENA_UINT8, rank, kBarrierTag, comm_, nullptr));
    return "";
  }
  std::string tell_first() {
    char word = 0;
    int status = verbena_coll_send(&word, 1, VERBENA_UINT8, 0, kBarrierTag, comm_, nullptr);
    if (status == VERBENA_COLL_OK)
      status = verbena_coll_recv(&word, 1, VERBENA_UINT8, 0, kBarrierTag, comm_, nullptr);
    return status == VERBENA_COLL_OK ? ""
                                     : "Rank " + std::to_string(getRank()) +
                                           " successfully reached monitoredBarrier, but received "
                                           "errors while waiting for send/recv from rank 0: " +
                                           verbena_coll_error();
  }

  // --- the store
  static int set(void* group, const char* key, const char* value) {
    try {
      const std::string text = value;
      static_cast<ProcessGroupVerbena*>(group)->store_->set(
          key, std::vector<std::uint8_t>(text.begin(), text.end()));
      return 0;
    } catch (const std::exception&) {
      return -1;
    }
  }
  static int get(void* group, const char* key, char* value, std::size_t size) {
    try {
      const std::vector<std::uint8_t> bytes =
          static_cast<ProcessGroupVerbena*>(group)->store_->get(key);
      if (bytes.size() >= size) return -1;
      std::copy(bytes.begin(), bytes.end(), value);
      value[bytes.size()] = '\0';
      return 0;
    } catch (const std::exception&) {
      return -1;
    }
  }

  c10::intrusive_ptr<c10d::Store> store_;
  std::chrono::milliseconds timeout_;
  verbena_comm* comm_ = nullptr;
  std::uint64_t operations_ = 0;
  Completer completer_{};
};

c10::intrusive_ptr<Base> create(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                                const std::chrono::duration<float>& timeout) {
  return c10::make_intrusive<ProcessGroupVerbena>(
      store, rank, size, std::chrono::duration_cast<std::chrono::milliseconds>(timeout));
}

}  // namespace
}  // namespace verbena::torch_backend

PYBIND11_MODULE(_backend, module) {
  module.def("create", &verbena::torch_backend::create,
             pybind11::call_guard<pybind11::gil_scoped_release>());
}
