#include <array>

#include <fmt/format.h>

#include "cli/commands/commands.h"
#include "cli/fault_options.h"
#include "coll/plan.h"
#include "faults/values.h"
#include "perf/options.h"

namespace verbena::cli {
namespace {

// Options of coll, and what a rank calls them (perf/options.h).
struct CollOption {
  const char *names, *type, *name;
};
constexpr std::array kCollOptions = {CollOption{"-b,--min", "SIZE", "min"},
                                     CollOption{"-e,--max", "SIZE", "max"},
                                     CollOption{"-f,--factor", "N", "factor"},
                                     CollOption{"-i,--step", "SIZE", "step"},
                                     CollOption{"-d,--type", "TYPE", "type"},
                                     CollOption{"-o,--op", "OP", "op"},
                                     CollOption{"-r,--root", "RANK", "root"},
                                     CollOption{"-w,--warmup", "N", "warmups"},
                                     CollOption{"--iters", "N", "iterations"},
                                     CollOption{"--rendezvous", "ADDRESS", "rendezvous"},
                                     CollOption{"--algorithm", "NAME", "algorithm"},
                                     CollOption{"--table", "FILE", "table"},
                                     CollOption{"--tune", "FILE", "tune"},
                                     CollOption{"--timeout", "SECONDS", "timeout"}};

class CollCommand final : public Command {
 public:
  CollCommand() : Command("coll", HelpTopic::kColl) {}

  Expected<Request> request(std::vector<std::string>) const override {
    if (const auto wrong = check_filled("--address", address_)) return *wrong;
    CollRequest request;
    if (const auto done = read_options(request); !done) return tl::unexpected(done.error());
    if (const auto done = read_number("--ranks", ranks_, CollRequest::kMaxRanks, request.ranks);
        !done)
      return tl::unexpected(done.error());
    request.ranks_are_given = has("--ranks");
    auto faults = read_faults(faults_, {});
    if (!faults) return tl::unexpected(faults.error());
    if (!seed_.empty() && !faults::parse_number(seed_))
      return wrong_usage(fmt::format("--seed {} is no number", seed_));
    if (const auto wrong = check_filled("--predict", predict_)) return *wrong;
    if (!request.measured.tune.empty() && !predict_.empty())
      return wrong_usage("--tune writes what --predict reads: one of them");
    request.predict = predict_;
    request.run.address = address_;
    request.run.faults = std::move(*faults);
    request.run.seed = seed_;
    return request;
  }

 protected:
  void add_options(CLI::App& app) override {
    app.add_option("OPERATION", operation_)->type_name("OPERATION");
    app.add_option("-n,--ranks", ranks_)->type_name("N");
    for (std::size_t i = 0; i < kCollOptions.size(); ++i)
      app.add_option(kCollOptions[i].names, values_[i])->type_name(kCollOptions[i].type);
    app.add_option("--predict", predict_)->type_name("FILE");
    app.add_flag("--check", checks_);
    app.add_flag("--no-check", checks_nothing_);
    app.add_flag("--register", registers_);
    app.add_option("--address", address_)->type_name("ADDRESS");
    app.add_option("--fault", faults_)->type_name("RULES")->take_all();
    app.add_option("--seed", seed_)->type_name("N");
  }

 private:
  // Reads an option. `said`: its form on the command line. `name`: its name in a rank's options.
  Expected<void> read_option(const std::string& said, const char* name, const std::string& value,
                             CollRequest& request) const {
    const std::string wrong = perf::read_option(request.measured, name, value);
    if (!wrong.empty()) return wrong_usage(fmt::format("{} {}: {}", said, value, wrong));
    request.options.push_back(fmt::format("{}={}", name, value));
    return {};
  }
  Expected<void> read_options(CollRequest& request) const {
    if (has("OPERATION"))
      if (const auto done = read_option("coll", "test", operation_, request); !done) return done;
    for (std::size_t i = 0; i < kCollOptions.size(); ++i) {
      const std::string names = kCollOptions[i].names;
      const std::string said = names.substr(names.rfind(',') + 1);
      if (!has(said.c_str())) continue;
      if (const auto wrong = check_filled(said.c_str(), values_[i])) return *wrong;
      if (const auto done = read_option(said, kCollOptions[i].name, values_[i], request); !done)
        return done;
    }
    const perf::Options& options = request.measured;
    if (options.min_bytes > options.max_bytes) return wrong_usage("--min is more than --max");
    if (options.has_too_many_sizes())
      return wrong_usage(fmt::format("--step {}: from {} to {} bytes are more than {} sizes",
                                     options.step_bytes, options.min_bytes, options.max_bytes,
                                     perf::Options::kMostSizes));
    if (!options.algorithm.empty() && !coll::algorithm_number(options.algorithm))
      return wrong_usage(
          fmt::format("--algorithm {}: there is no such algorithm", options.algorithm));
    if (checks_nothing_ && checks_) return wrong_usage("--check or --no-check");
    if (checks_nothing_) request.options.emplace_back("check=0");
    if (registers_) request.options.emplace_back("register=1");
    return {};
  }

  std::string operation_, ranks_, predict_, address_, seed_;
  std::array<std::string, kCollOptions.size()> values_;
  std::vector<std::string> faults_;
  bool checks_ = false, checks_nothing_ = false, registers_ = false;
};

}  // namespace

std::unique_ptr<Command> make_coll_command() { return std::make_unique<CollCommand>(); }

}  // namespace verbena::cli
