#include "jobs/collective_run.h"

#include <utility>

#include "base/check.h"

namespace verbena::jobs {
namespace {

using collectives::Action;
using collectives::Step;

// An alarm's word: a pipe whose message has arrived by NVLink, or a lane that goes on.
constexpr u32 kOfLane = 1;
constexpr u32 word_of_pipe(u32 pipe) { return pipe << 1; }
constexpr u32 word_of_lane(u32 place) { return place << 1 | kOfLane; }

constexpr u32 kPacketOctets = 4096;  // of which one is on its way where nothing else is

}  // namespace

CollectiveRun::CollectiveRun(const collectives::Schedule& schedule, const Cluster& cluster,
                             const RunConfig& config, fabric::Network& network)
    : schedule_(schedule),
      cluster_(cluster),
      config_(config),
      network_(network),
      nvlink_(cluster.ranks(), cluster.nvlink),
      lanes_(schedule.lanes()),
      lane_(u64{schedule.ranks()} * lanes_),
      unsent_octets_(schedule.ranks()),
      lanes_that_wait_(schedule.ranks()) {
  CHECK(cluster.ranks() == schedule.ranks());
  network.set_application(this);
}

void CollectiveRun::start() {
  started_at_ = finished_at_ = network_.now();
  unfinished_lanes_ = lane_.size();
  for (u32 place = 0; place < lane_.size(); ++place) {
    lane_[place].steps = schedule_.steps(place / lanes_, place % lanes_);
    ready(place);
  }
  work();
}

// --- pipes

u32 CollectiveRun::pipe_of(u32 from, u32 to, u32 lane) {
  const u64 key = u64{place_of(from, lane)} * schedule_.ranks() + to;
  const auto [at, is_new] = pipe_numbers_.try_emplace(key, static_cast<u32>(pipes_.size()));
  if (is_new) add_pipe(from, to, lane);
  return at->second;
}

void CollectiveRun::add_pipe(u32 from, u32 to, u32 lane) {
  Pipe pipe{.from = from, .to = to, .lane = lane};
  pipe.messages.resize(config_.window);
  const u32 number = static_cast<u32>(pipes_.size());
  if (!cluster_.share_a_node(from, to)) {
    const fabric::ConnectionConfig ends{.source = cluster_.nics[from],
                                        .destination = cluster_.nics[to],
                                        .depth = config_.window,
                                        .priority = config_.priority};
    if (network_.connect(ends)) {
      pipe.connection = static_cast<u32>(pipe_of_connection_.size());
      pipe.distance = distance(pipe);
      pipe_of_connection_.push_back(number);
    } else {
      mistake_ = "there is no way from the NIC of rank " + std::to_string(from) +
                 " to that of rank " + std::to_string(to);
    }
  }
  pipes_.push_back(std::move(pipe));
}

// A lower bound: of several equal ways the first.
Duration CollectiveRun::distance(const Pipe& pipe) const {
  fabric::NodeIndex node = cluster_.nics[pipe.from];
  const fabric::NodeIndex end = cluster_.nics[pipe.to];
  Duration sum;
  bool is_first = true;
  while (node != end) {
    const fabric::Port& port = network_.port(node, network_.routes().ports(node, end)[0]);
    sum = sum + port.delay +
          (std::exchange(is_first, false) ? Duration() : port.rate.time_of(kPacketOctets));
    node = network_.node_of(port.peer);
  }
  return sum;
}

// --- lanes

// Lanes that became ready, one after another, so that a long row of them needs no stack.
void CollectiveRun::work() {
  if (next_ready_ != 0) return;  // called from below
  while (next_ready_ < ready_.size() && mistake_.empty()) go_on(ready_[next_ready_++]);
  ready_.clear();
  next_ready_ = 0;
}

void CollectiveRun::go_on(u32 place) {
  const u32 rank = place / lanes_, number = place % lanes_;
  Lane& lane = lane_[place];
  while (lane.done != lane.steps) {
    const Step step = schedule_.step(rank, number, lane.done);
    if (step.after.steps > lane_[place_of(rank, step.after.lane)].done) {
      ++lanes_that_wait_[rank];
      return wait(place, Waits::kLane, step.after.lane);
    }
    if (!do_step(place, step)) return;
  }
  finish_lane(place);
}

void CollectiveRun::finish_lane(u32 place) {
  if (--unfinished_lanes_ != 0) return;
  finished_at_ = network_.now();
  spent_ = lane_[place].spent;
}

bool CollectiveRun::do_step(u32 place, const Step& step) {
  if (step.action == Action::kSend) return send(place, step);
  return take(place, step);
}

// The step was done, and perhaps others wait for that.
void CollectiveRun::wake_lanes_after(u32 rank, u32 number) {
  if (lanes_that_wait_[rank] == 0) return;
  for (u32 other = 0; other < lanes_; ++other) {
    const Lane& lane = lane_[place_of(rank, other)];
    if (lane.waits != Waits::kLane || lane.waits_for != number) continue;
    const Step step = schedule_.step(rank, other, lane.done);
    if (step.after.steps > lane_[place_of(rank, number)].done) continue;
    --lanes_that_wait_[rank];
    wake(place_of(rank, other), lane_[place_of(rank, number)].spent);
  }
}

void CollectiveRun::wait(u32 place, Waits what, u32 on) {
  lane_[place].waits = what;
  lane_[place].waits_for = on;
}

void CollectiveRun::wake(u32 place, const TimeSpent& spent) {
  Lane& lane = lane_[place];
  lane.waits = Waits::kNot;
  lane.spent = spent;
  ready(place);
}

// --- messages

bool CollectiveRun::send(u32 place, const Step& step) {
  const u32 rank = place / lanes_, number = place % lanes_;
  const u32 pipe_number = pipe_of(rank, step.peer, number);
  Pipe& pipe = pipes_[pipe_number];
  if (pipe.posted - pipe.taken == config_.window || pipe.posted - pipe.sent == config_.window) {
    wait(place, Waits::kRoom, pipe_number);
    return false;
  }
  post(pipe, pipe_number, step.range.length, lane_[place].spent);
  ++lane_[place].done;
  wake_lanes_after(rank, number);
  return true;
}

void CollectiveRun::post(Pipe& pipe, u32 number, u64 octets, const TimeSpent& spent) {
  const Time now = network_.now();
  Message& message = pipe.messages[pipe.posted++ % config_.window];
  message = {.posted = now, .octets = octets, .spent = spent};
  ++messages_;
  if (cluster_.share_a_node(pipe.from, pipe.to)) {
    nvlink_octets_ += octets;
    return network_.set_alarm(nvlink_.send(pipe.from, pipe.to, octets, now), word_of_pipe(number));
  }
  if (pipe.connection == kNone) return;  // a mistake
  network_octets_ += octets;
  unsent_octets_[pipe.from] += octets;
  message.ahead =
      time_at(network_.port(cluster_.nics[pipe.from], 0).rate, unsent_octets_[pipe.from]);
  network_.send(pipe.connection, static_cast<u32>(octets), 0);
}

bool CollectiveRun::take(u32 place, const Step& step) {
  const u32 rank = place / lanes_, number = place % lanes_;
  const u32 pipe_number = pipe_of(step.peer, rank, number);
  Pipe& pipe = pipes_[pipe_number];
  Lane& lane = lane_[place];
  if (pipe.arrived == pipe.taken) {
    wait(place, Waits::kMessage, pipe_number);
    return false;
  }
  CHECK(pipe.messages[pipe.taken % config_.window].octets == step.range.length);
  ++pipe.taken;
  const u32 sender = place_of(pipe.from, pipe.lane);
  if (lane_[sender].waits == Waits::kRoom && lane_[sender].waits_for == pipe_number)
    wake(sender, lane.spent);
  if (config_.step_overhead != Duration()) {
    wait(place, Waits::kOverhead, kNone);
    network_.set_alarm(network_.now() + config_.step_overhead, word_of_lane(place));
    return false;
  }
  ++lane.done;
  wake_lanes_after(rank, number);
  return true;
}

TimeSpent CollectiveRun::spent_with(const Pipe& pipe, const Message& message) const {
  TimeSpent spent = message.spent;
  const Duration took = network_.now() - message.posted;
  if (pipe.connection == kNone) {
    spent.nvlink = spent.nvlink + took;
    return spent;
  }
  const Duration distance = std::min(took, pipe.distance);
  const Duration sending = std::min(took - distance, message.ahead);
  spent.distance = spent.distance + distance;
  spent.sending = spent.sending + sending;
  spent.waiting = spent.waiting + (took - distance - sending);
  return spent;
}

void CollectiveRun::on_message(u32 number) {
  Pipe& pipe = pipes_[number];
  const Message& message = pipe.messages[pipe.arrived++ % config_.window];
  if (pipe.connection == kNone)
    pipe.sent = pipe.arrived;
  else
    unsent_octets_[pipe.from] -= message.octets;
  const u32 receiver = place_of(pipe.to, pipe.lane);
  if (lane_[receiver].waits == Waits::kMessage && lane_[receiver].waits_for == number)
    wake(receiver, spent_with(pipe, message));
  work();
}

void CollectiveRun::on_arrival(u32 connection, u32, Time) {
  on_message(pipe_of_connection_[connection]);
}

void CollectiveRun::on_sent(u32 connection, Time) {
  const u32 number = pipe_of_connection_[connection];
  Pipe& pipe = pipes_[number];
  ++pipe.sent;
  const u32 sender = place_of(pipe.from, pipe.lane);
  if (lane_[sender].waits == Waits::kRoom && lane_[sender].waits_for == number) {
    const Duration until_now = network_.now() - started_at_;
    TimeSpent spent = lane_[sender].spent;
    spent.waiting = spent.waiting + (until_now - spent.sum());
    wake(sender, spent);
  }
  work();
}

void CollectiveRun::on_alarm(u32 word, Time) {
  if ((word & kOfLane) == 0) return on_message(word >> 1);
  const u32 place = word >> 1;
  TimeSpent spent = lane_[place].spent;
  spent.overhead = spent.overhead + config_.step_overhead;
  wake(place, spent);
  ++lane_[place].done;
  wake_lanes_after(place / lanes_, place % lanes_);
  work();
}

}  // namespace verbena::jobs
