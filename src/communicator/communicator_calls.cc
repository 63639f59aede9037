#include "communicator/communicator.h"

#include <algorithm>
#include <utility>

#include "communicator/world.h"

namespace verbena::coll {
namespace {

constexpr std::size_t kCachedPlans = 16;

std::span<const u8> bytes_of(const std::string& text) {
  return {reinterpret_cast<const u8*>(text.data()), std::min<std::size_t>(text.size(), 1024)};
}

std::string words_of(std::span<const u8> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

u32 place_in(const std::vector<u32>& members, u32 world_rank) {
  return static_cast<u32>(std::ranges::find(members, world_rank) - members.begin());
}

bool is_collective(Header::Kind kind) {
  return kind == Header::Kind::kEager || kind == Header::Kind::kOffer;
}

bool is_offer(Header::Kind kind) {
  return kind == Header::Kind::kOffer || kind == Header::Kind::kTagOffer;
}

}  // namespace

Communicator::Communicator(World& world, u32 id, std::vector<u32> members, const Topology& topology)
    : timeout_s(world.timeout_s()),
      choice(world.choice()),
      world_(world),
      id_(id),
      members_(std::move(members)),
      topology_(topology),
      rank_(place_in(members_, world.rank())),
      lost_(members_.size()),
      left_(members_.size()),
      views_(members_.size()),
      tagged_(*this) {}

std::optional<u32> Communicator::rank_of(u32 world_rank) const {
  const u32 rank = place_in(members_, world_rank);
  return rank < size() ? std::optional(rank) : std::nullopt;
}

// --- calls

std::shared_ptr<const Plan> Communicator::plan_for(const Call& call, const Algorithm& algorithm) {
  const Signature signature = signature_of(call, algorithm.number);
  const auto known = std::ranges::find_if(plans_, [&](const Cached& cached) {
    return cached.signature == signature && cached.algorithm == algorithm;
  });
  if (call.kind != Kind::kAllToAllV && known != plans_.end()) return known->plan;
  auto plan = std::make_shared<const Plan>(make_plan(call, algorithm, topology_, rank_));
  plans_.push_front({signature, algorithm, plan});
  if (plans_.size() > kCachedPlans) plans_.pop_back();
  return plan;
}

std::shared_ptr<Operation> Communicator::call(Call call) {
  const Algorithm algorithm = choose(call, topology_, choice);
  const Signature signature = signature_of(call, algorithm.number);
  auto plan = plan_for(call, algorithm);
  auto operation = std::make_shared<Operation>(shared_from_this(), next_number_++, std::move(call),
                                               signature, std::move(plan));
  queue_.push_back(operation);
  start_next();
  return operation;
}

void Communicator::refuse(const Error& error) {
  const Header header{.kind = Header::Kind::kRefused, .comm = id_, .operation = next_number_};
  for (u32 rank = 0; rank < size(); ++rank)
    if (rank != rank_) world_.tell(world_rank(rank), header, bytes_of(error.text));
  refusals_[next_number_] = error;
  queue_.push_back(std::make_shared<Operation>(shared_from_this(), next_number_++, Call{},
                                               Signature{}, nullptr));
  start_next();
}

void Communicator::start_next() {
  if (std::exchange(starting_, true)) return;
  while (!queue_.empty()) {
    const std::shared_ptr<Operation> first = queue_.front();
    if (first->is_done())
      queue_.pop_front();
    else if (first->has_started() || first->is_failing())
      break;
    else
      begin(first);
  }
  starting_ = false;
}

void Communicator::begin(const std::shared_ptr<Operation>& operation) {
  const auto refusal = refusals_.extract(operation->number());
  auto early = early_.extract(operation->number());
  if (failed_)
    operation->fail(*failed_);
  else if (!refusal.empty())
    operation->fail(refusal.mapped());
  else
    operation->start();
  if (early.empty()) return;
  for (const Early& message : early.mapped()) {
    if (operation->is_done() || operation->is_failing())
      on_stale(world_rank(message.from), message.header);
    else
      operation->on_message(message.from, message.header, message.payload);
  }
}

// An operation that fails keeps its course: messages for it may still come.
std::unique_ptr<Course> Communicator::lend_course() {
  return course_ != nullptr ? std::move(course_) : std::make_unique<Course>();
}

void Communicator::on_operation_done() { start_next(); }

std::shared_ptr<TaggedSend> Communicator::send(const void* buffer, u64 bytes, u32 to, u32 tag) {
  auto send = std::make_shared<TaggedSend>(*this, buffer, bytes, to, tag);
  if (failed_)
    send->fail(*failed_);
  else
    tagged_.start(send);
  return send;
}

std::shared_ptr<TaggedRecv> Communicator::recv(void* buffer, u64 bytes, std::optional<u32> from,
                                               u32 tag) {
  auto recv = std::make_shared<TaggedRecv>(*this, buffer, bytes, from, tag);
  if (failed_)
    recv->fail(*failed_);
  else
    tagged_.start(recv);
  return recv;
}

// --- messages

void Communicator::on_message(u32 from_world, const Header& header, std::span<const u8> payload) {
  const std::optional<u32> from = rank_of(from_world);
  if (!from) return on_stale(from_world, header);
  switch (header.kind) {
    case Header::Kind::kFailed:
      return fail({static_cast<int>(header.count), words_of(payload),
                   header.lane == 0 ? -1 : static_cast<int>(header.lane) - 1},
                  Tell::kNobody);
    case Header::Kind::kRefused: return on_refused(*from, header, payload);
    case Header::Kind::kShrink:
      views_[*from].push_back({header.operation, {payload.begin(), payload.end()}});
      return;
    default: break;
  }
  if (failed_) return on_stale(from_world, header);
  if (!is_collective(header.kind)) return tagged_.on_message(*from, header, payload);
  Operation* const now = current();
  if (header.operation < first_open()) return on_stale(from_world, header);
  if (now != nullptr && now->number() == header.operation && now->has_started()) {
    if (now->is_done() || now->is_failing()) return on_stale(from_world, header);
    return now->on_message(*from, header, payload);
  }
  early_[header.operation].push_back({*from, header, {payload.begin(), payload.end()}});
}

void Communicator::on_refused(u32 from, const Header& header, std::span<const u8> payload) {
  const Error error{VERBENA_COLL_INVALID,
                    "rank " + std::to_string(from) + " refuses: " + words_of(payload),
                    static_cast<int>(world_rank(from))};
  Operation* const now = current();
  if (header.operation < first_open()) return;
  if (now != nullptr && now->number() == header.operation && now->has_started()) {
    const auto self = now->shared_from_this();
    now->fail(error);
  } else {
    refusals_[header.operation] = error;
  }
}

// No operation needs the message any more; a rank that offers memory must be told.
void Communicator::on_stale(u32 from_world, const Header& header) {
  if (is_offer(header.kind))
    world_.tell(from_world, {.kind = Header::Kind::kTaken, .token = header.token});
}

void Communicator::on_room() {
  if (Operation* const now = current(); now != nullptr) now->on_room();
  tagged_.on_room();
}

// --- failures

void Communicator::fail(Error error, Tell tell) {
  if (failed_) return;
  failed_ = error;
  const std::optional<u32> culprit =
      error.rank < 0 ? std::nullopt : rank_of(static_cast<u32>(error.rank));
  if (culprit && (error.status == VERBENA_COLL_PEER || error.status == VERBENA_COLL_TIMEOUT))
    lost_[*culprit] = true;
  if (tell == Tell::kOthers) {
    const Header header{.kind = Header::Kind::kFailed,
                        .lane = static_cast<u16>(error.rank + 1),
                        .comm = id_,
                        .count = static_cast<u64>(error.status)};
    for (u32 rank = 0; rank < size(); ++rank)
      if (rank != rank_ && !lost_[rank])
        world_.tell(world_rank(rank), header, bytes_of(error.text));
    world_.tell_all({.type = Notice::Type::kFailed,
                     .rank = error.rank,
                     .comm = id_,
                     .word = static_cast<u64>(error.status),
                     .text = error.text});
  }
  const std::deque<std::shared_ptr<Operation>> all = queue_;
  for (const auto& operation : all) operation->fail(error);
  for (const auto& [number, messages] : std::exchange(early_, {}))
    for (const Early& message : messages) on_stale(world_rank(message.from), message.header);
  tagged_.fail_all(error);
  start_next();
}

void Communicator::on_lost(u32 world_rank, const std::string& how) {
  const std::optional<u32> rank = rank_of(world_rank);
  if (!rank) return;
  lost_[*rank] = true;
  fail({VERBENA_COLL_PEER, "rank " + std::to_string(*rank) + " " + how,
        static_cast<int>(world_rank)},
       Tell::kOthers);
}

void Communicator::on_left(u32 world_rank) {
  if (const std::optional<u32> rank = rank_of(world_rank)) left_[*rank] = lost_[*rank] = true;
  check_left();
}

void Communicator::check_left() {
  for (u32 rank = 0; rank < size(); ++rank) {
    if (!left_[rank]) continue;
    const Error error{VERBENA_COLL_PEER, "rank " + std::to_string(rank) + " has left the job",
                      static_cast<int>(world_rank(rank))};
    tagged_.fail_those_of(rank, error);
    Operation* const now = current();
    if (now == nullptr || !now->has_started()) continue;
    if (std::ranges::count(now->waits_for(), rank) != 0) return fail(error, Tell::kOthers);
  }
}

}  // namespace verbena::coll
