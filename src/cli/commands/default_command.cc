#include <fmt/format.h>

#include "cli/commands/commands.h"

namespace verbena::cli {
namespace {

class DefaultCommand final : public Command {
 public:
  DefaultCommand() : Command("default", HelpTopic::kDefault) {}

  Expected<Request> request(std::vector<std::string>) const override {
    DefaultRequest request;
    if (word_ == "on")
      request.action = DefaultRequest::Action::kOn;
    else if (word_ == "off")
      request.action = DefaultRequest::Action::kOff;
    else if (!word_.empty() && word_ != "status")
      return wrong_usage(fmt::format("default takes on, off or status, not '{}'", word_));
    if (!root_.empty()) request.root = root_;
    if (!request.root.is_absolute()) return wrong_usage("--root needs an absolute path");
    return request;
  }

 protected:
  void add_options(CLI::App& app) override {
    app.add_option("STATE", word_);
    app.add_option("--root", root_);
  }

 private:
  std::string word_, root_;
};

}  // namespace

std::unique_ptr<Command> make_default_command() { return std::make_unique<DefaultCommand>(); }

}  // namespace verbena::cli
