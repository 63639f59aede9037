// The reports of librdmacm.so.1 to the checker, which is in libibverbs.so.1: a process has one
// checker. Exported at the version VERBENA_PRIVATE.
#pragma once

#include "abi/ibverbs/event_account.h"

extern "C" {
// `kind`: as LiveSet's. An object that was never reported may be destroyed.
void verbena_checks_created(const void* object, const char* kind);
void verbena_checks_destroyed(const void* object);
// As the account's own; reports where a program waits for long.
void verbena_checks_wait(verbena::abi::EventAccount* events, const char* kind);
}
