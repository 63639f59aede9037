#include "cli/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/help.h"

namespace verbena::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Arguments = std::vector<std::string>;

RunRequest run_request(const Arguments& arguments) {
  const Expected<Request> request = parse_command_line(arguments);
  EXPECT_TRUE(request.has_value()) << (request ? "" : request.error().message);
  return request ? std::get<RunRequest>(*request) : RunRequest{};
}

std::string printed(const Arguments& arguments) {
  const Expected<Request> request = parse_command_line(arguments);
  EXPECT_TRUE(request.has_value());
  return request ? std::get<PrintRequest>(*request).text : "";
}

std::string refusal(const Arguments& arguments) {
  const Expected<Request> request = parse_command_line(arguments);
  EXPECT_FALSE(request.has_value());
  if (request) return "";
  EXPECT_EQ(request.error().exit_status, 2);
  EXPECT_EQ(request.error().message.find('\n'), std::string::npos) << request.error().message;
  return request.error().message;
}

TEST(CommandLineTest, RunTakesAProgramWithOrWithoutDashes) {
  EXPECT_THAT(run_request({"run", "--", "prog", "-x", "1"}).command,
              ElementsAre("prog", "-x", "1"));
  EXPECT_THAT(run_request({"run", "prog", "-x"}).command, ElementsAre("prog", "-x"));
  EXPECT_THAT(run_request({"run", "--", "-odd"}).command, ElementsAre("-odd"));
}

TEST(CommandLineTest, WhatFollowsTheProgramIsNotOurs) {
  EXPECT_THAT(run_request({"run", "prog", "--address", "x", "--", "--help"}).command,
              ElementsAre("prog", "--address", "x", "--", "--help"));
  EXPECT_THAT(run_request({"run", "--", "--", "x"}).command, ElementsAre("--", "x"));
  EXPECT_EQ(run_request({"run", "prog", "--address", "x"}).address, "");
}

TEST(CommandLineTest, RunTakesAnAddress) {
  EXPECT_EQ(run_request({"run", "--address", "10.0.0.1,eth0", "prog"}).address, "10.0.0.1,eth0");
  EXPECT_EQ(run_request({"run", "--address=10.0.0.1", "--", "prog"}).address, "10.0.0.1");
}

TEST(CommandLineTest, RunTakesFaults) {
  const RunRequest request =
      run_request({"run", "--fault", "loss 1%", "--seed", "0x7", "--fault", "mark", "--", "prog"});
  EXPECT_EQ(request.faults, "loss 1%\nmark\n");
  EXPECT_EQ(request.seed, "0x7");
  EXPECT_THAT(request.command, ElementsAre("prog"));
  EXPECT_THAT(run_request({"run", "prog", "--fault", "x"}).command,
              ElementsAre("prog", "--fault", "x"));
}

TEST(CommandLineTest, RunTakesWhetherMemoryIsShared) {
  EXPECT_EQ(run_request({"run", "--share", "prog"}).share, "on");
  EXPECT_EQ(run_request({"run", "--share=off", "prog"}).share, "off");
  EXPECT_EQ(run_request({"run", "prog", "--share"}).share, "");
  EXPECT_THAT(refusal({"run", "--share=some", "prog"}),
              HasSubstr("--share=some is neither on nor off"));
}

TEST(CommandLineTest, RunTakesACongestionControl) {
  EXPECT_EQ(run_request({"run", "--cc", "off", "prog"}).congestion, "off");
  EXPECT_EQ(run_request({"run", "prog", "--cc", "x"}).congestion, "");
  EXPECT_THAT(refusal({"run", "--cc", "reno", "prog"}),
              HasSubstr("--cc reno is none of off, dcqcn"));
  EXPECT_NE(refusal({"run", "--cc", "", "prog"}), "");
}

TEST(CommandLineTest, RunTakesARetransmission) {
  EXPECT_EQ(run_request({"run", "--retransmission", "selective_repeat", "prog"}).retransmission,
            "selective_repeat");
  EXPECT_EQ(run_request({"run", "prog"}).retransmission, "");
  EXPECT_THAT(refusal({"run", "--retransmission", "sack", "prog"}),
              HasSubstr("--retransmission sack is none of go_back_n, selective_repeat"));
}

TEST(CommandLineTest, RunTakesALink) {
  EXPECT_EQ(run_request({"run", "--link", "packet", "prog"}).link, "packet");
  EXPECT_EQ(run_request({"run", "prog", "--link", "x"}).link, "");
  EXPECT_THAT(refusal({"run", "--link", "ethernet", "prog"}),
              HasSubstr("--link ethernet is none of udp, packet, xdp, iwarp"));
  EXPECT_NE(refusal({"run", "--link", "", "prog"}), "");
}

TEST(CommandLineTest, WrongFaultsAreRefused) {
  EXPECT_THAT(refusal({"run", "--fault", "los 1%", "prog"}), HasSubstr("unknown fault 'los'"));
  EXPECT_THAT(refusal({"run", "--fault-file", "/nonexistent", "prog"}),
              HasSubstr("cannot read /nonexistent"));
  EXPECT_THAT(refusal({"run", "--seed", "x", "prog"}), HasSubstr("--seed x is no number"));
  EXPECT_NE(refusal({"devices", "--seed", "1"}), "");
}

TEST(CommandLineTest, Devices) {
  const Expected<Request> text = parse_command_line(Arguments{"devices"});
  ASSERT_TRUE(text.has_value());
  EXPECT_EQ(std::get<DevicesRequest>(*text).format, OutputFormat::kText);
  const Expected<Request> json = parse_command_line(Arguments{"devices", "--json", "--address=lo"});
  ASSERT_TRUE(json.has_value());
  EXPECT_EQ(std::get<DevicesRequest>(*json).format, OutputFormat::kJSON);
  EXPECT_EQ(std::get<DevicesRequest>(*json).address, "lo");
}

TEST(CommandLineTest, NICRunsAFileOrLooksAtOne) {
  const auto action_of = [](const Arguments& arguments) {
    const NICRequest request = std::get<NICRequest>(*parse_command_line(arguments));
    EXPECT_EQ(request.path, "nic.yaml");
    return request.action;
  };
  EXPECT_EQ(action_of({"nic", "nic.yaml"}), NICRequest::Action::kRun);
  EXPECT_EQ(action_of({"nic", "status", "nic.yaml"}), NICRequest::Action::kStatus);
  EXPECT_EQ(action_of({"nic", "metrics", "nic.yaml"}), NICRequest::Action::kMetrics);
  EXPECT_EQ(action_of({"nic", "top", "nic.yaml"}), NICRequest::Action::kTop);
  EXPECT_THAT(refusal({"nic"}), HasSubstr("nic needs one file"));
  EXPECT_THAT(refusal({"nic", "a.yaml", "b.yaml"}), HasSubstr("nic needs one file"));
  EXPECT_THAT(refusal({"nic", "top"}), HasSubstr("nic top needs a file or a socket"));
}

TEST(CommandLineTest, AFileMayHaveTheNameOfACommand) {
  const auto path_of = [](const Arguments& arguments) {
    return std::get<NICRequest>(*parse_command_line(arguments)).path;
  };
  EXPECT_EQ(path_of({"nic", "run"}), "run");
  EXPECT_EQ(path_of({"nic", "status", "sim"}), "sim");
}

TEST(CommandLineTest, HelpAndVersion) {
  EXPECT_EQ(printed({"--help"}), help_text(HelpTopic::kVerbena));
  EXPECT_EQ(printed({"-h"}), help_text(HelpTopic::kVerbena));
  EXPECT_EQ(printed({"run", "--help"}), help_text(HelpTopic::kRun));
  EXPECT_EQ(printed({"devices", "--help"}), help_text(HelpTopic::kDevices));
  EXPECT_THAT(printed({"--version"}), StartsWith("verbena "));
}

TEST(CommandLineTest, WrongUsageIsOneLineThatPointsToHelp) {
  EXPECT_THAT(refusal({}), HasSubstr("a command is needed"));
  EXPECT_THAT(refusal({"frobnicate"}), HasSubstr("'frobnicate'; verbena --help"));
  EXPECT_THAT(refusal({"--frobnicate"}), HasSubstr("'--frobnicate'"));
  EXPECT_THAT(refusal({"run"}), HasSubstr("run needs a program"));
  EXPECT_THAT(refusal({"run", "--"}), HasSubstr("run needs a program"));
  EXPECT_THAT(refusal({"run", "--adress", "x", "prog"}),
              HasSubstr("'--adress'; verbena run --help"));
  EXPECT_THAT(refusal({"run", "--address"}), HasSubstr("--address"));
  EXPECT_THAT(refusal({"run", "--address", "--", "prog"}), HasSubstr("--address"));
  EXPECT_THAT(refusal({"run", "--address=", "prog"}), HasSubstr("--address"));
  EXPECT_THAT(refusal({"run", "--address", "", "prog"}), HasSubstr("--address is empty"));
  EXPECT_THAT(refusal({"devices", "extra"}), HasSubstr("'extra'; verbena devices --help"));
  EXPECT_THAT(refusal({"devices", "--xml"}), HasSubstr("'--xml'"));
}

TEST(CommandLineTest, Stats) {
  const auto request = [](const Arguments& arguments) {
    return std::get<StatsRequest>(*parse_command_line(arguments));
  };
  EXPECT_FALSE(request({"stats"}).watch.has_value());
  EXPECT_EQ(request({"stats", "--watch"}).watch, sec(1));
  EXPECT_EQ(request({"stats", "--watch", "0.5"}).watch, ms(500));
  EXPECT_EQ(request({"stats", "--watch", "--json"}).watch, sec(1));
  EXPECT_EQ(request({"stats", "--json"}).format, OutputFormat::kJSON);
  EXPECT_EQ(request({"stats", "--pid", "17"}).pid, 17);
  EXPECT_EQ(request({"stats", "--prometheus", "[::1]:9100"}).listen->port, 9100);
  EXPECT_THAT(refusal({"stats", "--watch", "x"}), HasSubstr("--watch x"));
  EXPECT_THAT(refusal({"stats", "--prometheus", "x"}), HasSubstr("--prometheus x"));
  EXPECT_THAT(refusal({"stats", "--prometheus", "1", "--json"}), HasSubstr("neither"));
  for (const char* pid : {"0", "-1", "x", "4294967296"})
    EXPECT_THAT(refusal({"stats", "--pid", pid}), HasSubstr("--pid")) << pid;
  EXPECT_THAT(refusal({"stats", "more"}), HasSubstr("unexpected argument 'more'"));
}

TEST(CommandLineTest, Top) {
  const auto parsed = parse_command_line(Arguments{"top", "--interval", "2", "--pid", "3"});
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(std::get<TopRequest>(*parsed).interval, sec(2));
  EXPECT_EQ(std::get<TopRequest>(*parsed).pid, 3);
  EXPECT_THAT(refusal({"top", "--interval", "0"}), HasSubstr("--interval"));
}

TEST(CommandLineTest, Doctor) {
  const auto request = [](const Arguments& arguments) {
    return std::get<DoctorRequest>(*parse_command_line(arguments));
  };
  EXPECT_EQ(request({"doctor"}).peer, "");
  EXPECT_EQ(request({"doctor", "--json", "10.0.0.2"}).peer, "10.0.0.2");
  EXPECT_TRUE(request({"doctor", "--listen"}).listen);
  EXPECT_THAT(refusal({"doctor", "--listen", "10.0.0.2"}), HasSubstr("no PEER"));
  EXPECT_THAT(refusal({"doctor", ""}), HasSubstr("empty"));
  EXPECT_THAT(refusal({"doctor", "a", "b"}), HasSubstr("unexpected argument"));
}

PlanRequest plan_request(const Arguments& arguments) {
  const Expected<Request> request = parse_command_line(arguments);
  EXPECT_TRUE(request.has_value()) << (request ? "" : request.error().message);
  return request ? std::get<PlanRequest>(*request) : PlanRequest{};
}

TEST(CommandLineTest, PlanPrintsOneThing) {
  using Print = PlanRequest::Print;
  EXPECT_EQ(plan_request({"plan"}).print, Print::kTuning);
  EXPECT_EQ(plan_request({"plan", "--sonic"}).print, Print::kSONiC);
  EXPECT_EQ(plan_request({"plan", "--nvue"}).print, Print::kNVUE);
  EXPECT_EQ(plan_request({"plan", "--eos"}).print, Print::kEOS);
  EXPECT_EQ(plan_request({"plan", "--nic"}).print, Print::kNIC);
  EXPECT_EQ(plan_request({"plan", "--catalogue"}).print, Print::kCatalogue);
  EXPECT_EQ(plan_request({"plan", "--host-path"}).print, Print::kHostPath);
  EXPECT_THAT(refusal({"plan", "--nic", "--eos"}), StartsWith("only one of --sonic, --nvue"));
}

TEST(CommandLineTest, PlanTakesInterfacesOfSwitches) {
  EXPECT_THAT(plan_request({"plan", "--sonic", "--interfaces", "Ethernet0,Ethernet8"}).interfaces,
              ElementsAre("Ethernet0", "Ethernet8"));
  EXPECT_THAT(plan_request({"plan", "--eos", "--interfaces", "Ethernet1/1"}).interfaces,
              ElementsAre("Ethernet1/1"));
  for (const char* const wrong : {"", "Ethernet0,", ",Ethernet0", "a b", "a\"b"})
    EXPECT_THAT(refusal({"plan", "--sonic", std::string("--interfaces=") + wrong}),
                StartsWith("--interfaces"))
        << wrong;
  for (const Arguments& arguments :
       {Arguments{"plan", "--nvue", "--interfaces", "swp1"}, {"plan", "--interfaces", "swp1"}})
    EXPECT_THAT(refusal(arguments), StartsWith("--interfaces goes with --sonic and --eos"));
}

TEST(CommandLineTest, PlanTakesAJob) {
  EXPECT_FALSE(plan_request({"plan"}).job.has_value());
  const PlanRequest all = plan_request({"plan", "job.yaml"});
  ASSERT_TRUE(all.job.has_value());
  EXPECT_EQ(all.job->job, "job.yaml");
  EXPECT_EQ(all.job->technologies.size(), 4u);
  EXPECT_FALSE(all.job->cable_metres.has_value());
  const PlanRequest some =
      plan_request({"plan", "job.yaml", "--technologies", "tcp,infiniband,tcp", "--topologies",
                    "fat_tree,a.yaml", "-o", "out", "--set", "size=1MiB", "--seed", "7", "--cable",
                    "20m", "--threads", "2"});
  ASSERT_TRUE(some.job.has_value());
  EXPECT_THAT(some.job->technologies,
              ElementsAre(fabric::Technology::kTCP, fabric::Technology::kInfiniBand));
  EXPECT_THAT(some.job->topologies, ElementsAre("fat_tree", "a.yaml"));
  EXPECT_EQ(some.job->output, "out");
  ASSERT_EQ(some.job->settings.size(), 2u);
  EXPECT_EQ(some.job->settings[1].value, "7");
  EXPECT_EQ(some.job->cable_metres, 20u);
  EXPECT_EQ(some.job->threads, 2u);
}

TestRequest test_request(const std::vector<std::string>& arguments) {
  const Expected<Request> request = parse_command_line(arguments);
  EXPECT_TRUE(request.has_value()) << (request ? "" : request.error().message);
  return request ? std::get<TestRequest>(*request) : TestRequest();
}

TEST(CommandLineTest, DefaultTakesOnOffOrStatus) {
  using Action = DefaultRequest::Action;
  const auto request = [](const Arguments& arguments) {
    return std::get<DefaultRequest>(parse_command_line(arguments).value());
  };
  EXPECT_EQ(request({"default"}).action, Action::kStatus);
  EXPECT_EQ(request({"default", "status"}).action, Action::kStatus);
  EXPECT_EQ(request({"default", "on"}).action, Action::kOn);
  EXPECT_EQ(request({"default", "off"}).action, Action::kOff);
  EXPECT_EQ(request({"default", "on"}).root, "/");
  EXPECT_EQ(request({"default", "on", "--root", "/srv/chroot"}).root, "/srv/chroot");
  EXPECT_THAT(refusal({"default", "maybe"}), HasSubstr("on, off or status, not 'maybe'"));
  EXPECT_THAT(refusal({"default", "on", "--root", "chroot"}), HasSubstr("absolute"));
  EXPECT_THAT(refusal({"default", "on", "off"}), HasSubstr("'off'"));
}

TEST(CommandLineTest, TestTakesACommandForAllHostsOrOneForEach) {
  const TestRequest same = test_request({"test", "-n", "3", "--", "./a", "-n", "9"});
  EXPECT_EQ(same.hosts, 3u);
  ASSERT_EQ(same.commands.size(), 1u);
  EXPECT_THAT(same.commands[0], ElementsAre("./a", "-n", "9"));
  EXPECT_EQ(same.delay, Duration());
  const TestRequest each =
      test_request({"test", "--capture", "-o", "out", "--fault", "loss 1%", "--seed", "7",
                    "--timeout", "5", "a", "1", ":", "b", ":", "c"});
  EXPECT_EQ(each.hosts, 3u);
  ASSERT_EQ(each.commands.size(), 3u);
  EXPECT_THAT(each.commands[0], ElementsAre("a", "1"));
  EXPECT_EQ(each.timeout, sec(5));
  EXPECT_EQ(each.delay, sec(1));
  EXPECT_EQ(each.run.faults, "loss 1%\n");
  EXPECT_EQ(each.run.seed, "7");
  EXPECT_TRUE(each.captures);
}

TEST(CommandLineTest, TestRefusesInALine) {
  EXPECT_THAT(refusal({"test"}), StartsWith("test needs commands"));
  EXPECT_THAT(refusal({"test", "a", ":"}), StartsWith("test needs commands"));
  EXPECT_THAT(refusal({"test", "-n", "0", "a"}), StartsWith("--hosts 0"));
  EXPECT_THAT(refusal({"test", "-n", "201", "a"}), StartsWith("--hosts 201"));
  EXPECT_THAT(refusal({"test", "-n", "2", "a", ":", "b", ":", "c"}), HasSubstr("3 commands"));
  EXPECT_THAT(refusal({"test", "--capture", "a"}), StartsWith("--capture needs --output"));
  EXPECT_THAT(refusal({"test", "--timeout", "x", "a"}), StartsWith("--timeout"));
  EXPECT_THAT(refusal({"test", "--link", "x", "a"}), StartsWith("--link x"));
  EXPECT_THAT(refusal({"test", "--fault", "nothing", "a"}), HasSubstr("nothing"));
  EXPECT_THAT(refusal({"test", "--junit", "", "a"}), StartsWith("--junit is empty"));
}

TEST(CommandLineTest, PlanRefusesInALine) {
  const auto with = [](const std::string& option, const std::string& value) {
    return refusal({"plan", "job.yaml", option, value});
  };
  EXPECT_THAT(with("--technologies", "roce"), StartsWith("--technologies: 'roce' is none of"));
  EXPECT_THAT(with("--technologies", ","), StartsWith("--technologies is empty"));
  EXPECT_THAT(with("--topologies", ","), StartsWith("--topologies is empty"));
  EXPECT_THAT(with("--set", "x"), StartsWith("--set x"));
  EXPECT_THAT(with("--set", "technology=tcp"), HasSubstr("--technologies"));
  EXPECT_THAT(with("--seed", "x"), StartsWith("--seed x"));
  EXPECT_THAT(with("--threads", "0"), StartsWith("--threads 0"));
  EXPECT_THAT(with("--rate", "400G"), StartsWith("--rate: the job says it"));
  EXPECT_THAT(refusal({"plan", "job.yaml", "--sonic"}), StartsWith("--sonic"));
  EXPECT_THAT(refusal({"plan", ""}), StartsWith("JOB is empty"));
  for (const char* const option : {"--technologies", "--topologies", "-o", "--threads"})
    EXPECT_THAT(refusal({"plan", option, "1"}), HasSubstr("goes with a JOB")) << option;
}

}  // namespace
}  // namespace verbena::cli
