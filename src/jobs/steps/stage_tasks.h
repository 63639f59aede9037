// StageTasks: the tasks of the GPUs of one pipeline stage, pass after pass.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "jobs/steps/training_config.h"

namespace verbena::jobs {

// StageCommunicators: numbers of communicators, kNone if there is none.
struct StageCommunicators {
  u32 tensor = PartsBuilder::kNone, data = PartsBuilder::kNone;
  u32 expert = PartsBuilder::kNone, expert_data = PartsBuilder::kNone;
  // Communicators from stages of each parity to the next stage, and from that back.
  std::array<u32, 2> forward{PartsBuilder::kNone, PartsBuilder::kNone};
  std::array<u32, 2> backward{PartsBuilder::kNone, PartsBuilder::kNone};
};

class StageTasks {
 public:
  // All arguments outlive it.
  StageTasks(const TrainingConfig& config, u32 stage, const StageCommunicators& communicators,
             PartsBuilder& builder);

  void forward(u32 micro_batch);
  void backward(u32 micro_batch);
  void finish();  // adds the remaining gradients and the optimizer

 private:
  enum class Pass : u8 { kForward, kBackward };
  struct Reduction {
    u32 task = 0, communicator = 0;
    u64 bytes = 0;  // of gradients
  };

  void layer(const std::string& name, Pass pass);
  void attention(const std::string& name, Pass pass);
  void mlp(const std::string& name, Pass pass);
  void compute(const std::string& name, Pass pass, Duration lasts);
  void exchange(const std::string& name, Purpose purpose, u32 communicator,
                collectives::Operation operation, u64 bytes);
  void receive(const std::string& name, u32 communicator, u32 root);
  void send(const std::string& name, u32 communicator, u32 root);
  [[nodiscard]] u32 move_between_stages(u32 communicator, u32 root) const;
  void gather_parameters(const std::string& name);
  void add_gradients(u64 parameters, u64 of_experts);
  void reduce(u64& bytes, u32 communicator);

  [[nodiscard]] bool is_first() const { return stage_ == 0; }
  [[nodiscard]] bool is_last() const { return stage_ + 1 == config_.parallel.pipeline; }
  [[nodiscard]] bool shares_experts() const { return config_.parallel.expert > 1; }
  [[nodiscard]] u64 tokens() const { return config_.sequence * config_.micro_batch; }
  [[nodiscard]] u64 activation_bytes() const;
  // The parameters of a layer on one GPU: those that each replica has, and those of experts that it
  // shares.
  [[nodiscard]] u64 layer_parameters() const;
  [[nodiscard]] u64 expert_parameters() const;
  [[nodiscard]] Duration time_of(double flops_of_token, Pass pass) const;

  const TrainingConfig& config_;
  const u32 stage_;
  const StageCommunicators& communicators_;
  PartsBuilder& builder_;
  std::vector<u32> after_;                    // the next computing comes after these
  std::optional<u32> computed_;               // the last task that computes
  std::vector<u32> layer_ends_;               // the last ones of each layer, of this pass
  bool adds_gradients_ = false;               // the pass does
  u64 gradients_ = 0, expert_gradients_ = 0;  // bytes that wait for their bucket to be full
  u64 own_parameters_ = 0;                    // whose gradients there were
  std::vector<Reduction> reductions_;
};

}  // namespace verbena::jobs
