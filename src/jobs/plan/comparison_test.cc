#include "jobs/plan/comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include "jobs/job_for_test.h"
#include "jobs/plan/cloud.h"
#include "jobs/plan/plan_report.h"
#include "jobs/plan/plan_text.h"
#include "jobs/plan/recommendation.h"
#include "jobs/plan/remedies.h"
#include "jobs/plan/topologies.h"

namespace verbena::jobs {
namespace {

using fabric::Technology;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const Stop kGoOn = [](const Progress&) { return false; };

using test::job_of;

constexpr const char* kJob = R"(
topology: {kind: rail_optimized, nodes: 2, rails: 2, spines: 2}
links: {rate: 400Gbps, delay: 500ns}
switch: {ecn: {kmin: 400KB, kmax: 1600KB}}
hosts: {congestion_control: dcqcn}
infiniband: {vls: 4}
collective: {size: 1MiB}
)";

Candidate candidate_of(const std::string& text, Technology technology) {
  Candidate candidate;
  candidate.technology = technology;
  const std::string path(model_of(usual_path(technology)).name);
  auto job = job_of(text, {{"technology", std::string(name_of(technology))}, {"hosts.path", path}});
  EXPECT_TRUE(job.has_value()) << job.error().message;
  if (!job) return candidate;
  candidate.job = *std::move(job);
  candidate.bill = bill_of({.plan = candidate.job.plan, .technology = technology});
  return candidate;
}

std::vector<Candidate> measured(const std::string& text) {
  std::vector<Candidate> candidates;
  for (const Technology technology : fabric::kTechnologies) {
    candidates.push_back(candidate_of(text, technology));
    candidates.back().measured = measure(candidates.back().job, kGoOn);
    EXPECT_TRUE(candidates.back().is_done()) << candidates.back().measured.mistake;
  }
  return candidates;
}

// Technologies differ in what takes most time; the column is of one operation all the same.
TEST(Comparison, BusBandwidthIsOfTheSameOperationInEveryRow) {
  std::vector<Candidate> all(2);
  all[0].measured.operations = {{"data all reduce of 1 MB", 1'000'000, false, us(30), 10e9},
                                {"pipeline send receive of 1 MB", 1'000'000, false, us(20), 40e9},
                                {"tensor all reduce of 1 MB", 1'000'000, true, us(90), 400e9}};
  all[1].measured.operations = {{"data all reduce of 1 MB", 1'000'000, false, us(15), 20e9},
                                {"pipeline send receive of 1 MB", 1'000'000, false, us(24), 30e9}};
  compare_same_operation(all);
  EXPECT_EQ(all[0].measured.name, "data all reduce of 1 MB");
  EXPECT_EQ(all[1].measured.name, "data all reduce of 1 MB");
  EXPECT_EQ(all[0].measured.bus_bandwidth, 10e9);
  EXPECT_EQ(all[1].measured.bus_bandwidth, 20e9);
}

TEST(Comparison, TheJobRunsWithEachTechnology) {
  const std::vector<Candidate> all = measured(kJob);
  for (const Candidate& candidate : all) {
    const Measured& m = candidate.measured;
    EXPECT_GT(m.time, Duration()) << candidate.name();
    // nccl-tests' definition, of what is asked: 2 (n - 1) / n of the size over the time
    EXPECT_NEAR(m.bus_bandwidth, 1.5 * (1 << 20) / m.time.seconds(), 1e3) << candidate.name();
    EXPECT_GT(m.packets.latencies.count(), 0u);
    EXPECT_GE(m.packets.latencies.quantile(0.99), m.packets.latencies.quantile(0.5));
    EXPECT_LT(m.packets.latencies.quantile(0.99), m.time * 2);
  }
  EXPECT_GT(all[3].measured.time, all[0].measured.time);    // copies and system calls
  EXPECT_GT(all[3].measured.cores, all[0].measured.cores);  // and what they cost
  EXPECT_EQ(all[1].measured.packets.counters.pauses, 0u);
}

TEST(Comparison, LatenciesAreWithinASixteenth) {
  Latencies latencies;
  for (i64 i = 1; i <= 100; ++i) latencies.add(us(i));
  EXPECT_NEAR(latencies.quantile(0.99).seconds(), 99e-6, 99e-6 / 16 + 1e-9);
  EXPECT_NEAR(latencies.quantile(0.5).seconds(), 50e-6, 50e-6 / 16 + 1e-9);
  EXPECT_EQ(Latencies().quantile(0.5), Duration());
}

TEST(Recommendation, IsTheLeastCostOfWorkThatCanBeHad) {
  std::vector<Candidate> all = measured(kJob);
  const Recommendation found = recommend(all);
  ASSERT_NE(found.best, nullptr);
  for (const Candidate& candidate : all)
    if (candidate.bill.can_be_had()) {
      EXPECT_LE(cost_of_work(*found.best), cost_of_work(candidate));
    }
  EXPECT_FALSE(all[2].bill.can_be_had());  // iWARP at 400 Gb/s
  EXPECT_NE(found.best, &all[2]);
  EXPECT_THAT(found.reasons, ::testing::Contains(HasSubstr("iwarp: ")));
}

// The break-even price that is told is one: at it, both cost the same.
TEST(Recommendation, ABreakEvenPriceIsOne) {
  std::vector<Candidate> all = {candidate_of(kJob, Technology::kRoCEv2),
                                candidate_of(kJob, Technology::kInfiniBand)};
  all[0].measured = {.mistake = {}, .time = us(110), .name = {}, .packets = {}};
  all[1].measured = {.mistake = {}, .time = us(100), .name = {}, .packets = {}};
  const double gpus = price_of_gpus(all[0].job).middle();
  all[0].bill.dollars = {0.1 * gpus, 0.1 * gpus};
  all[1].bill.dollars = {0.5 * gpus, 0.5 * gpus};
  const Recommendation found = recommend(all);
  ASSERT_EQ(found.best, &all[0]);
  // 1.1 / 1.0 * (1 + 0.1) - 1 = 0.21 of the GPUs' price
  EXPECT_THAT(found.changes, ::testing::Contains(HasSubstr(dollars_text(0.21 * gpus))));
  all[1].bill.dollars = {0.2 * gpus, 0.2 * gpus};
  EXPECT_EQ(recommend(all).best, &all[1]);
}

TEST(Recommendation, VariantsAreSettingsOfTheJob) {
  std::vector<Candidate> all = {candidate_of(kJob, Technology::kTCP)};
  all[0].measured = {.mistake = {}, .time = us(1), .name = "ring", .packets = {}};
  const std::vector<Variant> variants = variants_of(all, all[0]);
  EXPECT_EQ(variants.size(), 4u);
  for (const Variant& variant : variants) {
    std::vector<fabric::Setting> settings = {{"technology", "tcp"}, {"hosts.path", "kernel_tcp"}};
    settings.insert(settings.end(), variant.settings.begin(), variant.settings.end());
    const auto job = job_of(kJob, settings);
    EXPECT_TRUE(job.has_value()) << variant.name << ": " << job.error().message;
  }
}

TEST(Topologies, KindsFitTheJob) {
  const std::vector<std::string> texts = {kJob, "preset: cloud_tcp_1600\ntopology: {nodes: 2}\n"};
  for (const std::string_view kind : topology_kinds())
    for (const std::string& text : texts) {
      const JobSize size{16, 8};
      const auto made = with_topology(
          text, "topology: " + topology_of_kind(kind, size.gpus, size.gpus_per_node), "", size);
      ASSERT_TRUE(made.has_value()) << made.error().message;
      const auto job = job_of(*made, {{"technology", "rocev2"}});
      ASSERT_TRUE(job.has_value()) << kind << ": " << job.error().message << "\n" << *made;
      EXPECT_EQ(job->cluster.ranks(), 16u) << kind;
      EXPECT_EQ(job->cluster.gpus_per_node, 8u) << kind;
    }
  EXPECT_EQ(topology_of_kind("torus", 8, 8), "");
}

TEST(Presets, AreReadWithEachTechnology) {
  for (const Preset& preset : presets())
    for (const Technology technology : fabric::kTechnologies) {
      const auto job = job_of(fmt::format("preset: {}\n", preset.name),
                              {{"technology", std::string(name_of(technology))}});
      const bool speaks_roce_only = preset.name == "dual_plane";  // NICs with several ports
      EXPECT_EQ(job.has_value(), !speaks_roce_only || technology == Technology::kRoCEv2)
          << preset.name << ": " << (job ? "" : job.error().message);
    }
}

TEST(Cloud, HasStepsForItsPresetsOnly) {
  for (const auto& [preset, machine] : {std::pair("cloud_roce_3200", "a3-ultragpu-8g"),
                                        std::pair("cloud_tcp_1600", "a3-megagpu-8g")}) {
    const auto job = job_of(fmt::format("preset: {}\ntopology: {{nodes: 4}}\n", preset));
    ASSERT_TRUE(job.has_value());
    const std::vector<PlanFile> files = cloud_files(*job, {});
    ASSERT_EQ(files.size(), 2u);
    EXPECT_THAT(files[0].text, HasSubstr(fmt::format("4 x {}", machine)));
    EXPECT_THAT(files[0].text, HasSubstr("all_reduce_perf"));
    const YAML::Node blueprint = YAML::Load(files[1].text);
    EXPECT_EQ(blueprint["deployment_groups"].size(), 2u);
    EXPECT_THAT(files[1].text, HasSubstr("node_count_static: 4\n"));
  }
  const auto job = job_of("preset: spectrum_x\n");
  EXPECT_TRUE(cloud_files(*job, {}).empty());
}

TEST(PlanText, WrapsAtItsColumns) {
  const std::string text = wrapped(std::string(60, 'a') + " " + std::string(60, 'b'), 2);
  EXPECT_EQ(text, "  " + std::string(60, 'a') + "\n  " + std::string(60, 'b') + "\n");
  EXPECT_EQ(dollars_text(Range{900, 1'234'000}), "$900 .. $1.23M");
}

// Rings in random order on a fat tree: hashes collide, and spraying with reordering NICs does not.
constexpr const char* kCollisions = R"(
topology: {kind: fat_tree, k: 4}
links: {rate: 100Gbps, delay: 200ns}
collective: {size: 4MiB, algorithm: ring, placement: random, channels: 2}
)";

Candidate run_with(const std::vector<fabric::Setting>& settings) {
  Candidate candidate;
  auto job = job_of(kCollisions, settings);
  EXPECT_TRUE(job.has_value()) << job.error().message;
  candidate.job = *std::move(job);
  candidate.measured = measure(candidate.job, kGoOn);
  EXPECT_TRUE(candidate.is_done()) << candidate.measured.mistake;
  return candidate;
}

TEST(Remedies, TheShareOfACauseIsWhatARunIsFasterWithoutIt) {
  const std::vector<Candidate> candidates = {run_with({})};
  const Candidate& base = candidates.front();
  std::vector<Tried> tried;
  for (const Remedy& remedy : remedies_of(base))
    tried.push_back({.of = 0,
                     .remedy = remedy,
                     .candidate = run_with(remedy.settings),
                     .without = base.measured.time});
  const std::vector<Candidate> best = best_of_each(candidates, tried);
  EXPECT_LT(best[0].measured.time.seconds(), 0.8 * base.measured.time.seconds());
  EXPECT_THAT(best[0].variant, HasSubstr("spraying"));
  const std::string text = causes_text(candidates, tried);
  EXPECT_THAT(text, HasSubstr("lost to routing collisions "));
  EXPECT_THAT(text, HasSubstr("switches' latency "));
  EXPECT_THAT(text, HasSubstr("headers 2.0 % of what the links carry"));
  EXPECT_THAT(text, HasSubstr("as shipped: DCQCN of NVIDIA's NICs, ECN of SONiC"));
}

TEST(Remedies, EachTechnologyRunsAsShippedWhereItsDefaultsArePublished) {
  const auto shipped = [](fabric::Technology technology) {
    Candidate candidate;
    candidate.technology = technology;
    candidate.job = *job_of(kCollisions, {{"technology", std::string(name_of(technology))}});
    std::vector<std::string> names;
    for (const Remedy& remedy : remedies_of(candidate))
      if (remedy.kind == Remedy::Kind::kAsShipped) names.push_back(remedy.name);
    return names;
  };
  EXPECT_THAT(shipped(Technology::kRoCEv2), ElementsAre(HasSubstr("NVIDIA's NICs")));
  EXPECT_THAT(shipped(Technology::kInfiniBand), ElementsAre(HasSubstr("OpenSM's default")));
  EXPECT_THAT(shipped(Technology::kTCP), ElementsAre(HasSubstr("CUBIC of Linux")));
  EXPECT_THAT(shipped(Technology::kIWARP), IsEmpty());
}

TEST(Remedies, ALongJobIsExtrapolatedFromTwoParts) {
  auto job =
      job_of("topology: {kind: star, hosts: 8}\ncollective: {size: 64MiB, algorithm: ring}\n", {});
  ASSERT_TRUE(job.has_value()) << job.error().message;
  const Measured whole = measure(*job, kGoOn);
  const std::optional<TwoParts> parts = two_parts_of(*job, 600'000'000);
  ASSERT_TRUE(parts.has_value());
  EXPECT_NEAR(parts->steps, 9, 0.001);
  const auto run = [&](const std::vector<fabric::Setting>& settings) {
    return measure(
        *job_of("topology: {kind: star, hosts: 8}\ncollective: {size: 64MiB, algorithm: ring}\n",
                settings),
        kGoOn);
  };
  const Measured guess = extrapolated(run(parts->small), run(parts->large), *parts);
  EXPECT_NEAR(guess.time.seconds() / whole.time.seconds(), 1, 0.02);
  EXPECT_EQ(guess.extrapolated_from, "6.711 MB and 13.42 MB");
  EXPECT_FALSE(two_parts_of(*job, 60'000'000).has_value());
}

TEST(JobReport, SaysWhereMessagesWaited) {
  PacketResult slow{.time = us(100), .spent = {.waiting = us(25)}}, fast = slow;
  fast.spent.waiting = us(9);
  EXPECT_EQ(waiting_text({{"ring", &slow}, {"tree", &fast}}),
            "much waiting in ring (25 %): flows share links; `verbena plan` tries each remedy\n");
  slow.counters.marks = 7;
  EXPECT_THAT(waiting_text({{"ring", &slow}}),
              HasSubstr("congestion control slows them (7 marks)"));
  EXPECT_EQ(waiting_text({{"tree", &fast}}), "");
}

TEST(Remedies, OfALongRunAreTriedOnAPartOfIt) {
  Candidate candidate;
  candidate.job = *job_of(kCollisions, {});
  EXPECT_TRUE(part_of(candidate).empty());
  candidate.measured.packets.counters.events = 600'000'000;
  const std::vector<fabric::Setting> part = part_of(candidate);
  ASSERT_EQ(part.size(), 1u);
  EXPECT_EQ(part[0].key, "collective.size");
  EXPECT_EQ(part[0].value, std::to_string((4u << 20) / 10 / 4 * 4));
}

// Flow-level knows neither congestion control nor a host path: the smaller job's packets do.
TEST(Comparison, TimesAtFlowLevelAreCorrectedByTheirError) {
  const auto time = [](const std::string& path) {
    auto job = job_of("topology: {kind: star, hosts: 128}\ntechnology: tcp\nhosts: {path: " + path +
                          "}\ncollective: {size: 4MiB, algorithm: ring, method: flows}\n",
                      {});
    EXPECT_TRUE(job.has_value()) << job.error().message;
    const Measured measured = measure(*job, kGoOn);
    EXPECT_TRUE(measured.flow_error.has_value());
    return measured.time.seconds();
  };
  EXPECT_GT(time("kernel_tcp"), 2 * time("none"));
}

}  // namespace
}  // namespace verbena::jobs
