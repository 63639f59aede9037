// Ranks that disagree, die, stall or leave: every other rank gets an error that names the rank and
// the operation, and nobody hangs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <sys/mman.h>
#include <sys/socket.h>

#include <chrono>
#include <cstring>
#include <limits>
#include <thread>

#include <netinet/in.h>

#include "tests/coll/ranks.h"

namespace verbena::coll_test {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;

std::string told(int status) {
  return std::to_string(status) + " " + std::string(verbena_coll_error());
}

std::string sum(verbena_comm* comm, std::size_t count, verbena_coll_type type = VERBENA_FLOAT32) {
  std::vector<double> data(count + 1);
  return told(
      verbena_coll_all_reduce(data.data(), data.data(), count, type, VERBENA_SUM, comm, nullptr));
}

auto is_mismatch() { return HasSubstr(std::to_string(VERBENA_COLL_MISMATCH) + " "); }

TEST(Failures, OtherSize) {
  for (const std::size_t count : {1, 5000, 300000})
    EXPECT_THAT(run_ranks({.ranks = 3},
                          [count](int rank, verbena_comm* comm) {
                            return sum(comm, count + (rank == 2 ? 8 : 0));
                          }),
                Each(AllOf(is_mismatch(), HasSubstr("rank 2"), HasSubstr("AllReduce"))));
}

TEST(Failures, OtherTypeOrOperation) {
  EXPECT_THAT(run_ranks({},
                        [](int rank, verbena_comm* comm) {
                          return sum(comm, 10, rank == 0 ? VERBENA_FLOAT32 : VERBENA_INT32);
                        }),
              Each(AllOf(is_mismatch(), HasSubstr("float"), HasSubstr("int32"))));
  EXPECT_THAT(run_ranks({.ranks = 3},
                        [](int rank, verbena_comm* comm) {
                          std::vector<float> data(10);
                          if (rank != 1) return sum(comm, 10);
                          return told(verbena_coll_broadcast(data.data(), 10, VERBENA_FLOAT32, 1,
                                                             comm, nullptr));
                        }),
              Each(AllOf(is_mismatch(), HasSubstr("Broadcast"), HasSubstr("AllReduce"))));
}

// Only one rank gets something of the others in these.
TEST(Failures, RootedOperationsFailOnAllRanks) {
  for (const int root : {0, 2})
    EXPECT_THAT(run_ranks({.ranks = 3},
                          [root](int rank, verbena_comm* comm) {
                            std::vector<float> data(100), all(300);
                            const std::size_t count = rank == 1 ? 99 : 100;
                            const int status =
                                verbena_coll_gather(data.data(), all.data(), count, VERBENA_FLOAT32,
                                                    root, comm, nullptr);
                            return told(status);
                          }),
                Each(AllOf(is_mismatch(), HasSubstr("rank 1"), HasSubstr("Gather"))));
}

// Operations after a failure fail as well, because their order is lost.
TEST(Failures, CommunicatorStaysFailed) {
  EXPECT_THAT(run_ranks({},
                        [](int rank, verbena_comm* comm) {
                          static_cast<void>(sum(comm, rank == 0 ? 4u : 5u));
                          return sum(comm, 4);
                        }),
              Each(is_mismatch()));
}

// 2^32 elements more are another size: no count is cut to 32 bits. Nothing touches the memory.
TEST(Failures, SizeThatDiffersBy32Bits) {
  const auto results = run_ranks({}, [](int rank, verbena_comm* comm) -> std::string {
    const std::size_t count = 4 + (rank == 0 ? std::size_t{1} << 32 : 0);
    void* const data = ::mmap(nullptr, count, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data == MAP_FAILED) return "no address space";
    return told(
        verbena_coll_all_reduce(data, data, count, VERBENA_INT8, VERBENA_SUM, comm, nullptr));
  });
  EXPECT_THAT(results, Each(AllOf(is_mismatch(), HasSubstr("4294967300"), HasSubstr("AllReduce"))));
}

// Memory that is not there is an error on every rank, however much it is.
TEST(Failures, MoreElementsThanThereIsMemory) {
  const auto results = run_ranks({}, [](int, verbena_comm* comm) {
    float data[4] = {1, 1, 1, 1};
    return told(verbena_coll_all_reduce(data, data, std::size_t{1} << 33, VERBENA_FLOAT32,
                                        VERBENA_SUM, comm, nullptr));
  });
  EXPECT_THAT(results, Each(AllOf(HasSubstr("8589934592"), HasSubstr("Bad address"))));
}

// Nothing to move is no error, with or without memory.
TEST(Failures, ZeroElementsAreNone) {
  const auto results = run_ranks({.ranks = 3}, [](int, verbena_comm* comm) {
    float data[4] = {1, 1, 1, 1};
    const int status =
        verbena_coll_all_reduce(data, data + 2, 0, VERBENA_FLOAT32, VERBENA_SUM, comm, nullptr) +
        verbena_coll_all_reduce(nullptr, nullptr, 0, VERBENA_FLOAT32, VERBENA_SUM, comm, nullptr) +
        verbena_coll_all_gather(data, nullptr, 0, VERBENA_FLOAT32, comm, nullptr) +
        verbena_coll_reduce_scatter(data, data, 0, VERBENA_FLOAT32, VERBENA_MAX, comm, nullptr) +
        verbena_coll_all_to_all(nullptr, nullptr, 0, VERBENA_INT8, comm, nullptr) +
        verbena_coll_broadcast(data, 0, VERBENA_FLOAT32, 2, comm, nullptr);
    return std::to_string(status) + (data[0] == 1 && data[2] == 1 ? " " : " changed ") +
           sum(comm, 4);
  });
  EXPECT_THAT(results, Each(HasSubstr("0 0 ")));
}

// A wrong argument fails that operation on every rank, and the next one works.
TEST(Failures, WrongArguments) {
  const auto results = run_ranks({}, [](int rank, verbena_comm* comm) {
    float data[4] = {1, 1, 1, 1};
    verbena_coll_type unknown;
    std::memset(&unknown, 9, sizeof unknown);
    char* const odd = reinterpret_cast<char*>(data) + 1;
    void* const buffer = rank == 0 ? odd : reinterpret_cast<char*>(data);
    std::string text = told(
        verbena_coll_all_reduce(buffer, buffer, 2, VERBENA_FLOAT32, VERBENA_SUM, comm, nullptr));
    text +=
        "; " + told(verbena_coll_all_reduce(data, data, 4, unknown, VERBENA_SUM, comm, nullptr));
    text += "; " + told(verbena_coll_all_reduce(data, data, 4, VERBENA_FLOAT32, VERBENA_BIT_AND,
                                                comm, nullptr));
    text += "; " + told(verbena_coll_all_reduce(data, data, std::size_t{1} << 62, VERBENA_FLOAT32,
                                                VERBENA_SUM, comm, nullptr));
    text += "; " + told(verbena_coll_broadcast(data, 1, VERBENA_FLOAT32, 7, comm, nullptr));
    text += "; " + told(verbena_coll_all_reduce(nullptr, data, 4, VERBENA_FLOAT32, VERBENA_SUM,
                                                comm, nullptr));
    text += "; " + told(verbena_coll_all_reduce(data, data + 1, 3, VERBENA_FLOAT32, VERBENA_SUM,
                                                comm, nullptr));
    return text + "; " + sum(comm, 4);
  });
  EXPECT_THAT(results, Each(AllOf(HasSubstr("not aligned"), HasSubstr("no type 151587081"),
                                  HasSubstr("no band of float"), HasSubstr("more than 1 TiB"),
                                  HasSubstr("root 7"), HasSubstr("NULL"), HasSubstr("overlap"),
                                  HasSubstr("; 0 "))));
  EXPECT_THAT(results[1], HasSubstr("rank 0 refuses"));
}

TEST(Failures, RankDies) {
  for (const std::size_t count : {4, 400000}) {
    const auto begin = std::chrono::steady_clock::now();
    const auto results = run_ranks({.ranks = 4}, [count](int rank, verbena_comm* comm) {
      static_cast<void>(sum(comm, count));
      if (rank == 2) die();
      return sum(comm, count);
    });
    EXPECT_EQ(results[2], kDied);
    for (const int rank : {0, 1, 3})
      EXPECT_THAT(results[static_cast<std::size_t>(rank)],
                  AllOf(HasSubstr(std::to_string(VERBENA_COLL_PEER) + " "), HasSubstr("AllReduce"),
                        HasSubstr("rank 2 died")));
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
  }
}

TEST(Failures, FirstRankDies) {
  const auto results = run_ranks({.ranks = 3}, [](int rank, verbena_comm* comm) {
    if (rank == 0) die();
    return sum(comm, 100000);
  });
  for (const std::size_t rank : {1, 2}) EXPECT_THAT(results[rank], HasSubstr("rank 0 died"));
}

TEST(Failures, RankDoesNotCome) {
  EXPECT_THAT(run_ranks({.ranks = 3, .timeout_s = 1},
                        [](int rank, verbena_comm* comm) {
                          if (rank == 1) sleep(4);
                          return sum(comm, 1000);
                        }),
              Each(AllOf(HasSubstr(std::to_string(VERBENA_COLL_TIMEOUT) + " "),
                         HasSubstr("rank 1 did not take part in AllReduce"))));
}

TEST(Failures, TimeoutsMayBeInfinite) {
  for (const double timeout : {1e12, std::numeric_limits<double>::infinity()})
    EXPECT_THAT(run_ranks({.timeout_s = timeout},
                          [timeout](int, verbena_comm* comm) {
                            verbena_coll_set_timeout(comm, timeout);
                            return sum(comm, 1000);
                          }),
                Each("0 "));
}

// Stopped like a process in a debugger; it is not only late.
TEST(Failures, RankIsStopped) {
  for (const int stopped : {0, 2}) {
    const auto results = run_ranks({.ranks = 3, .timeout_s = 1, .seconds = 5},
                                   [stopped](int rank, verbena_comm* comm) {
                                     if (rank == stopped) raise(SIGSTOP);
                                     return sum(comm, 1000);
                                   });
    for (int rank = 0; rank < 3; ++rank) {
      if (rank == stopped) continue;
      EXPECT_THAT(results[static_cast<std::size_t>(rank)],
                  HasSubstr("rank " + std::to_string(stopped) + " did not take part"));
    }
  }
}

TEST(Failures, RankLeaves) {
  const auto results = run_ranks({.ranks = 3}, [](int rank, verbena_comm* comm) {
    if (rank == 1) return std::string();
    return sum(comm, 1000);
  });
  for (const std::size_t rank : {0, 2}) EXPECT_THAT(results[rank], HasSubstr("rank 1 has left"));
}

// A rank that has finished may leave while others still finish.
TEST(Failures, LeavingAfterTheLastOperationIsNoFailure) {
  for (int i = 0; i < 20; ++i)
    EXPECT_THAT(run_ranks({.ranks = 3}, [](int, verbena_comm* comm) { return sum(comm, 20000); }),
                Each(testing::StrEq("0 ")));
}

TEST(Failures, Abort) {
  EXPECT_THAT(run_ranks({.ranks = 3},
                        [](int rank, verbena_comm* comm) {
                          if (rank == 2) verbena_coll_abort(comm, "out of data");
                          return sum(comm, 100000);
                        }),
              Each(AllOf(HasSubstr(std::to_string(VERBENA_COLL_ABORTED) + " "),
                         HasSubstr("rank 2 aborted: out of data"))));
}

TEST(Failures, SurvivorsGoOn) {
  for (const int dead : {0, 1, 3}) {
    const auto results = run_ranks({.ranks = 4}, [dead](int rank, verbena_comm* comm) {
      if (rank == dead) die();
      std::vector<float> data(300000, 1);
      if (verbena_coll_all_reduce(data.data(), data.data(), data.size(), VERBENA_FLOAT32,
                                  VERBENA_SUM, comm, nullptr) == 0)
        return std::string("no failure");
      verbena_comm* rest = nullptr;
      if (const int status = verbena_coll_shrink(comm, &rest)) return told(status);
      if (verbena_coll_size(rest) != 3) return std::string("wrong size");
      std::fill(data.begin(), data.end(), 1.0f);
      const int status = verbena_coll_all_reduce(data.data(), data.data(), data.size(),
                                                 VERBENA_FLOAT32, VERBENA_SUM, rest, nullptr);
      if (status != 0) return told(status);
      verbena_coll_destroy(rest);
      return std::string(data[0] == 3 && data.back() == 3 ? "" : "wrong sum");
    });
    for (int rank = 0; rank < 4; ++rank)
      EXPECT_EQ(results[static_cast<std::size_t>(rank)], rank == dead ? kDied : "");
  }
}

TEST(Failures, RecvWaitsNotForEver) {
  const auto results = run_ranks({.timeout_s = 1}, [](int rank, verbena_comm* comm) {
    float value = 0;
    const std::string text =
        rank == 0 ? std::string()
                  : told(verbena_coll_recv(&value, 1, VERBENA_FLOAT32, 0, 9, comm, nullptr));
    if (verbena_coll_barrier(comm, nullptr) != 0) return told(1);
    return text;
  });
  EXPECT_EQ(results[0].substr(0, 1), "");
  EXPECT_THAT(results[1], AllOf(HasSubstr("Recv from rank 0 with tag 9"), HasSubstr("within 1 s")));
}

TEST(Failures, MessageIsTooLong) {
  for (const std::size_t count : {100, 100000}) {
    const auto results = run_ranks({}, [count](int rank, verbena_comm* comm) {
      std::vector<float> data(count);
      if (rank == 0)
        return told(verbena_coll_send(data.data(), count, VERBENA_FLOAT32, 1, 0, comm, nullptr));
      return told(verbena_coll_recv(data.data(), count - 1, VERBENA_FLOAT32, 0, 0, comm, nullptr));
    });
    EXPECT_THAT(results[1], AllOf(is_mismatch(), HasSubstr("there is room for")));
  }
}

// --- rendezvous

std::string init(const std::string& address, int rank, int ranks, double timeout_s) {
  setenv("VERBENA_ADDRESS", "127.40.0.9", 1);
  verbena_coll_options options{};
  options.size = sizeof options;
  options.timeout_s = timeout_s;
  verbena_comm* comm = nullptr;
  const std::string text = told(verbena_coll_init(&comm, address.c_str(), rank, ranks, &options));
  if (comm != nullptr) verbena_coll_destroy(comm);
  return text;
}

TEST(Rendezvous, NobodyListens) {
  EXPECT_THAT(init("tcp://127.40.0.9:9", 1, 2, 0.3),
              AllOf(HasSubstr("no rank 0 at tcp://127.40.0.9:9"), HasSubstr("refused")));
  EXPECT_THAT(init("file://" + scratch_path("nothing"), 1, 2, 0.3), HasSubstr("not there"));
  EXPECT_THAT(init("file:///nowhere/at/all", 0, 2, 0.3), HasSubstr("cannot write"));
}

TEST(Rendezvous, OthersDoNotCome) {
  EXPECT_THAT(init("file://" + scratch_path("alone"), 0, 3, 0.3),
              HasSubstr("ranks 1, 2 did not join in time"));
}

TEST(Rendezvous, WrongAddresses) {
  for (const char* address : {"", "http://x", "tcp://", "tcp://host", "tcp://host:0",
                              "tcp://host:70000", "tcp://:1", "file://", "store://"})
    EXPECT_THAT(init(address, 0, 2, 0.3), HasSubstr("1 ")) << address;
  EXPECT_THAT(init("tcp://127.0.0.1:1", 2, 2, 0.3), HasSubstr("rank 2 of 2"));
  EXPECT_THAT(init("tcp://no.such.host.invalid:1", 1, 2, 0.3), HasSubstr("no.such.host.invalid"));
}

// A server of another protocol at that port.
TEST(Rendezvous, PortSpeaksHTTP) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(listen(listener, 1), 0);
  socklen_t length = sizeof address;
  getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length);
  std::thread server([listener] {
    const int peer = accept(listener, nullptr, nullptr);
    const std::string_view reply = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n";
    static_cast<void>(!write(peer, reply.data(), reply.size()));
    close(peer);
  });
  EXPECT_THAT(init("tcp://127.0.0.1:" + std::to_string(ntohs(address.sin_port)), 1, 2, 2),
              AllOf(HasSubstr("is no rank 0"), HasSubstr("HTTP/1.1 400")));
  server.join();
  close(listener);
}

// A rank 0 is not disturbed by those that do not speak its protocol.
TEST(Rendezvous, StrangersAreIgnored) {
  const auto results =
      run_ranks({.ranks = 2}, [](int, verbena_comm* comm) { return sum(comm, 4); });
  EXPECT_THAT(results, Each(testing::StrEq("0 ")));
}

TEST(Rendezvous, TwoJobsOfOneName) {
  const std::string name = "file://" + scratch_path("shared");
  const auto results = run_ranks({}, [&](int rank, verbena_comm* comm) {
    verbena_comm* one = nullptr;
    const int status = verbena_coll_init(&one, name.c_str(), rank, 2, nullptr);
    if (status != 0) return told(status);
    verbena_coll_barrier(comm, nullptr);
    const std::string text = init(name, rank, 2, 1);
    verbena_coll_barrier(comm, nullptr);
    verbena_coll_destroy(one);
    return text;
  });
  EXPECT_THAT(results[0], HasSubstr("another job uses this name"));
  EXPECT_THAT(results[1], HasSubstr("do two jobs use this name?"));
}

TEST(Rendezvous, SizesDiffer) {
  const std::string name = "file://" + scratch_path("sizes");
  const auto results =
      run_ranks({}, [&](int rank, verbena_comm*) { return init(name, rank, 2 + rank, 2); });
  EXPECT_THAT(results, Each(HasSubstr("rank 0 expects 2 ranks, rank 1 expects 3")));
}

}  // namespace
}  // namespace verbena::coll_test
