// The command line of `verbena`, read: which command, with what. It does nothing yet.
#pragma once

#include <span>
#include <string>
#include <variant>
#include <vector>

#include "cli/failure.h"

namespace verbena::cli {

struct RunRequest {
  std::string address;               // --address; "": VERBENA_ADDRESS, or the default
  std::string faults;                // --fault and --fault-file, read and checked; "": none
  std::string capture;               // --capture, an absolute path; "": none
  std::string capture_limit;         // --capture-limit, in bytes; "": none
  std::string seed;                  // --seed; "": VERBENA_SEED, or the default
  std::vector<std::string> command;  // program and arguments; never empty
};
enum class OutputFormat { kText, kJSON };
struct DevicesRequest {
  std::string address;  // as above
  OutputFormat format = OutputFormat::kText;
};
struct PrintRequest {
  std::string text;  // of --help and --version
};
using Request = std::variant<RunRequest, DevicesRequest, PrintRequest>;

// `arguments`: without the program's own name.
[[nodiscard]] Expected<Request> parse_command_line(std::span<const std::string> arguments);

}  // namespace verbena::cli
