/* Verbena's own calls, for tests that want to do what no hardware can: faults, from inside the
 * program. They are in Verbena's libibverbs.so.1 and in no other; a program that must also run on
 * hardware looks them up:
 *
 *     #include <verbena/verbena.h>
 *     typeof(verbena_set_faults) *set = dlvsym(RTLD_DEFAULT, "verbena_set_faults", "VERBENA_1.0");
 *     if (set && set(context, "loss 1% opcode=ack", 42) != 0) perror("verbena_set_faults");
 *
 * docs/faults.md has the language of the rules.
 */
#ifndef VERBENA_VERBENA_H
#define VERBENA_VERBENA_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ibv_context;

/* Faults of the context's device (all contexts of this process on the same address) from now on, in
 * place of those before; NULL or "": none. Same seed and same traffic: same faults.
 * Returns 0, or EINVAL where the rules are wrong; verbena_fault_error() then tells. */
int verbena_set_faults(struct ibv_context *context, const char *rules, uint64_t seed);

/* Why verbena_set_faults() last failed in this thread: one line, good until its next call. "" if it
 * did not. */
const char *verbena_fault_error(void);

struct verbena_fault_count {
	uint64_t selected; /* packets, or registrations, that the rule's selectors fit */
	uint64_t applied;  /* those to which it did something */
};

/* What rule number `rule` (from 0, in the order written) has done so far.
 * Returns 0, or ENOENT where there is no such rule. */
int verbena_count_faults(struct ibv_context *context, unsigned int rule,
			 struct verbena_fault_count *count);

#ifdef __cplusplus
}
#endif

#endif
