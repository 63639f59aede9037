#include "management/mad_agents.h"

#include <algorithm>

#include "base/bytes.h"

namespace verbena::management {
namespace {

constexpr u8 kFirstVendorClass = 0x30, kLastVendorClass = 0x4f;
constexpr std::size_t kOUIAt = 37;  // of a vendor class with RMPP. IBTA 16.5.1

u32 high_id_of(const Datagram& datagram) { return load_be32(&datagram.mad[8]); }
u32 low_id_of(const Datagram& datagram) { return load_be32(&datagram.mad[12]); }

bool has_oui(u8 mgmt_class) {
  return mgmt_class >= kFirstVendorClass && mgmt_class <= kLastVendorClass;
}

bool has_method(const std::array<u64, 2>& mask, u8 method) {
  return (mask[method / 64 % 2] >> method % 64 & 1) != 0;
}

bool overlap(const AgentConfig& a, const AgentConfig& b) {
  return a.mgmt_class == b.mgmt_class && a.class_version == b.class_version && a.oui == b.oui &&
         ((a.method_mask[0] & b.method_mask[0]) | (a.method_mask[1] & b.method_mask[1])) != 0;
}

// A program's message for RMPP. OpenSM leaves the type 0, since kernels write it anew.
bool is_message(const Datagram& datagram) {
  if (!has_active_rmpp(datagram.mad)) return false;
  const RMPPType type = RMPPHeader::decode(datagram.mad).type;
  return type != RMPPType::kACK && type != RMPPType::kStop && type != RMPPType::kAbort;
}

}  // namespace

bool MADAgents::Agent::takes(const Datagram& datagram) const {
  return config.class_version != 0 && config.mgmt_class == datagram.mad[1] &&
         config.class_version == datagram.mad[2] &&
         has_method(config.method_mask, datagram.mad[3]) &&
         (!has_oui(config.mgmt_class) || config.oui == load_be24(&datagram.mad[kOUIAt]));
}

u32 MADAgents::open(PortPlace at) {
  clients_.push_back({next_client_, at});
  return next_client_++;
}

void MADAgents::close(u32 client) {
  std::erase_if(pending_, [&](const Pending& pending) {
    return std::ranges::any_of(agents_, [&](const Agent& agent) {
      return agent.client == client && agent.high_id == pending.high_id;
    });
  });
  std::erase_if(agents_, [client](const Agent& agent) { return agent.client == client; });
  std::erase_if(clients_, [client](const Client& its) { return its.number == client; });
}

MADAgents::Registration MADAgents::add(u32 client, u32 agent, const AgentConfig& config) {
  const auto its = std::ranges::find(clients_, client, &Client::number);
  if (its == clients_.end() || find(client, agent) != nullptr) return Registration::kInvalid;
  for (const Agent& other : agents_)
    if (other.at == its->at && overlap(other.config, config)) return Registration::kTaken;
  agents_.push_back({client, agent, its->at, config, next_high_id_++});
  return Registration::kDone;
}

void MADAgents::remove(u32 client, u32 agent) {
  const Agent* const its = find(client, agent);
  if (its == nullptr) return;
  const u32 high_id = its->high_id;
  std::erase_if(pending_, [=](const Pending& pending) { return pending.high_id == high_id; });
  std::erase_if(agents_, [=](const Agent& other) { return other.high_id == high_id; });
}

const MADAgents::Agent* MADAgents::find(u32 client, u32 agent) const {
  const auto found = std::ranges::find_if(
      agents_, [=](const Agent& its) { return its.client == client && its.number == agent; });
  return found == agents_.end() ? nullptr : &*found;
}

bool MADAgents::has_manager(PortPlace at) const {
  constexpr u64 kGetAndSet = 1u << 1 | 1u << 2;
  return std::ranges::any_of(agents_, [at](const Agent& agent) {
    const auto its_class = static_cast<MgmtClass>(agent.config.mgmt_class);
    return agent.at == at && (agent.config.method_mask[0] & kGetAndSet) != 0 &&
           (its_class == MgmtClass::kSubnDirectedRoute || its_class == MgmtClass::kSubnLIDRouted);
  });
}

void MADAgents::send(u32 client, u32 agent, Datagram datagram, Duration timeout, u32 retries,
                     Time now) {
  const Agent* const its = find(client, agent);
  if (its == nullptr) return;
  if (!is_response(datagram)) {
    store_be32(&datagram.mad[8], its->high_id);
    if (timeout > Duration{} && pending_.size() < kMostPending)
      pending_.push_back({its->high_id, low_id_of(datagram), datagram.mad[1], datagram, timeout,
                          retries, now + timeout});
  }
  transmit(its->at, std::move(datagram), now);
}

void MADAgents::transmit(PortPlace at, Datagram datagram, Time now) {
  if (!is_message(datagram)) return to_send_.push_back({at, std::move(datagram)});
  transfers_.send(at, std::move(datagram), now);
  take_to_send();
}

void MADAgents::take_to_send() {
  while (std::optional<Delivery> segment = transfers_.poll_to_send())
    to_send_.push_back(std::move(*segment));
}

// Whether an agent at the place waits for the message, or may acknowledge one of its own.
bool MADAgents::takes_segments(const Delivery& delivery) const {
  const Datagram& datagram = delivery.datagram;
  if (RMPPHeader::decode(datagram.mad).type != RMPPType::kData) return true;
  return std::ranges::any_of(agents_, [&](const Agent& agent) {
    if (agent.at != delivery.at) return false;
    return is_response(datagram) ? agent.high_id == high_id_of(datagram) : agent.takes(datagram);
  });
}

// The request is being answered: it is not repeated while segments come.
void MADAgents::prolong(const Delivery& delivery, Time now) {
  for (Pending& pending : pending_)
    if (pending.high_id == high_id_of(delivery.datagram) &&
        pending.low_id == low_id_of(delivery.datagram))
      pending.due = std::max(pending.due, now + pending.timeout);
}

void MADAgents::deliver(Delivery delivery, Time now) {
  if (has_active_rmpp(delivery.datagram.mad)) {
    if (!takes_segments(delivery)) return;
    if (is_response(delivery.datagram)) prolong(delivery, now);
    std::optional<Datagram> whole = transfers_.on_mad(delivery.at, delivery.datagram, now);
    take_to_send();
    if (!whole) return;
    delivery.datagram = std::move(*whole);
  }
  if (is_response(delivery.datagram))
    deliver_response(std::move(delivery));
  else
    deliver_request(std::move(delivery));
}

// One that nobody waits for is dropped.
void MADAgents::deliver_response(Delivery delivery) {
  const Datagram& datagram = delivery.datagram;
  const auto agent = std::ranges::find(agents_, high_id_of(datagram), &Agent::high_id);
  if (agent == agents_.end() || agent->at != delivery.at) return;
  const auto pending = std::ranges::find_if(pending_, [&](const Pending& its) {
    return its.high_id == agent->high_id && its.low_id == low_id_of(datagram) &&
           its.mgmt_class == datagram.mad[1];
  });
  if (pending == pending_.end()) return;
  pending_.erase(pending);
  received_.push_back(
      {agent->client, agent->number, ReceivedMAD::Status::kOk, std::move(delivery.datagram)});
}

void MADAgents::deliver_request(Delivery delivery) {
  for (const Agent& agent : agents_) {
    if (agent.at != delivery.at || !agent.takes(delivery.datagram)) continue;
    received_.push_back(
        {agent.client, agent.number, ReceivedMAD::Status::kOk, std::move(delivery.datagram)});
    return;
  }
}

Time MADAgents::next_timer() const {
  Time next = transfers_.next_timer();
  for (const Pending& pending : pending_) next = std::min(next, pending.due);
  return next;
}

void MADAgents::on_timer(Time now) {
  transfers_.on_timer(now);
  take_to_send();
  std::vector<Pending> ended;
  for (Pending& pending : pending_) {
    if (pending.due > now) continue;
    const auto agent = std::ranges::find(agents_, pending.high_id, &Agent::high_id);
    const bool has_left =
        agent == agents_.end() || !transfers_.is_sending(agent->at, pending.datagram);
    if (has_left && pending.retries == 0) {
      ended.push_back(pending);
      continue;
    }
    pending.due = now + pending.timeout;
    if (!has_left) continue;
    --pending.retries;
    if (agent != agents_.end()) transmit(agent->at, pending.datagram, now);
  }
  std::erase_if(pending_, [now](const Pending& pending) { return pending.due <= now; });
  for (Pending& pending : ended) {
    const auto agent = std::ranges::find(agents_, pending.high_id, &Agent::high_id);
    if (agent == agents_.end()) continue;
    received_.push_back({agent->client, agent->number, ReceivedMAD::Status::kTimedOut,
                         std::move(pending.datagram)});
  }
}

std::optional<Delivery> MADAgents::poll_to_send() {
  if (to_send_.empty()) return std::nullopt;
  Delivery delivery = std::move(to_send_.front());
  to_send_.pop_front();
  return delivery;
}

std::optional<ReceivedMAD> MADAgents::poll_received() {
  if (received_.empty()) return std::nullopt;
  ReceivedMAD received = std::move(received_.front());
  received_.pop_front();
  return received;
}

}  // namespace verbena::management
