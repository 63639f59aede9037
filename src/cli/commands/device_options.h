// The device's options that `verbena run` and `verbena test` share.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/commands/command.h"

namespace verbena::cli {

class DeviceOptions {
 public:
  // The options that have a value.
  static constexpr std::array<std::string_view, 8> kWithValue = {
      "--fault", "--fault-file", "--capture-limit",  "--check-exit-code",
      "--seed",  "--cc",         "--retransmission", "--link"};

  void add_to(CLI::App& app);
  // `command`: whose options they are.
  [[nodiscard]] Expected<RunRequest> read(const Command& command) const;

 private:
  [[nodiscard]] bool has(const char* option) const { return app_->count(option) != 0; }

  CLI::App* app_ = nullptr;
  std::string seed_, congestion_, retransmission_, link_, capture_limit_, check_, check_exit_code_;
  std::vector<std::string> faults_, fault_files_;
};

}  // namespace verbena::cli
