#include "cli/commands/commands.h"
#include "live/fabric_server.h"

namespace verbena::cli {
namespace {

class FabricCommand final : public Command {
 public:
  FabricCommand() : Command("fabric", HelpTopic::kFabric) {}

  Expected<Request> request(std::vector<std::string>) const override {
    if (scenario_.empty()) return wrong_usage("fabric needs a scenario: a file in YAML");
    FabricRequest request{
        .scenario = scenario_,
        .settings = {},
        .scale = live::FabricServerConfig::kDefaultScale,
        .run = background_ ? FabricRequest::Run::kInBackground : FabricRequest::Run::kInForeground};
    if (const auto done =
            read_number("--scale", scale_, live::FabricServerConfig::kMostScale, request.scale);
        !done)
      return tl::unexpected(done.error());
    auto settings = read_settings(settings_, "kmin=100k");
    if (!settings) return tl::unexpected(settings.error());
    request.settings = *std::move(settings);
    for (const std::string& name : unplugged_)
      request.changes.push_back({FabricRequest::Cable::kUnplug, name});
    for (const std::string& name : plugged_)
      request.changes.push_back({FabricRequest::Cable::kPlug, name});
    return request;
  }

 protected:
  void add_options(CLI::App& app) override {
    app.add_option("SCENARIO", scenario_)->type_name("SCENARIO");
    app.add_option("--set", settings_)->type_name("KEY=VALUE")->expected(1)->take_all();
    app.add_option("--scale", scale_)->type_name("N");
    app.add_flag("--background", background_);
    app.add_option("--unplug", unplugged_)->type_name("CABLE")->expected(1)->take_all();
    app.add_option("--plug", plugged_)->type_name("CABLE")->expected(1)->take_all();
  }

 private:
  std::string scenario_, scale_;
  std::vector<std::string> settings_, unplugged_, plugged_;
  bool background_ = false;
};

}  // namespace

std::unique_ptr<Command> make_fabric_command() { return std::make_unique<FabricCommand>(); }

}  // namespace verbena::cli
