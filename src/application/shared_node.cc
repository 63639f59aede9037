#include "application/shared_node.h"

#include <algorithm>

namespace verbena::application {

class SharedNode::View final : public Node {
 public:
  explicit View(SharedNode& all) : all_(all) {}

  [[nodiscard]] Time now() const override { return all_.node_.now(); }
  void set_alarm(Time at) override {
    alarm_ = at;
    all_.arm();
  }
  [[nodiscard]] Result<Region> register_bytes(std::span<u8> bytes, Access access) override {
    return all_.node_.register_bytes(bytes, access);
  }
  [[nodiscard]] Result<Region> allocate(u64 bytes, Content content, Access access) override {
    return all_.node_.allocate(bytes, content, access);
  }
  void deregister(const Region& region) override { all_.node_.deregister(region); }
  [[nodiscard]] Status listen(const Address& at, const QueueDepths& depths) override {
    const Status status = all_.node_.listen(at, depths);
    if (status == Status::kOk) all_.listeners_[at.port] = this;
    return status;
  }
  [[nodiscard]] Result<ConnectionId> connect(const Address& to, const QueueDepths& depths,
                                             std::span<const u8> private_data) override {
    const Result<ConnectionId> id = all_.node_.connect(to, depths, private_data);
    if (id) all_.owners_[*id] = this;
    return id;
  }
  void accept(ConnectionId id, std::span<const u8> private_data) override {
    all_.node_.accept(id, private_data);
  }
  void reject(ConnectionId id, std::span<const u8> private_data) override {
    all_.node_.reject(id, private_data);
  }
  void disconnect(ConnectionId id) override { all_.node_.disconnect(id); }
  void post_receive(ConnectionId id, u32 work, const Slice& into) override {
    all_.node_.post_receive(id, work, into);
  }
  void post(ConnectionId id, const Work& work) override { all_.node_.post(id, work); }
  [[nodiscard]] bool poll(Event& out) override {
    if (events_.empty()) return false;
    private_data_ = std::move(events_.front().private_data);
    out = events_.front().event;
    out.private_data = private_data_;
    events_.pop_front();
    return true;
  }

  void push(const Event& event) {
    events_.push_back({event, {event.private_data.begin(), event.private_data.end()}});
  }
  [[nodiscard]] Time alarm() const { return alarm_; }
  void ring(Time now) {
    if (alarm_ > now) return;
    alarm_ = Time::never();
    push({.kind = Event::Kind::kAlarm});
  }

 private:
  struct Queued {
    Event event;
    std::vector<u8> private_data;
  };
  SharedNode& all_;
  Time alarm_ = Time::never();
  std::deque<Queued> events_;
  std::vector<u8> private_data_;
};

SharedNode::SharedNode(Node& node) : node_(node) {}

SharedNode::~SharedNode() = default;

Node& SharedNode::add_view() {
  views_.push_back(std::make_unique<View>(*this));
  return *views_.back();
}

void SharedNode::arm() {
  Time next = Time::never();
  for (const auto& view : views_) next = std::min(next, view->alarm());
  if (next == armed_) return;
  armed_ = next;
  node_.set_alarm(next);
}

void SharedNode::dispatch() {
  for (Event event; node_.poll(event);) {
    if (event.kind == Event::Kind::kAlarm) {
      armed_ = Time::never();
      for (const auto& view : views_) view->ring(node_.now());
      arm();
      continue;
    }
    if (event.kind == Event::Kind::kConnectRequest)
      owners_[event.connection] = listeners_.at(event.listen_port);
    const auto owner = owners_.find(event.connection);
    if (owner == owners_.end()) continue;
    owner->second->push(event);
    const bool is_last = event.kind == Event::Kind::kClosed || event.kind == Event::Kind::kRefused;
    if (is_last) owners_.erase(owner);
  }
}

}  // namespace verbena::application
