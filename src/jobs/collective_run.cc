#include "jobs/collective_run.h"

#include <algorithm>
#include <functional>
#include <span>
#include <utility>

#include "base/check.h"

namespace verbena::jobs {
namespace {

using collectives::Action;
using collectives::Step;

Duration cpu_of(std::span<const HostStep> steps, u64 bytes) {
  Duration sum;
  for (const HostStep& step : steps) sum = sum + step.cpu_time(bytes);
  return sum;
}

constexpr u32 kPacketBytes = 4096;  // of which one is on its way where nothing else is

// The open pipes of a rank, if not all pipes are open at the same time: at least as many as its
// lanes use now and next.
constexpr u32 kOpenOfLane = 4, kOpenOfRank = 32;
constexpr u64 kStepsAhead = 4;  // among which the lane's next message is looked for

Rate rate_of_nic(const fabric::Network& network, fabric::NodeIndex nic) {
  u64 bps = 0;
  for (u32 port = 0; port < network.ports_of(nic); ++port)
    bps += network.port(nic, port).rate.bps();
  return Rate::from_bps(bps);
}

}  // namespace

fabric::NetworkConfig network_for(const Cluster& cluster, fabric::NetworkConfig config) {
  if (cluster.gpus_per_node > 1)
    config.shortest_signal = std::min(config.shortest_signal, cluster.nvlink.latency);
  return config;
}

CollectiveRun::CollectiveRun(const collectives::Script& script, const Cluster& cluster,
                             const RunConfig& config, fabric::Network& network)
    : script_(script),
      cluster_(cluster),
      config_(config),
      network_(network),
      nvlink_(cluster.ranks(), cluster.nvlink),
      path_(config.host_path.kind ? &model_of(*config.host_path.kind) : nullptr),
      sending_sides_(path_ != nullptr ? cluster.ranks() : 0),
      receiving_sides_(path_ != nullptr ? cluster.ranks() : 0),
      lanes_(script.lanes()),
      lane_(u64{script.ranks()} * lanes_) {
  CHECK(cluster.ranks() == script.ranks());
  network.set_application(this);
  if (path_ != nullptr) {
    sending_path_ = sums_of(path_->sending, config.host_path.cores);
    receiving_path_ = sums_of(path_->receiving, config.host_path.cores);
  }
  ranks_.reserve(script.ranks());
  for (u32 rank = 0; rank < script.ranks(); ++rank)
    ranks_.push_back({.executor = {script, rank}, .nic = rate_of_nic(network, cluster.nics[rank])});
  add_pipes();
  CHECK(std::max(pipes_.size(), lane_.size()) < kForeignWord >> kAboutBits);
}

void CollectiveRun::start() {
  started_at_ = network_.now();
  for (Rank& rank : ranks_) rank.executor.start();
  for (u32 rank = 0; rank < ranks_.size(); ++rank) work(rank, started_at_);
}

// --- pipes

void CollectiveRun::add_pipes() {
  u64 by_network = 0;
  for (u32 place = 0; place < lane_.size(); ++place) {
    first_pipe_.push_back(static_cast<u32>(pipes_.size()));
    const u32 rank = place / lanes_, lane = place % lanes_;
    for (const u32 to : script_.receivers(rank, lane)) {
      pipes_.push_back({.from = rank, .to = to, .lane = lane});
      if (!cluster_.share_a_node(rank, to)) ++by_network;
    }
  }
  first_pipe_.push_back(static_cast<u32>(pipes_.size()));
  all_are_open_ = by_network <= kMadeAtStart;
  for (Pipe& pipe : pipes_) {
    connect(pipe);
    if (!mistake_.empty()) return;
  }
}

// Opens the pipe's connection; it is open by the next window at the latest.
void CollectiveRun::use(u32 number) {
  Pipe& pipe = pipes_[number];
  if (all_are_open_ || pipe.connection == kNone) return;
  Rank& rank = ranks_[pipe.from];
  if (pipe.is_open == 0) network_.open_connection(pipe.connection);
  if (std::exchange(pipe.is_open, 1) != 0) std::erase(rank.open, number);
  rank.open.push_back(number);
  if (rank.open.size() > std::max(kOpenOfRank, kOpenOfLane * lanes_)) close_one(rank);
}

// Opens the pipe of the lane's next message, so that the message need not wait.
void CollectiveRun::use_next(u32 place) {
  if (all_are_open_) return;
  const u32 rank = place / lanes_, number = place % lanes_;
  const collectives::RankExecutor& executor = ranks_[rank].executor;
  const u64 next = executor.done(number) + 1;
  for (u64 i = next; i < std::min(executor.steps(number), next + kStepsAhead); ++i) {
    const Step step = script_.step(rank, number, i);
    if (step.action == Action::kSend) return use(pipe_of(rank, step.peer, number));
  }
}

void CollectiveRun::close_one(Rank& rank) {
  const auto idle = std::ranges::find_if(
      rank.open, [this](u32 number) { return pipes_[number].posted == pipes_[number].sent; });
  if (idle == rank.open.end() || *idle == rank.open.back()) return;
  pipes_[*idle].is_open = 0;
  network_.close_connection(pipes_[*idle].connection);
  rank.open.erase(idle);
}

void CollectiveRun::connect(Pipe& pipe) {
  if (cluster_.share_a_node(pipe.from, pipe.to)) {
    pipe.notice = cluster_.nvlink.latency;
    return;
  }
  const fabric::ConnectionConfig ends{.source = cluster_.nics[pipe.from],
                                      .destination = cluster_.nics[pipe.to],
                                      .depth = config_.window,
                                      .priority = config_.priority,
                                      .source_port = source_port_of(pipe)};
  if (!(all_are_open_ ? network_.connect(ends) : network_.plan_connection(ends))) {
    mistake_ = "there is no way from the NIC of rank " + std::to_string(pipe.from) +
               " to that of rank " + std::to_string(pipe.to);
    return;
  }
  pipe.connection = static_cast<u32>(pipe_of_connection_.size());
  pipe_of_connection_.push_back(static_cast<u32>(&pipe - pipes_.data()));
  measure(pipe);
}

// The ports of a NIC get as many connections each; 0: there is one, or the transport decides.
u16 CollectiveRun::source_port_of(const Pipe& pipe) {
  const u32 ports = network_.ports_of(cluster_.nics[pipe.from]);
  const u32 number = ranks_[pipe.from].connections++;
  if (ports == 1) return 0;
  return network_.source_port_for(cluster_.nics[pipe.from], cluster_.nics[pipe.to], number % ports,
                                  pipe.lane);
}

// Lower bounds: of several equal ways the first.
void CollectiveRun::measure(Pipe& pipe) const {
  fabric::NodeIndex node = cluster_.nics[pipe.from];
  const fabric::NodeIndex end = cluster_.nics[pipe.to];
  bool is_first = true;
  while (node != end) {
    const fabric::Port& port = network_.port(node, network_.routes().ports(node, end)[0]);
    pipe.notice = pipe.notice + port.delay;
    pipe.distance = pipe.distance + ps(i64{port.latency_ps});
    if (!std::exchange(is_first, false))
      pipe.distance = pipe.distance + port.rate.time_of(kPacketBytes);
    node = network_.node_of(port.peer);
  }
  pipe.distance = pipe.distance + pipe.notice;
}

u32 CollectiveRun::pipe_of(u32 from, u32 to, u32 lane) const {
  const u32 place = place_of(from, lane);
  const auto begin = pipes_.begin() + first_pipe_[place],
             end = pipes_.begin() + first_pipe_[place + 1];
  const auto at = std::ranges::lower_bound(begin, end, to, std::less{}, &Pipe::to);
  CHECK(at != end && at->to == to);
  return static_cast<u32>(at - pipes_.begin());
}

std::vector<LanePath> CollectiveRun::paths() const {
  std::vector<LanePath> paths;
  for (const Pipe& pipe : pipes_) {
    if (pipe.connection == kNone || pipe.posted == 0) continue;
    std::vector<fabric::PathHop> hops = network_.path_of_connection(pipe.connection);
    if (!hops.empty())
      paths.push_back(
          {.from = pipe.from, .to = pipe.to, .lane = pipe.lane, .hops = std::move(hops)});
  }
  return paths;
}

// --- lanes

void CollectiveRun::work(u32 rank, Time now) {
  RankPort port{*this, rank, now};
  ranks_[rank].executor.run(port);
}

bool CollectiveRun::RankPort::do_step(u32 lane, const Step& step) {
  return run.do_step(run.place_of(rank, lane), step, now);
}

void CollectiveRun::RankPort::on_step(u32 lane, u64 index) {
  if (run.observer_ != nullptr) run.observer_->on_step(rank, lane, index, now);
}

void CollectiveRun::RankPort::on_lane_wait(u32 lane, u32 other) {
  run.wait(run.place_of(rank, lane), Waits::kLane, other);
}

void CollectiveRun::RankPort::on_lane_wake(u32 lane, u32 by) {
  run.go_on_with(run.place_of(rank, lane), run.lane_[run.place_of(rank, by)].spent);
}

void CollectiveRun::RankPort::on_finish(u32 lane) {
  Rank& finished = run.ranks_[rank];
  finished.finished_at = now;
  finished.spent = run.lane_[run.place_of(rank, lane)].spent;
}

bool CollectiveRun::do_step(u32 place, const Step& step, Time now) {
  switch (step.action) {
    case Action::kSend: return send(place, step, now);
    case Action::kCopy:
    case Action::kReduce: return take(place, step, now);
    case Action::kCompute: return compute(place, step, now);
  }
  CHECK_UNREACHABLE();
}

bool CollectiveRun::compute(u32 place, const Step& step, Time now) {
  if (step.lasts != Duration()) {
    wait_until(place, Waits::kComputing, now + step.lasts);
    return false;
  }
  return true;
}

bool CollectiveRun::finished() const {
  return std::ranges::all_of(ranks_, [](const Rank& rank) { return rank.executor.finished(); });
}

double CollectiveRun::part_done() const {
  u64 done = 0, all = 1;
  for (const Rank& rank : ranks_) {
    done += rank.executor.steps_done();
    all += rank.executor.steps();
  }
  return static_cast<double>(done) / static_cast<double>(all);
}

const CollectiveRun::Rank& CollectiveRun::last_rank() const {
  return *std::ranges::max_element(ranks_, std::less{}, &Rank::finished_at);
}

Latencies CollectiveRun::latencies() const {
  Latencies sum;
  for (const Rank& rank : ranks_) sum += rank.latencies;
  return sum;
}

Duration CollectiveRun::cpu_time() const {
  Duration sum;
  for (const Rank& rank : ranks_) sum = sum + rank.cpu_time;
  return sum;
}

u64 CollectiveRun::sum(u64 Rank::*counter) const {
  u64 sum = 0;
  for (const Rank& rank : ranks_) sum += rank.*counter;
  return sum;
}

void CollectiveRun::wait(u32 place, Waits what, u32 on) {
  lane_[place].waits = what;
  lane_[place].waits_for = on;
}

void CollectiveRun::go_on_with(u32 place, const TimeSpent& spent) {
  Lane& lane = lane_[place];
  lane.waits = Waits::kNot;
  lane.spent = spent;
}

void CollectiveRun::wake(u32 place, const TimeSpent& spent) {
  go_on_with(place, spent);
  ranks_[place / lanes_].executor.wake(place % lanes_);
}

// --- messages: the sender

bool CollectiveRun::send(u32 place, const Step& step, Time now) {
  const u32 number = pipe_of(place / lanes_, step.peer, place % lanes_);
  const Pipe& pipe = pipes_[number];
  const bool is_sent = pipe.connection == kNone || pipe.posted - pipe.sent < config_.window;
  if (pipe.posted - pipe.confirmed == config_.window || !is_sent) {
    wait(place, Waits::kRoom, number);
    return false;
  }
  use(number);
  post(number, static_cast<u32>(step.range.length), lane_[place].spent, now);
  use_next(place);
  return true;
}

void CollectiveRun::post(u32 number, u32 bytes, const TimeSpent& spent, Time now) {
  Pipe& pipe = pipes_[number];
  Rank& rank = ranks_[pipe.from];
  if (pipe.messages == nullptr) pipe.messages.reset(new Message[config_.window]);
  Message& message = slot(pipe, pipe.posted++);
  message = {.posted = now, .spent = spent, .bytes = bytes};
  ++rank.messages;
  const fabric::NodeIndex nic = cluster_.nics[pipe.from];
  if (pipe.connection == kNone) {
    rank.nvlink_bytes += bytes;
    return network_.signal(nic, cluster_.nics[pipe.to], nvlink_.send(pipe.from, bytes, now),
                           word_of(About::kBegins, number));
  }
  rank.network_bytes += bytes;
  rank.unsent_bytes += bytes;
  message.ahead = time_at(rank.nic, rank.unsent_bytes);
  if (path_ == nullptr) return network_.send(pipe.connection, bytes, 0);
  const Time at = sending_sides_[pipe.from].send(sending_path_, bytes, rank.nic, now);
  message.host = at - now;
  rank.cpu_time = rank.cpu_time + cpu_of(path_->sending, bytes);
  network_.set_alarm(nic, at, word_of(About::kSending, number));
}

// Sends the message that has reached the sender's NIC. Messages of a pipe keep their order.
void CollectiveRun::begin_sending(u32 number) {
  Pipe& pipe = pipes_[number];
  network_.send(pipe.connection, slot(pipe, pipe.handed++).bytes, 0);
}

// Frees the messages of an idle pipe, because few of the many pipes are in use at the same time.
void CollectiveRun::leave_if_idle(Pipe& pipe) {
  if (pipe.confirmed == pipe.posted && pipe.sent == pipe.posted) pipe.messages.reset();
}

void CollectiveRun::on_sent(u32 connection, Time now) {
  const u32 number = pipe_of_connection_[connection];
  Pipe& pipe = pipes_[number];
  ranks_[pipe.from].unsent_bytes -= slot(pipe, pipe.sent++).bytes;
  leave_if_idle(pipe);
  const u32 place = place_of(pipe.from, pipe.lane);
  const Lane& lane = lane_[place];
  if (lane.waits != Waits::kRoom || lane.waits_for != number) return;
  TimeSpent spent = lane.spent;
  spent.waiting = spent.waiting + (now - started_at_ - spent.sum());
  wake(place, spent);
  work(pipe.from, now);
}

void CollectiveRun::on_taken(u32 number, Time now) {
  Pipe& pipe = pipes_[number];
  TimeSpent spent = slot(pipe, pipe.confirmed++).spent;
  if (pipe.connection == kNone) pipe.sent = pipe.confirmed;
  leave_if_idle(pipe);
  const u32 place = place_of(pipe.from, pipe.lane);
  const Lane& lane = lane_[place];
  if (lane.waits != Waits::kRoom || lane.waits_for != number) return;
  Duration& on_the_way = pipe.connection == kNone ? spent.nvlink : spent.distance;
  on_the_way = on_the_way + pipe.notice;
  wake(place, spent);
  work(pipe.from, now);
}

// --- messages: the receiver

// Runs when a message's first byte is at the receiver's NVLink port.
void CollectiveRun::on_begin(u32 number, Time now) {
  Pipe& pipe = pipes_[number];
  const u32 bytes = slot(pipe, pipe.begun++).bytes;
  network_.set_alarm(cluster_.nics[pipe.to], nvlink_.receive(pipe.to, bytes, now),
                     word_of(About::kArrives, number));
}

void CollectiveRun::on_arrival(u32 connection, u32, Time now) {
  on_landed(pipe_of_connection_[connection], now);
}

// Runs when a message is at the receiver's NIC. From there the message takes the host's path.
void CollectiveRun::on_landed(u32 number, Time now) {
  if (path_ == nullptr) return on_message(number, now);
  Pipe& pipe = pipes_[number];
  Message& message = slot(pipe, pipe.landed++);
  const fabric::NodeIndex nic = cluster_.nics[pipe.to];
  const Rate line = ranks_[pipe.to].nic;
  const Time at = receiving_sides_[pipe.to].receive(receiving_path_, message.bytes, line, now);
  message.host = message.host + (at - now);
  Rank& rank = ranks_[pipe.to];
  rank.cpu_time = rank.cpu_time + cpu_of(path_->receiving, message.bytes);
  network_.set_alarm(nic, at, word_of(About::kArrives, number));
}

void CollectiveRun::on_message(u32 number, Time now) {
  Pipe& pipe = pipes_[number];
  const Message& message = slot(pipe, pipe.arrived++);
  if (pipe.connection != kNone) ranks_[pipe.to].latencies.add(now - message.posted);
  if (observer_ != nullptr) observer_->on_message(pipe.to, arrived_message(pipe, message), now);
  const u32 place = place_of(pipe.to, pipe.lane);
  if (lane_[place].waits != Waits::kMessage || lane_[place].waits_for != number) return;
  wake(place, spent_with(pipe, message, now));
  work(pipe.to, now);
}

ArrivedMessage CollectiveRun::arrived_message(const Pipe& pipe, const Message& message) const {
  const bool by_nvlink = pipe.connection == kNone;
  const Rate rate =
      by_nvlink ? cluster_.nvlink.rate : network_.port(cluster_.nics[pipe.from], 0).rate;
  return {.from = pipe.from,
          .lane = pipe.lane,
          .bytes = message.bytes,
          .posted = message.posted,
          .alone = (by_nvlink ? pipe.notice : pipe.distance) + time_at(rate, message.bytes)};
}

TimeSpent CollectiveRun::spent_with(const Pipe& pipe, const Message& message, Time now) const {
  TimeSpent spent = message.spent;
  const Duration took = now - message.posted;
  if (pipe.connection == kNone) {
    spent.nvlink = spent.nvlink + took;
    return spent;
  }
  const Duration outside = took - message.host;
  const Duration distance = std::min(outside, pipe.distance);
  const Duration sending = std::min(outside - distance, message.ahead);
  spent.host = spent.host + message.host;
  spent.distance = spent.distance + distance;
  spent.sending = spent.sending + sending;
  spent.waiting = spent.waiting + (outside - distance - sending);
  return spent;
}

bool CollectiveRun::take(u32 place, const Step& step, Time now) {
  const u32 number = pipe_of(step.peer, place / lanes_, place % lanes_);
  Pipe& pipe = pipes_[number];
  if (pipe.arrived == pipe.taken) {
    wait(place, Waits::kMessage, number);
    return false;
  }
  CHECK(slot(pipe, pipe.taken).bytes == step.range.length);
  confirm(number, lane_[place].spent, now);
  if (config_.step_overhead != Duration()) {
    wait_until(place, Waits::kOverhead, now + config_.step_overhead);
    return false;
  }
  return true;
}

// Tells the sender that the receiver took a message.
void CollectiveRun::confirm(u32 number, const TimeSpent& spent, Time now) {
  Pipe& pipe = pipes_[number];
  slot(pipe, pipe.taken++).spent = spent;
  network_.signal(cluster_.nics[pipe.to], cluster_.nics[pipe.from], now + pipe.notice,
                  word_of(About::kWasTaken, number));
}

void CollectiveRun::wait_until(u32 place, Waits what, Time end) {
  wait(place, what, kNone);
  network_.set_alarm(cluster_.nics[place / lanes_], end, word_of(About::kGoesOn, place));
}

void CollectiveRun::on_time_over(u32 place, Time now) {
  TimeSpent spent = lane_[place].spent;
  Duration& part = lane_[place].waits == Waits::kComputing ? spent.computing : spent.overhead;
  part = part + (now - started_at_ - spent.sum());
  const u32 rank = place / lanes_;
  wake(place, spent);
  RankPort port{*this, rank, now};
  ranks_[rank].executor.end_step(place % lanes_, port);
  ranks_[rank].executor.run(port);
}

void CollectiveRun::on_alarm(u32 word, Time now) {
  const u32 number = word >> kAboutBits;
  switch (static_cast<About>(word & ((1u << kAboutBits) - 1))) {
    case About::kBegins: return on_begin(number, now);
    case About::kArrives: return on_message(number, now);
    case About::kWasTaken: return on_taken(number, now);
    case About::kGoesOn: return on_time_over(number, now);
    case About::kSending: return begin_sending(number);
  }
}

}  // namespace verbena::jobs
