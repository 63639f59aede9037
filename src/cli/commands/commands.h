// The commands of `verbena`, each in a file of its own.
#pragma once

#include <memory>

#include "cli/commands/command.h"

namespace verbena::cli {

[[nodiscard]] std::unique_ptr<Command> make_run_command();
[[nodiscard]] std::unique_ptr<Command> make_test_command();
[[nodiscard]] std::unique_ptr<Command> make_nic_command();
[[nodiscard]] std::unique_ptr<Command> make_default_command();
[[nodiscard]] std::unique_ptr<Command> make_devices_command();
[[nodiscard]] std::unique_ptr<Command> make_stats_command();
[[nodiscard]] std::unique_ptr<Command> make_top_command();
[[nodiscard]] std::unique_ptr<Command> make_doctor_command();
[[nodiscard]] std::unique_ptr<Command> make_sim_command();
[[nodiscard]] std::unique_ptr<Command> make_fabric_command();
[[nodiscard]] std::unique_ptr<Command> make_plan_command();
[[nodiscard]] std::unique_ptr<Command> make_coll_command();
[[nodiscard]] std::unique_ptr<Command> make_model_command();
[[nodiscard]] std::unique_ptr<Command> make_bench_command();
[[nodiscard]] std::unique_ptr<Command> make_nvmf_command();

}  // namespace verbena::cli
