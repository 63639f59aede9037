#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "cli/commands/commands.h"
#include "cli/option_values.h"
#include "cli/plan.h"
#include "faults/values.h"

namespace verbena::cli {
namespace {

struct PlanPrint {
  const char* option;
  PlanRequest::Print print;
};
constexpr std::array kPlanPrints = {PlanPrint{"--sonic", PlanRequest::Print::kSONiC},
                                    PlanPrint{"--nvue", PlanRequest::Print::kNVUE},
                                    PlanPrint{"--eos", PlanRequest::Print::kEOS},
                                    PlanPrint{"--nic", PlanRequest::Print::kNIC},
                                    PlanPrint{"--catalogue", PlanRequest::Print::kCatalogue},
                                    PlanPrint{"--host-path", PlanRequest::Print::kHostPath}};

class PlanCommand final : public Command {
 public:
  PlanCommand() : Command("plan", HelpTopic::kPlan) {}

  Expected<Request> request(std::vector<std::string>) const override {
    PlanRequest request;
    if (const auto wrong = check_filled("JOB", job_)) return *wrong;
    if (const auto wrong = check_filled("--output", output_)) return *wrong;
    for (const auto& [option, print] : kPlanPrints) {
      if (!has(option)) continue;
      if (request.print != PlanRequest::Print::kTuning)
        return wrong_usage(
            "only one of --sonic, --nvue, --eos, --nic, --catalogue and --host-path");
      request.print = print;
    }
    const auto tuning = parse_tuning(
        {.rate = rate_, .cable = cable_, .mtu = mtu_, .buffer = buffer_, .ports = ports_});
    if (!tuning) return wrong_usage(tuning.error());
    request.tuning = *tuning;
    const auto done = job_.empty() ? read_interfaces(request) : read_job(request);
    if (!done) return tl::unexpected(done.error());
    return request;
  }

 protected:
  void add_options(CLI::App& app) override {
    app.add_option("--rate", rate_)->type_name("RATE");
    app.add_option("--cable", cable_)->type_name("METRES");
    app.add_option("--mtu", mtu_)->type_name("BYTES");
    app.add_option("--buffer", buffer_)->type_name("SIZE");
    app.add_option("--ports", ports_)->type_name("N");
    app.add_option("--interfaces", interfaces_)->type_name("NAMES");
    app.add_option("JOB", job_)->type_name("JOB");
    app.add_option("--technologies", technologies_)->type_name("NAMES");
    app.add_option("--topologies", topologies_)->type_name("NAMES");
    app.add_option("--set", settings_)->type_name("KEY=VALUE")->expected(1)->take_all();
    app.add_option("-o,--output", output_)->type_name("FOLDER");
    app.add_flag("--json", json_);
    app.add_option("--seed", seed_)->type_name("N");
    app.add_option("--threads", threads_)->type_name("N");
    for (const auto& [option, print] : kPlanPrints) app.add_flag(option);
  }

 private:
  // Reads the options of a command without a JOB.
  Expected<void> read_interfaces(PlanRequest& request) const {
    for (const char* const option :
         {"--technologies", "--topologies", "--set", "--output", "--seed", "--threads", "--json"})
      if (has(option))
        return wrong_usage(fmt::format("{} goes with a JOB: verbena plan job.yaml", option));
    if (!has("--interfaces")) return {};
    if (request.print != PlanRequest::Print::kSONiC && request.print != PlanRequest::Print::kEOS)
      return wrong_usage("--interfaces goes with --sonic and --eos");
    const auto interfaces = parse_interfaces(interfaces_);
    if (!interfaces) return wrong_usage(interfaces.error());
    request.interfaces = *interfaces;
    return {};
  }
  Expected<void> read_job(PlanRequest& request) const {
    for (const char* const option : {"--rate", "--mtu", "--buffer", "--ports", "--interfaces"})
      if (has(option))
        return wrong_usage(fmt::format("{}: the job says it, or it goes without a JOB", option));
    if (request.print != PlanRequest::Print::kTuning)
      return wrong_usage("--sonic and its like go without a JOB; -o FOLDER writes all of them");
    PlanJobRequest& job = request.job.emplace();
    job.job = job_;
    job.output = output_;
    job.format = format_of(json_);
    const auto named = read_technologies();
    if (!named) return tl::unexpected(named.error());
    job.technologies = *named;
    job.topologies = split_at_commas(topologies_);
    if (has("--topologies") && job.topologies.empty()) return wrong_usage("--topologies is empty");
    if (const auto done = read_job_settings(job); !done) return done;
    if (has("--cable")) job.cable_metres = request.tuning.cable_metres;
    return read_number("--threads", threads_, SimRequest::kMaxThreads, job.threads);
  }
  Expected<void> read_job_settings(PlanJobRequest& job) const {
    auto settings = read_settings(settings_, "size=64MiB");
    if (!settings) return tl::unexpected(settings.error());
    job.settings = *std::move(settings);
    if (std::ranges::find(job.settings, "technology", &fabric::Setting::key) != job.settings.end())
      return wrong_usage("--set technology: here it is --technologies");
    if (seed_.empty()) return {};
    if (!faults::parse_number(seed_))
      return wrong_usage(fmt::format("--seed {} is no number", seed_));
    job.settings.push_back({"seed", seed_});
    return {};
  }
  Expected<std::vector<fabric::Technology>> read_technologies() const {
    std::vector<fabric::Technology> named;
    for (const std::string& name : split_at_commas(technologies_)) {
      const auto known = std::ranges::find(fabric::kTechnologies, name, [](fabric::Technology one) {
        return std::string(name_of(one));
      });
      if (known == fabric::kTechnologies.end())
        return wrong_usage(
            fmt::format("--technologies: '{}' is none of rocev2, infiniband, iwarp and tcp", name));
      if (std::ranges::find(named, *known) == named.end()) named.push_back(*known);
    }
    if (!has("--technologies"))
      named.assign(fabric::kTechnologies.begin(), fabric::kTechnologies.end());
    if (named.empty()) return wrong_usage("--technologies is empty");
    return named;
  }

  std::string rate_, cable_, mtu_, buffer_, ports_, interfaces_;
  std::string job_, technologies_, topologies_, output_, seed_, threads_;
  std::vector<std::string> settings_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_plan_command() { return std::make_unique<PlanCommand>(); }

}  // namespace verbena::cli
