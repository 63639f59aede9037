// Virtual functions and encryption of simulated hosts: a flow takes the time of the slowest of
// link, function and engine, and ten functions share a link as their rates say.
#include "tests/physics/physics.h"

namespace verbena::physics {
namespace virtual_nics {

constexpr double kBytes = 20e6, kPayload = 4096;

std::string scenario(u32 hosts, const std::string& settings, const std::string& flows) {
  return fmt::format(
      "topology: {{kind: star, hosts: {}}}\nlinks: {{rate: 100Gbps, delay: 100ns}}\n"
      "hosts: {{{}}}\nworkload: {{kind: flows, flows: [{}]}}\n",
      hosts, settings, flows);
}

std::string flow(const std::string& from) {
  return fmt::format("{{from: {}, to: h0, size: {:.0f}}}", from, kBytes);
}

double seconds_with(const std::string& settings) {
  return run(scenario(2, settings, flow("h1"))).seconds.front();
}

// Returns the time of frames of `bytes` at a rate that counts no preamble and gap.
double at_rate(double bytes, double bps) { return kBytes / kPayload * bytes * 8 / bps; }

TEST(VirtualNICs, AFlowHasItsFunctionsRate) {
  for (const double gigabits : {1.0, 10.0, 50.0})
    expect_close(seconds_with(fmt::format("functions: {{rate: {}Gbps, burst: 1}}", gigabits)),
                 at_rate(kPayload + 62, gigabits * 1e9), fmt::format("{} Gb/s", gigabits), 0.005);
}

TEST(VirtualNICs, AHostThatIsNotNamedHasTheLink) {
  expect_close(seconds_with("functions: [{rate: 1Gbps, hosts: [h0]}]"), seconds_with("mtu: 4096"),
               "another host's function", 0.005);
}

TEST(VirtualNICs, EachFunctionKeepsItsRate) {
  std::string functions, flows;
  for (u32 i = 1; i <= 10; ++i) {
    functions += fmt::format("{}{{hosts: h{}, rate: {}Gbps, burst: 1}}", i == 1 ? "" : ", ", i, i);
    flows += (i == 1 ? "" : ", ") + flow(fmt::format("h{}", i));
  }
  const Ran ran = run(scenario(11, "functions: [" + functions + "]", flows));
  for (u32 i = 1; i <= 10; ++i)
    expect_close(ran.seconds[i - 1], at_rate(kPayload + 62, i * 1e9), fmt::format("function {}", i),
                 0.01);
}

TEST(VirtualNICs, EncryptionByTheNICCostsItsBytes) {
  expect_close(seconds_with("encryption: psp_nic") / seconds_with("mtu: 4096"),
               (kPayload + 62 + 20 + 40) / (kPayload + 62 + 20), "overhead of 40 bytes", 0.002);
}

TEST(VirtualNICs, EncryptionByTheCPUCostsPacketsAndBytes) {
  const double frame = kPayload + 62 + 40;
  const double engine = 450e-9 + frame * 8 / 45e9;
  expect_close(seconds_with("encryption: psp_cpu"), kBytes / kPayload * engine, "one core", 0.005);
  expect_close(seconds_with("encryption: {preset: psp_cpu, cores: 2}"),
               kBytes / kPayload * engine / 2, "two cores", 0.005);
  expect_close(seconds_with("encryption: {preset: psp_cpu, packet: 2us, rate: 400Gbps}"),
               kBytes / kPayload * (2e-6 + frame * 8 / 400e9), "given costs", 0.005);
}

}  // namespace virtual_nics
}  // namespace verbena::physics
