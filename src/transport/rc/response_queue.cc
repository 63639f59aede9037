#include "transport/rc/response_queue.h"

namespace verbena {

namespace {

Response response_to(const ResponderResource& r, PSN psn, u64 address, u32 length_bytes) {
  Response response;
  response.kind = r.kind;
  response.psn = psn;
  response.msn = r.msn;
  response.address = address;
  response.r_key = r.r_key;
  response.pd = r.pd;
  response.length_bytes = length_bytes;
  response.original = r.original;
  response.far_atomic = r.far_atomic;
  return response;
}

}  // namespace

ResponseQueue::ResponseQueue(u8 max_resources, const CopyLane* copies)
    : max_resources_(max_resources), copies_(copies) {}

void ResponseQueue::push(const Response& response) {
  pending_.push(response).after = writes_begun();
}

void ResponseQueue::drop_from(PSN psn) {
  for (std::size_t left = pending_.size(); left != 0; --left) {
    const Response response = pending_.pop();
    if (response.psn.before(psn)) pending_.push(response);
  }
}

void ResponseQueue::refuse_front(NAKCode code) {
  Response nak;
  nak.aeth_kind = AETHKind::kNAK;
  nak.aeth_value = static_cast<u8>(code);
  nak.psn = pending_.front().psn;
  nak.msn = pending_.front().msn.previous();  // its request is not complete
  nak.after = pending_.front().after;
  pending_.front() = nak;
}

void ResponseQueue::drop_behind_front() {
  const Response front = pending_.front();
  pending_.clear();
  pending_.push(front);
}

void ResponseQueue::take_memory() {
  if (pending_.capacity() != 0) return;
  pending_ = Ring<Response>(kMaxPending);
  resources_ = Ring<ResponderResource>(max_resources_);
}

void ResponseQueue::clear() {
  pending_.clear();
  resources_.clear();
}

void ResponseQueue::acknowledge(PSN psn, MSN msn) {
  take_memory();
  if (!pending_.empty()) {
    Response& last = pending_[pending_.size() - 1];
    if (last.positive_ack() && (last.after == writes_begun() || pending_.size() >= kMostWaiting)) {
      last.psn = psn;
      last.msn = msn;
      last.after = writes_begun();
      return;
    }
  }
  if (pending_.full()) return;  // counts as lost; the requester repeats it
  Response ack;
  ack.psn = psn;
  ack.msn = msn;
  push(ack);
}

// Not before a READ or atomic: the SACK's contents would overtake that response.
void ResponseQueue::sack(PSN psn, MSN msn, const SackETH& sack) {
  take_memory();
  for (std::size_t i = pending_.size(); i != 0 && pending_[i - 1].acknowledges_only(); --i) {
    Response& waiting = pending_[i - 1];
    if (waiting.kind != Response::Kind::kSack || waiting.sacked_from != sack.first) continue;
    waiting.psn = psn;
    waiting.msn = msn;
    waiting.original = sack.bits;
    return;
  }
  if (full()) return;  // counts as lost
  Response response;
  response.kind = Response::Kind::kSack;
  response.psn = psn;
  response.msn = msn;
  response.sacked_from = sack.first;
  response.original = sack.bits;
  push(response);
}

void ResponseQueue::negative(PSN psn, MSN msn, AETHKind kind, u8 value) {
  take_memory();
  if (pending_.full()) return;
  Response nak;
  nak.aeth_kind = kind;
  nak.aeth_value = value;
  nak.psn = psn;
  nak.msn = msn;
  push(nak);
}

void ResponseQueue::execute(const ResponderResource& resource, u8 limit) {
  take_memory();
  while (resources_.size() >= limit || resources_.full()) (void)resources_.pop();
  resources_.push(resource);
  push(response_to(resource, resource.first_psn, resource.address, resource.length_bytes));
}

void ResponseQueue::repeat(const ResponderResource& original, PSN psn, u64 address,
                           u32 length_bytes) {
  // A READ that is still being answered starts over from where the requester asks.
  for (std::size_t i = 0; i < pending_.size(); ++i) {
    Response& waiting = pending_[i];
    if (waiting.acknowledges_only() || !original.holds(waiting.psn)) continue;
    const bool repeated = waiting.repeated;
    const u64 after = waiting.after;
    waiting = response_to(original, psn, address, length_bytes);
    waiting.repeated = repeated;
    waiting.after = after;
    return;
  }
  repeat_part(original, psn, address, length_bytes);
}

void ResponseQueue::repeat_part(const ResponderResource& original, PSN psn, u64 address,
                                u32 length_bytes) {
  if (full()) return;
  Response again = response_to(original, psn, address, length_bytes);
  again.repeated = true;
  push(again);
}

const ResponderResource* ResponseQueue::find(PSN psn) const {
  for (std::size_t i = 0; i < resources_.size(); ++i)
    if (resources_[i].holds(psn)) return &resources_[i];
  return nullptr;
}

u32 ResponseQueue::pending_rd_atomic() const {
  u32 n = 0;
  for (std::size_t i = 0; i < pending_.size(); ++i)
    n += !pending_[i].acknowledges_only() && !pending_[i].repeated ? 1 : 0;
  return n;
}

}  // namespace verbena
