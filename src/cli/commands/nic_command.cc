#include "cli/commands/commands.h"

namespace verbena::cli {
namespace {

class NICCommand final : public Command {
 public:
  NICCommand() : Command("nic", HelpTopic::kNIC) {}

  Expected<Request> request(std::vector<std::string>) const override {
    const bool is_status = !words_.empty() && words_.front() == "status";
    if (words_.size() != (is_status ? 2u : 1u))
      return wrong_usage(is_status ? "nic status needs a file or a socket"
                                   : "nic needs one file: verbena nic nic.yaml");
    return NICRequest{.action = is_status ? NICRequest::Action::kStatus : NICRequest::Action::kRun,
                      .path = words_.back()};
  }

 protected:
  void add_options(CLI::App& app) override { app.add_option("FILE", words_)->type_name("FILE"); }

 private:
  std::vector<std::string> words_;
};

}  // namespace

std::unique_ptr<Command> make_nic_command() { return std::make_unique<NICCommand>(); }

}  // namespace verbena::cli
