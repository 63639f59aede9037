#include "agent/agent.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "coll/host_port.h"
#include "transfer/fields.h"

namespace verbena::agent {
namespace {

constexpr u32 kCompletions = 16384;  // of one rail
constexpr u32 kCompletionsOfLane = 256;
constexpr std::size_t kMaxNewcomers = 256;
constexpr i64 kNewcomerTime = 10 * coll::kSecond;
constexpr i64 kSpinTime = 100 * coll::kMicrosecond;
constexpr i64 kConnectTime = 10 * coll::kSecond;
constexpr int kTickMilliseconds = 1;  // while another thread polls
constexpr std::size_t kMaxRegisteredRegions = transfer::kMaxRegions;

tl::unexpected<Error> unknown_agent(const std::string& name) {
  return failure(VERBENA_TRANSFER_NOT_FOUND, "agent " + name + ": its metadata is not loaded");
}

u64 random_incarnation() {
  u64 value = 0;
  if (getrandom(&value, sizeof value, 0) != sizeof value) value = static_cast<u64>(getpid());
  return value | 1;  // never 0
}

// Where a peer listens.
Expected<coll::HostPort> peer_address(const std::string& text) {
  auto parts = coll::parse_host_port(text);
  if (parts && !parts->host.empty() && parts->port != 0) return *std::move(parts);
  return failure(VERBENA_TRANSFER_INVALID, "'" + text + "' is not HOST:PORT");
}

std::string address_text(const std::string& host, u16 port) {
  const bool is_ipv6 = host.find(':') != std::string::npos;
  return (is_ipv6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

}  // namespace

Expected<std::unique_ptr<Agent>> Agent::make(const std::string& name, const AgentOptions& options) {
  std::unique_ptr<Agent> agent(new Agent);
  if (const auto opened = agent->open(name, options); !opened)
    return tl::unexpected(opened.error());
  return agent;
}

Expected<void> Agent::open(const std::string& name, const AgentOptions& options) {
  if (!transfer::is_agent_name(name))
    return failure(VERBENA_TRANSFER_INVALID,
                   "an agent's name is 1 to 255 printable characters without space");
  auto rails = coll::open_rails(options.devices, kCompletions);
  if (!rails) return system_failure(rails.error());
  rails_ = std::move(*rails);
  options_ = options;
  self_ = {.name = name,
           .incarnation = random_incarnation(),
           .rails = static_cast<u8>(rails_.size()),
           .queue_pairs = options.link.queue_pairs};
  if (std::ranges::any_of(rails_, [](const auto& rail) { return coll::has_streams(*rail); })) {
    auto streams = coll::StreamConnector::open(rails_, self_.incarnation);
    if (!streams) return system_failure(streams.error());
    streams_ = std::move(*streams);
  }
  host_ = options.listen_host.empty() ? rails_[0]->host() : options.listen_host;
  auto listener = coll::listen_on(host_, options.listen_port, &port_);
  if (!listener) return system_failure(listener.error());
  listener_ = std::move(*listener);
  address_ = address_text(host_, port_);
  wake_ = coll::Descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  service_ = std::thread([this] { serve(); });
  return {};
}

Agent::~Agent() {
  if (service_.joinable()) {
    {
      const Lock lock(lock_);
      is_stopping_ = true;
      for (const auto& [id, link] : links_) link->channel().send(Message::Type::kBye, "");
    }
    wake();
    service_.join();
  }
  for (const auto& [id, link] : links_) link->die("this agent ends");
  links_.clear();
  regions_.clear();
}

// --- memory and metadata

Expected<u64> Agent::add_region(void* address, u64 length, unsigned rights) {
  const Lock lock(lock_);
  if (regions_.size() >= kMaxRegisteredRegions)
    return failure(VERBENA_TRANSFER_NO_ROOM,
                   std::to_string(kMaxRegisteredRegions) + " regions are registered");
  auto region = Region::make(rails_, next_region_, address, length, rights);
  if (!region) return tl::unexpected(region.error());
  regions_.emplace(next_region_, std::move(*region));
  return next_region_++;
}

Expected<void> Agent::remove_region(u64 id) {
  const Lock lock(lock_);
  if (regions_.erase(id) == 0)
    return failure(VERBENA_TRANSFER_NOT_FOUND, "there is no region " + std::to_string(id));
  return {};
}

transfer::Metadata Agent::own_metadata() const {
  transfer::Metadata metadata{.name = self_.name,
                              .incarnation = self_.incarnation,
                              .host = host_,
                              .port = port_,
                              .rails = self_.rails};
  for (const auto& [id, region] : regions_)
    if (region->is_remote()) metadata.regions.push_back(region->published());
  return metadata;
}

std::string Agent::metadata() {
  const Lock lock(lock_);
  return own_metadata().encode();
}

Expected<std::string> Agent::load_metadata(std::string_view bytes) {
  auto metadata = transfer::Metadata::decode(bytes);
  if (!metadata) return failure(VERBENA_TRANSFER_INVALID, metadata.error());
  const Lock lock(lock_);
  std::string name = metadata->name;
  others_.insert_or_assign(name, std::move(*metadata));
  return name;
}

Expected<std::string> Agent::fetch_metadata(const std::string& address, i64 deadline) {
  const auto parts = peer_address(address);
  if (!parts) return tl::unexpected(parts.error());
  auto socket = coll::connect_to(parts->host, parts->port, deadline);
  if (!socket) return peer_failure(socket.error());
  Channel channel(std::move(*socket));
  channel.send(Message::Type::kAskMetadata, "");
  while (channel.is_open()) {
    if (const auto answer = channel.poll()) {
      if (answer->type != Message::Type::kMetadata) break;
      return load_metadata(answer->payload);
    }
    const i64 left = deadline - coll::now_ns();
    if (left <= 0) return failure(VERBENA_TRANSFER_PEER, address + " does not answer");
    pollfd readable{.fd = channel.descriptor(), .events = POLLIN, .revents = 0};
    if (channel.is_open())
      poll(&readable, 1, static_cast<int>(std::min<i64>(left / coll::kMillisecond + 1, 1000)));
  }
  return failure(VERBENA_TRANSFER_PEER, address + " is no agent: it gives no metadata");
}

Expected<const transfer::Metadata*> Agent::metadata_of(const std::string& peer) const {
  const auto found = others_.find(peer);
  if (found == others_.end()) return unknown_agent(peer);
  return &found->second;
}

Expected<void> Agent::forget(const std::string& peer) {
  const Lock lock(lock_);
  if (others_.erase(peer) == 0) return unknown_agent(peer);
  for (const auto& [id, link] : links_)
    if (link->peer() == peer) link->die("agent " + peer + " is forgotten");
  progress();
  return {};
}

// --- links

Link* Agent::link_to(const std::string& peer, u64 incarnation) {
  for (const auto& [id, link] : links_)
    if (link->peer() == peer && link->incarnation() == incarnation && link->why_dead().empty())
      return link.get();
  return nullptr;
}

Expected<void> Agent::connect(const std::string& peer, i64 deadline) {
  Lock lock(lock_);
  const auto metadata = metadata_of(peer);
  if (!metadata) return tl::unexpected(metadata.error());
  const u64 incarnation = (*metadata)->incarnation;
  Link* link = link_to(peer, incarnation);
  if (link == nullptr) {
    const std::string host = (*metadata)->host;
    const u16 port = (*metadata)->port;
    lock.unlock();
    auto socket = coll::connect_to(host, port, deadline);
    if (!socket)
      return failure(VERBENA_TRANSFER_PEER, "agent " + peer + ": " + socket.error().text);
    lock.lock();
    link = link_to(peer, incarnation);  // another thread may have been faster
    if (link == nullptr) {
      const u32 id = next_link_++ & 0xffff;
      link = links_
                 .insert_or_assign(
                     id, std::make_unique<Link>(id, rails_, streams_.get(),
                                                Channel(std::move(*socket)), self_, options_.link))
                 .first->second.get();
      link->greet(incarnation, peer);
      wake();
    }
  }
  const u32 id = link->id();
  const auto is_decided = [&] {
    const auto found = links_.find(id);
    return found == links_.end() || found->second->is_up();
  };
  if (!drive(lock, deadline, is_decided))
    return failure(VERBENA_TRANSFER_PEER, "agent " + peer + ": no connection in time");
  const auto found = links_.find(id);
  if (found == links_.end()) {
    const auto why = obituaries_.find(id);
    return failure(VERBENA_TRANSFER_PEER,
                   why != obituaries_.end() ? why->second : "agent " + peer + " is gone");
  }
  return {};
}

// --- transfers

Expected<std::vector<transfer::Block>> Agent::local_blocks(std::span<const verbena_descriptor> list,
                                                           TransferState& state) const {
  std::vector<transfer::Block> blocks;
  std::map<u64, u32> indexes;
  const bool must_be_writable = state.operation == transfer::Operation::kRead;
  for (const verbena_descriptor& block : list) {
    const auto region = std::ranges::find_if(regions_, [&](const auto& entry) {
      return (block.region == 0 || entry.first == block.region) &&
             entry.second->holds(block.address, block.length) &&
             (entry.second->is_writable() || !must_be_writable);
    });
    if (region == regions_.end())
      return failure(VERBENA_TRANSFER_INVALID,
                     "a local block of " + std::to_string(block.length) +
                         " bytes is not in a registered region" +
                         (must_be_writable ? " that a READ may write" : ""));
    const auto [index, is_new] =
        indexes.try_emplace(region->first, static_cast<u32>(state.local_keys.size()));
    if (is_new) state.local_keys.push_back(region->second->lkeys());
    blocks.push_back({block.address, block.length, index->second});
  }
  return blocks;
}

Expected<void> Agent::prepare(TransferState& state, const Descriptors& lists) {
  const Lock lock(lock_);
  const auto metadata = metadata_of(state.peer);
  if (!metadata) return tl::unexpected(metadata.error());
  const auto local = local_blocks(lists.local, state);
  if (!local) return tl::unexpected(local.error());
  const u8 right = state.operation == transfer::Operation::kRead ? transfer::kRemoteRead
                                                                 : transfer::kRemoteWrite;
  std::vector<transfer::Block> remote;
  std::map<u32, u32> indexes;
  for (const verbena_descriptor& block : lists.remote) {
    const auto region = transfer::find_region((*metadata)->regions, block.region, block.address,
                                              block.length, right, "of agent " + state.peer);
    if (!region) return failure(VERBENA_TRANSFER_INVALID, region.error());
    const auto [index, is_new] =
        indexes.try_emplace(*region, static_cast<u32>(state.remote_keys.size()));
    if (is_new) state.remote_keys.push_back((*metadata)->regions[*region].rkeys);
    remote.push_back({block.address, block.length, index->second});
  }
  auto copies = transfer::pair_lists(*local, remote);
  if (!copies) return failure(VERBENA_TRANSFER_INVALID, copies.error());
  state.copies = std::move(*copies);
  u64 end = 0;
  for (const transfer::Block& block : *local)
    if (state.is_staged) state.local_ends.push_back(end += block.length);
  state.incarnation = (*metadata)->incarnation;
  return {};
}

Expected<void> Agent::post(const std::shared_ptr<TransferState>& state) {
  {
    const Lock lock(lock_);
    if (state->status == VERBENA_TRANSFER_IN_PROGRESS)
      return failure(VERBENA_TRANSFER_INVALID, "the transfer is in progress");
  }
  for (int attempt = 0; attempt < 2; ++attempt) {
    {
      const Lock lock(lock_);
      Link* const link = link_to(state->peer, state->incarnation);
      if (link != nullptr && link->is_greeted()) {
        const auto started = link->start(state);
        if (started) {
          link->work(coll::now_ns());
          take_from(*link);
        }
        return started;
      }
      const auto metadata = metadata_of(state->peer);
      if (!metadata) return tl::unexpected(metadata.error());
      if ((*metadata)->incarnation != state->incarnation)
        return failure(VERBENA_TRANSFER_PEER,
                       "agent " + state->peer + " has restarted since: prepare it again");
    }
    const auto connected = connect(state->peer, coll::now_ns() + kConnectTime);
    if (!connected) return connected;
  }
  return failure(VERBENA_TRANSFER_PEER, "agent " + state->peer + " is gone");
}

Expected<void> Agent::advance(TransferState& state, u64 blocks) {
  const Lock lock(lock_);
  if (!state.is_staged) return failure(VERBENA_TRANSFER_INVALID, "the transfer is not staged");
  if (blocks > state.local_ends.size())
    return failure(VERBENA_TRANSFER_INVALID,
                   "the transfer has " + std::to_string(state.local_ends.size()) + " blocks");
  const auto link = links_.find(state.link);
  if (state.status != VERBENA_TRANSFER_IN_PROGRESS || link == links_.end())
    return failure(
        state.status > VERBENA_TRANSFER_IN_PROGRESS ? state.status : int{VERBENA_TRANSFER_INVALID},
        state.why.empty() ? "the transfer is not in progress" : state.why);
  if (blocks > 0) link->second->advance(state, state.local_ends[blocks - 1]);
  progress();
  return {};
}

int Agent::status(TransferState& state) {
  const Lock lock(lock_);
  if (state.status == VERBENA_TRANSFER_IN_PROGRESS) progress();
  return state.status;
}

int Agent::wait(TransferState& state, i64 deadline) {
  Lock lock(lock_);
  drive(lock, deadline, [&] { return state.status != VERBENA_TRANSFER_IN_PROGRESS; });
  return state.status;
}

void Agent::cancel(TransferState& state) {
  const Lock lock(lock_);
  if (state.status != VERBENA_TRANSFER_IN_PROGRESS) return;
  const auto link = links_.find(state.link);
  if (link != links_.end()) link->second->cancel(state);
  progress();
}

std::optional<Notification> Agent::next_notification(const std::string& from, i64 deadline,
                                                     u64 room) {
  Lock lock(lock_);
  const auto find = [&] {
    return std::ranges::find_if(notifications_, [&](const Notification& notification) {
      return from.empty() || notification.peer == from;
    });
  };
  if (!drive(lock, deadline, [&] { return find() != notifications_.end(); })) return std::nullopt;
  const auto found = find();
  if (found->text.size() > room) return *found;  // the caller sees that it is too long
  Notification notification = std::move(*found);
  notifications_.erase(found);
  if (notifications_.size() + 1 == kMaxNotifications)
    for (const auto& [id, link] : links_) link->hold_receives(false);
  return notification;
}

Counters Agent::count() {
  const Lock lock(lock_);
  Counters counters = counted_;
  for (const auto& [id, link] : links_) {
    counters.bytes += link->bytes();
    counters.lanes_up += link->lanes_up();
    counters.lanes_lost += link->lanes_lost();
  }
  return counters;
}

// --- progress

bool Agent::poll_devices() {
  bool found = false;
  std::array<ibv_wc, 32> completions;
  for (const auto& rail : rails_) {
    while (true) {
      const int count =
          ibv_poll_cq(rail->cq(), static_cast<int>(completions.size()), completions.data());
      for (int i = 0; i < count; ++i) {
        const WorkId work = WorkId::of(completions[static_cast<std::size_t>(i)].wr_id);
        const auto link = links_.find(work.link);
        if (link != links_.end())
          link->second->on_completion(work, completions[static_cast<std::size_t>(i)]);
      }
      found |= count > 0;
      if (count < static_cast<int>(completions.size())) break;
    }
  }
  return found;
}

void Agent::take_from(Link& link) {
  for (const auto& state : link.take_finished()) {
    ++(state->status == VERBENA_TRANSFER_OK ? counted_.transfers : counted_.failed);
    ++news_;
  }
  auto& received = link.notifications();
  if (received.empty()) return;
  ++news_;
  for (Notification& notification : received) notifications_.push_back(std::move(notification));
  received.clear();
  if (notifications_.size() >= kMaxNotifications)
    for (const auto& [id, each] : links_) each->hold_receives(true);
}

void Agent::bury_dead_links() {
  for (auto link = links_.begin(); link != links_.end();) {
    Link& each = *link->second;
    if (each.why_dead().empty()) {
      ++link;
      continue;
    }
    counted_.bytes += each.bytes();
    counted_.lanes_lost += each.lanes_lost();
    if (obituaries_.size() >= 64) obituaries_.erase(obituaries_.begin());
    obituaries_[link->first] = each.why_dead();
    link = links_.erase(link);
    ++news_;
  }
}

void Agent::progress() {
  const u64 before = news_;
  if (poll_devices()) ++news_;
  const i64 now = coll::now_ns();
  bool is_any_dead = false;
  for (const auto& [id, link] : links_) {
    if (link->work(now)) ++news_;
    take_from(*link);
    is_any_dead |= !link->why_dead().empty();
  }
  if (is_any_dead) bury_dead_links();
  if (news_ != before && sleepers_ > 0) changed_.notify_all();
}

template <typename Done>
bool Agent::drive(Lock& lock, i64 deadline, Done is_done) {
  while (!is_done()) {
    ++pollers_;
    u64 seen = news_;
    i64 now = coll::now_ns(), quiet_since = now;
    while (!is_done() && now < deadline && now - quiet_since < kSpinTime) {
      progress();
      now = coll::now_ns();
      if (news_ != seen) quiet_since = now;
      seen = news_;
      if (!is_done()) lock_.let_others_in();
    }
    if (--pollers_ == 0 && !is_done()) wake();
    if (is_done() || now >= deadline) break;
    ++sleepers_;
    changed_.wait_for(lock, std::chrono::nanoseconds(std::min<i64>(deadline - now, coll::kSecond)));
    --sleepers_;
  }
  return is_done();
}

// --- the service thread

void Agent::wake() {
  const u64 one = 1;
  (void)!write(wake_.get(), &one, sizeof one);
}

void Agent::arm() {
  for (const auto& rail : rails_) ibv_req_notify_cq(rail->cq(), 0);
  is_armed_ = true;
  progress();  // what came before it was armed
}

void Agent::collect_events() {
  for (const auto& rail : rails_) {
    ibv_cq* cq = nullptr;
    void* context = nullptr;
    unsigned events = 0;
    while (ibv_get_cq_event(rail->channel(), &cq, &context) == 0) ++events;
    if (events == 0) continue;
    ibv_ack_cq_events(rail->cq(), events);
    is_armed_ = false;
  }
}

void Agent::admit_newcomers() {
  while (newcomers_.size() < kMaxNewcomers) {
    pollfd readable{.fd = listener_.get(), .events = POLLIN, .revents = 0};
    if (poll(&readable, 1, 0) <= 0) return;
    auto socket = coll::accept_from(listener_.get(), coll::now_ns() + coll::kMillisecond);
    if (!socket) return;
    newcomers_.push_back({Channel(std::move(*socket)), coll::now_ns()});
  }
}

// Returns false when the channel is to be dropped, or has become a link.
bool Agent::serve_newcomer(Channel& channel) {
  channel.flush();
  while (const auto message = channel.poll()) {
    if (message->type == Message::Type::kAskMetadata) {
      channel.send(Message::Type::kMetadata, own_metadata().encode());
      continue;
    }
    if (message->type != Message::Type::kHello) return false;
    const std::size_t lanes = links_.size() * rails_.size() * self_.queue_pairs;
    if ((lanes + self_.queue_pairs) * kCompletionsOfLane > kCompletions * rails_.size()) {
      channel.send(Message::Type::kRefuse, "it has no room for another connection");
      return false;
    }
    const u32 id = next_link_++ & 0xffff;
    auto link = std::make_unique<Link>(id, rails_, streams_.get(), std::move(channel), self_,
                                       options_.link);
    const auto greeted = link->on_hello(message->payload, false);
    if (!greeted)
      link->channel().send(Message::Type::kRefuse, greeted.error().text);
    else
      links_.insert_or_assign(id, std::move(link));
    return false;
  }
  return channel.is_open();
}

void Agent::serve_newcomers() {
  const i64 now = coll::now_ns();
  std::erase_if(newcomers_, [&](Newcomer& newcomer) {
    return !serve_newcomer(newcomer.channel) || now - newcomer.since > kNewcomerTime;
  });
}

void Agent::serve_channels() {
  for (const auto& [id, link] : links_) {
    Channel& channel = link->channel();
    channel.flush();
    while (link->why_dead().empty()) {
      const auto message = channel.poll();
      if (!message) break;
      ++news_;
      // A notification that arrived before the peer left must not go with its lane.
      if (message->type == Message::Type::kBye) poll_devices();
      if (message->type == Message::Type::kHello && !link->is_greeted()) {
        const auto greeted = link->on_hello(message->payload, true);
        if (!greeted) link->die(greeted.error().text);
      } else {
        link->on_message(*message);
      }
    }
    if (!link->why_dead().empty() || channel.is_open()) continue;
    poll_devices();
    if (link->why_dead().empty())
      link->die("agent " + link->peer() + ": the connection was closed: it died");
  }
}

void Agent::serve_streams() {
  if (streams_ == nullptr) return;
  while (auto event = streams_->poll()) {
    const WorkId work = WorkId::of(event->lane);
    const auto link = links_.find(work.link);
    if (link == links_.end()) continue;
    link->second->on_stream(work, std::move(*event));
    ++news_;
  }
}

i64 Agent::next_alarm() const {
  i64 next = coll::now_ns() + coll::kSecond;
  for (const auto& [id, link] : links_)
    if (const i64 at = link->next_alarm(); at >= 0) next = std::min(next, at);
  return next;
}

void Agent::serve() {
  std::vector<pollfd> descriptors;
  Lock lock(lock_);
  while (!is_stopping_) {
    if (pollers_ == 0 && !is_armed_) arm();
    descriptors.clear();
    const auto watch = [&](int fd, bool also_writable) {
      const int events = POLLIN | (also_writable ? POLLOUT : 0);
      descriptors.push_back({.fd = fd, .events = static_cast<short>(events), .revents = 0});
    };
    watch(wake_.get(), false);
    watch(listener_.get(), false);
    if (streams_ != nullptr) watch(streams_->descriptor(), false);
    if (is_armed_)
      for (const auto& rail : rails_) watch(rail->channel()->fd, false);
    for (const auto& newcomer : newcomers_)
      watch(newcomer.channel.descriptor(), newcomer.channel.wants_to_send());
    for (const auto& [id, link] : links_)
      if (link->channel().is_open())
        watch(link->channel().descriptor(), link->channel().wants_to_send());
    const i64 left = next_alarm() - coll::now_ns();
    const int timeout =
        pollers_ > 0 ? kTickMilliseconds : static_cast<int>(std::max<i64>(left, 0) / 1'000'000 + 1);
    lock.unlock();
    poll(descriptors.data(), descriptors.size(), timeout);
    lock.lock();
    u64 wakes = 0;
    (void)!read(wake_.get(), &wakes, sizeof wakes);
    if (is_armed_) collect_events();
    admit_newcomers();
    serve_newcomers();
    serve_channels();
    serve_streams();
    progress();
  }
}

}  // namespace verbena::agent
