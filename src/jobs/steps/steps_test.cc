// Steps of training and inference: what they compute and send, against closed forms.
#include <gtest/gtest.h>

#include <map>

#include "collectives/testing.h"
#include "jobs/steps/inference_step.h"
#include "jobs/steps/training_step.h"

namespace verbena::jobs {
namespace {

Transformer small() {
  Transformer model;
  model.name = "small";
  model.layers = 4;
  model.hidden = 64;
  model.feed_forward = 128;
  model.heads = 8;
  model.kv_heads = 8;
  model.vocabulary = 256;
  return model;
}

TrainingConfig training(const Parallelism& parallel, u32 micro_batches = 2) {
  TrainingConfig config;
  config.model = small();
  config.parallel = parallel;
  config.sequence = 16;
  config.micro_batches = micro_batches;
  config.bucket_bytes = 1 << 14;
  return config;
}

// By rank; all of it has to come to an end, too.
std::vector<u64> bytes_sent(const Program& program) {
  collectives::ArrayRun run(program, 1 << 20, 3, 4);
  EXPECT_TRUE(run.run());
  return run.bytes_sent;
}

Program step(const TrainingConfig& config, u32 in_node = 2) {
  EXPECT_EQ(refusal(config), "");
  return Program(training_step(config, in_node, {}));
}

std::map<Purpose, u32> tasks_by_purpose(const Program& program, u32 rank) {
  std::map<Purpose, u32> counts;
  for (const Task& task : program.tasks_of(rank)) ++counts[task.purpose];
  return counts;
}

TEST(TransformerTest, HasAsManyParametersAsItsPaperSays) {
  const std::map<std::string_view, double> known = {{"llama3_8b", 8.03e9},
                                                    {"llama3_70b", 70.6e9},
                                                    {"llama3_405b", 405.9e9},
                                                    {"gpt3_175b", 175.2e9},
                                                    {"mixtral_8x7b", 46.7e9}};
  for (const Transformer& model : transformers())
    EXPECT_NEAR(static_cast<double>(model.parameters()) / known.at(model.name), 1, 0.005)
        << model.name;
}

TEST(TrainingStepTest, DataParallelismSendsEachGradientTwiceLessOneShare) {
  const TrainingConfig config = training({.data = 4});
  const u64 gradients = config.model.parameters() * config.gradient_bytes;
  const std::vector<u64> sent = bytes_sent(step(config));
  u64 all = 0;
  for (const u64 bytes : sent) all += bytes;
  EXPECT_EQ(all, 2 * gradients * 3);  // 2 (n - 1) / n by each of n
}

TEST(TrainingStepTest, ShardedOptimizersSendAsMuch) {
  TrainingConfig config = training({.data = 4});
  const std::vector<u64> plain = bytes_sent(step(config));
  config.sharding = Sharding::kOptimizer;
  const std::vector<u64> sharded = bytes_sent(step(config));
  u64 a = 0, b = 0;
  for (u32 rank = 0; rank < 4; ++rank) {
    a += plain[rank];
    b += sharded[rank];
  }
  EXPECT_EQ(a, b);
}

TEST(TrainingStepTest, TensorParallelismHasFourAllReducesInEachLayerAndPass) {
  const TrainingConfig config = training({.tensor = 2}, 3);
  const Program program = step(config);
  EXPECT_EQ(tasks_by_purpose(program, 0)[Purpose::kTensor], 4 * config.model.layers * 3);
  EXPECT_EQ(tasks_by_purpose(program, 0)[Purpose::kData], 0u);
  const u64 activations = config.sequence * config.model.hidden * 2;
  EXPECT_EQ(bytes_sent(program)[0], 4 * config.model.layers * 3 * activations);
}

TEST(TrainingStepTest, StagesPassOnEachMicroBatch) {
  const TrainingConfig config = training({.pipeline = 4}, 6);
  const Program program = step(config);
  EXPECT_EQ(tasks_by_purpose(program, 0)[Purpose::kPipeline], 2 * 6u);
  EXPECT_EQ(tasks_by_purpose(program, 1)[Purpose::kPipeline], 4 * 6u);
  const u64 activations = config.sequence * config.model.hidden * 2;
  const std::vector<u64> sent = bytes_sent(program);
  EXPECT_EQ(sent[0], 6 * activations);
  EXPECT_EQ(sent[1], 2 * 6 * activations);
}

// The last stage: forward and backward in turn. The first: as many forward ahead as there are
// stages behind it.
TEST(TrainingStepTest, OneForwardOneBackward) {
  const Program program = step(training({.pipeline = 4}, 6));
  const auto order = [&](u32 rank) {
    std::string passes;
    for (const Task& task : program.tasks_of(rank))
      if (task.name.ends_with("attention")) passes += task.name[0];
    return passes;
  };
  EXPECT_EQ(order(3), "FBFBFBFBFBFB");
  EXPECT_EQ(order(0), "FFFFBFBFBBBB");
}

TEST(TrainingStepTest, ExpertsAreReachedAndLeftInEachPass) {
  TrainingConfig config = training({.data = 4, .expert = 2}, 1);
  config.model.experts = 4;
  const Program program = step(config);
  EXPECT_EQ(tasks_by_purpose(program, 0)[Purpose::kExpert], 2 * 2 * config.model.layers);
  (void)bytes_sent(program);
}

TEST(TrainingStepTest, AllKindsTogetherComeToAnEnd) {
  for (const Sharding sharding : {Sharding::kNone, Sharding::kOptimizer, Sharding::kFull}) {
    TrainingConfig config = training({.tensor = 2, .pipeline = 2, .data = 4, .expert = 2}, 3);
    config.model.experts = 4;
    config.sharding = sharding;
    (void)bytes_sent(step(config, 4));
  }
}

TEST(TrainingStepTest, ComputesThreeTimesWhatForwardTakes) {
  const TrainingConfig config = training({.data = 2}, 1);
  const Program program = step(config);
  const double seconds = config.flops() / 2 / (config.gpu.flops * config.gpu.efficiency);
  Duration optimizer;
  for (const Task& task : program.tasks_of(0))
    if (task.purpose == Purpose::kOptimizer) optimizer = task.lasts;
  EXPECT_NEAR((program.computing_of(0) - optimizer).seconds() / seconds, 1, 1e-3);
}

TEST(TrainingStepTest, RefusesWhatDoesNotDivide) {
  EXPECT_NE(refusal(training({.pipeline = 3})), "");
  EXPECT_NE(refusal(training({.tensor = 3})), "");
  TrainingConfig config = training({.data = 4, .expert = 3});
  config.model.experts = 3;
  EXPECT_NE(refusal(config), "");
}

InferenceConfig inference(u32 tensor, u32 instances, Serving serving) {
  InferenceConfig config;
  config.model = small();
  config.serving = serving;
  config.tensor = tensor;
  config.instances = instances;
  config.batch = 2;
  config.prompt = 32;
  config.output = 4;
  return config;
}

TEST(InferenceStepTest, MovesTheWholeCacheOnce) {
  const InferenceConfig config = inference(1, 2, Serving::kDisaggregated);
  const Program program(inference_step(config, 2, {}));
  const std::vector<u64> sent = bytes_sent(program);
  EXPECT_EQ(sent[0],
            config.batch * config.prompt * config.model.cache_bytes() * config.model.layers);
  EXPECT_EQ(sent[1], 0u);
}

TEST(InferenceStepTest, LoadsTheModelIntoEachInstance) {
  InferenceConfig config = inference(1, 4, Serving::kTogether);
  config.loads_model = true;
  const std::vector<u64> sent = bytes_sent(Program(inference_step(config, 1, {})));
  u64 all = 0;
  for (const u64 bytes : sent) all += bytes;
  EXPECT_EQ(all, 3 * config.model.parameters() * 2);
}

TEST(InferenceStepTest, DecodingReadsAllParametersForEachToken) {
  const InferenceConfig config = inference(1, 1, Serving::kTogether);
  InferenceConfig two = config;
  two.instances = 2;  // a communicator needs two
  const Program program(inference_step(two, 2, {}));
  Duration decoding;
  for (const Task& task : program.tasks_of(0))
    if (task.purpose == Purpose::kDecode) decoding = decoding + task.lasts;
  const double least =
      3.0 *
      static_cast<double>(config.model.parameters() * 2 - config.model.embedding_parameters() * 2) /
      config.gpu.memory_bytes;
  EXPECT_GT(decoding.seconds(), least);
  EXPECT_LT(decoding.seconds(), 1.5 * least);
}

TEST(InferenceStepTest, RefusesAnOddNumberOfInstancesApart) {
  EXPECT_NE(refusal(inference(2, 3, Serving::kDisaggregated)), "");
}

}  // namespace
}  // namespace verbena::jobs
