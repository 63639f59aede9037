// `verbena model`, `verbena nvmf` and `verbena bench`: programs of our own that read their words
// themselves, but for `verbena bench gpu-paths`.
#include <fmt/format.h>

#include "cli/commands/commands.h"
#include "cli/tool.h"
#include "fabric/scenario/units.h"
#include "faults/values.h"

namespace verbena::cli {
namespace {

constexpr u64 kMostBenchBytes = u64{1} << 30;
constexpr u32 kMostBenchMessages = 1'000'000;

Expected<Request> request_of_tool(const std::vector<std::string>& words) {
  auto request = read_tool_request(words);
  if (!request) return tl::unexpected(request.error());
  return *request;
}

class ToolCommand final : public Command {
 public:
  ToolCommand(std::string name, HelpTopic help) : Command(std::move(name), help) {}

  Expected<Request> request(std::vector<std::string> words) const override {
    return request_of_tool(words);
  }

 protected:
  void add_options(CLI::App&) override {}
};

class BenchCommand final : public Command {
 public:
  BenchCommand() : Command("bench", HelpTopic::kBench) {}

  Expected<Request> request(std::vector<std::string> words) const override {
    if (!words.empty()) return request_of_tool(words);
    if (benchmark_ != "gpu-paths") return wrong_usage("bench needs a benchmark: kv or gpu-paths");
    BenchRequest request;
    request.address = address_;
    request.only_predicts = only_predicts_;
    if (!driver_.empty()) request.driver = driver_;
    if (has("--size")) {
      const std::optional<u64> bytes = faults::parse_number(size_);
      if (!bytes || *bytes == 0 || *bytes > kMostBenchBytes)
        return wrong_usage(fmt::format("--size {}: it is 1 to 1G", size_));
      request.bytes = *bytes;
    }
    if (const auto done = read_number("--count", count_, kMostBenchMessages, request.count); !done)
      return tl::unexpected(done.error());
    if (has("--rate")) {
      const std::optional<Rate> line = fabric::rate_of(rate_);
      if (!line || line->bps() == 0) return wrong_usage(fmt::format("--rate {} is none", rate_));
      request.line = *line;
    }
    return request;
  }

 protected:
  void add_options(CLI::App& app) override {
    app.add_option("BENCHMARK", benchmark_)->type_name("BENCHMARK");
    app.add_option("--driver", driver_)->type_name("FILE");
    app.add_option("--size", size_)->transform(CLI::AsSizeValue(false))->type_name("SIZE");
    app.add_option("--count", count_)->type_name("N");
    app.add_option("--rate", rate_)->type_name("RATE");
    app.add_flag("--predict", only_predicts_);
    app.add_option("--address", address_)->type_name("ADDRESS");
  }

 private:
  std::string benchmark_, driver_, size_, count_, rate_, address_;
  bool only_predicts_ = false;
};

}  // namespace

std::unique_ptr<Command> make_model_command() {
  return std::make_unique<ToolCommand>("model", HelpTopic::kModel);
}
std::unique_ptr<Command> make_nvmf_command() {
  return std::make_unique<ToolCommand>("nvmf", HelpTopic::kNVMf);
}
std::unique_ptr<Command> make_bench_command() { return std::make_unique<BenchCommand>(); }

}  // namespace verbena::cli
