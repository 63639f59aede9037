#include "cli/commands/commands.h"

namespace verbena::cli {
namespace {

class DoctorCommand final : public Command {
 public:
  DoctorCommand() : Command("doctor", HelpTopic::kDoctor) {}

  Expected<Request> request(std::vector<std::string>) const override {
    if (const auto wrong = check_filled("--address", address_)) return *wrong;
    if (const auto wrong = check_filled("PEER", peer_)) return *wrong;
    if (listens_ && !peer_.empty())
      return wrong_usage("--listen waits for other doctors: it takes no PEER");
    return DoctorRequest{address_, peer_, listens_, format_of(json_)};
  }

 protected:
  void add_options(CLI::App& app) override {
    app.add_option("--address", address_)->type_name("ADDRESS");
    app.add_option("PEER", peer_)->type_name("PEER");
    app.add_flag("--listen", listens_);
    app.add_flag("--json", json_);
  }

 private:
  std::string address_, peer_;
  bool listens_ = false, json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_doctor_command() { return std::make_unique<DoctorCommand>(); }

}  // namespace verbena::cli
