#include "abi/ibverbs/check/for_rdmacm.h"

#include "abi/ibverbs/check/hooks.h"

using namespace verbena::abi;

void verbena_checks_created(const void* object, const char* kind) {
  Checker::start();  // before any device is opened
  checks::created(object, kind);
}

void verbena_checks_destroyed(const void* object) { checks::destroyed(object); }

void verbena_checks_wait(EventAccount* events, const char* kind) {
  checks::wait_until_settled(*events, kind);
}
