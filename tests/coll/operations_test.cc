// Every operation, type and algorithm, between processes, against plain loops.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numeric>

#include "tests/coll/ranks.h"

namespace verbena::coll_test {
namespace {

void expect_all_well(const Job& job, const RankFunction& function) {
  const std::vector<std::string> results = run_ranks(job, function);
  for (std::size_t rank = 0; rank < results.size(); ++rank)
    EXPECT_EQ(results[rank], "") << "rank " << rank;
}

std::string failed(const char* what, int status) {
  return std::string(what) + ": " + std::to_string(status) + ", " + verbena_coll_error();
}

// Small whole numbers: exact in all types, whichever the order of additions.
float value(int rank, std::size_t i) {
  return static_cast<float>((static_cast<std::size_t>(rank) * 7 + i) % 11);
}

std::vector<float> values(int rank, std::size_t count, std::size_t first = 0) {
  std::vector<float> all(count);
  for (std::size_t i = 0; i < count; ++i) all[i] = value(rank, first + i);
  return all;
}

float sum_of(int ranks, std::size_t i) {
  float sum = 0;
  for (int rank = 0; rank < ranks; ++rank) sum += value(rank, i);
  return sum;
}

std::string differs(const char* what, std::size_t count, std::size_t i, float is, float expected) {
  return std::string(what) + " of " + std::to_string(count) + ": element " + std::to_string(i) +
         " is " + std::to_string(is) + ", not " + std::to_string(expected);
}

const std::vector<std::size_t> kCounts = {0, 1, 2, 3, 5, 1000, 2036, 2037, 30000, 300001, 1200007};

std::string check_all_reduce(int, verbena_comm* comm, std::size_t count, bool in_place) {
  const int ranks = verbena_coll_size(comm), rank = verbena_coll_rank(comm);
  std::vector<float> in = values(rank, count), out(count, -1);
  const void* const send = in_place ? out.data() : in.data();
  if (in_place) out = in;
  const int status =
      verbena_coll_all_reduce(send, out.data(), count, VERBENA_FLOAT32, VERBENA_SUM, comm, nullptr);
  if (status != 0) return failed("AllReduce", status);
  for (std::size_t i = 0; i < count; ++i)
    if (out[i] != sum_of(ranks, i)) return differs("AllReduce", count, i, out[i], sum_of(ranks, i));
  if (!in_place && in != values(rank, count)) return "AllReduce changed its input";
  return "";
}

std::string check_reduce_scatter(int, verbena_comm* comm, std::size_t count, bool in_place) {
  const int ranks = verbena_coll_size(comm), rank = verbena_coll_rank(comm);
  const std::size_t mine = static_cast<std::size_t>(rank) * count;
  std::vector<float> in = values(rank, count * static_cast<std::size_t>(ranks)), out(count, -1);
  float* const recv = in_place ? in.data() + mine : out.data();
  const int status = verbena_coll_reduce_scatter(in.data(), recv, count, VERBENA_FLOAT32,
                                                 VERBENA_SUM, comm, nullptr);
  if (status != 0) return failed("ReduceScatter", status);
  for (std::size_t i = 0; i < count; ++i)
    if (recv[i] != sum_of(ranks, mine + i))
      return differs("ReduceScatter", count, i, recv[i], sum_of(ranks, mine + i));
  return "";
}

std::string check_all_gather(int, verbena_comm* comm, std::size_t count, bool in_place) {
  const int ranks = verbena_coll_size(comm), rank = verbena_coll_rank(comm);
  std::vector<float> in = values(rank, count), out(count * static_cast<std::size_t>(ranks), -1);
  float* const own = out.data() + static_cast<std::size_t>(rank) * count;
  if (in_place) std::copy(in.begin(), in.end(), own);
  const int status = verbena_coll_all_gather(in_place ? own : in.data(), out.data(), count,
                                             VERBENA_FLOAT32, comm, nullptr);
  if (status != 0) return failed("AllGather", status);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const float expected = value(static_cast<int>(i / count), i % count);
    if (out[i] != expected) return differs("AllGather", count, i, out[i], expected);
  }
  return "";
}

std::string check_rooted(int, verbena_comm* comm, std::size_t count, int root) {
  const int ranks = verbena_coll_size(comm), rank = verbena_coll_rank(comm);
  const std::size_t all = count * static_cast<std::size_t>(ranks);
  const bool is_root = rank == root;
  std::vector<float> buffer = is_root ? values(root, count) : std::vector<float>(count, -1);
  if (const int status =
          verbena_coll_broadcast(buffer.data(), count, VERBENA_FLOAT32, root, comm, nullptr))
    return failed("Broadcast", status);
  if (buffer != values(root, count)) return "Broadcast of " + std::to_string(count);

  const std::vector<float> in = values(rank, count);
  std::vector<float> sum(is_root ? count : 0);
  if (const int status = verbena_coll_reduce(in.data(), sum.data(), count, VERBENA_FLOAT32,
                                             VERBENA_SUM, root, comm, nullptr))
    return failed("Reduce", status);
  for (std::size_t i = 0; i < sum.size(); ++i)
    if (sum[i] != sum_of(ranks, i)) return differs("Reduce", count, i, sum[i], sum_of(ranks, i));

  std::vector<float> gathered(is_root ? all : 0);
  if (const int status = verbena_coll_gather(in.data(), gathered.data(), count, VERBENA_FLOAT32,
                                             root, comm, nullptr))
    return failed("Gather", status);
  for (std::size_t i = 0; i < gathered.size(); ++i)
    if (gathered[i] != value(static_cast<int>(i / count), i % count))
      return differs("Gather", count, i, gathered[i], 0);

  const std::vector<float> parts = is_root ? values(root, all) : std::vector<float>();
  std::vector<float> part(count, -1);
  if (const int status = verbena_coll_scatter(parts.data(), part.data(), count, VERBENA_FLOAT32,
                                              root, comm, nullptr))
    return failed("Scatter", status);
  if (part != values(root, count, static_cast<std::size_t>(rank) * count))
    return "Scatter of " + std::to_string(count);
  return "";
}

std::string check_all_to_all(int, verbena_comm* comm, std::size_t count) {
  const std::size_t ranks = static_cast<std::size_t>(verbena_coll_size(comm));
  const int rank = verbena_coll_rank(comm);
  const std::vector<float> in = values(rank, count * ranks);
  std::vector<float> out(count * ranks, -1);
  if (const int status =
          verbena_coll_all_to_all(in.data(), out.data(), count, VERBENA_FLOAT32, comm, nullptr))
    return failed("AllToAll", status);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const float expected =
        value(static_cast<int>(i / count), static_cast<std::size_t>(rank) * count + i % count);
    if (out[i] != expected) return differs("AllToAll", count, i, out[i], expected);
  }
  // Rank r sends r + p elements to rank p.
  std::vector<std::size_t> to(ranks), from(ranks), to_at(ranks), from_at(ranks);
  for (std::size_t p = 0; p < ranks; ++p)
    to[p] = from[p] = count + static_cast<std::size_t>(rank) + p;
  std::exclusive_scan(to.begin(), to.end(), to_at.begin(), std::size_t{0});
  std::exclusive_scan(from.begin(), from.end(), from_at.begin(), std::size_t{0});
  const std::vector<float> ragged = values(rank, to_at.back() + to.back());
  std::vector<float> got(from_at.back() + from.back(), -1);
  if (const int status =
          verbena_coll_all_to_allv(ragged.data(), to.data(), to_at.data(), got.data(), from.data(),
                                   from_at.data(), VERBENA_FLOAT32, comm, nullptr))
    return failed("AllToAllv", status);
  for (std::size_t p = 0; p < ranks; ++p) {
    std::size_t at = 0;
    for (std::size_t q = 0; q < static_cast<std::size_t>(rank); ++q) at += count + p + q;
    for (std::size_t i = 0; i < from[p]; ++i)
      if (got[from_at[p] + i] != value(static_cast<int>(p), at + i)) return "AllToAllv";
  }
  return "";
}

std::string check_everything(int rank, verbena_comm* comm) {
  for (const std::size_t count : kCounts) {
    for (const bool in_place : {false, true}) {
      for (const auto check : {check_all_reduce, check_reduce_scatter, check_all_gather})
        if (std::string why = check(rank, comm, count, in_place); !why.empty()) return why;
    }
    if (std::string why = check_all_to_all(rank, comm, count); !why.empty()) return why;
    for (const int root : {0, verbena_coll_size(comm) - 1})
      if (std::string why = check_rooted(rank, comm, count, root); !why.empty()) return why;
    if (const int status = verbena_coll_barrier(comm, nullptr)) return failed("Barrier", status);
  }
  return "";
}

TEST(Operations, OneRank) { expect_all_well({.ranks = 1}, check_everything); }
TEST(Operations, TwoRanks) { expect_all_well({.ranks = 2}, check_everything); }
TEST(Operations, FiveRanks) { expect_all_well({.ranks = 5}, check_everything); }
TEST(Operations, ByPackets) { expect_all_well({.ranks = 2, .is_local = false}, check_everything); }
TEST(Operations, ByTwoRails) {
  expect_all_well({.ranks = 2, .address = "127.40.0.2,127.40.0.3", .is_local = false},
                  check_everything);
}

class Algorithms : public testing::TestWithParam<const char*> {};

TEST_P(Algorithms, GiveTheSameResults) {
  expect_all_well({.ranks = 4, .algorithm = GetParam()}, [](int rank, verbena_comm* comm) {
    for (const std::size_t count : {1, 3, 1000, 300001}) {
      for (const bool in_place : {false, true})
        for (const auto check : {check_all_reduce, check_reduce_scatter, check_all_gather})
          if (std::string why = check(rank, comm, count, in_place); !why.empty()) return why;
      if (std::string why = check_rooted(rank, comm, count, 1); !why.empty()) return why;
    }
    return std::string();
  });
}

INSTANTIATE_TEST_SUITE_P(All, Algorithms,
                         testing::Values("direct", "ring", "tree", "double-tree",
                                         "halving-doubling", "hierarchical", "rail-ring"));

// A type's smallest example: 2 of rank 0, 3 of rank 1.
template <typename T>
std::string check_type(verbena_comm* comm, verbena_coll_type type, T two, T three,
                       const std::vector<T>& expected) {
  for (std::size_t op = 0; op < expected.size(); ++op) {
    std::vector<T> buffer(100, verbena_coll_rank(comm) == 0 ? two : three);
    const int status = verbena_coll_all_reduce(buffer.data(), buffer.data(), buffer.size(), type,
                                               static_cast<verbena_coll_op>(op), comm, nullptr);
    if (status != 0) return failed("AllReduce", status);
    for (const T element : buffer)
      if (std::memcmp(&element, &expected[op], sizeof element) != 0)
        return "type " + std::to_string(type) + ", operation " + std::to_string(op);
  }
  return "";
}

TEST(Operations, AllTypesAndReductions) {
  expect_all_well({}, [](int, verbena_comm* comm) {
    std::string why;
    const auto integers = [&](auto zero, verbena_coll_type type) {
      using T = decltype(zero);
      if (why.empty()) why = check_type<T>(comm, type, 2, 3, {5, 6, 2, 3, 2, 2, 3, 1});
    };
    integers(static_cast<signed char>(0), VERBENA_INT8);
    integers(static_cast<unsigned char>(0), VERBENA_UINT8);
    integers(std::int32_t{0}, VERBENA_INT32);
    integers(std::int64_t{0}, VERBENA_INT64);
    if (why.empty()) why = check_type<float>(comm, VERBENA_FLOAT32, 2, 3, {5, 6, 2, 3, 2.5f});
    if (why.empty()) why = check_type<double>(comm, VERBENA_FLOAT64, 2, 3, {5, 6, 2, 3, 2.5});
    // 2, 3, 5, 6 and 2.5
    if (why.empty())
      why = check_type<std::uint16_t>(comm, VERBENA_FLOAT16, 0x4000, 0x4200,
                                      {0x4500, 0x4600, 0x4000, 0x4200, 0x4100});
    if (why.empty())
      why = check_type<std::uint16_t>(comm, VERBENA_BFLOAT16, 0x4000, 0x4040,
                                      {0x40a0, 0x40c0, 0x4000, 0x4040, 0x4020});
    return why;
  });
}

// All ranks have the same bits, though floating-point addition is not associative.
TEST(Operations, RanksAgreeToTheBit) {
  for (const char* algorithm : {"one-shot", "direct", "ring", "halving-doubling", "double-tree"}) {
    expect_all_well({.ranks = 3, .algorithm = algorithm}, [](int rank, verbena_comm* comm) {
      std::vector<float> mine(1500), all(1500 * 3);
      for (std::size_t i = 0; i < mine.size(); ++i)
        mine[i] = std::sin(static_cast<float>(i) * static_cast<float>(rank + 1)) * 1e3f;
      verbena_coll_all_reduce(mine.data(), mine.data(), mine.size(), VERBENA_FLOAT32, VERBENA_SUM,
                              comm, nullptr);
      verbena_coll_all_gather(mine.data(), all.data(), mine.size(), VERBENA_FLOAT32, comm, nullptr);
      for (std::size_t r = 0; r < 3; ++r)
        if (std::memcmp(all.data() + r * mine.size(), mine.data(), mine.size() * 4) != 0)
          return "rank " + std::to_string(r) + " has other bits";
      return std::string();
    });
  }
}

// Started one after another on the same buffer, they are done in that order.
TEST(Operations, RequestsAreDoneInOrder) {
  expect_all_well({.ranks = 3}, [](int rank, verbena_comm* comm) {
    constexpr int kRounds = 40;
    std::vector<double> sum(200000, 1);
    std::vector<verbena_request*> requests(2 * kRounds);
    for (int round = 0; round < kRounds; ++round) {
      verbena_coll_all_reduce(sum.data(), sum.data(), sum.size(), VERBENA_FLOAT64, VERBENA_AVERAGE,
                              comm, &requests[static_cast<std::size_t>(2 * round)]);
      verbena_coll_broadcast(sum.data(), sum.size(), VERBENA_FLOAT64, round % 3, comm,
                             &requests[static_cast<std::size_t>(2 * round + 1)]);
    }
    for (std::size_t i = requests.size(); i > 0; --i) {  // the last first
      if (const int status = verbena_coll_wait(requests[i - 1])) return failed("wait", status);
      int done = 0;
      verbena_coll_test(requests[i - 1], &done);
      if (done != 1) return std::string("not done");
      verbena_coll_release(requests[i - 1]);
    }
    if (sum[rank == 0 ? 0 : 199999] != 1) return std::string("wrong sum");
    return std::string();
  });
}

// The operation makes progress although no rank waits for it.
TEST(Operations, ProgressWithoutCalls) {
  expect_all_well({}, [](int rank, verbena_comm* comm) {
    std::vector<float> data(1 << 20, 1);
    verbena_request* request = nullptr;
    verbena_coll_all_reduce(data.data(), data.data(), data.size(), VERBENA_FLOAT32, VERBENA_SUM,
                            comm, &request);
    if (rank == 0) {
      usleep(500000);
      if (data[0] != 2 || data.back() != 2) return std::string("no progress");
    }
    const int status = verbena_coll_wait(request);
    verbena_coll_release(request);
    return status == 0 ? std::string() : failed("wait", status);
  });
}

TEST(Operations, TaggedMessages) {
  expect_all_well({.ranks = 3}, [](int rank, verbena_comm* comm) {
    for (const std::size_t count : {0, 10, 30000, 2000000}) {
      const int to = (rank + 1) % 3, from = (rank + 2) % 3;
      const std::vector<float> first = values(rank, count), second = values(rank + 3, count);
      std::vector<float> a(count), b(count + 5);
      verbena_request* sends[2];
      verbena_coll_send(first.data(), count, VERBENA_FLOAT32, to, 1, comm, &sends[0]);
      verbena_coll_send(second.data(), count, VERBENA_FLOAT32, to, 2, comm, &sends[1]);
      verbena_request* any = nullptr;
      if (const int status = verbena_coll_recv(b.data(), b.size(), VERBENA_FLOAT32,
                                               VERBENA_ANY_RANK, 2, comm, &any))
        return failed("Recv", status);
      if (const int status = verbena_coll_wait(any)) return failed("wait", status);
      if (verbena_coll_source(any) != from) return std::string("wrong source");
      verbena_coll_release(any);
      if (const int status =
              verbena_coll_recv(a.data(), count, VERBENA_FLOAT32, from, 1, comm, nullptr))
        return failed("Recv", status);
      b.resize(count);
      if (a != values(from, count) || b != values(from + 3, count))
        return std::string("wrong data");
      for (verbena_request* const send : sends) {
        if (const int status = verbena_coll_wait(send)) return failed("Send", status);
        verbena_coll_release(send);
      }
    }
    return std::string();
  });
}

// A Send that is done does not count when its rank leaves, while others still do other things.
TEST(Operations, LeavingAfterLongMessages) {
  for (int i = 0; i < 10; ++i)
    expect_all_well({.ranks = 3}, [](int rank, verbena_comm* comm) {
      const std::vector<float> sent(30000, 1);
      std::vector<float> got(30000);
      verbena_request* receive = nullptr;
      verbena_coll_recv(got.data(), got.size(), VERBENA_FLOAT32, (rank + 2) % 3, 0, comm, &receive);
      verbena_coll_send(sent.data(), sent.size(), VERBENA_FLOAT32, (rank + 1) % 3, 0, comm,
                        nullptr);
      int status = verbena_coll_wait(receive);
      verbena_coll_release(receive);
      if (status != 0) return failed("Recv", status);
      if (rank == 0) return std::string();
      usleep(20000);
      float word = 0;  // between the two that are left
      status = rank == 1 ? verbena_coll_send(&word, 1, VERBENA_FLOAT32, 2, 1, comm, nullptr)
                         : verbena_coll_recv(&word, 1, VERBENA_FLOAT32, 1, 1, comm, nullptr);
      return status == 0 ? std::string() : failed("later", status);
    });
}

TEST(Operations, SplitByColor) {
  expect_all_well({.ranks = 5}, [](int rank, verbena_comm* comm) {
    verbena_comm* part = nullptr;
    const int color = rank == 4 ? -1 : rank % 2;
    if (const int status = verbena_coll_split(comm, color, -rank, &part))
      return failed("split", status);
    if (color < 0) return std::string(part == nullptr ? "" : "a rank of no color got a part");
    if (verbena_coll_size(part) != 2) return std::string("wrong size");
    if (verbena_coll_rank(part) != (rank < 2 ? 1 : 0)) return std::string("keys do not count");
    int sum = rank;
    if (const int status =
            verbena_coll_all_reduce(&sum, &sum, 1, VERBENA_INT32, VERBENA_SUM, part, nullptr))
      return failed("AllReduce", status);
    verbena_coll_destroy(part);
    return sum == 2 + 2 * color ? std::string() : "sum " + std::to_string(sum);
  });
}

TEST(Operations, RegisteredMemory) {
  expect_all_well({.ranks = 2}, [](int, verbena_comm* comm) {
    std::vector<float> data(1 << 20, 1);
    if (const int status = verbena_coll_register(comm, data.data(), data.size() * 4))
      return failed("register", status);
    for (int i = 0; i < 3; ++i)
      verbena_coll_all_reduce(data.data(), data.data(), data.size(), VERBENA_FLOAT32, VERBENA_SUM,
                              comm, nullptr);
    if (const int status = verbena_coll_deregister(comm, data.data()))
      return failed("deregister", status);
    if (verbena_coll_deregister(comm, data.data()) != VERBENA_COLL_INVALID)
      return std::string("deregistered twice");
    return data[0] == 8 && data.back() == 8 ? std::string() : std::string("wrong sum");
  });
}

// Lost packets slow a job, and change nothing.
TEST(Operations, LossChangesNothing) {
  expect_all_well({.ranks = 2, .faults = "loss 1%; duplicate 0.5%; reorder 0.5%"},
                  [](int rank, verbena_comm* comm) {
                    for (const std::size_t count : {1, 5000, 400000})
                      if (std::string why = check_all_reduce(rank, comm, count, true); !why.empty())
                        return why;
                    return std::string();
                  });
}

}  // namespace
}  // namespace verbena::coll_test
