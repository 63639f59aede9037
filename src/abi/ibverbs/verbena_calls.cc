// The calls of <verbena/verbena.h>.
#include <verbena/verbena.h>

#include <cerrno>
#include <string>

#include "abi/ibverbs/context_object.h"
#include "abi/ibverbs/exceptions.h"
#include "faults/spec.h"

using namespace verbena;
using namespace verbena::abi;

namespace {

thread_local std::string last_error;

}  // namespace

int verbena_set_faults(ibv_context* context, const char* rules, uint64_t seed) try {
  last_error.clear();
  auto parsed = faults::parse_rules(rules != nullptr ? rules : "");
  if (!parsed) {
    last_error = parsed.error();
    return errno = EINVAL;
  }
  const auto done = ContextObject::of(context).adapter->set_faults(std::move(*parsed), seed);
  if (!done) {
    last_error = done.error().message;
    return errno = done.error().error;
  }
  return 0;
} catch (...) {
  return refuse(errno_of_exception());
}

const char* verbena_fault_error() try { return last_error.c_str(); } catch (...) {
  return fail(errno_of_exception());
}

int verbena_count_faults(ibv_context* context, unsigned int rule, verbena_fault_count* count) try {
  const auto session = ContextObject::of(context).adapter->enter();
  const faults::FaultFilter* const filter = session.faults();
  if (filter == nullptr || rule >= filter->counters().size()) return errno = ENOENT;
  const faults::RuleCounters& counters = filter->counters()[rule];
  *count = {.selected = counters.selected, .applied = counters.applied};
  return 0;
} catch (...) {
  return refuse(errno_of_exception());
}
