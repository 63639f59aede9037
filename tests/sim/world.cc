#include "tests/sim/world.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>

namespace verbena::sim {

namespace {

// A broken invariant ends the process: this says in which world.
World* current = nullptr;

void report_abort(int) {
  std::signal(SIGABRT, SIG_DFL);
  if (current != nullptr) std::fputs(current->report().c_str(), stderr);
}

}  // namespace

World::World(u64 seed) : seed_(seed), prng_(seed) {
  current = this;
  std::signal(SIGABRT, report_abort);
}

World::~World() {
  current = nullptr;
  std::signal(SIGABRT, SIG_DFL);
}

Node::Node(World& world, u32 index, const NodeConfig& config)
    : world_(world), index_(index), egress_(config.egress), device_(config.device) {}

// --- into the device

PostError Node::post_send(QueuePair* qp, const SendWR& wr) {
  const PostError error = device_.post_send(qp, wr, world_.now());
  settle();
  return error;
}

PostError Node::post_receive(QueuePair* qp, const RecvWR& wr) {
  const PostError error = device_.post_receive(qp, wr, world_.now());
  settle();
  return error;
}

PostError Node::post_srq_receive(SharedReceiveQueue* srq, const RecvWR& wr) {
  const PostError error = device_.post_srq_receive(srq, wr, world_.now());
  settle();
  return error;
}

Status Node::modify_qp(QueuePair* qp, const QPModify& change) {
  const Status status = device_.modify_qp(qp, change, world_.now());
  settle();
  return status;
}

void Node::request_notification(CompletionQueue* cq) {
  device_.request_notification(cq, NotifyOn::kAnyCompletion, world_.now());
  settle();
}

std::vector<CQE> Node::poll(CompletionQueue* cq, u32 at_most) {
  std::vector<CQE> all;
  CQE cqe;
  while ((at_most == 0 || all.size() < at_most) && device_.poll_cq(cq, {&cqe, 1}) == 1) {
    world_.timeline().completed(world_.now(), index_, cqe);
    all.push_back(cqe);
  }
  return all;
}

void Node::receive(const IngressFrame& frame) {
  device_.on_frame(frame, world_.now());
  settle();
}

// --- out of the device

void Node::settle() {
  drain_events();
  set_timer();
  if (!transmit_scheduled_ && link_ != nullptr) {
    transmit_scheduled_ = true;
    const Time when = egress_ == Egress::kEager ? world_.now() : std::max(wire_free_, world_.now());
    world_.at(when, [this] { transmit(); });
  }
  if (on_activity) on_activity();
}

void Node::drain_events() {
  while (const std::optional<void*> user = device_.poll_completion_event())
    if (on_completion_event) on_completion_event(*user);
  while (const std::optional<AsyncEvent> event = device_.poll_async_event()) {
    world_.timeline().event(world_.now(), index_, event->type);
    events.push_back(*event);
  }
}

void Node::transmit() {
  transmit_scheduled_ = false;
  bool sent = transmit_one();
  while (sent && egress_ == Egress::kEager) sent = transmit_one();
  drain_events();
  set_timer();
  if (sent) {
    transmit_scheduled_ = true;
    world_.at(wire_free_, [this] { transmit(); });
  }
  if (on_activity) on_activity();
}

bool Node::transmit_one() {
  if (!device_.poll_frame(world_.now(), frame_)) return false;
  faults::HeldFrame frame = faults::HeldFrame::of(frame_, next_identification_++);
  const faults::HeldFrame copy = frame;
  std::vector<Link::Arrival> arrivals;
  Fate fate = Fate::kLost;
  const Time start = std::max(wire_free_, world_.now());
  if (start - world_.now() > link_->config().max_queueing) {
    fate = link_->drop();
  } else {
    wire_free_ = start + link_->duration_of(frame);
    fate = link_->transmit(std::move(frame), wire_free_, arrivals);
  }
  world_.timeline().sent(world_.now(), index_, copy.ingress(), fate);
  for (Link::Arrival& arrival : arrivals)
    world_.at(arrival.at, [to = peer_, a = std::move(arrival)] { to->receive(a.view()); });
  return true;
}

// One event is in the queue for the earliest deadline seen; what turns out early looks again.
void Node::set_timer() {
  // A packet that is due already goes when the wire is free.
  const Time send = device_.next_send() > world_.now() ? device_.next_send() : Time::never();
  const Time deadline = std::min(device_.next_timer(), send);
  if (deadline >= timer_scheduled_) return;
  timer_scheduled_ = deadline;
  world_.at(std::max(deadline, world_.now()), [this, deadline] {
    if (timer_scheduled_ != deadline) return;
    timer_scheduled_ = Time::never();
    if (device_.next_timer() <= world_.now()) device_.on_timer(world_.now());
    settle();
  });
}

// --- the world

Node& World::add_node(const NodeConfig& config) {
  nodes_.push_back(std::make_unique<Node>(*this, static_cast<u32>(nodes_.size()), config));
  return *nodes_.back();
}

void World::join(Node& a, Node& b, const LinkConfig& config) {
  a.peer_ = &b;
  b.peer_ = &a;
  a.link_ = std::make_unique<Link>(config, prng_.next());
  b.link_ = std::make_unique<Link>(config, prng_.next());
}

void World::at(Time when, std::function<void()> what) {
  queue_.push_back({when, events_added_++, std::move(what)});
  std::push_heap(queue_.begin(), queue_.end(), later);
}

void World::run_one() {
  std::pop_heap(queue_.begin(), queue_.end(), later);
  const Event event = std::move(queue_.back());
  queue_.pop_back();
  now_ = event.at;
  event.what();
}

bool World::run_until_idle(Duration limit) {
  const Time end = now_ + limit;
  for (u64 n = 0; !queue_.empty(); ++n) {
    if (queue_.front().at > end || n == kMaxEvents || stopped_) return false;
    run_one();
  }
  return true;
}

void World::run_for(Duration time) {
  const Time end = now_ + time;
  while (!queue_.empty() && queue_.front().at <= end) run_one();
  now_ = end;
}

std::string World::report() const {
  const ::testing::TestInfo* const test = ::testing::UnitTest::GetInstance()->current_test_info();
  std::string name = "*";
  if (test != nullptr) {
    name = std::string(test->test_suite_name()) + "." + test->name();
    if (test->value_param() != nullptr) name = name.substr(0, name.rfind('/')) + "/*";
  }
  const std::string seed = std::to_string(seed_);
  return "seed " + seed + "; to replay it:\n  SIM_SEED=" + seed +
         " build/release/tests/sim_test --gtest_filter='" + name + "'\n" + timeline_.last();
}

}  // namespace verbena::sim
