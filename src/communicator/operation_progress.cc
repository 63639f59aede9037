#include "communicator/operation.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "coll/reduce/copy.h"
#include "coll/reduce/reduce.h"
#include "coll/scripts/direct.h"
#include "communicator/communicator.h"
#include "communicator/world.h"

namespace verbena::coll {
namespace {

using collectives::Action;
using collectives::Range;
using collectives::Step;

constexpr u64 kOffsetMask = (u64{1} << kAreaShift) - 1;

u64 end_of(const Blocks& blocks) {
  u64 end = 0;
  for (std::size_t i = 0; i < blocks.counts.size(); ++i)
    end = std::max(end, blocks.offsets[i] + blocks.counts[i]);
  return end;
}

u64 input_bytes(const Call& call, u32 ranks) {
  switch (call.kind) {
    case Kind::kReduceScatter:
    case Kind::kScatter:
    case Kind::kAllToAll: return call.bytes() * ranks;
    case Kind::kAllToAllV: return end_of(call.send_blocks) * size_of(call.type);
    case Kind::kAllReduce:
    case Kind::kAllGather:
    case Kind::kReduce:
    case Kind::kBroadcast:
    case Kind::kGather:
    case Kind::kShareIds: return call.bytes();
    case Kind::kBarrier: return 0;
  }
  return 0;
}

u64 output_bytes(const Call& call, u32 ranks) {
  switch (call.kind) {
    case Kind::kAllGather:
    case Kind::kGather:
    case Kind::kShareIds:
    case Kind::kAllToAll: return call.bytes() * ranks;
    case Kind::kAllToAllV: return end_of(call.recv_blocks) * size_of(call.type);
    case Kind::kAllReduce:
    case Kind::kReduceScatter:
    case Kind::kReduce:
    case Kind::kBroadcast:
    case Kind::kScatter: return call.bytes();
    case Kind::kBarrier: return 0;
  }
  return 0;
}

}  // namespace

Operation::Operation(std::shared_ptr<Communicator> comm, u64 number, Call call,
                     const Signature& signature, std::shared_ptr<const Plan> plan)
    : comm_(std::move(comm)),
      number_(number),
      call_(std::move(call)),
      signature_(signature),
      plan_(std::move(plan)),
      script_lanes_(plan_ == nullptr ? 0 : plan_->script->lanes()),
      lanes_(script_lanes_ + (has_root(call_.kind) ? 1 : 0)) {}

Operation::~Operation() = default;

std::string Operation::title() const {
  const std::string number = "operation " + std::to_string(number_);
  return plan_ == nullptr ? number : text_of(signature_) + ", " + number;
}

// --- memory

u8* Operation::address_of(const Range& range) const {
  const AreaMemory& area = areas_[range.offset >> kAreaShift];
  return area.base + (range.offset & kOffsetMask);
}

const Registration* Operation::registration_of(const Range& range) {
  AreaMemory& area = areas_[range.offset >> kAreaShift];
  if (area.own != nullptr) return area.own.get();
  if (const Registration* known = comm_->world().registered(area.base, area.length)) return known;
  auto made = comm_->world().register_memory(area.base, area.length);
  if (made) {
    area.own = std::move(*made);
    return area.own.get();
  }
  comm_->fail(made.error(), Communicator::Tell::kOthers);
  return nullptr;
}

void Operation::use_temporary(Area area, u64 bytes) {
  temporary_.reset(new u8[bytes]);
  areas_[static_cast<u32>(area)] = {temporary_.get(), bytes, {}};
}

void Operation::prepare_areas() {
  const u32 ranks = comm_->size();
  u8* const send = static_cast<u8*>(const_cast<void*>(call_.send));
  u8* const recv = static_cast<u8*>(call_.recv);
  const u64 in_bytes = input_bytes(call_, ranks), out_bytes = output_bytes(call_, ranks);
  AreaMemory& main = areas_[static_cast<u32>(Area::kMain)];
  areas_[static_cast<u32>(Area::kOutput)] = {recv, out_bytes, {}};
  switch (plan_->main) {
    case MainArea::kInput: main = {send, in_bytes, {}}; break;
    case MainArea::kOutput:
      main = {recv, out_bytes, {}};
      if (call_.kind != Kind::kBroadcast) copy_bytes(recv + plan_->input.offset, send, in_bytes);
      break;
    case MainArea::kTemporary:
      use_temporary(Area::kMain, plan_->main_bytes);
      copy_bytes(temporary_.get(), send, in_bytes);
      break;
  }
  if (plan_->temporary_bytes != 0) use_temporary(Area::kTemporary, plan_->temporary_bytes);
  // A one-shot AllReduce writes its output before it has read its input.
  if (call_.kind == Kind::kAllReduce && plan_->main == MainArea::kInput && send == recv &&
      in_bytes <= kEagerBytes) {
    use_temporary(Area::kMain, in_bytes);
    copy_bytes(temporary_.get(), send, in_bytes);
  }
}

void Operation::deliver_result() {
  if (plan_->main == MainArea::kTemporary)
    copy_bytes(call_.recv, temporary_.get() + plan_->output.offset, plan_->output.length);
  const bool has_result = call_.kind != Kind::kReduce || call_.root == comm_->rank();
  if (reduces(call_.kind) && call_.op == ReduceOp::kAverage && has_result)
    divide(call_.type, call_.recv, call_.bytes(), comm_->size());
}

// --- the course

void Operation::start() {
  started_ = true;
  prepare_areas();
  course_ = comm_->lend_course();
  course_->begin(comm_->size(), lanes_);
  begin_script(*plan_->script);
}

// Runs lanes that are ready, and ends what is complete.
void Operation::run() {
  course_->executor.run(*this);
  if (done_ || is_failing() || !course_->executor.finished() || untaken_ != 0) return;
  if (first_lane_ == 0) {
    for (u32 lane = 0; lane < script_lanes_; ++lane) copy_base(lane);
    deliver_result();
    if (has_root(call_.kind)) return begin_closing();
  }
  finish();
}

void Operation::begin_script(const collectives::Script& script) {
  course_->executor.prepare(script, comm_->rank());
  course_->executor.start();
  run();
}

void Operation::finish() {
  comm_->take_back(std::move(course_));
  done_ = true;
  comm_->on_operation_done();
}

void Operation::begin_closing() {
  closing_script_ = barrier_script({.ranks = comm_->size(), .only = comm_->rank()});
  first_lane_ = script_lanes_;
  begin_script(*closing_script_);
}

bool Operation::do_step(u32 lane, const Step& step) {
  if (error_.status != VERBENA_COLL_OK) return false;
  const bool own = step.peer == comm_->rank();
  switch (step.action) {
    case Action::kSend: return own ? send_to_self(lane, step) : send(lane, step);
    case Action::kCopy:
    case Action::kReduce: return own ? receive_from_self(lane, step) : receive(lane, step);
    case Action::kCompute: return true;
  }
  CHECK_UNREACHABLE();
}

// --- messages to others

bool Operation::send(u32 lane, const Step& step) {
  World& world = comm_->world();
  const u32 peer = comm_->world_rank(step.peer);
  if (!world.can_send(peer)) {
    course_->blocked.push_back(lane);
    return false;
  }
  const Header header{.kind = Header::Kind::kEager,
                      .lane = static_cast<u16>(lane + first_lane_),
                      .comm = comm_->id(),
                      .operation = number_,
                      .words = signature_.words,
                      .count = signature_.count,
                      .length = step.range.length};
  if (step.range.length > kEagerBytes) return offer(peer, header, step.range);
  world.connection(peer).send(header, {}, {address_of(step.range), step.range.length});
  return true;
}

bool Operation::offer(u32 peer, const Header& header, const Range& range) {
  World& world = comm_->world();
  const u8* const from = address_of(range);
  auto offered = range.length <= kBufferedBytes
                     ? world.offer(shared_from_this(), peer, from, range.length, nullptr)
                     : std::nullopt;
  if (!offered) {
    const Registration* const registration = registration_of(range);
    if (registration == nullptr) return false;
    offered = world.offer(shared_from_this(), peer, from, range.length, registration);
  }
  Header with_token = header;
  with_token.kind = Header::Kind::kOffer;
  with_token.token = offered->token;
  ++untaken_;
  world.connection(peer).send(with_token, bytes_of(offered->offer), {});
  return true;
}

void Operation::on_room() {
  if (!started_ || done_ || is_failing() || course_->blocked.empty()) return;
  const auto self = shared_from_this();
  for (const u32 lane : course_->blocked) course_->executor.wake(lane);
  course_->blocked.clear();
  run();
}

void Operation::on_offer_taken() {
  const auto self = shared_from_this();
  --untaken_;
  if (is_failing()) return end_if_drained();
  if (!done_) run();
}

bool Operation::send_to_self(u32 lane, const Step& step) {
  course_->to_self(lane).push(address_of(step.range));
  return true;
}

bool Operation::receive_from_self(u32 lane, const Step& step) {
  CHECK(!course_->to_self(lane).empty());
  if (step.action == Action::kCopy && reduces(call_.kind)) {
    copy_base(lane);
    course_->base(lane) = {course_->to_self(lane).pop(), step.range};
    return true;
  }
  apply(lane, step, course_->to_self(lane).pop());
  return true;
}

void Operation::apply(u32 lane, const Step& step, const u8* from) {
  u8* const to = address_of(step.range);
  if (step.action == Action::kReduce)
    combine(call_.type, call_.op, to, take_base(lane, step.range), from, step.range.length);
  else
    copy_bytes(to, from, step.range.length);
}

// Returns the operand that a reduction into the range adds to.
const u8* Operation::take_base(u32 lane, const Range& range) {
  if (course_->base(lane).range == range && course_->base(lane).from != nullptr)
    return std::exchange(course_->base(lane), {}).from;
  copy_base(lane);
  return address_of(range);
}

void Operation::copy_base(u32 lane) {
  const Base base = std::exchange(course_->base(lane), {});
  if (base.from != nullptr) copy_bytes(address_of(base.range), base.from, base.range.length);
}

// --- messages of others

void Operation::on_message(u32 from, const Header& header, std::span<const u8> payload) {
  const auto self = shared_from_this();
  if (Signature{header.words, header.count} != signature_ || header.lane >= lanes_)
    return mismatch(from, header);
  Inbox& box = course_->inbox(from, header.lane);
  Arrival arrival{.header = header};
  if (header.kind == Header::Kind::kOffer)
    std::memcpy(&arrival.offer, payload.data(), sizeof arrival.offer);
  else
    arrival.borrowed = payload;
  box.arrivals.push(std::move(arrival));
  if (std::exchange(box.is_awaited, false)) {
    course_->executor.wake(header.lane - first_lane_);
    run();
  }
  if (done_ || box.arrivals.empty()) return;
  Arrival& last = box.arrivals.back();
  if (last.kept.empty()) last.kept.assign(last.borrowed.begin(), last.borrowed.end());
  last.borrowed = {};
}

bool Operation::receive(u32 lane, const Step& step) {
  Inbox& box = course_->inbox(step.peer, lane + first_lane_);
  if (box.arrivals.empty()) {
    box.is_awaited = true;
    return false;
  }
  const Arrival arrival = box.arrivals.pop();
  if (arrival.header.length != step.range.length) {
    if (arrival.header.kind == Header::Kind::kOffer)
      comm_->world().tell(comm_->world_rank(step.peer),
                          {.kind = Header::Kind::kTaken, .token = arrival.header.token});
    comm_->fail(
        {VERBENA_COLL_MISMATCH,
         "rank " + std::to_string(step.peer) + " sends " + std::to_string(arrival.header.length) +
             " bytes where rank " + std::to_string(comm_->rank()) + " expects " +
             std::to_string(step.range.length) + " in " + title(),
         static_cast<int>(comm_->world_rank(step.peer))},
        Communicator::Tell::kOthers);
    return false;
  }
  if (arrival.header.kind == Header::Kind::kOffer) {
    World& world = comm_->world();
    const u32 peer = comm_->world_rank(step.peer);
    const u8* const near = world.shared_memory(peer, arrival.offer.address, step.range.length);
    if (near == nullptr) {
      start_transfer(lane, step, arrival);
      return false;
    }
    apply(lane, step, near);
    world.tell(peer, {.kind = Header::Kind::kTaken, .token = arrival.header.token});
    return true;
  }
  apply(lane, step, arrival.payload().data());
  return true;
}

void Operation::start_transfer(u32 lane, const Step& step, const Arrival& arrival) {
  const Registration* direct = nullptr;
  if (step.action == Action::kCopy && step.range.length > kBufferedBytes) {
    direct = registration_of(step.range);
    if (direct == nullptr) return;
  }
  ++transfers_;
  comm_->world().transfers().start(
      {.owner = shared_from_this(),
       .lane = lane,
       .peer = comm_->world_rank(step.peer),
       .token = arrival.header.token,
       .action = step.action,
       .type = call_.type,
       .op = call_.op,
       .to = address_of(step.range),
       .base = step.action == Action::kReduce ? take_base(lane, step.range) : nullptr,
       .length = step.range.length,
       .from = arrival.offer,
       .direct = direct});
}

void Operation::on_transferred(u32 lane) {
  const auto self = shared_from_this();
  --transfers_;
  if (done_) return;
  if (is_failing()) return end_if_drained();
  course_->executor.end_step(lane, *this);
  course_->executor.wake(lane);
  run();
}

void Operation::on_transfer_lost() {
  const auto self = shared_from_this();
  --transfers_;
  if (is_failing()) end_if_drained();
}

// --- failures

void Operation::mismatch(u32 from, const Header& header) {
  if (header.kind == Header::Kind::kOffer)
    comm_->world().tell(comm_->world_rank(from),
                        {.kind = Header::Kind::kTaken, .token = header.token});
  comm_->fail(
      {VERBENA_COLL_MISMATCH,
       "rank " + std::to_string(from) + " calls " + text_of(Signature{header.words, header.count}) +
           " where rank " + std::to_string(comm_->rank()) + " calls " + title(),
       static_cast<int>(comm_->world_rank(from))},
      Communicator::Tell::kOthers);
}

void Operation::fail(Error error) {
  if (done_ || is_failing()) return;
  error_ = {error.status, title() + ": " + error.text, error.rank};
  refuse_arrivals();
  end_if_drained();
}

void Operation::refuse_arrivals() {
  if (course_ == nullptr) return;
  for (u32 from = 0; from < comm_->size(); ++from) {
    for (u32 lane = 0; lane < lanes_; ++lane) {
      Fifo<Arrival>& arrivals = course_->inbox(from, lane).arrivals;
      for (const Arrival& arrival : arrivals)
        if (arrival.header.kind == Header::Kind::kOffer)
          comm_->world().tell(comm_->world_rank(from),
                              {.kind = Header::Kind::kTaken, .token = arrival.header.token});
      arrivals.clear();
    }
  }
}

void Operation::end_if_drained() {
  if (transfers_ == 0 && untaken_ == 0) give_up();
}

void Operation::give_up() {
  if (done_) return;
  done_ = true;
  comm_->on_operation_done();
}

std::vector<u32> Operation::waits_for() const {
  std::vector<u32> ranks;
  for (u32 from = 0; from < comm_->size(); ++from)
    for (u32 lane = 0; lane < lanes_; ++lane)
      if (course_->inbox(from, lane).is_awaited) {
        ranks.push_back(from);
        break;
      }
  return ranks;
}

}  // namespace verbena::coll
