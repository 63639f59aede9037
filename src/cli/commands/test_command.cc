#include <algorithm>

#include <fmt/format.h>

#include "cli/commands/commands.h"
#include "cli/commands/device_options.h"
#include "cli/option_values.h"
#include "cli/virtual_hosts.h"

namespace verbena::cli {
namespace {

// Commands with ":" between them, as mpirun(1) has them. None, or an empty one: they are wrong.
std::vector<std::vector<std::string>> split_at_colons(const std::vector<std::string>& words) {
  std::vector<std::vector<std::string>> commands(1);
  for (const std::string& word : words) {
    if (word == ":")
      commands.emplace_back();
    else
      commands.back().push_back(word);
  }
  const bool is_any_empty = std::ranges::any_of(commands, &std::vector<std::string>::empty);
  return is_any_empty ? std::vector<std::vector<std::string>>() : commands;
}

class TestCommand final : public Command {
 public:
  TestCommand() : Command("test", HelpTopic::kTest) {}

  Expected<Request> request(std::vector<std::string> program) const override {
    TestRequest request;
    request.commands = split_at_colons(program);
    if (const auto done = read_hosts(request); !done) return tl::unexpected(done.error());
    if (!read_time("--timeout", timeout_, request.timeout) ||
        !read_time("--grace", grace_, request.grace) ||
        !read_time("--delay", delay_, request.delay))
      return wrong_usage("--timeout, --grace and --delay are 0.01 seconds to a day");
    for (const auto& [option, value] :
         {std::pair("--output", output_), {"--junit", junit_}, {"--name", name_}})
      if (const auto wrong = check_filled(option, value)) return *wrong;
    auto run = device_.read(*this);
    if (!run) return tl::unexpected(run.error());
    if (captures_ && output_.empty()) return wrong_usage("--capture needs --output FOLDER");
    request.run = *std::move(run);
    request.loopback = loopback_;
    request.captures = captures_;
    request.reruns = !no_rerun_;
    request.output = output_;
    request.junit = junit_;
    if (has("--name")) request.name = name_;
    return request;
  }

 protected:
  void add_options(CLI::App& app) override {
    device_.add_to(app);
    app.add_option("-n,--hosts", hosts_)->type_name("N");
    app.add_option("--timeout", timeout_)->type_name("SECONDS");
    app.add_option("--grace", grace_)->type_name("SECONDS");
    app.add_option("--delay", delay_)->type_name("SECONDS");
    app.add_option("-o,--output", output_)->type_name("FOLDER");
    app.add_option("--junit", junit_)->type_name("FILE");
    app.add_option("--name", name_)->type_name("NAME");
    app.add_flag("--loopback", loopback_);
    app.add_flag("--capture", captures_);
    app.add_flag("--no-rerun", no_rerun_);
  }

 private:
  // A host for each command, where there are several.
  Expected<void> read_hosts(TestRequest& request) const {
    const std::size_t commands = request.commands.size();
    if (commands == 0)
      return wrong_usage("test needs commands: verbena test -- COMMAND ... [: COMMAND ...]");
    if (commands > VirtualHosts::kMost)
      return wrong_usage(fmt::format("there are {} hosts at most", VirtualHosts::kMost));
    if (commands > 1) {
      request.hosts = static_cast<u32>(commands);
      request.delay = sec(1);
    }
    if (const auto done = read_number("--hosts", hosts_, VirtualHosts::kMost, request.hosts); !done)
      return done;
    if (commands > 1 && request.hosts != commands)
      return wrong_usage(fmt::format("--hosts {}, and {} commands", hosts_, commands));
    return {};
  }
  // Leaves `time` unchanged if the option is not given. Returns false if `text` is no time.
  bool read_time(const char* option, const std::string& text, Duration& time) const {
    if (!has(option)) return true;
    const std::optional<Duration> read = parse_interval(text);
    time = read.value_or(time);
    return read.has_value();
  }

  DeviceOptions device_;
  std::string hosts_, timeout_, grace_, delay_, output_, junit_, name_;
  bool loopback_ = false, captures_ = false, no_rerun_ = false;
};

}  // namespace

std::unique_ptr<Command> make_test_command() { return std::make_unique<TestCommand>(); }

}  // namespace verbena::cli
