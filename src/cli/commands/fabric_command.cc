#include <cstdlib>
#include <utility>

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
    if (const Expected<void> added = add_changes(request); !added)
      return tl::unexpected(added.error());
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
    app.add_option("--power-off", off_)->type_name("NODE")->expected(1)->take_all();
    app.add_option("--power-on", on_)->type_name("NODE")->expected(1)->take_all();
    app.add_option("--error-rate", error_rates_)
        ->type_name("CABLE=PROBABILITY")
        ->expected(1)
        ->take_all();
    app.add_option("--overrun", overruns_)->type_name("CABLE")->expected(1)->take_all();
    app.add_option("--credit-stall", stalls_)->type_name("CABLE")->expected(1)->take_all();
  }

 private:
  Expected<void> add_changes(FabricRequest& request) const {
    using What = FabricRequest::What;
    const std::pair<What, const std::vector<std::string>&> kinds[] = {
        {What::kUnplug, unplugged_}, {What::kPlug, plugged_},     {What::kPowerOff, off_},
        {What::kPowerOn, on_},       {What::kOverrun, overruns_}, {What::kCreditStall, stalls_}};
    for (const auto& [what, names] : kinds)
      for (const std::string& name : names) request.changes.push_back({what, name});
    for (const std::string& text : error_rates_) {
      const std::size_t at = text.rfind('=');
      char* end = nullptr;
      const double rate = at == std::string::npos ? -1 : std::strtod(text.c_str() + at + 1, &end);
      if (end == nullptr || *end != 0 || end == text.c_str() + at + 1 || !(rate >= 0 && rate <= 1))
        return wrong_usage("--error-rate needs CABLE=PROBABILITY, as leaf0-spine1=0.001, not " +
                           text);
      request.changes.push_back({What::kErrorRate, text.substr(0, at), rate});
    }
    return {};
  }

  std::string scenario_, scale_;
  std::vector<std::string> settings_, unplugged_, plugged_, off_, on_, error_rates_, overruns_,
      stalls_;
  bool background_ = false;
};

}  // namespace

std::unique_ptr<Command> make_fabric_command() { return std::make_unique<FabricCommand>(); }

}  // namespace verbena::cli
