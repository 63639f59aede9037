// Requests: what a user may ask of `verbena`, by command. command_line.h reads them.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/rate.h"
#include "base/time.h"
#include "fabric/scenario/setting.h"
#include "fabric/technology.h"
#include "jobs/plan/tuning.h"
#include "perf/options.h"
#include "wire/ib/gid.h"

namespace verbena::cli {

struct RunRequest {
  std::string address;               // --address; "": VERBENA_ADDRESS, or the default
  std::string faults;                // --fault and --fault-file, read and checked; "": none
  std::string capture;               // --capture, an absolute path; "": none
  std::string capture_limit;         // --capture-limit, in bytes; "": none
  std::string check;                 // --check: words of check/settings.h; "": none
  std::string check_exit_code;       // --check-exit-code; "": the program's own
  std::string seed;                  // --seed; "": VERBENA_SEED, or the default
  std::string congestion;            // --cc; "": VERBENA_CC, or the default
  std::string retransmission;        // --retransmission; likewise
  std::string link;                  // --link; "": VERBENA_LINK, or the default
  std::string share;                 // --share: on; "": VERBENA_SHARE, or off
  std::string fabric;                // --fabric: a scenario's file; "": none
  std::string nic;                   // --nic: the socket of `verbena nic`; "": none
  std::string as;                    // --as, of that; "": by the rank in an MPI job
  std::optional<u32> scale;          // --scale; not given: that of the fabric, or the default
  std::vector<std::string> command;  // program and arguments; never empty
};
enum class OutputFormat { kText, kJSON };
struct DevicesRequest {
  std::string address;  // as above
  OutputFormat format = OutputFormat::kText;
};
struct ListenAddress {
  GID address;
  u16 port = 0;  // 0: any that is free
};
struct StatsRequest {
  std::optional<Duration> watch;        // --watch: again and again, so long between
  std::optional<ListenAddress> listen;  // --prometheus
  std::optional<pid_t> pid;             // --pid
  OutputFormat format = OutputFormat::kText;
};
struct TopRequest {
  Duration interval = sec(1);
  std::optional<pid_t> pid;
};
struct DoctorRequest {
  std::string address;  // as above
  std::string peer;     // "": none
  bool listen = false;  // --listen: answer other doctors
  OutputFormat format = OutputFormat::kText;
};
struct Sweep {
  std::string key;
  std::vector<std::string> values;  // one at least
};
struct SimRequest {
  static constexpr u32 kMaxThreads = 1024;
  // YAML files, or one folder of HPCC's ns-3 model; none: the example. Several: --compare
  std::vector<std::string> scenarios;
  std::string output;  // --output; "": results are printed and nothing else
  std::optional<u64> seed;
  std::vector<fabric::Setting> settings;  // --set
  std::vector<Sweep> sweeps;              // --sweep
  std::vector<std::string> captures;      // --capture: names of links
  std::vector<std::string> expectations;  // --expect
  std::string junit;                      // --junit: a file; "": none
  OutputFormat format = OutputFormat::kText;
  u32 threads = 1;  // of each simulation; they change no result
};
// verbena plan JOB
struct PlanJobRequest {
  std::string job;                               // a file
  std::vector<fabric::Technology> technologies;  // --technologies; all where it is not given
  std::vector<std::string> topologies;           // --topologies: kinds or files; none: the job's
  std::string output;                            // --output; "": nothing is written
  OutputFormat format = OutputFormat::kText;
  std::vector<fabric::Setting> settings;  // --set, and --seed
  u32 threads = 0;                        // simulations at a time; 0: as many as cores
  std::optional<u32> cable_metres;        // --cable; else as the links' delays have it
};
struct PlanRequest {
  enum class Print : u8 { kTuning, kSONiC, kNVUE, kEOS, kNIC, kCatalogue, kHostPath };
  Print print = Print::kTuning;
  jobs::TuningRequest tuning;
  std::vector<std::string> interfaces;  // of kSONiC and kEOS; none: an example stands for them
  std::optional<PlanJobRequest> job;    // instead of all of them
};
struct FabricRequest {
  enum class Run : u8 { kInForeground, kInBackground };
  std::string scenario;                   // a YAML file
  std::vector<fabric::Setting> settings;  // --set
  u32 scale = 0;                          // --scale: real time for 1 of simulated
  Run run = Run::kInForeground;           // --background: as `run` starts it
  // Instead of all that: of the fabric that runs, links by their name or by that of a node.
  enum class What : u8 {
    kUnplug,
    kPlug,
    kPowerOff,
    kPowerOn,
    kErrorRate,
    kOverrun,
    kCreditStall,
  };
  struct Change {
    What what;
    std::string name;
    double error_rate = 0;
  };
  std::vector<Change> changes{};  // --unplug, --plug, --power-off, --power-on, --error-rate
};
struct CollRequest {
  static constexpr u32 kMaxRanks = 1024;
  RunRequest run;  // the device's options; without a program
  u32 ranks = 2;   // -n
  bool ranks_are_given = false;
  std::vector<std::string> options;  // of a rank, as NAME=VALUE (perf/options.h)
  std::string predict;               // --predict: a file of --tune; "": none
  perf::Options measured;            // the same options, read
};
struct TestRequest {
  RunRequest run;  // the device's options, without address and program
  u32 hosts = 2;
  // One for all hosts, or one for each: program and arguments; none is empty.
  std::vector<std::vector<std::string>> commands;
  Duration timeout = sec(600);  // of all of it
  Duration grace = sec(10);     // for the others, once one has failed or the last has ended
  Duration delay{};             // to the next start, unless a TCP port is listened on
  bool loopback = false;        // no namespaces
  bool captures = false;        // of the first run as well
  bool reruns = true;           // repeats failed runs with --check and a capture
  std::string output;           // a folder; "": one for temporary files, where it is needed
  std::string junit;            // a file; "": none
  std::string name = "verbena test";
};
// verbena model, verbena bench kv, verbena nvmf
struct ToolRequest {
  RunRequest run;                  // the device's options; without a program
  std::vector<std::string> words;  // of the program's own, the command first
};
// verbena bench gpu-paths
struct BenchRequest {
  std::string address;                  // as above
  std::string driver = "libcuda.so.1";  // --driver
  u64 bytes = 1 << 20;                  // --size
  u32 count = 200;                      // --count
  Rate line = gbps(400);                // --rate, of the predicted network
  bool only_predicts = false;           // --predict
};
struct NICRequest {
  enum class Action : u8 { kRun, kStatus, kMetrics, kTop };
  Action action = Action::kRun;
  std::string path;  // nic.yaml; of all but kRun also the socket
};
struct DefaultRequest {
  enum class Action : u8 { kStatus, kOn, kOff };
  Action action = Action::kStatus;
  std::filesystem::path root = "/";  // --root
};
struct PrintRequest {
  std::string text;  // of --help and --version
};
using Request = std::variant<RunRequest, DevicesRequest, StatsRequest, TopRequest, DoctorRequest,
                             SimRequest, PlanRequest, FabricRequest, CollRequest, TestRequest,
                             ToolRequest, BenchRequest, NICRequest, DefaultRequest, PrintRequest>;

}  // namespace verbena::cli
