#include "fabric/scenario/scenario.h"

#include <fmt/format.h>

#include "fabric/scenario/other_technologies.h"
#include "fabric/scenario/parts.h"
#include "fabric/scenario/settings.h"

namespace verbena::fabric {
namespace {

constexpr u64 kMostSeed = ~u64{0};

tl::unexpected<InputError> wrong(const std::string& what) {
  return tl::unexpected(InputError{what});
}

Parsed<YAML::Node> parse(const std::string& name, const std::string& text) {
  try {
    YAML::Node root = YAML::Load(text);
    if (!root.IsMap()) return wrong(fmt::format("{}:1: expected keys and their values", name));
    return root;
  } catch (const YAML::Exception& error) {
    return wrong(fmt::format("{}:{}: {}", name, error.mark.line + 1, error.msg));
  }
}

// Reader: reads a whole file, once. The Reading holds its errors.
class Reader {
 public:
  Reader(Reading& reading, const FileReader& read_file, ScenarioUse use)
      : reading_(reading), read_file_(read_file), use_(use) {}

  Scenario read(const YAML::Node& node) {
    Section root(reading_, node, {});
    Scenario scenario;
    scenario.network.seed = root.count("seed", 1, 0, kMostSeed);
    scenario.network.technology = read_technology(root);
    if (root.has("duration")) scenario.end = Time() + root.duration("duration", {});
    scenario.expectations = read_expectations(root);
    const PlanLinks links = read_links(root.section("links"));
    std::optional<Plan> plan = read_topology(root.section("topology", "kind"), links, read_file_);
    if (plan)
      read_on(root, *std::move(plan), scenario);
    else
      for (const char* const key :
           {"hosts", "tcp", "switch", "infiniband", "workload", "faults", "compat"})
        (void)root.has(key);
    root.done();
    return scenario;
  }

 private:
  void read_on(Section& root, Plan plan, Scenario& scenario) {
    if (plan.topology.nodes > kMaxNodes)
      root.complain("topology", fmt::format("there may be {} nodes in all", kMaxNodes));
    scenario.plan = std::move(plan);
    read_fabric(root, root.section("hosts"), scenario.plan, scenario.network);
    read_compat(root, scenario.plan, scenario.network);
    PRNG prng = PRNG(scenario.network.seed).fork();
    const WorkloadContext context{scenario.plan, read_file_, scenario.end, scenario.network.seed};
    for (Section& workload : root.sections("workload", "kind"))
      read_workload(workload, context, prng, scenario.flows);
    if (!root.has("workload") && use_ == ScenarioUse::kSimulation)
      root.complain("workload", "what do hosts send? workload: incast");
    read_faults(root, scenario.plan, scenario.network);
  }

  Reading& reading_;
  const FileReader& read_file_;
  const ScenarioUse use_;
};

}  // namespace

std::vector<Expectation> read_expectations(Section& root) {
  std::vector<Expectation> expectations;
  for (const std::string& text : root.texts("assert")) {
    Parsed<Expectation> expectation = parse_expectation(text);
    if (expectation)
      expectations.push_back(*std::move(expectation));
    else
      root.complain("assert", expectation.error().message);
  }
  return expectations;
}

Parsed<Scenario> read_scenario(const std::string& name, const std::string& text,
                               const std::vector<Setting>& settings, const FileReader& read_file,
                               ScenarioUse use) {
  const Parsed<YAML::Node> root = parse(name, text);
  if (!root) return tl::unexpected(root.error());
  std::vector<std::string> left_out;
  const std::optional<Technology> technology = technology_given(settings);
  for (const Setting& setting :
       technology ? settings_for(*technology, settings, left_out) : settings) {
    Reading known(name);
    (void)Reader(known, read_file, use).read(*root);
    if (const Parsed<void> done = apply(setting, known, *root); !done)
      return tl::unexpected(done.error());
  }
  if (technology) leave_out_others(*technology, *root, left_out);
  Reading reading(name);
  Scenario scenario = Reader(reading, read_file, use).read(*root);
  scenario.left_out = left_out;
  scenario.name = name;
  if (const std::optional<std::string> mistake = reading.mistake()) return wrong(*mistake);
  scenario.text = settings.empty() ? text : YAML::Dump(*root) + "\n";
  return scenario;
}

}  // namespace verbena::fabric
