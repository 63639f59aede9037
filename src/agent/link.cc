#include "agent/link.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "communicator/clock.h"
#include "transfer/fields.h"

namespace verbena::agent {
namespace {

using transfer::FieldReader;
using transfer::FieldWriter;

constexpr u32 kProtocol = 0x32414256;  // "VBA2"
constexpr u32 kMaxQueuePairs = 8;
constexpr i64 kDrainTime = coll::kSecond;
constexpr i64 kFirstBackoff = coll::kSecond, kMostBackoff = 8 * coll::kSecond;
constexpr u32 kCreditStep = 8;
constexpr std::size_t kMaxEarlyNotices = 65536;

// Before the bytes of a notification.
struct NoticeHead {
  u64 number = 0;  // by which a repeated one is known
  u32 bytes = 0;
  u32 reserved = 0;
};
static_assert(sizeof(NoticeHead) + VERBENA_NOTIFICATION_MAX <= LaneSlots::kBytes);

// The connections that one request may break, if it was outstanding alone on an iWARP device.
constexpr u32 kMostBreaks = 2;

std::string encode_offer(u32 lane, u32 generation, const LaneAddress& offered) {
  FieldWriter writer;
  writer.put(lane).put(generation);
  const coll::QPAddress& address = offered.qp;
  writer.put(
      std::string_view(reinterpret_cast<const char*>(address.gid.data()), address.gid.size()));
  writer.put(address.qp_num).put(address.psn).put(address.lid).put(address.mtu).put(address.reads);
  writer.put(offered.host).put(offered.port).put(offered.work_id);
  return writer.bytes();
}

std::optional<LaneAddress> decode_address(FieldReader& reader) {
  LaneAddress offered;
  coll::QPAddress& address = offered.qp;
  const std::string gid = reader.text();
  address.qp_num = reader.get<u32>();
  address.psn = reader.get<u32>() & 0xffffff;
  address.lid = reader.get<u16>();
  address.mtu = reader.get<u8>();
  address.reads = reader.get<u8>();
  offered.host = reader.text();
  offered.port = reader.get<u16>();
  offered.work_id = reader.get<u64>();
  const bool is_possible = reader.is_at_end() && gid.size() == address.gid.size() &&
                           address.mtu >= IBV_MTU_256 && address.mtu <= IBV_MTU_4096 &&
                           address.reads >= 1;
  if (!is_possible) return std::nullopt;
  std::memcpy(address.gid.data(), gid.data(), gid.size());
  return offered;
}

// The request itself is wrong, not the path.
bool is_refusal(ibv_wc_status status) {
  switch (status) {
    case IBV_WC_LOC_LEN_ERR:
    case IBV_WC_LOC_PROT_ERR:
    case IBV_WC_REM_INV_REQ_ERR:
    case IBV_WC_REM_ACCESS_ERR:
    case IBV_WC_REM_OP_ERR: return true;
    default: return false;
  }
}

}  // namespace

std::string Hello::encode() const {
  FieldWriter writer;
  writer.put(kProtocol).put(name).put(incarnation).put(wanted_incarnation).put(rails);
  return writer.put(queue_pairs).bytes();
}

std::optional<Hello> Hello::decode(std::string_view bytes) {
  FieldReader reader(bytes);
  if (reader.get<u32>() != kProtocol) return std::nullopt;
  Hello hello;
  hello.name = reader.text();
  hello.incarnation = reader.get<u64>();
  hello.wanted_incarnation = reader.get<u64>();
  hello.rails = reader.get<u8>();
  hello.queue_pairs = reader.get<u8>();
  const bool is_possible = reader.is_at_end() && transfer::is_agent_name(hello.name) &&
                           hello.rails >= 1 && hello.rails <= transfer::kMaxRails &&
                           hello.queue_pairs >= 1 && hello.queue_pairs <= kMaxQueuePairs;
  if (!is_possible) return std::nullopt;
  return hello;
}

Link::Link(u32 id, Rails rails, coll::StreamConnector* streams, Channel channel, Hello self,
           const LinkSettings& settings)
    : id_(id),
      rails_(rails),
      streams_(streams),
      channel_(std::move(channel)),
      self_(std::move(self)),
      settings_(settings),
      flow_(settings.flow),
      opened_at_(coll::now_ns()) {}

Link::~Link() = default;

void Link::greet(u64 wanted_incarnation, const std::string& expected_name) {
  has_connected_ = true;
  peer_.name = expected_name;
  peer_.incarnation = self_.wanted_incarnation = wanted_incarnation;
  channel_.send(Message::Type::kHello, self_.encode());
}

Expected<void> Link::on_hello(std::string_view payload, bool is_answer) {
  const std::optional<Hello> hello = Hello::decode(payload);
  if (!hello) return failure(VERBENA_TRANSFER_PEER, "the peer speaks another protocol");
  if (is_answer ? hello->incarnation != peer_.incarnation
                : hello->wanted_incarnation != self_.incarnation)
    return failure(VERBENA_TRANSFER_PEER,
                   "agent " + (is_answer ? peer_.name : self_.name) +
                       " is another one than its metadata tells: it has restarted");
  peer_ = *hello;
  if (!is_answer) {
    self_.wanted_incarnation = 0;
    channel_.send(Message::Type::kHello, self_.encode());
  }
  make_lanes();
  return {};
}

const coll::Rail& Link::rail_of(u32 lane) const { return *rails_[lane % rails_.size()]; }

LaneStreams Link::streams_of(u32 lane) const {
  if (!coll::has_streams(rail_of(lane))) return {};
  return {
      .connector = streams_,
      .role = has_connected_ ? LaneStreams::Role::kDials : LaneStreams::Role::kAccepts,
      .port = streams_->port(lane % rails_.size()),
      .peer_incarnation = peer_.incarnation,
  };
}

// Both sides count the same number of lanes.
void Link::make_lanes() {
  const u32 rails = std::max(self_.rails, peer_.rails);
  const u32 count = rails * std::min(self_.queue_pairs, peer_.queue_pairs);
  slots_.resize(count * LaneSlots::kTotalBytes);
  auto region = Region::make(rails_, 1, slots_.data(), slots_.size(), VERBENA_LOCAL_WRITE);
  if (!region) return die(region.error().text);
  slots_region_ = std::move(*region);
  lanes_.resize(count);
  for (u32 lane = 0; lane < count && why_dead_.empty(); ++lane) {
    const LaneSlots slots{.base = slots_.data() + lane * LaneSlots::kTotalBytes,
                          .lkey = slots_region_->lkeys()[lane % rails_.size()]};
    lanes_[lane].lane =
        std::make_unique<Lane>(rail_of(lane), WorkId{.link = id_, .lane = lane}, slots,
                               LaneLimits{settings_.flow.requests_per_lane}, streams_of(lane));
    for (u64 slot = 0; slot < LaneSlots::kSends; ++slot) lanes_[lane].free_slots.push_back(slot);
    offer(lane, 1);
  }
}

void Link::offer(u32 lane, u32 generation) {
  Repair& repair = lanes_[lane];
  if (const auto made = repair.lane->offer(generation); !made) return die(made.error().text);
  if (holds_receives_) repair.held_receives.clear();
  repair.consumed = 0;
  channel_.send(Message::Type::kLane, encode_offer(lane, generation, repair.lane->address()));
}

u32 Link::lanes_up() const {
  return static_cast<u32>(std::ranges::count_if(
      lanes_, [](const Repair& lane) { return lane.lane->state() == Lane::State::kUp; }));
}

Expected<void> Link::start(const std::shared_ptr<TransferState>& state) {
  const u32 id = next_transfer_++;
  if (state->notifies) notice_of_[id] = next_notice_++;
  const auto started = flow_.start({.id = id,
                                    .operation = state->operation,
                                    .copies = state->copies,
                                    .priority = state->priority,
                                    .notifies = state->notifies,
                                    .ready_bytes = state->is_staged ? 0 : ~u64{0}});
  if (!started) {
    notice_of_.erase(id);
    return failure(VERBENA_TRANSFER_NO_ROOM, "agent " + peer() + ": " + started.error());
  }
  state->status = VERBENA_TRANSFER_IN_PROGRESS;
  state->why.clear();
  state->lone_breaks = 0;
  state->link = id_;
  state->id = id;
  transfers_.emplace(id, state);
  return {};
}

void Link::advance(const TransferState& state, u64 ready_bytes) {
  flow_.advance(state.id, ready_bytes);
}

void Link::cancel(const TransferState& state) { flow_.cancel(state.id); }

void Link::on_message(const Message& message) {
  switch (message.type) {
    case Message::Type::kLane: return on_offer(message.payload);
    case Message::Type::kReady: return on_ready(message.payload);
    case Message::Type::kCredit: return on_credit(message.payload);
    case Message::Type::kRefuse: return die("agent " + peer() + " refuses: " + message.payload);
    case Message::Type::kBye: return die("agent " + peer() + " has left");
    case Message::Type::kHello:
    case Message::Type::kAskMetadata:
    case Message::Type::kMetadata: break;
  }
  die("agent " + peer() + " sent a message that nobody expects");
}

void Link::on_offer(std::string_view payload) {
  FieldReader reader(payload);
  const u32 lane = reader.get<u32>();
  const u32 generation = reader.get<u32>();
  const std::optional<LaneAddress> address = decode_address(reader);
  if (!address || lane >= lanes_.size())
    return die("agent " + peer() + " offers an impossible queue pair");
  Repair& repair = lanes_[lane];
  if (repair.lane->is_stream() != (address->port != 0))
    return die("agent " + peer() + ": an iWARP device and another one cannot connect");
  if (generation <= repair.remote_generation) return;
  repair.remote = address;
  repair.remote_generation = generation;
  if (generation > repair.lane->generation()) return break_lane(lane);
  try_to_connect(lane);
}

void Link::on_ready(std::string_view payload) {
  FieldReader reader(payload);
  const u32 lane = reader.get<u32>();
  const u32 generation = reader.get<u32>();
  if (!reader.is_at_end() || lane >= lanes_.size())
    return die("a message of " + peer() + " is malformed");
  lanes_[lane].ready_generation = std::max(lanes_[lane].ready_generation, generation);
}

void Link::on_credit(std::string_view payload) {
  FieldReader reader(payload);
  const u32 lane = reader.get<u32>();
  const u32 generation = reader.get<u32>();
  const u32 credits = reader.get<u32>();
  if (!reader.is_at_end() || lane >= lanes_.size() || credits > LaneSlots::kReceives)
    return die("a message of " + peer() + " is malformed");
  if (generation != lanes_[lane].lane->generation()) return;
  lanes_[lane].credits += credits;
  grant(lane);
}

void Link::grant(u32 lane) {
  Repair& repair = lanes_[lane];
  if (repair.lane->state() != Lane::State::kUp) return;
  while (repair.credits > 0 && !repair.free_slots.empty()) {
    --repair.credits;
    repair.reserved_slots.push_back(repair.free_slots.back());
    repair.free_slots.pop_back();
    flow_.add_notify_credits(lane, 1);
  }
}

void Link::break_lane(u32 lane) {
  Repair& repair = lanes_[lane];
  if (repair.lane->state() == Lane::State::kDraining) return;
  const bool was_up = repair.lane->state() == Lane::State::kUp;
  if (was_up) ++lanes_lost_;
  if (was_up && repair.lane->is_stream()) blame_request(lane);
  flow_.pause_lane(lane);
  repair.lane->break_off();
  repair.drain_deadline = coll::now_ns() + kDrainTime;
  repair.failures = flow_.retired_bytes() > repair.bytes_at_failure ? 1 : repair.failures + 1;
  repair.bytes_at_failure = flow_.retired_bytes();
}

// An iWARP device tells of a refused WRITE by the end of the connection alone. A replaced lane
// takes one request at a time, so the request that ends it again is the refused one.
void Link::blame_request(u32 lane) {
  if (flow_.outstanding(lane) != 1) return;
  const auto transfer = flow_.transfer_of(lane, lanes_[lane].lane->last_sequence());
  if (!transfer || ++transfers_.at(*transfer)->lone_breaks < kMostBreaks) return;
  flow_.fail(*transfer, "refused: the connection ended at a request of it, and again");
}

// Returns whether the state of the lane changed.
bool Link::repair(u32 lane, i64 now) {
  Repair& repair = lanes_[lane];
  switch (repair.lane->state()) {
    case Lane::State::kNew:
    case Lane::State::kUp: return false;
    case Lane::State::kOffered: return false;     // on_offer() goes on
    case Lane::State::kConnecting: return false;  // on_stream() goes on
    case Lane::State::kConnected: {
      if (repair.ready_generation < repair.lane->generation() || now < repair.up_at) return false;
      repair.lane->mark_up();
      flow_.on_lane_up(lane, 0);
      repair.credits = LaneSlots::kReceives;
      grant(lane);
      return true;
    }
    case Lane::State::kDraining: {
      if (!repair.lane->is_drained() && now < repair.drain_deadline) return false;
      repair.owes_requeue = true;
      const u32 next = repair.lane->generation() + 1;
      repair.free_slots.clear();
      for (u64 slot = 0; slot < LaneSlots::kSends; ++slot) repair.free_slots.push_back(slot);
      repair.reserved_slots.clear();
      repair.slot_of.clear();
      repair.credits = 0;
      const i64 backoff =
          repair.failures < 2
              ? 0
              : std::min(kFirstBackoff << std::min(repair.failures - 2, 8u), kMostBackoff);
      repair.up_at = now + backoff;
      offer(lane, std::max(next, repair.remote_generation));  // destroys the queue pair
      flow_.on_local_end(lane);
      if (why_dead_.empty()) try_to_connect(lane);
      return true;
    }
  }
  CHECK_UNREACHABLE();
}

void Link::try_to_connect(u32 lane) {
  Repair& repair = lanes_[lane];
  if (repair.lane->state() != Lane::State::kOffered || !repair.remote ||
      repair.remote_generation != repair.lane->generation())
    return;
  if (std::exchange(repair.owes_requeue, false)) flow_.on_lane_down(lane);
  if (const auto connected = repair.lane->connect(*repair.remote, "agent " + peer()); !connected)
    return die(connected.error().text);
  if (repair.lane->state() == Lane::State::kConnected) announce_ready(lane);
}

void Link::announce_ready(u32 lane) {
  FieldWriter writer;
  writer.put(lane).put(lanes_[lane].lane->generation());
  channel_.send(Message::Type::kReady, writer.bytes());
}

void Link::on_stream(const WorkId& work, coll::StreamEvent event) {
  if (work.lane >= lanes_.size()) return;
  Lane& lane = *lanes_[work.lane].lane;
  if (!lane.is_of(work)) return;
  switch (event.kind) {
    case coll::StreamEvent::Kind::kRequest:
      if (!lane.on_request(std::move(event.end))) break_lane(work.lane);
      return;
    case coll::StreamEvent::Kind::kUp:
      if (lane.state() != Lane::State::kConnecting) return;
      lane.mark_connected();
      return announce_ready(work.lane);
    case coll::StreamEvent::Kind::kDown: return break_lane(work.lane);
  }
}

void Link::on_completion(const WorkId& work, const ibv_wc& completion) {
  if (work.lane >= lanes_.size()) return;
  Repair& repair = lanes_[work.lane];
  if (!repair.lane->is_of(work)) return;
  repair.lane->on_completion(work);
  if (completion.status != IBV_WC_SUCCESS) {
    const auto transfer =
        work.is_receive ? std::nullopt : flow_.transfer_of(work.lane, work.number);
    if (transfer && is_refusal(completion.status))
      flow_.fail(*transfer, std::string("refused: ") + ibv_wc_status_str(completion.status));
    return break_lane(work.lane);
  }
  if (work.is_receive) return receive(work.lane, work.number, completion.byte_len);
  if (!repair.lane->is_final(completion.opcode)) return;
  flow_.on_complete(work.lane, work.number);
  while (!repair.slot_of.empty() && repair.slot_of.begin()->first <= work.number) {
    repair.free_slots.push_back(repair.slot_of.begin()->second);
    repair.slot_of.erase(repair.slot_of.begin());
    grant(work.lane);
  }
}

void Link::receive(u32 lane, u64 slot, u32 bytes) {
  const u8* const at = lanes_[lane].lane->slots().receive(slot);
  NoticeHead head;
  std::memcpy(&head, at, sizeof head);
  const bool is_possible = bytes >= sizeof head && head.bytes == bytes - sizeof head &&
                           early_notices_.size() < kMaxEarlyNotices;
  if (!is_possible) return die("agent " + peer() + " sent a malformed notification");
  const bool is_new =
      head.number >= first_missing_notice_ && early_notices_.insert(head.number).second;
  if (is_new)
    received_.push_back(
        {peer(), std::string(reinterpret_cast<const char*>(at) + sizeof head, head.bytes)});
  while (early_notices_.erase(first_missing_notice_) != 0) ++first_missing_notice_;
  if (holds_receives_)
    lanes_[lane].held_receives.push_back(slot);
  else
    give_back(lane, slot);
}

void Link::give_back(u32 lane, u64 slot) {
  Repair& repair = lanes_[lane];
  if (repair.lane->state() == Lane::State::kDraining) return;
  repair.lane->post_receive(slot);
  if (++repair.consumed < kCreditStep) return;
  FieldWriter writer;
  writer.put(lane).put(repair.lane->generation()).put(std::exchange(repair.consumed, 0u));
  channel_.send(Message::Type::kCredit, writer.bytes());
}

void Link::hold_receives(bool hold) {
  if (holds_receives_ == hold) return;
  holds_receives_ = hold;
  if (hold) return;
  for (u32 lane = 0; lane < lanes_.size(); ++lane)
    for (const u64 slot : std::exchange(lanes_[lane].held_receives, {})) give_back(lane, slot);
}

void Link::post(const transfer::Request& request) {
  Repair& repair = lanes_[request.lane];
  const TransferState& state = *transfers_.at(request.transfer);
  if (request.kind != transfer::Request::Kind::kNotify) {
    const Keys& local = state.local_keys[request.copy.local_region];
    const Keys& remote = state.remote_keys[request.copy.remote_region];
    repair.lane->add(request, local[request.lane % rails_.size()],
                     remote[request.lane % peer_.rails]);
    return;
  }
  CHECK(!repair.reserved_slots.empty());
  const u64 slot = repair.reserved_slots.front();
  repair.reserved_slots.pop_front();
  repair.slot_of[request.sequence] = slot;
  const NoticeHead head{.number = notice_of_.at(request.transfer),
                        .bytes = static_cast<u32>(state.notification.size())};
  u8* const at = repair.lane->slots().send(slot);
  std::memcpy(at, &head, sizeof head);
  std::memcpy(at + sizeof head, state.notification.data(), state.notification.size());
  repair.lane->add_message(request.sequence, slot,
                           static_cast<u32>(sizeof head + state.notification.size()));
}

bool Link::settle() {
  bool changed = false;
  while (const auto outcome = flow_.poll_outcome()) {
    changed = true;
    const auto found = transfers_.find(outcome->transfer);
    TransferState& state = *found->second;
    switch (outcome->result) {
      case transfer::Result::kDone: state.status = VERBENA_TRANSFER_OK; break;
      case transfer::Result::kCancelled:
        state.status = VERBENA_TRANSFER_CANCELLED;
        state.why = "cancelled";
        break;
      case transfer::Result::kFailed:
        state.status = why_dead_.empty() ? VERBENA_TRANSFER_REFUSED : VERBENA_TRANSFER_PEER;
        state.why = why_dead_.empty() ? "agent " + peer() + ": " + outcome->why : outcome->why;
        break;
    }
    finished_.push_back(std::move(found->second));
    transfers_.erase(found);
    notice_of_.erase(outcome->transfer);
  }
  return changed;
}

bool Link::work(i64 now) {
  bool changed = false;
  for (u32 lane = 0; lane < lanes_.size(); ++lane) changed |= repair(lane, now);
  if (why_dead_.empty()) {
    while (const auto request = flow_.poll_request()) post(*request);
    for (u32 lane = 0; lane < lanes_.size(); ++lane)
      if (lanes_[lane].lane->has_batch() && !lanes_[lane].lane->flush()) break_lane(lane);
  }
  return settle() || changed;
}

i64 Link::next_alarm() const {
  i64 next = -1;
  for (const Repair& repair : lanes_) {
    i64 at = -1;
    if (repair.lane->state() == Lane::State::kDraining) at = repair.drain_deadline;
    if (repair.lane->state() == Lane::State::kConnected) at = repair.up_at;
    if (at >= 0 && (next < 0 || at < next)) next = at;
  }
  return next;
}

void Link::die(const std::string& why) {
  if (!why_dead_.empty()) return;
  why_dead_ = why;
  for (Repair& repair : lanes_) repair.lane.reset();
  lanes_.clear();
  flow_.fail_all(why);
  (void)settle();
  channel_.close();
}

std::vector<std::shared_ptr<TransferState>> Link::take_finished() {
  return std::exchange(finished_, {});
}

}  // namespace verbena::agent
