// verbena-transfer: `verbena model` and `verbena bench` start it.
#include <sys/resource.h>

#include <csignal>
#include <string>
#include <vector>

#include "host/os/time_slice.h"
#include "models/commands.h"

namespace verbena::models {
namespace {

// A model has many files, each with a descriptor. A file that gets too long is an error of write(),
// not the end of the process. Threads that receive run as soon as something arrives; those that
// hash have longer slices (hashers.cc).
void prepare_process() {
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
  }
  std::signal(SIGXFSZ, SIG_IGN);
  host::set_time_slice(host::kShortTimeSlice);
}

int run(const std::vector<std::string>& arguments) {
  if (arguments.size() >= 2) {
    const std::span<const std::string> rest(arguments.data() + 2, arguments.size() - 2);
    if (arguments[0] == "model" && arguments[1] == "serve") return serve_model(rest);
    if (arguments[0] == "model" && arguments[1] == "fetch") return fetch_model(rest);
    if (arguments[0] == "bench" && arguments[1] == "kv") return bench_kv(rest);
  }
  return fail(kExitUsage, "a command is needed: model serve, model fetch or bench kv");
}

}  // namespace

}  // namespace verbena::models

int main(int argc, char** argv) {
  verbena::models::prepare_process();
  return verbena::models::run(std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc));
}
