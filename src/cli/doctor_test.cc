// The judgements of `verbena doctor`, and how they are written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>

#include "cli/doctor_device.h"
#include "cli/doctor_machine.h"
#include "cli/doctor_peer.h"
#include "cli/doctor_programs.h"

namespace verbena::cli {
namespace {

using ::testing::HasSubstr;

TEST(FindingTest, OneLineEach) {
  const Findings findings = {{Verdict::kOk, "clock", "tsc"},
                             {Verdict::kWarning, "buffers", "small", "sudo this"}};
  EXPECT_EQ(to_text(findings),
            "ok       clock       tsc\n"
            "warning  buffers     small; fix: sudo this\n");
  EXPECT_EQ(worst_of(findings), Verdict::kWarning);
  EXPECT_EQ(worst_of({}), Verdict::kOk);
}

TEST(FindingTest, JSON) {
  const auto json =
      nlohmann::json::parse(to_json({{Verdict::kProblem, "port", "taken \xff", "end it"}}));
  EXPECT_EQ(json["verdict"], "problem");
  EXPECT_EQ(json["findings"][0]["subject"], "port");
  EXPECT_EQ(json["findings"][0]["fix"], "end it");
}

constexpr const char* kSystemMap =
    "7f00-7f01 r-xp 00000000 08:01 12 /usr/lib/x86_64-linux-gnu/libibverbs.so.1.14.44.0\n";
constexpr const char* kOwnMaps =
    "7f02-7f03 r-xp 00000000 08:01 13 /opt/verbena/lib/libverbena-paths.so\n"
    "7f04-7f05 r-xp 00000000 08:01 14 /opt/verbena/lib/libibverbs.so.1\n";
constexpr const char* kPreloadedMap =
    "7f02-7f03 r-xp 00000000 08:01 13 /opt/verbena/lib/libverbena-paths.so\n";

TEST(DoctorTest, AnotherLibraryInAProcess) {
  EXPECT_FALSE(other_libibverbs(""));
  EXPECT_FALSE(other_libibverbs("7f00-7f01 r-xp 0 0:0 0 [vdso]\n"));
  EXPECT_FALSE(other_libibverbs(kOwnMaps));
  EXPECT_FALSE(other_libibverbs(std::string(kOwnMaps) + kSystemMap)) << "ours counts";
  const auto elsewhere = other_libibverbs(kSystemMap);
  ASSERT_TRUE(elsewhere);
  EXPECT_FALSE(elsewhere->under_verbena_run);
  const auto bypassing = other_libibverbs(std::string(kPreloadedMap) + kSystemMap);
  ASSERT_TRUE(bypassing);
  EXPECT_TRUE(bypassing->under_verbena_run);
  EXPECT_EQ(bypassing->path, "/usr/lib/x86_64-linux-gnu/libibverbs.so.1.14.44.0");
}

TEST(DoctorTest, ProgramsWithAnotherLibraryAreNamed) {
  namespace fs = std::filesystem;
  const fs::path proc = fs::path(testing::TempDir()) / "doctor_programs";
  fs::remove_all(proc);
  const auto add = [&](const char* pid, const char* name, const std::string& maps) {
    fs::create_directories(proc / pid);
    std::ofstream(proc / pid / "comm") << name << '\n';
    std::ofstream(proc / pid / "maps") << maps;
  };
  add("self", "doctor", kSystemMap);  // no process of its own
  add("7", "good", kOwnMaps);
  EXPECT_THAT(examine_programs(proc).text, HasSubstr("none"));
  add("8", "plain\x1b[31m", kSystemMap);
  EXPECT_EQ(examine_programs(proc).verdict, Verdict::kOk);
  EXPECT_THAT(examine_programs(proc).text, HasSubstr("8 (plain[31m) use /usr/lib"));
  add("9", "rpath", std::string(kPreloadedMap) + kSystemMap);
  EXPECT_EQ(examine_programs(proc).verdict, Verdict::kWarning);
  EXPECT_THAT(examine_programs(proc).text, HasSubstr("9 (rpath) run under verbena run"));
  fs::remove_all(proc);
}

TEST(DoctorTest, Clock) {
  EXPECT_EQ(judge_clock("tsc").verdict, Verdict::kOk);
  EXPECT_EQ(judge_clock("kvm-clock").verdict, Verdict::kOk);
  EXPECT_EQ(judge_clock("").verdict, Verdict::kOk);
  EXPECT_EQ(judge_clock("hpet").verdict, Verdict::kWarning);
  EXPECT_EQ(judge_clock("acpi_pm").verdict, Verdict::kWarning);
}

TEST(DoctorTest, CPUs) {
  EXPECT_EQ(judge_cpus(2).verdict, Verdict::kOk);
  EXPECT_EQ(judge_cpus(1).verdict, Verdict::kWarning);
  EXPECT_EQ(judge_governor("", "").verdict, Verdict::kOk);
  EXPECT_EQ(judge_governor("performance", "acpi-cpufreq").verdict, Verdict::kOk);
  EXPECT_EQ(judge_governor("powersave", "intel_pstate").verdict, Verdict::kOk);
  EXPECT_EQ(judge_governor("powersave", "acpi-cpufreq").verdict, Verdict::kWarning);
}

TEST(DoctorTest, Buffers) {
  const Finding full =
      judge_buffers({.window_bytes = 1 << 20, .window_packets = 1024, .rmem_max = 64 << 20});
  EXPECT_EQ(full.verdict, Verdict::kOk);
  const Finding small =
      judge_buffers({.window_bytes = 106496, .window_packets = 64, .rmem_max = 212992});
  EXPECT_EQ(small.verdict, Verdict::kWarning);
  EXPECT_THAT(small.text, HasSubstr("104 KiB"));
  EXPECT_THAT(small.fix, HasSubstr("sysctl -w net.core.rmem_max="));
}

TEST(DoctorTest, RoundTrips) {
  const Finding all = judge_round_trips({us(30), us(10), us(20)}, 3);
  EXPECT_EQ(all.verdict, Verdict::kOk);
  EXPECT_THAT(all.text, HasSubstr("10 us at least, 20 us mostly, 30 us at most"));
  EXPECT_EQ(judge_round_trips({us(10)}, 3).verdict, Verdict::kWarning);
  EXPECT_EQ(judge_round_trips({}, 3).verdict, Verdict::kProblem);
}

}  // namespace
}  // namespace verbena::cli
