// The reports of the verbs to the checker (check/checker.h). Each is one call, which costs one test
// if there is no checker. None of them changes what a program sees.
#pragma once

#include "abi/ibverbs/check/checker.h"
#include "abi/ibverbs/cq_object.h"
#include "abi/ibverbs/mr_object.h"
#include "abi/ibverbs/qp_object.h"
#include "abi/ibverbs/srq_object.h"

namespace verbena::abi::checks {

// For the data path, which asks before it calls.
[[nodiscard]] inline bool active() { return Checker::active() != nullptr; }

void opened(host::Adapter& adapter);

// --- memory. `memory`: in this process; nullptr for none, or all of it.
void registered(const MRObject& mr, const u8* memory, u64 iova, unsigned access);
void reregistered(const MRObject& mr, LKey old_key, const ProtectionTable::Rereg& change);
void deregistered(const MRObject& mr);  // the object is still there

// --- queues. made() is called before the program can use them.
void made(const CQObject& cq, OnOverrun on_overrun);
void resized(const CQObject& cq);
void unmade(const CQObject& cq);
void made(const SRQObject& srq, u32 number);
void unmade(const SRQObject& srq);
void made(const QPObject& qp, const QPInit& granted);
void unmaking(const QPObject& qp, u64 rnr_naks_sent);
void changed_state(const QPObject& qp, QPState to);
void refused_state(const QPObject& qp, QPState to);

// --- work, with the adapter locked, so that its completion cannot come first
void posted(const QPObject& qp, const SendWR& wr);
void posted(const QPObject& qp, const RecvWR& wr);
void posted(const SRQObject& srq, const RecvWR& wr);
void refused(const QPObject& qp, PostError error, QPState state);
// The adapter's poll_cq(), in one thread at a time: the checker gets the completions in the order
// in which threads take them.
[[nodiscard]] u32 poll(CQObject& cq, std::span<CQE> out);

// As EventAccount's; reports where a program waits for long.
void wait_until_settled(EventAccount& events, std::string_view kind);

}  // namespace verbena::abi::checks
