#include <fmt/format.h>

#include "cli/commands/commands.h"
#include "cli/option_values.h"
#include "faults/values.h"

namespace verbena::cli {
namespace {

class SimCommand final : public Command {
 public:
  SimCommand() : Command("sim", HelpTopic::kSim) {}

  Expected<Request> request(std::vector<std::string>) const override {
    for (const auto& [option, value] :
         {std::pair("SCENARIO", scenario_), {"--output", output_}, {"--junit", junit_}})
      if (const auto wrong = check_filled(option, value)) return *wrong;
    if (!links_.empty() && output_.empty())
      return wrong_usage("--capture needs --output, for the file");
    SimRequest request;
    request.output = output_;
    request.captures = links_;
    request.expectations = expectations_;
    request.junit = junit_;
    request.format = format_of(json_);
    if (!scenario_.empty()) request.scenarios.push_back(scenario_);
    request.scenarios.insert(request.scenarios.end(), compared_.begin(), compared_.end());
    auto settings = read_settings(settings_, "kmin=100k");
    if (!settings) return tl::unexpected(settings.error());
    request.settings = *std::move(settings);
    if (const auto done = read_sweeps(request); !done) return tl::unexpected(done.error());
    if (const auto done =
            read_number("--threads", threads_, SimRequest::kMaxThreads, request.threads);
        !done)
      return tl::unexpected(done.error());
    if (seed_.empty()) return request;
    request.seed = faults::parse_number(seed_);
    if (!request.seed) return wrong_usage(fmt::format("--seed {} is no number", seed_));
    return request;
  }

 protected:
  void add_options(CLI::App& app) override {
    app.add_option("SCENARIO", scenario_)->type_name("SCENARIO");
    app.add_option("--set", settings_)->type_name("KEY=VALUE")->expected(1)->take_all();
    app.add_option("--sweep", sweeps_)->type_name("KEY=VALUES")->expected(1)->take_all();
    app.add_option("--compare", compared_)->type_name("SCENARIO")->expected(2, 1000);
    app.add_option("--capture", links_)->type_name("LINK")->expected(1)->take_all();
    app.add_option("-o,--output", output_)->type_name("FOLDER");
    app.add_option("--expect", expectations_)->type_name("EXPECTATION")->expected(1)->take_all();
    app.add_option("--junit", junit_)->type_name("FILE");
    app.add_flag("--json", json_);
    app.add_option("--seed", seed_)->type_name("N");
    app.add_option("--threads", threads_)->type_name("N");
  }

 private:
  Expected<void> read_sweeps(SimRequest& request) const {
    for (const std::string& text : sweeps_) {
      Sweep sweep;
      if (const auto setting = parse_setting(text))
        sweep = {setting->key, split_at_commas(setting->value)};
      if (sweep.values.empty())
        return wrong_usage(fmt::format("--sweep {}: write it as kmin=50k,100k,200k", text));
      request.sweeps.push_back(std::move(sweep));
    }
    return {};
  }

  std::string scenario_, output_, junit_, seed_, threads_;
  std::vector<std::string> settings_, sweeps_, compared_, links_, expectations_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_sim_command() { return std::make_unique<SimCommand>(); }

}  // namespace verbena::cli
