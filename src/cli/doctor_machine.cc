#include "cli/doctor_machine.h"

#include <dlfcn.h>
#include <link.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/utsname.h>

#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "host/doctor/path.h"

namespace verbena::cli {
namespace {

std::string first_line(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

unsigned usable_cpus() {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
  return static_cast<unsigned>(CPU_COUNT(&set));
}

Finding examine_offloads() {
  const host::OffloadSupport offloads = host::udp_offloads();
  if (offloads.segmentation && offloads.coalescing)
    return {Verdict::kOk, "offloads", "the kernel cuts (GSO) and joins (GRO) UDP datagrams"};
  return {Verdict::kWarning, "offloads",
          fmt::format("the kernel has {} for UDP: each packet costs a system call",
                      offloads.segmentation ? "no GRO"
                      : offloads.coalescing ? "no GSO"
                                            : "neither GSO nor GRO"),
          "use Linux 5.0 or later"};
}

// Nothing is pinned: a card would need a limit for all that is registered.
Finding examine_memlock() {
  rlimit limit{};
  (void)::getrlimit(RLIMIT_MEMLOCK, &limit);
  const std::string value = limit.rlim_cur == RLIM_INFINITY
                                ? std::string("unlimited")
                                : fmt::format("{} KiB", limit.rlim_cur / 1024);
  return {Verdict::kOk, "memlock", value + ", and does not matter: Verbena pins no memory"};
}

// Returns the path of the libibverbs that programs load without `verbena run`.
std::string system_library() {
  void* const library = ::dlopen("libibverbs.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) return "none";
  link_map* map = nullptr;
  std::string path = "loaded";
  if (::dlinfo(library, RTLD_DI_LINKMAP, &map) == 0) {
    std::error_code error;
    const std::filesystem::path real = std::filesystem::canonical(map->l_name, error);
    path = error ? map->l_name : real.string();
  }
  ::dlclose(library);
  return path;
}

Finding examine_versions() {
  utsname kernel{};
  (void)::uname(&kernel);
  return {Verdict::kOk, "versions",
          fmt::format("verbena {}, {} {} {}, libibverbs without verbena run: {}", VERBENA_VERSION,
                      kernel.sysname, kernel.release, kernel.machine, system_library())};
}

}  // namespace

Finding judge_clock(const std::string& clocksource) {
  if (clocksource.empty())
    return {Verdict::kOk, "clock", "CLOCK_MONOTONIC; its source is not told"};
  for (const char* slow : {"hpet", "acpi_pm", "jiffies", "refined-jiffies", "pit"})
    if (clocksource == slow)
      return {Verdict::kWarning, "clock",
              fmt::format("source {}: each look at the clock is a system call", clocksource),
              "echo tsc | sudo tee /sys/devices/system/clocksource/clocksource0/"
              "current_clocksource, where available_clocksource beside it names tsc"};
  return {Verdict::kOk, "clock", fmt::format("CLOCK_MONOTONIC from {}", clocksource)};
}

Finding judge_cpus(unsigned count) {
  if (count >= 2) return {Verdict::kOk, "cpus", fmt::format("{} usable", count)};
  return {Verdict::kWarning, "cpus",
          "one usable: programs that spin for completions take it from their peers on this machine",
          "let programs wait for events (perftest: -e), or give them more CPUs: taskset -c 0-1 "
          "PROGRAM"};
}

Finding judge_governor(const std::string& governor, const std::string& driver) {
  if (governor.empty())
    return {Verdict::kOk, "governor", "not told: CPU frequency is not this system's to set"};
  const bool chooses_itself =
      driver.starts_with("intel_pstate") || driver.starts_with("amd-pstate");
  if (governor != "powersave" || chooses_itself)
    return {Verdict::kOk, "governor", fmt::format("{} ({})", governor, driver)};
  return {Verdict::kWarning, "governor", "powersave: CPUs stay at their lowest frequency",
          "sudo cpupower frequency-set -g performance"};
}

Findings examine_machine() {
  return {
      examine_offloads(),
      judge_cpus(usable_cpus()),
      judge_governor(first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
                     first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver")),
      judge_clock(first_line("/sys/devices/system/clocksource/clocksource0/current_clocksource")),
      examine_memlock(),
      examine_versions()};
}

}  // namespace verbena::cli
