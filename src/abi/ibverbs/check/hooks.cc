#include "abi/ibverbs/check/hooks.h"

#include <chrono>

#include "abi/ibverbs/check/checker.h"
#include "abi/ibverbs/check/live_objects.h"
#include "abi/ibverbs/translate.h"

namespace verbena::abi::checks {
namespace {

using check::Ledger;
using check::Site;

// A program may acknowledge in another thread, a little later.
constexpr std::chrono::seconds kPatience{1};

thread_local bool leaving_behind = false;

template <typename Note>
void note(const Note& note) {
  if (Checker* const checker = Checker::active(); checker != nullptr) [[unlikely]]
    checker->with(note);
}

// With the adapter locked.
const WriteLog& written_in(const ContextObject& context) {
  return *context.adapter->device().memory().write_log();
}

check::DeviceId device_of(const ContextObject& context) { return context.adapter.get(); }

check::QPName name_of(const QPObject& qp) {
  return {device_of(qp.owner()), QPN{qp.qp_base.qp_num}};
}

check::Handle handle_of(const CQObject& cq) { return cq.queue; }
check::Handle handle_of(ibv_cq* cq) { return cq == nullptr ? nullptr : CQObject::of(cq).queue; }
check::Handle handle_of(const SRQObject& srq) { return srq.queue; }
check::Handle handle_of(ibv_srq* srq) {
  return srq == nullptr ? nullptr : SRQObject::of(srq).queue;
}

}  // namespace

void opened(host::Adapter& adapter) {
  if (active()) adapter.enter()->memory().keep_write_log();
}

void registered(const MRObject& mr, const u8* memory, u64 iova, unsigned access) {
  note([&](Ledger& ledger, const Site& at) {
    const bool whole_process = memory == nullptr && mr.is_on_demand();
    ledger.on_region(device_of(mr.owner()), LKey{mr.lkey},
                     {.pd = PDObject::of(mr.pd).id(),
                      .memory = memory,
                      .length = mr.length,
                      .iova = (access & IBV_ACCESS_ZERO_BASED) != 0 ? 0 : iova,
                      .is_memory = memory != nullptr || whole_process,
                      .whole_process = whole_process,
                      .registered = at});
  });
}

void reregistered(const MRObject& mr, LKey old_key, const ProtectionTable::Rereg& change) {
  note([&](Ledger& ledger, const Site& at) {
    const check::DeviceId device = device_of(mr.owner());
    const check::Region* const old = ledger.find_region(device, old_key);
    check::Region region = old != nullptr ? *old : check::Region{};
    region.pd = PDObject::of(mr.pd).id();
    region.registered = at;
    if (change.translation) {
      region.memory = change.base;
      region.is_memory = change.base != nullptr;  // nullptr if the CPU cannot touch it
      region.length = change.length;
      region.iova = change.iova;
    }
    ledger.on_region_changed(device, old_key, LKey{mr.lkey}, region);
  });
}

// A queue pair may be in Error before the program has polled the completions that report it.
void deregistered(const MRObject& mr) {
  if (!active()) return;
  auto session = mr.owner().enter();
  note([&](Ledger& ledger, const Site& at) {
    const check::DeviceId device = device_of(mr.owner());
    for (const QPN qpn : ledger.users_of(device, LKey{mr.lkey}))
      if (const QueuePair* const qp = session->find_qp(qpn); qp != nullptr)
        ledger.on_qp_state({device, qpn}, session->attributes_of(qp).state);
    ledger.on_deregister(device, LKey{mr.lkey}, at);
  });
}

void made(const CQObject& cq, OnOverrun on_overrun) {
  note([&](Ledger& ledger, const Site&) {
    ledger.on_cq(handle_of(cq), on_overrun == OnOverrun::kFail ? static_cast<u32>(cq.cqe) : 0);
  });
}

void resized(const CQObject& cq) {
  note([&](Ledger& ledger, const Site&) { ledger.on_cq(handle_of(cq), static_cast<u32>(cq.cqe)); });
}

void unmade(const CQObject& cq) {
  note([&](Ledger& ledger, const Site&) { ledger.on_cq_gone(handle_of(cq)); });
}

void made(const SRQObject& srq, u32 number) {
  note([&](Ledger& ledger, const Site&) {
    ledger.on_srq(handle_of(srq), device_of(srq.owner()), PDObject::of(srq.pd).id(), number);
  });
}

void unmade(const SRQObject& srq) {
  note([&](Ledger& ledger, const Site&) { ledger.on_srq_gone(handle_of(srq)); });
}

void made(const QPObject& qp, const QPInit& granted) {
  if (qp.xrcd != nullptr) return;  // an XRC target takes no work
  note([&](Ledger& ledger, const Site&) {
    ledger.on_qp(name_of(qp), {.pd = PDObject::of(qp.qp_base.pd).id(),
                               .send_cq = handle_of(qp.qp_base.send_cq),
                               .receive_cq = handle_of(qp.qp_base.recv_cq),
                               .srq = handle_of(qp.qp_base.srq),
                               .send_depth = granted.send.depth,
                               .signal_all = granted.signal_all,
                               .is_datagram = granted.type == QPType::kUD});
  });
}

void unmaking(const QPObject& qp, u64 rnr_naks_sent) {
  note([&](Ledger& ledger, const Site& at) {
    ledger.on_rnr_naks(name_of(qp), rnr_naks_sent, at);
    ledger.on_qp_gone(name_of(qp));
  });
}

void changed_state(const QPObject& qp, QPState to) {
  note([&](Ledger& ledger, const Site&) { ledger.on_qp_state(name_of(qp), to); });
}

void refused_state(const QPObject& qp, QPState to) {
  note([&](Ledger& ledger, const Site& at) {
    const auto from = to_qp_state(qp.qp_base.state);
    if (from) ledger.on_refused_transition(*from, to, at);
  });
}

void posted(const QPObject& qp, const SendWR& wr) {
  note([&](Ledger& ledger, const Site& at) {
    ledger.on_send(name_of(qp), wr, written_in(qp.owner()), at);
  });
}

void posted(const QPObject& qp, const RecvWR& wr) {
  note([&](Ledger& ledger, const Site& at) { ledger.on_receive(name_of(qp), wr, at); });
}

void posted(const SRQObject& srq, const RecvWR& wr) {
  note([&](Ledger& ledger, const Site& at) { ledger.on_srq_receive(handle_of(srq), wr, at); });
}

void refused(const QPObject& qp, PostError error, QPState state) {
  note([&](Ledger& ledger, const Site& at) { ledger.on_refused(name_of(qp), error, state, at); });
}

u32 poll(CQObject& cq, std::span<CQE> out) {
  const std::lock_guard lock(cq.checked);
  const u32 count = cq.owner().adapter->poll_cq(cq.queue, out);
  if (count == 0) return 0;
  auto session = cq.owner().enter();
  note([&](Ledger& ledger, const Site& at) {
    for (const CQE& cqe : out.first(count))
      ledger.on_polled(device_of(cq.owner()), cqe, written_in(cq.owner()), at);
  });
  return count;
}

void wait_until_settled(EventAccount& events, std::string_view kind) {
  if (Checker::active() != nullptr && !events.settles_within(kPatience))
    note([&](Ledger& ledger, const Site& at) {
      ledger.on_slow_destruction(kind, events.outstanding(), at);
    });
  events.wait_until_settled();
}

void created(const void* object, std::string_view kind) {
  note([&](Ledger& ledger, const Site& at) { ledger.on_created(object, kind, at); });
}

void destroyed(const void* object) {
  note([&](Ledger& ledger, const Site&) {
    leaving_behind ? ledger.on_left_behind(object) : ledger.on_destroyed(object);
  });
}

LeavingBehind::LeavingBehind() { leaving_behind = true; }
LeavingBehind::~LeavingBehind() { leaving_behind = false; }

}  // namespace verbena::abi::checks
