#include "check/ledger.h"

#include "check/memory_hash.h"
#include "check/words.h"
#include "memory/touch.h"
#include "transport/completions.h"

namespace verbena::check {
namespace {

bool sends_memory(SendOp op) {
  switch (op) {
    case SendOp::kSend:
    case SendOp::kSendWithImmediate:
    case SendOp::kSendWithInvalidate:
    case SendOp::kRDMAWrite:
    case SendOp::kRDMAWriteWithImmediate:
    case SendOp::kAtomicWrite: return true;
    case SendOp::kRDMARead:
    case SendOp::kCompareSwap:
    case SendOp::kFetchAdd:
    case SendOp::kBindMW:
    case SendOp::kLocalInvalidate:
    case SendOp::kFlush: return false;
  }
  return false;
}

bool is_atomic(SendOp op) {
  return op == SendOp::kCompareSwap || op == SendOp::kFetchAdd || op == SendOp::kAtomicWrite;
}

bool names_remote_memory(SendOp op) {
  return returns_data(op) || op == SendOp::kRDMAWrite || op == SendOp::kRDMAWriteWithImmediate ||
         op == SendOp::kAtomicWrite || op == SendOp::kFlush;
}

bool overlap(Bytes a, Bytes b) {
  return a.data() < b.data() + b.size() && b.data() < a.data() + a.size();
}

bool is_receive(const CQE& cqe) {
  return cqe.op == CompletionOp::kReceive || cqe.op == CompletionOp::kReceiveRDMAWithImmediate;
}

Work describe(u64 wr_id, std::span<const SGE> list, bool signaled, const Site& at) {
  Work work;
  work.wr_id = wr_id;
  work.signaled = signaled;
  work.list.assign(list.begin(), list.end());
  work.posted = at;
  for (const SGE& sge : list) work.bytes += sge.length;
  return work;
}

}  // namespace

// --- memory

void Ledger::on_region(DeviceId device, LKey key, const Region& region) {
  regions_.insert(device, key, region);
}

void Ledger::on_region_changed(DeviceId device, LKey old_key, LKey key, const Region& region) {
  forget_region(device, old_key);
  regions_.insert(device, key, region);
}

void Ledger::on_deregister(DeviceId device, LKey key, const Site& at) {
  const Region* const region = regions_.find(device, key);
  if (region == nullptr) return;
  if (const Work* const work = work_naming(device, key); work != nullptr)
    findings_.add({Kind::kRegionInUse,
                   words_of(*region) + "; " + words_of(*work) + " has not completed",
                   {{"deregistered here", at},
                    {"the work was posted here", work->posted},
                    {"registered here", region->registered}}});
  forget_region(device, key);
}

// Work that starts to use the memory from now on is not checked.
void Ledger::forget_region(DeviceId device, LKey key) {
  regions_.erase(device, key);
  for_each_work([&](DeviceId of, Work& work) {
    const auto names_it = [key](const SGE& sge) { return sge.l_key == key; };
    if (of == device && std::ranges::any_of(work.list, names_it)) let_go(work);
  });
}

template <typename Visit>
void Ledger::for_each_work(Visit visit) {
  for (auto& [name, qp] : qps_) {
    for (Work& work : qp.sends.all()) visit(name.device, work);
    for (Work& work : qp.receives.all()) visit(name.device, work);
  }
  for (auto& [handle, srq] : srqs_)
    for (Work& work : srq.receives.all()) visit(srq.device, work);
}

const Work* Ledger::work_naming(const QP& qp, LKey key) const {
  if (qp.failed) return nullptr;
  if (const Work* const work = qp.sends.naming(key, heard_)) return work;
  if (const Work* const work = qp.receives.naming(key, heard_)) return work;
  const auto shared = srqs_.find(qp.facts.srq);
  return shared == srqs_.end() || shared->second.lost_some
             ? nullptr
             : shared->second.receives.naming(key, heard_);
}

const Work* Ledger::work_naming(DeviceId device, LKey key) const {
  for (const auto& [name, qp] : qps_)
    if (name.device == device)
      if (const Work* const work = work_naming(qp, key)) return work;
  return nullptr;
}

std::vector<QPN> Ledger::users_of(DeviceId device, LKey key) const {
  std::vector<QPN> users;
  for (const auto& [name, qp] : qps_)
    if (name.device == device && work_naming(qp, key) != nullptr) users.push_back(name.qpn);
  return users;
}

// --- queues

void Ledger::on_cq(Handle cq, u32 capacity) { cqs_[cq].capacity = capacity; }

void Ledger::on_srq(Handle srq, DeviceId device, PDId pd, u32 number) {
  srqs_[srq] = {.device = device, .pd = pd, .number = number, .receives = {}};
}

void Ledger::on_srq_gone(Handle srq) {
  const auto found = srqs_.find(srq);
  if (found == srqs_.end()) return;
  settle(found->second.cq, found->second.receives.size());
  srqs_.erase(found);
}

// Counts the receives of a shared queue if they can complete on one CQ only.
void Ledger::on_qp(const QPName& name, const QPFacts& facts) {
  qps_[name] = {.facts = facts, .sends = {}, .receives = {}, .invalidated = {}};
  const auto shared = srqs_.find(facts.srq);
  if (shared == srqs_.end()) return;
  SRQ& srq = shared->second;
  if (srq.several_cqs || srq.lost_some || srq.cq == facts.receive_cq) return;
  settle(srq.cq, srq.receives.size());
  srq.several_cqs = srq.cq != nullptr;
  srq.cq = srq.several_cqs ? nullptr : facts.receive_cq;
  if (const auto cq = cqs_.find(srq.cq); cq != cqs_.end())
    cq->second.pending += srq.receives.size();
}

void Ledger::on_qp_gone(const QPName& name) {
  const auto found = qps_.find(name);
  if (found == qps_.end()) return;
  forget_work(found->second);
  if (const auto srq = srqs_.find(found->second.facts.srq); srq != srqs_.end())
    on_user_gone(srq->second);
  qps_.erase(found);
}

// A queue pair that is destroyed takes a receive with it that it had begun to fill. Nobody is told
// which.
void Ledger::on_user_gone(SRQ& srq) {
  settle(srq.cq, srq.receives.size());
  srq.cq = nullptr;
  srq.lost_some = true;
}

void Ledger::on_qp_state(const QPName& name, QPState to) {
  const auto found = qps_.find(name);
  if (found == qps_.end()) return;
  found->second.failed = to == QPState::kError;
  if (to == QPState::kReset) forget_work(found->second);
}

void Ledger::forget_work(QP& qp) {
  settle(qp.facts.send_cq, qp.sends.signaled());
  settle(qp.facts.receive_cq, qp.receives.size());
  for (Work& work : qp.sends.all()) let_go(work);
  for (Work& work : qp.receives.all()) let_go(work);
  qp.sends.clear();
  qp.receives.clear();
}

void Ledger::on_refused_transition(QPState from, QPState to, const Site& at) {
  const bool skips = (from == QPState::kReset && (to == QPState::kRTR || to == QPState::kRTS)) ||
                     (from == QPState::kInit && to == QPState::kRTS);
  if (!skips) return;
  findings_.add(
      {Kind::kSkippedState,
       "from " + words_of(from) + " to " + words_of(to) + "; the way is RESET, INIT, RTR, RTS",
       {{"called here", at}}});
}

// --- work

void Ledger::check_memory(DeviceId device, PDId pd, Work& work) {
  check_keys(device, pd, work);
  check_mapped(device, work);
  work.memory = regions_.resolve(device, work.list).value_or(std::vector<Bytes>{});
}

void Ledger::check_keys(DeviceId device, PDId pd, const Work& work) {
  for (const SGE& sge : work.list) {
    if (sge.length == 0) continue;
    const Region* const region = regions_.find(device, sge.l_key);
    if (region == nullptr) {
      findings_.add({Kind::kUnknownKey,
                     "L_Key " + hex(sge.l_key.value) + ", in " + words_of(work) +
                         "; deregistered, or never one",
                     {{"posted here", work.posted}}});
    } else if (!(region->pd == pd)) {
      findings_.add({Kind::kOtherDomain,
                     "L_Key " + hex(sge.l_key.value) + ", in " + words_of(work),
                     {{"posted here", work.posted}, {"registered here", region->registered}}});
    }
  }
}

void Ledger::check_mapped(DeviceId device, const Work& work) {
  const auto gone = std::ranges::find_if(work.list, [&](const SGE& sge) {
    const std::optional<Bytes> piece = regions_.resolve(device, sge);
    return piece && !is_readable(*piece);
  });
  if (gone == work.list.end()) return;
  const Region* const region = regions_.find(device, gone->l_key);
  findings_.add({Kind::kMemoryGone,
                 words_of(*region) + "; " + words_of(work),
                 {{"posted here", work.posted}, {"registered here", region->registered}}});
}

// The responder would refuse an unaligned atomic. IBTA 9.4.5
void Ledger::check_alignment(const QPName& name, const SendWR& wr, const Site& at) {
  if (!is_atomic(wr.op) || wr.remote_address % 8 == 0) return;
  findings_.add({Kind::kUnaligned,
                 words_of(name.qpn) + ", remote address " + hex(wr.remote_address),
                 {{"posted here", at}}});
}

void Ledger::check_reclaimable(const QP& qp, const QPName& name, const Site& at) {
  if (qp.failed || qp.sends.size() < qp.facts.send_depth || qp.sends.signaled() != 0) return;
  if (qp.facts.send_depth == 0) return;
  findings_.add({Kind::kUnreclaimable,
                 words_of(name.qpn) + " has " + std::to_string(qp.facts.send_depth) +
                     " places, and none of the work in them will complete visibly: a card never "
                     "gets them free again",
                 {{"one more is posted here", at}, {"the oldest here", qp.sends.oldest().posted}}});
}

// Hashes only bytes that nobody but the program could change.
void Ledger::watch(Work& work) {
  const auto is_filled = [this](Bytes piece) { return filled_.overlaps(piece); };
  if (work.memory.empty() || std::ranges::any_of(work.memory, is_filled)) return;
  work.hash = hash_of(work.memory);
  if (!work.hash) return;
  for (const Bytes piece : work.memory) sent_.insert(piece);
}

// The device writes there from now on. Sends from there are no longer checked.
void Ledger::fill(Work& work) {
  work.fills = true;
  for (const Bytes piece : work.memory) {
    if (settings_.overlaps && filled_.overlaps(piece))
      findings_.add({Kind::kOverlap, words_of(work), {{"posted here", work.posted}}});
    filled_.insert(piece);
    if (sent_.overlaps(piece))
      for_each_work([&](DeviceId, Work& other) {
        const auto is_there = [piece](Bytes bytes) { return overlap(bytes, piece); };
        if (other.hash && std::ranges::any_of(other.memory, is_there)) let_go(other);
      });
  }
}

void Ledger::let_go(Work& work) {
  if (work.fills || work.hash)
    for (const Bytes piece : work.memory) (work.fills ? filled_ : sent_).erase(piece);
  work.memory.clear();
  work.hash.reset();
}

void Ledger::expect(Handle handle, const Site& at) {
  const auto found = cqs_.find(handle);
  if (found == cqs_.end()) return;
  CQ& cq = found->second;
  ++cq.pending;
  if (cq.capacity == 0 || cq.pending <= cq.capacity) return;
  findings_.add({Kind::kCQTooSmall,
                 "it has " + std::to_string(cq.capacity) + " entries, and " +
                     std::to_string(cq.pending) + " completions may come before the next poll",
                 {{"the last of them is posted here", at}}});
}

void Ledger::settle(Handle handle, u64 count) {
  if (const auto cq = cqs_.find(handle); cq != cqs_.end())
    cq->second.pending -= std::min(cq->second.pending, count);
}

void Ledger::on_send(const QPName& name, const SendWR& wr, const WriteLog& written,
                     const Site& at) {
  const auto found = qps_.find(name);
  if (found == qps_.end()) return;
  QP& qp = found->second;
  check_reclaimable(qp, name, at);
  check_alignment(name, wr, at);
  const bool has_list = !wr.inline_data && (sends_memory(wr.op) || returns_data(wr.op));
  Work work = describe(wr.wr_id, has_list ? wr.sg_list : std::span<const SGE>{},
                       wr.signaled || qp.facts.signal_all, at);
  check_memory(name.device, qp.facts.pd, work);
  if (returns_data(wr.op)) fill(work);
  if (sends_memory(wr.op) && (work.signaled || !qp.facts.is_datagram)) watch(work);
  if (work.signaled) expect(qp.facts.send_cq, at);
  work.heard = heard_;
  work.peer_writes = written.count();
  if (const auto gone = qp.invalidated.find(wr.r_key.value);
      gone != qp.invalidated.end() && names_remote_memory(wr.op))
    work.invalidated = gone->second;
  if (wr.op == SendOp::kSendWithInvalidate) qp.invalidated[wr.invalidate.value] = at;
  qp.sends.push(std::move(work));
}

void Ledger::on_receive(const QPName& name, const RecvWR& wr, const Site& at) {
  const auto found = qps_.find(name);
  if (found == qps_.end()) return;
  QP& qp = found->second;
  Work work = describe(wr.wr_id, wr.sg_list, true, at);
  check_memory(name.device, qp.facts.pd, work);
  fill(work);
  expect(qp.facts.receive_cq, at);
  qp.ever_received = true;
  qp.receives.push(std::move(work));
}

void Ledger::on_srq_receive(Handle handle, const RecvWR& wr, const Site& at) {
  const auto found = srqs_.find(handle);
  if (found == srqs_.end()) return;
  SRQ& srq = found->second;
  Work work = describe(wr.wr_id, wr.sg_list, true, at);
  check_memory(srq.device, srq.pd, work);
  fill(work);
  expect(srq.cq, at);
  srq.receives.push(std::move(work));
}

void Ledger::on_refused(const QPName& name, PostError error, QPState state, const Site& at) {
  if (error == PostError::kUnaligned)
    findings_.add({Kind::kUnaligned,
                   words_of(name.qpn) + ", or its length is not 8 bytes",
                   {{"posted here", at}}});
  if (error == PostError::kBadState)
    findings_.add({Kind::kWrongState,
                   words_of(name.qpn) + " is in " + words_of(state),
                   {{"posted here", at}}});
  const auto found = qps_.find(name);
  if (error == PostError::kQueueFull && found != qps_.end())
    check_reclaimable(found->second, name, at);
}

// --- completions

void Ledger::on_polled(DeviceId device, const CQE& cqe, const WriteLog& written, const Site& at) {
  const QPName name{device, cqe.qp};
  const Moment now{written, at};
  const auto found = qps_.find(name);
  QP* const qp = found == qps_.end() ? nullptr : &found->second;
  if (qp != nullptr && cqe.status != WQEStatus::kSuccess) qp->failed = true;
  if (is_receive(cqe)) {
    ++heard_;
    on_receive_polled(name, qp, cqe, now);
  } else if (qp != nullptr) {
    on_send_polled(name, *qp, cqe, now);
  }
}

Ledger::SRQ* Ledger::srq_numbered(DeviceId device, u32 number) {
  const auto found = std::ranges::find_if(srqs_, [&](const auto& entry) {
    return entry.second.device == device && entry.second.number == number;
  });
  return found == srqs_.end() ? nullptr : &found->second;
}

void Ledger::on_receive_polled(const QPName& name, QP* qp, const CQE& cqe, const Moment& now) {
  SRQ* srq = cqe.srq != 0 ? srq_numbered(name.device, cqe.srq) : nullptr;
  if (const auto shared = srqs_.find(qp != nullptr ? qp->facts.srq : nullptr);
      shared != srqs_.end())
    srq = &shared->second;
  if (srq == nullptr && qp == nullptr) return;
  if (qp != nullptr) {
    qp->invalidated.clear();
    check_still_unchanged(name, *qp, now);
  }
  auto work = srq != nullptr ? srq->receives.take(cqe.wr_id) : qp->receives.take(cqe.wr_id);
  if (!work) return;
  settle(srq != nullptr ? srq->cq : qp->facts.receive_cq, 1);
  let_go(*work);
  if (cqe.status == WQEStatus::kLocalLength)
    findings_.add({Kind::kReceiveBufferTooSmall,
                   words_of(cqe.qp) + ", " + words_of(*work),
                   {{"the receive was posted here", work->posted}}});
}

void Ledger::on_send_polled(const QPName& name, QP& qp, const CQE& cqe, const Moment& now) {
  const bool good = cqe.status == WQEStatus::kSuccess;
  std::vector<Work> done = qp.sends.take_through(cqe.wr_id, !good);
  for (Work& work : done) {
    if (good) check_unchanged(name, work, now);
    let_go(work);
  }
  if (!done.empty()) check_invalidated(name, done.back(), cqe);
  settle(qp.facts.send_cq, static_cast<u64>(std::ranges::count_if(done, &Work::signaled)));
}

void Ledger::check_invalidated(const QPName& name, const Work& work, const CQE& cqe) {
  if (cqe.status != WQEStatus::kRemoteAccess || !work.invalidated) return;
  findings_.add({Kind::kInvalidatedKey,
                 words_of(name.qpn) + ", " + words_of(work),
                 {{"posted here", work.posted},
                  {"the send that invalidates was posted here", *work.invalidated}}});
}

// A message of the peer may be its answer to an earlier send. The program then knows that the send
// has arrived, whether or not it has polled the completion, and may write there from now on.
void Ledger::check_still_unchanged(const QPName& name, QP& qp, const Moment& now) {
  for (Work& work : qp.sends.all()) {
    if (!work.hash) continue;
    if (!qp.failed) check_unchanged(name, work, now);
    let_go(work);
  }
}

void Ledger::check_unchanged(const QPName& name, const Work& work, const Moment& now) {
  if (!work.hash) return;
  const std::optional<u64> hash = hash_of(work.memory);
  if (!hash || *hash == *work.hash) return;
  const auto is_written_by_peers = [&](Bytes piece) {
    return now.written.was_written_since(work.peer_writes, piece);
  };
  if (std::ranges::any_of(work.memory, is_written_by_peers)) return;
  findings_.add(
      {Kind::kSendBufferChanged,
       words_of(name.qpn) + ", " + words_of(work),
       {{"posted here", work.posted}, {"changed when a completion was polled here", now.at}}});
}

void Ledger::on_rnr_naks(const QPName& name, u64 count, const Site& at) {
  const auto found = qps_.find(name);
  if (count == 0 || found == qps_.end()) return;
  const QP& qp = found->second;
  if (qp.ever_received || qp.facts.srq != nullptr) return;
  findings_.add({Kind::kNeverReceives,
                 words_of(name.qpn) + " has told its peer " + std::to_string(count) +
                     " times to wait (RNR NAK)",
                 {{"seen here", at}}});
}

// --- objects

void Ledger::on_created(Handle object, std::string_view kind, const Site& at) {
  objects_[object] = {std::string(kind), at};
}

void Ledger::on_left_behind(Handle object) {
  const auto found = objects_.find(object);
  if (found == objects_.end()) return;
  left_behind_.push_back(std::move(found->second));
  objects_.erase(found);
}

std::vector<Ledger::Object> Ledger::left() const {
  std::vector<Object> all = left_behind_;
  for (const auto& [handle, object] : objects_) all.push_back(object);
  return all;
}

void Ledger::on_slow_destruction(std::string_view kind, u64 events, const Site& at) {
  findings_.add({Kind::kUnacknowledgedEvent,
                 std::string(kind) + ": " + std::to_string(events) +
                     " events were read and not acknowledged; the call waits for that",
                 {{"destroyed here", at}}});
}

}  // namespace verbena::check
