#include <fmt/format.h>

#include "cli/commands/commands.h"

namespace verbena::cli {
namespace {

class NICCommand final : public Command {
 public:
  NICCommand() : Command("nic", HelpTopic::kNIC) {}

  Expected<Request> request(std::vector<std::string>) const override {
    const NICRequest::Action action =
        words_.empty() ? NICRequest::Action::kRun : action_of(words_.front());
    const bool runs = action == NICRequest::Action::kRun;
    if (words_.size() != (runs ? 1u : 2u))
      return wrong_usage(runs ? "nic needs one file: verbena nic nic.yaml"
                              : fmt::format("nic {} needs a file or a socket", words_.front()));
    return NICRequest{.action = action, .path = words_.back()};
  }

 protected:
  void add_options(CLI::App& app) override { app.add_option("FILE", words_)->type_name("FILE"); }

 private:
  static NICRequest::Action action_of(std::string_view word) {
    if (word == "status") return NICRequest::Action::kStatus;
    if (word == "metrics") return NICRequest::Action::kMetrics;
    return word == "top" ? NICRequest::Action::kTop : NICRequest::Action::kRun;
  }

  std::vector<std::string> words_;
};

}  // namespace

std::unique_ptr<Command> make_nic_command() { return std::make_unique<NICCommand>(); }

}  // namespace verbena::cli
