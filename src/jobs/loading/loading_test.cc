#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "jobs/job_file.h"
#include "jobs/job_results.h"

namespace verbena::jobs {
namespace {

using testing::HasSubstr;

constexpr const char* kStar = "kind: star, hosts: 9";

fabric::Parsed<Job> read_loading_job(const std::string& loading,
                                     const std::vector<fabric::Setting>& settings = {},
                                     const std::string& topology = kStar) {
  return read_job("l",
                  "topology: {" + topology + "}\nlinks: {rate: 100Gbps, delay: 1us}\nloading: {" +
                      loading + "}\n",
                  settings, [](const std::string&) -> fabric::Parsed<std::string> {
                    return tl::unexpected(fabric::InputError{"no file"});
                  });
}

LoadingResult load(const std::string& loading, const std::vector<fabric::Setting>& settings = {},
                   const std::string& topology = kStar) {
  const auto job = read_loading_job(loading, settings, topology);
  EXPECT_TRUE(job.has_value()) << job.error().message;
  return *run_job(*job, [](const Progress&) { return false; }).loading;
}

constexpr const char* kFourReplicas =
    "gpus: 8, replica: 2, sources: 1, size: 64MiB, chunk: 1MiB, simulated_chunks: 8";

// Eight GPUs read 8 MiB each by one NIC of 100 Gb/s; with relays the source sends each of two parts
// once.
TEST(LoadingTest, RelaysShareOutTheSource) {
  const std::string kAlone = std::string(kFourReplicas) + ", relays: off";
  const LoadingResult alone = load(kAlone), relayed = load(kFourReplicas);
  ASSERT_EQ(alone.mistake + relayed.mistake, "");
  EXPECT_EQ(alone.source_bytes, 8u * 8 << 20);
  EXPECT_EQ(relayed.source_bytes, 2u * 8 << 20);
  const double wire = 8.0 * (8 << 20) * 8 / 100e9;
  EXPECT_GT(alone.simulated.seconds(), wire);
  EXPECT_LT(alone.simulated.seconds(), wire * 1.15);
  EXPECT_LT(relayed.simulated.seconds(), wire / 2);
}

// 100 GPUs with the same part: each chunk leaves the source once and reaches all by three steps. A
// GPU receives 8 MiB, and no GPU sends much more, so the load takes few times as long as that.
TEST(LoadingTest, LargeGroupsPassChunksOn) {
  const LoadingResult result =
      load("gpus: 100, replica: 1, size: 8MiB, chunk: 64KiB, simulated_chunks: 128", {},
           "kind: star, hosts: 101");
  ASSERT_EQ(result.mistake, "");
  EXPECT_EQ(result.source_bytes, 8u << 20);
  const double wire = 8.0 * (8 << 20) / 100e9;
  EXPECT_GT(result.simulated.seconds(), wire);
  EXPECT_LT(result.simulated.seconds(), wire * 3);
}

// The last GPU and the source share a switch. It has its chunk before its connections to GPUs of
// other pods exist.
TEST(LoadingTest, NotificationsWaitForTheirConnections) {
  const LoadingResult result =
      load("gpus: 15, replica: 1, size: 60KiB, chunk: 4KiB, simulated_chunks: 15", {},
           "kind: fat_tree, k: 4");
  EXPECT_EQ(result.mistake, "");
}

TEST(LoadingTest, TellsTheTimeOfTheWholeModel) {
  const auto job = read_loading_job(kFourReplicas);
  ASSERT_TRUE(job.has_value());
  const JobResults results = run_job(*job, [](const Progress&) { return false; });
  const auto metrics = metrics_of(*job->loading, *results.loading);
  EXPECT_EQ(metrics[0].name, "load.time");
  EXPECT_NEAR(metrics[0].value, results.loading->simulated.seconds() * 4, 1e-9);  // 32 MiB of 8
  EXPECT_THAT(text_of(*job, results), HasSubstr("4 replicas of 2"));
}

// 8 MiB for each GPU, of which 8 chunks of 4 MiB would be four times as much.
TEST(LoadingTest, SimulatesNoMoreThanThePart) {
  const auto job = read_loading_job("gpus: 8, replica: 2, size: 16MiB");
  ASSERT_TRUE(job.has_value());
  const JobResults results = run_job(*job, [](const Progress&) { return false; });
  EXPECT_EQ(results.loading->simulated_bytes, 8u << 20);
  EXPECT_EQ(metrics_of(*job->loading, *results.loading)[0].value,
            results.loading->simulated.seconds());
  EXPECT_THAT(text_of(*job, results), HasSubstr("all of it was simulated"));
  const LoadingResult tiny = load("gpus: 8, replica: 8, size: 1");
  EXPECT_EQ(tiny.mistake, "");
  EXPECT_EQ(tiny.simulated_bytes, 1u);
}

TEST(LoadingTest, TellsHowFarItIs) {
  const auto job = read_loading_job(kFourReplicas);
  ASSERT_TRUE(job.has_value());
  std::vector<double> parts;
  (void)run_job(*job, [&](const Progress& progress) {
    parts.push_back(progress.part());
    return false;
  });
  EXPECT_TRUE(std::ranges::is_sorted(parts));
  EXPECT_GT(std::ranges::count_if(parts, [](double part) { return part > 0 && part < 1; }), 2);
}

TEST(LoadingTest, EachTechnology) {
  for (const char* const technology : {"rocev2", "infiniband", "iwarp", "tcp"})
    EXPECT_EQ(load(kFourReplicas, {{"technology", technology}}).mistake, "") << technology;
}

TEST(LoadingTest, SaysWhatIsWrong) {
  const auto error = [](const std::string& loading) {
    const auto job = read_loading_job(loading);
    return job ? std::string() : job.error().message;
  };
  EXPECT_THAT(error("gpus: 9"), HasSubstr("need as many hosts"));
  EXPECT_THAT(error("gpus: 8, replica: 3"), HasSubstr("no whole number of replicas"));
  EXPECT_THAT(error("gpus: 8, model: x"), HasSubstr("size says how large"));
  EXPECT_EQ(error("gpus: 8, model: x, size: 1GiB"), "");
}

}  // namespace
}  // namespace verbena::jobs
