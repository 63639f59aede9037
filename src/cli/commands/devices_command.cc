#include "cli/commands/commands.h"

namespace verbena::cli {
namespace {

class DevicesCommand final : public Command {
 public:
  DevicesCommand() : Command("devices", HelpTopic::kDevices) {}

  Expected<Request> request(std::vector<std::string>) const override {
    if (const auto wrong = check_filled("--address", address_)) return *wrong;
    return DevicesRequest{address_, format_of(json_)};
  }

 protected:
  void add_options(CLI::App& app) override {
    app.add_option("--address", address_)->type_name("ADDRESS");
    app.add_flag("--json", json_);
  }

 private:
  std::string address_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_devices_command() { return std::make_unique<DevicesCommand>(); }

}  // namespace verbena::cli
