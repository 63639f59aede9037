// Operations on GPU memory, on the stand-in for the CUDA driver (tests/standin/libcuda.cc): no
// result of this file is one of a GPU.
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "tests/coll/ranks.h"
#include "tests/support/standin_cuda.h"

namespace verbena::coll_test {
namespace {

using test::StandinCuda;

constexpr std::size_t kCount = 50000;
constexpr std::size_t kBytes = kCount * sizeof(float);

// A buffer in the stand-in's memory.
struct OnGPU {
  OnGPU(const StandinCuda& driver, std::size_t count) : cuda(driver), size(count) {
    cuda.mem_alloc(&at, count * sizeof(float));
  }
  void fill(float value) {
    const std::vector<float> all(size, value);
    cuda.to_device(at, all.data(), size * sizeof(float));
  }
  std::vector<float> get() const {
    std::vector<float> all(size);
    cuda.to_host(all.data(), at, size * sizeof(float));
    return all;
  }
  void* data(std::size_t element = 0) const {
    return reinterpret_cast<void*>(at + element * sizeof(float));
  }
  bool holds(std::size_t first, std::size_t count, float value) const {
    const std::vector<float> all = get();
    for (std::size_t i = first; i < first + count; ++i)
      if (all[i] != value) return false;
    return true;
  }
  const StandinCuda& cuda;
  std::size_t size;
  StandinCuda::Pointer at = 0;
};

std::string do_all(int rank, verbena_comm* comm) {
  const StandinCuda cuda(VERBENA_STANDIN_CUDA);
  void* context = nullptr;
  if (cuda.library == nullptr || cuda.ctx_create(&context, 0, 0) != 0) return "no stand-in";
  const auto mine = static_cast<float>(rank + 1);
  OnGPU one(cuda, kCount), other(cuda, kCount), both(cuda, 2 * kCount);
  one.fill(mine);
  if (verbena_coll_all_reduce(one.data(), other.data(), kCount, VERBENA_FLOAT32, VERBENA_SUM, comm,
                              nullptr) != 0 ||
      !other.holds(0, kCount, 3) || !one.holds(0, kCount, mine))
    return "AllReduce";
  if (verbena_coll_all_reduce(one.data(), one.data(), kCount, VERBENA_FLOAT32, VERBENA_SUM, comm,
                              nullptr) != 0 ||
      !one.holds(0, kCount, 3))
    return "AllReduce in place";
  one.fill(mine);
  verbena_request* request = nullptr;
  if (verbena_coll_all_gather(one.data(), both.data(), kCount, VERBENA_FLOAT32, comm, &request) !=
      0)
    return "AllGather begins";
  if (verbena_coll_wait(request) != 0 || !both.holds(0, kCount, 1) ||
      !both.holds(kCount, kCount, 2))
    return "AllGather";
  verbena_coll_release(request);
  std::vector<float> host(kCount, -1);  // GPU memory in, host memory out
  if (verbena_coll_reduce_scatter(both.data(), host.data(), kCount, VERBENA_FLOAT32, VERBENA_SUM,
                                  comm, nullptr) != 0 ||
      host[7] != 2 * mine)
    return "ReduceScatter";
  if (verbena_coll_broadcast(one.data(), kCount, VERBENA_FLOAT32, 1, comm, nullptr) != 0 ||
      !one.holds(0, kCount, 2))
    return "Broadcast";
  const int status =
      rank == 0 ? verbena_coll_send(one.data(100), 1000, VERBENA_FLOAT32, 1, 5, comm, nullptr)
                : verbena_coll_recv(both.data(10), 1000, VERBENA_FLOAT32, 0, 5, comm, nullptr);
  if (status != 0 || (rank == 1 && (!both.holds(10, 1000, 2) || !both.holds(0, 10, 1))))
    return "Send and Recv";
  void* now = nullptr;
  cuda.ctx_get_current(&now);
  return now == context ? "" : "the current context has changed";
}

TEST(GPUBuffersTest, OperationsTakeGPUMemory) {
  const std::vector<std::string> results = run_ranks({}, do_all);
  for (std::size_t rank = 0; rank < results.size(); ++rank)
    EXPECT_EQ(results[rank], "") << "rank " << rank;
}

// Work that is queued on the stream comes before the operation, although nothing waits for it.
TEST(GPUBuffersTest, OperationsComeAfterWorkOfTheirStream) {
  const auto results = run_ranks({}, [](int rank, verbena_comm* comm) -> std::string {
    const StandinCuda cuda(VERBENA_STANDIN_CUDA);
    void *context = nullptr, *stream = nullptr;
    if (cuda.ctx_create(&context, 0, 0) != 0 || cuda.stream_create(&stream, 1) != 0)
      return "no stand-in";
    OnGPU one(cuda, kCount), sum(cuda, kCount);
    one.fill(0);
    const std::vector<float> later(kCount, static_cast<float>(rank + 1));
    cuda.to_device_async(one.at, later.data(), kBytes, stream);
    if (verbena_coll_set_gpu_stream(comm, stream) != 0) return "the stream is refused";
    if (verbena_coll_all_reduce(one.data(), sum.data(), kCount, VERBENA_FLOAT32, VERBENA_SUM, comm,
                                nullptr) != 0)
      return verbena_coll_error();
    if (!sum.holds(0, kCount, 3)) return "the sum is of what was there before";
    if (verbena_coll_set_gpu_stream(comm, nullptr) != 0) return "the default stream is refused";
    return verbena_coll_all_reduce(one.data(), one.data(), kCount, VERBENA_FLOAT32, VERBENA_SUM,
                                   comm, nullptr) == 0 &&
                   one.holds(0, kCount, 3)
               ? ""
               : "on the default stream again";
  });
  for (const std::string& result : results) EXPECT_EQ(result, "");
}

TEST(GPUBuffersTest, ABufferThatIsPartlyThereIsRefused) {
  const auto results = run_ranks({}, [](int, verbena_comm* comm) -> std::string {
    const StandinCuda cuda(VERBENA_STANDIN_CUDA);
    void* context = nullptr;
    if (cuda.ctx_create(&context, 0, 0) != 0) return "no stand-in";
    const OnGPU one(cuda, 1024);
    const int status = verbena_coll_all_reduce(one.data(), one.data(), 1 << 20, VERBENA_FLOAT32,
                                               VERBENA_SUM, comm, nullptr);
    return status == VERBENA_COLL_OK ? "it was accepted" : "";
  });
  for (const std::string& result : results) EXPECT_EQ(result, "");
}

}  // namespace
}  // namespace verbena::coll_test
