#include "abi/ibverbs/check/for_rdmacm.h"

#include "abi/ibverbs/check/hooks.h"
#include "abi/ibverbs/exceptions.h"

using namespace verbena::abi;

void verbena_checks_created(const void* object, const char* kind) try {
  Checker::start();  // before any device is opened
  checks::created(object, kind);
} catch (...) {
  refuse(errno_of_exception());
}

void verbena_checks_destroyed(const void* object) try { checks::destroyed(object); } catch (...) {
  refuse(errno_of_exception());
}

void verbena_checks_wait(EventAccount* events, const char* kind) try {
  checks::wait_until_settled(*events, kind);
} catch (...) {
  refuse(errno_of_exception());
}
