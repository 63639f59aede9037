#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fabric/nodes/simulated_nodes.h"
#include "jobs/job_file.h"
#include "jobs/job_results.h"
#include "jobs/serving/kv_programs.h"

namespace verbena::jobs {
namespace {

using testing::HasSubstr;

constexpr const char* kServing = R"(
topology: {kind: star, hosts: 8}
links: {rate: 100Gbps, delay: 1us}
serving: {model: llama3-8b, trace: t, prefill: 2, decode: 2, tensor: 2, block_tokens: 512}
)";
constexpr const char* kTwoRequests =
    "{\"timestamp\": 0, \"input_length\": 2048, \"output_length\": 9, \"hash_ids\": [1, 2, 3, 4]}\n"
    "{\"timestamp\": 2000, \"input_length\": 2560, \"output_length\": 9, "
    "\"hash_ids\": [1, 2, 3, 4, 5]}\n";

fabric::Parsed<Job> read_serving_job(const std::string& text, const std::string& trace,
                                     const std::vector<fabric::Setting>& settings = {}) {
  return read_job("s", text, settings,
                  [&](const std::string&) -> fabric::Parsed<std::string> { return trace; });
}

Job serving_job(const std::vector<fabric::Setting>& settings = {},
                const std::string& trace = kTwoRequests) {
  auto job = read_serving_job(kServing, trace, settings);
  EXPECT_TRUE(job.has_value()) << job.error().message;
  return *std::move(job);
}

ServingResult run_it(const Job& job) {
  return *run_job(job, [](const Progress&) { return false; }).serving;
}

double metric(const Job& job, const ServingResult& result, const std::string& name) {
  for (const fabric::Metric& each : metrics_of(*job.serving, result))
    if (each.name == name) return each.value;
  return -1;
}

TEST(ServingPlanTest, ComputesWhatNoCacheHas) {
  Job job = serving_job();
  job.serving->prefill = job.serving->decode = 1;
  std::string mistake;
  const ServingPlan plan = plan_serving(*job.serving, &mistake);
  ASSERT_EQ(mistake, "");
  EXPECT_EQ(plan.requests[0].computed_tokens, 2048u);
  EXPECT_EQ(plan.requests[1].computed_tokens, 512u);
  EXPECT_EQ(plan.requests[1].shared_blocks, 4u);
  EXPECT_EQ(plan.requests[1].from.size(), 1u);
  // 2 8.03e9 2048 operations on two GPUs of 400e12.
  EXPECT_NEAR((plan.requests[0].end - plan.requests[0].begin).seconds(), 0.041114, 1e-6);
}

TEST(ServingPlanTest, RefusesWhatNoCacheHolds) {
  Job job = serving_job();
  job.serving->cache_tokens = 1024;
  std::string mistake;
  (void)plan_serving(*job.serving, &mistake);
  EXPECT_THAT(mistake, HasSubstr("2048 tokens does not fit into a cache of 1024"));
}

// IDs that differ only in their upper bits are of different blocks.
TEST(ServingPlanTest, SharesNothingBetweenLongIDs) {
  const auto request = [](const char* id) {
    return std::string(
               "{\"timestamp\": 0, \"input_length\": 512, \"output_length\": 9, "
               "\"hash_ids\": [") +
           id + "]}\n";
  };
  const auto reused = [&](const char* first, const char* second) {
    Job job = serving_job({{"prefill", "1"}}, request(first) + request(second));
    std::string mistake;
    return plan_serving(*job.serving, &mistake).reused_tokens;
  };
  EXPECT_EQ(reused("5", "5"), 511u);                              // one token is computed anyhow
  EXPECT_EQ(reused("4503599627370496", "9007199254740992"), 0u);  // 2^52, 2^53
}

TEST(ServingPlanTest, RefusesTimesThatCannotBeSimulated) {
  const auto mistake = [](const std::vector<fabric::Setting>& settings, const std::string& trace) {
    std::string text;
    (void)plan_serving(*serving_job(settings, trace).serving, &text);
    return text;
  };
  const std::string late = "{\"timestamp\": 3000000000, \"input_length\": 9, \"output_length\": 9}";
  EXPECT_THAT(mistake({}, kTwoRequests + late), HasSubstr("trace is longer than 30 days"));
  EXPECT_THAT(mistake({{"flops", "1e9"}},
                      "{\"timestamp\": 0, \"input_length\": 1000000, "
                      "\"output_length\": 9}"),
              HasSubstr("longer than 30 days"));
}

// A prefill of hours: no step of simulated time is spent on it.
TEST(ServingTest, LongPrefillsTakeNoTime) {
  const Job job = serving_job({{"flops", "1e9"}});
  u64 looks = 0;
  const auto result = *run_job(job, [&](const Progress&) {
                         ++looks;
                         return false;
                       }).serving;
  EXPECT_EQ(result.mistake, "");
  EXPECT_NEAR(result.requests[0].prefill.seconds(), 2 * 8.03e9 * 2048 / 2e9, 1);
  EXPECT_LT(looks, 10'000u);
}

// All at the end: 4 blocks of 32 layers, K and V, of 4 heads: 134 MB by a wire of 100 Gb/s.
TEST(ServingTest, TheWireBoundsTheTransfer) {
  const Job job = serving_job({{"by_layer", "off"}});
  const ServingResult result = run_it(job);
  ASSERT_EQ(result.mistake, "");
  const double wire = 134'217'728 * 8 / 100e9;
  EXPECT_GT(result.requests[0].transfer.seconds(), wire);
  EXPECT_LT(result.requests[0].transfer.seconds(), wire * 1.1);
  EXPECT_EQ(result.requests[0].ttft, result.requests[0].queue + result.requests[0].prefill +
                                         result.requests[0].transfer + decode_step(*job.serving));
}

TEST(ServingTest, LayersHideTheTransfer) {
  const Job job = serving_job();
  const ServingResult result = run_it(job);
  ASSERT_EQ(result.mistake, "");
  // The last of 32 layers is left.
  EXPECT_LT(result.requests[0].transfer.seconds(), 134'217'728 * 8 / 100e9 / 20);
  EXPECT_GT(result.requests[0].transfer, Duration());
  EXPECT_EQ(result.transferred_bytes, 2u * 134'217'728 + 2u * 134'217'728 * 5 / 4);
}

TEST(ServingTest, EachTechnology) {
  std::vector<double> added;
  for (const char* const technology : {"rocev2", "infiniband", "iwarp", "tcp"}) {
    const Job job = serving_job({{"technology", technology}, {"by_layer", "off"}});
    const ServingResult result = run_it(job);
    EXPECT_EQ(result.mistake, "") << technology;
    EXPECT_GT(metric(job, result, "transfer.p50"), 0.0107) << technology;
    EXPECT_EQ(result.requests.size(), 2u);
  }
}

TEST(ServingTest, TheSameSeedGivesTheSameResult) {
  const Job job = serving_job({{"simulated_gpus", "2"}});
  Job threads = serving_job({{"simulated_gpus", "2"}});
  threads.network.threads = 2;
  EXPECT_EQ(serving_csv(run_it(job)), serving_csv(run_it(threads)));
}

TEST(ServingTest, SurvivesLoss) {
  const Job job = serving_job({{"links.error_rate", "1e-9"}});
  const ServingResult result = run_it(job);
  EXPECT_EQ(result.mistake, "");
}

TEST(ServingFileTest, SaysWhatIsWrong) {
  const auto error = [](const std::string& text, const std::string& trace = kTwoRequests) {
    const auto job = read_serving_job(text, trace);
    return job ? std::string() : job.error().message;
  };
  const std::string network = "topology: {kind: star, hosts: 4}\n";
  EXPECT_THAT(error(network + "serving: {trace: t, model: gpt, tensor: 1}"), HasSubstr("none of"));
  EXPECT_THAT(error(network + "serving: {tensor: 1}"), HasSubstr("a file of requests"));
  EXPECT_THAT(error(network + "serving: {trace: t, tensor: 4}"), HasSubstr("8 GPUs"));
  EXPECT_THAT(error(network + "serving: {trace: t, tensor: 3}"), HasSubstr("3 GPUs cannot share"));
  EXPECT_THAT(error(network + "serving: {trace: t, tensor: 1}", "{"), HasSubstr("line 1"));
  EXPECT_THAT(error(network + "serving: {trace: t, tensor: 1, fly: 1}"), HasSubstr("fly"));
}

}  // namespace
}  // namespace verbena::jobs
