#include <filesystem>

#include <fmt/format.h>

#include "cli/commands/commands.h"
#include "cli/commands/device_options.h"
#include "live/fabric_server.h"

namespace verbena::cli {
namespace {

class RunCommand final : public Command {
 public:
  RunCommand() : Command("run", HelpTopic::kRun) {}

  Expected<Request> request(std::vector<std::string> program) const override {
    if (const auto wrong = check_filled("--address", address_)) return *wrong;
    if (program.empty()) return wrong_usage("run needs a program: verbena run -- PROGRAM ...");
    auto request = device_.read(*this);
    if (!request) return tl::unexpected(request.error());
    if (const auto wrong = check_filled("--capture", capture_)) return *wrong;
    if (!share_.empty() && share_ != "on" && share_ != "off")
      return wrong_usage(fmt::format("--share={} is neither on nor off", share_));
    if (const auto done = read_fabric(*request); !done) return tl::unexpected(done.error());
    request->address = address_;
    if (!capture_.empty()) request->capture = std::filesystem::absolute(capture_).string();
    request->share = share_;
    request->nic = nic_;
    request->command = std::move(program);
    return *std::move(request);
  }

 protected:
  void add_options(CLI::App& app) override {
    app.add_option("--address", address_)->type_name("ADDRESS");
    app.add_option("--capture", capture_)->type_name("FILE");
    device_.add_to(app);
    app.add_flag("--share{on}", share_);  // --share=off
    app.add_option("--fabric", fabric_)->type_name("SCENARIO");
    app.add_option("--nic", nic_)->type_name("PATH");
    app.add_option("--as", as_)->type_name("HOST");
    app.add_option("--scale", scale_)->type_name("N");
  }

 private:
  Expected<void> read_fabric(RunRequest& request) const {
    if (!has("--fabric")) {
      if (has("--as") || has("--scale")) return wrong_usage("--as and --scale go with --fabric");
      return {};
    }
    if (const auto wrong = check_filled("--fabric", fabric_)) return *wrong;
    if (has("--address") || has("--link"))
      return wrong_usage("--fabric goes with neither --address nor --link: the host has its own");
    request.fabric = fabric_;
    request.as = as_;
    if (!has("--scale")) return {};
    return read_number("--scale", scale_, live::FabricServerConfig::kMostScale,
                       request.scale.emplace());
  }

  DeviceOptions device_;
  std::string address_, capture_, share_, fabric_, nic_, as_, scale_;
};

}  // namespace

std::unique_ptr<Command> make_run_command() { return std::make_unique<RunCommand>(); }

}  // namespace verbena::cli
