// The commands of verbena-transfer: `verbena model serve`, `verbena model fetch`, `verbena bench
// kv`. Each returns the exit status; errors are one line on standard error.
#pragma once

#include <span>
#include <string>

namespace verbena::models {

inline constexpr int kExitOk = 0, kExitFailed = 1, kExitUsage = 2;

[[nodiscard]] int serve_model(std::span<const std::string> arguments);
[[nodiscard]] int fetch_model(std::span<const std::string> arguments);
[[nodiscard]] int bench_kv(std::span<const std::string> arguments);

// Prints "verbena: WHY".
int fail(int status, const std::string& why);
// Whether SIGINT or SIGTERM has come since catch_signals().
void catch_signals();
[[nodiscard]] bool is_stopped();

}  // namespace verbena::models
