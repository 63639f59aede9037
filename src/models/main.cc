// verbena-transfer: `verbena model` and `verbena bench` start it.
#include <string>
#include <vector>

#include "models/commands.h"

namespace verbena::models {
namespace {

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
  return verbena::models::run(std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc));
}
