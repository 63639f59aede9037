#include "communicator/world.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <numeric>
#include <utility>

#include "base/check.h"

namespace verbena::coll {
namespace {

constexpr i64 kHousekeeping = kMillisecond;
constexpr i64 kPingInterval = kSecond / 2;
constexpr i64 kSpinTime = 200 * kMicrosecond;       // of a caller that waits, before it sleeps
constexpr i64 kSpinTimeForData = 5 * kMillisecond;  // while data is under way
constexpr i64 kThreadSpinTime =
    20 * kMicrosecond;  // of the thread, which takes a core of the program
constexpr i64 kLongestSleep = 20 * kMillisecond;
constexpr i64 kDrainTime = 2 * kSecond;  // for queued messages, before this rank leaves
constexpr u32 kPollsBetweenLooks = 32;   // at the clock
constexpr u32 kPollsOfLinks = 64;        // for each of the queues, if all peers are linked
constexpr int kCompletionsAtOnce = 16;

constexpr u32 kStagingBuffers = 32;
constexpr u32 kTokenBits = 12;  // of an offer's place; the rest is its generation

// Deep queues for few peers; some MiB for many.
u32 depth_for(u32 ranks) { return std::clamp(2048 / ranks, 16u, 64u); }

// The same for two processes if they share a kernel and its network.
u64 host_number() {
  std::string id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
  char space[64] = {};
  if (readlink("/proc/self/ns/net", space, sizeof space - 1) > 0) id += space;
  return std::hash<std::string>()(id);
}

struct PeerCard {
  u64 host = 0;
  u32 rails = 0, reserved = 0;
  Arena::Card arena{};
  u64 sleep_word = 0;  // its address
};

// Whether ranks of one host may exchange messages without the device. Not where somebody wants to
// see or to lose packets: the variables of `verbena run`.
bool may_share() {
  const char* const local = std::getenv("VERBENA_LOCAL");
  if (local != nullptr && std::strcmp(local, "off") == 0) return false;
  for (const char* const variable : {"VERBENA_FAULT", "VERBENA_CAPTURE", "VERBENA_FABRIC"})
    if (std::getenv(variable) != nullptr) return false;
  return true;
}

template <typename T>
void append(std::string& to, const T& value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}
template <typename T>
bool read_at(const std::string& from, std::size_t offset, T& value) {
  if (offset + sizeof value > from.size()) return false;
  std::memcpy(static_cast<void*>(&value), from.data() + offset, sizeof value);
  return true;
}

}  // namespace

// --- making

Expected<std::shared_ptr<World>> World::open(const WorldConfig& config) {
  std::shared_ptr<World> world(new World);
  world->rank_ = config.at.rank;
  world->timeout_s_ = config.timeout_s;
  world->choice_ = config.choice;
  if (const auto prepared = world->prepare(config); !prepared)
    return tl::unexpected(prepared.error());
  world->wake_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (world->size() > 1) world->thread_ = std::thread([w = world.get()] { w->run_thread(); });
  return world;
}

Expected<void> World::prepare(const WorldConfig& config) {
  const u32 ranks = config.at.ranks, depth = depth_for(ranks);
  const i64 deadline = after(now_ns(), config.timeout_s);
  connections_.resize(ranks);
  backlog_.resize(ranks);
  gone_.resize(ranks);
  hosts_.assign(ranks, 0);
  auto rails = open_rails(config.devices, ranks * Connection::completions_for(depth));
  if (!rails) return tl::unexpected(rails.error());
  rails_ = std::move(*rails);
  const u32 ring_slots = depth + Connection::kSpareSlots;
  const u64 slots =
      (u64{Connection::slots_for(depth)} * kSlotSize + SharedLink::ring_bytes(ring_slots)) *
      (ranks - 1);
  const u64 buffers = kPieceBytes * kPieceBuffers + kBufferedBytes * kStagingBuffers;
  auto arena = Arena::make(rails_, Arena::kNonceBytes + sizeof(SleepWord) + slots + buffers);
  if (!arena) return tl::unexpected(arena.error());
  arena_ = std::move(*arena);
  sleep_word_ = new (arena_->take(sizeof(SleepWord))) SleepWord;
  peer_arenas_.resize(ranks);
  rings_.resize(ranks);
  transfers_ = std::make_unique<Transfers>(connections_, arena_->take(kPieceBytes * kPieceBuffers),
                                           arena_->registration(), *this);
  staging_ = std::make_unique<BufferPool>(arena_->take(kBufferedBytes * kStagingBuffers),
                                          kBufferedBytes, kStagingBuffers);
  for (u32 rank = 0; rank < ranks; ++rank) {
    if (rank == rank_) continue;
    const ConnectionMemory memory{arena_->take(u64{Connection::slots_for(depth)} * kSlotSize),
                                  arena_->registration().lkey(0)};
    connections_[rank] = std::make_unique<Connection>(rank, depth, memory);
    rings_[rank] = arena_->take(SharedLink::ring_bytes(ring_slots));
    if (const auto made = connections_[rank]->create(rails_); !made) return made;
  }
  return connect(config, deadline);
}

Expected<void> World::connect(const WorldConfig& config, i64 deadline) {
  auto star = Star::open(config.at, config.store, rails_[0]->host(), deadline);
  if (!star) return tl::unexpected(star.error());
  star_ = std::move(*star);
  if (std::ranges::any_of(rails_, [](const auto& rail) { return has_streams(*rail); })) {
    auto streams = StreamMesh::open(rails_, rank_, arena_->card().nonce);
    if (!streams) return tl::unexpected(streams.error());
    streams_ = std::move(*streams);
  }
  std::string mine;
  append(mine, PeerCard{.host = host_number(),
                        .rails = static_cast<u32>(rails_.size()),
                        .arena = arena_->card(),
                        .sleep_word = reinterpret_cast<u64>(sleep_word_)});
  for (u32 rank = 0; rank < size(); ++rank) {
    std::vector<QPAddress> addresses(rails_.size());
    if (rank != rank_) addresses = connections_[rank]->addresses();
    for (u32 rail = 0; streams_ != nullptr && rail < addresses.size(); ++rail)
      addresses[rail].stream_port = streams_->port(rail);
    for (const QPAddress& address : addresses) append(mine, address);
  }
  for (u8* const ring : rings_) append(mine, reinterpret_cast<u64>(ring));
  const auto all = star_.exchange(mine, deadline);
  if (!all) return tl::unexpected(all.error());
  std::vector<StreamPeer> peers(size());
  for (u32 rank = 0; rank < size(); ++rank) {
    PeerCard card;
    if (!read_at((*all)[rank], 0, card) || card.rails != rails_.size())
      return failure(VERBENA_COLL_RENDEZVOUS,
                     "rank " + std::to_string(rank) + " has " + std::to_string(card.rails) +
                         " devices, rank " + std::to_string(rank_) + " has " +
                         std::to_string(rails_.size()),
                     static_cast<int>(rank));
    hosts_[rank] = card.host;
    if (rank == rank_) continue;
    std::vector<QPAddress> remote(rails_.size());
    for (u32 rail = 0; rail < remote.size(); ++rail)
      if (!read_at((*all)[rank],
                   sizeof card + (u64{rank_} * remote.size() + rail) * sizeof(QPAddress),
                   remote[rail]))
        return failure(VERBENA_COLL_RENDEZVOUS,
                       "rank " + std::to_string(rank) + " gives no address of its queue pairs");
    if (const auto connected = connections_[rank]->connect(rails_, remote); !connected)
      return connected;
    peers[rank] = {.incarnation = card.arena.nonce, .addresses = std::move(remote)};
  }
  if (streams_ != nullptr)
    if (const auto connected = streams_->connect(peers, connections_, deadline); !connected)
      return connected;
  if (const auto shared = share_memory(*all, deadline); !shared) return shared;
  const auto neighbours = std::ranges::count(hosts_, hosts_[rank_]);
  is_crowded_ = neighbours > static_cast<long>(std::thread::hardware_concurrency());
  return {};
}

// Two ranks share memory if each can map the other's. Nobody sends before all have heard that.
Expected<void> World::share_memory(const std::vector<std::string>& cards, i64 deadline) {
  std::string mapped(size(), 0);
  for (u32 rank = 0; rank < size() && may_share(); ++rank) {
    PeerCard card;
    if (rank == rank_ || hosts_[rank] != hosts_[rank_] || !read_at(cards[rank], 0, card)) continue;
    peer_arenas_[rank] = PeerArena::map(card.arena);
    if (peer_arenas_[rank] != nullptr) mapped[rank] = 1;
  }
  const auto all = star_.exchange(mapped, deadline);
  if (!all) return tl::unexpected(all.error());
  const u32 ring_slots = depth_for(size()) + Connection::kSpareSlots;
  for (u32 rank = 0; rank < size(); ++rank) {
    if (mapped[rank] == 0 || (*all)[rank].size() != size() || (*all)[rank][rank_] == 0) {
      peer_arenas_[rank].reset();
      continue;
    }
    PeerCard card;
    u64 ring = 0;
    const std::size_t rings = sizeof card + u64{size()} * rails_.size() * sizeof(QPAddress);
    const bool whole =
        read_at(cards[rank], 0, card) && read_at(cards[rank], rings + rank_ * sizeof ring, ring);
    const PeerArena& arena = *peer_arenas_[rank];
    const u8* const incoming = arena.find(ring, SharedLink::ring_bytes(ring_slots));
    const u8* const sleep = arena.find(card.sleep_word, sizeof(SleepWord));
    if (!whole || incoming == nullptr || sleep == nullptr)
      return failure(VERBENA_COLL_RENDEZVOUS,
                     "rank " + std::to_string(rank) + " gives wrong addresses of its memory");
    connections_[rank]->share(std::make_unique<SharedLink>(
        rings_[rank], incoming, *reinterpret_cast<const SleepWord*>(sleep), ring_slots));
  }
  const auto is_absent = [](const auto& arena) { return arena == nullptr; };
  links_only_ = std::ranges::count_if(peer_arenas_, is_absent) == 1;  // the own place
  return {};
}

World::~World() {
  if (thread_.joinable()) {
    {
      const Guard guard(*this);
      ends_ = true;
    }
    wake_thread();
    thread_.join();
  }
  if (wake_fd_ >= 0) close(wake_fd_);
}

Topology World::topology_of(const std::vector<u32>& members) const {
  const u32 ranks = static_cast<u32>(members.size());
  const auto host = [&](u32 rank) { return hosts_[members[rank]]; };
  u32 first = 1;
  while (first < ranks && host(first) == host(0)) ++first;
  bool regular = ranks % first == 0;
  for (u32 rank = 0; regular && rank < ranks; ++rank)
    regular = host(rank) == host(rank / first * first) &&
              (rank < first || host(rank) != host(rank - first));
  return {ranks, regular ? first : 1};
}

std::shared_ptr<Communicator> World::make_communicator(u32 id, std::vector<u32> members) {
  const Topology topology = topology_of(members);
  auto comm = std::make_shared<Communicator>(*this, id, std::move(members), topology);
  comms_[id] = comm.get();
  for (u32 rank = 0; rank < comm->size(); ++rank)
    if (gone_[comm->world_rank(rank)]) comm->on_left(comm->world_rank(rank));
  if (auto orphans = orphans_.extract(id); !orphans.empty())
    for (const auto& [from, told] : orphans.mapped())
      comm->on_message(from, told.header, told.payload);
  return comm;
}

void World::remove_communicator(Communicator& comm) {
  if (comms_.erase(comm.id()) == 0) return;
  comm.fail({VERBENA_COLL_ABORTED, "the communicator was destroyed"}, Communicator::Tell::kNobody);
}

// --- messages

void World::tell(u32 rank, const Header& header, std::span<const u8> payload) {
  if (rank == rank_ || connections_[rank]->is_broken()) return;
  if (can_send(rank)) return connections_[rank]->send(header, {}, payload);
  backlog_[rank].push_back({header, {payload.begin(), payload.end()}});
}

std::optional<World::Offered> World::offer(std::shared_ptr<Request> owner, u32 peer, const u8* from,
                                           u64 bytes, const Registration* registration) {
  u32 buffer = BufferPool::kNone;
  if (registration == nullptr) {
    buffer = staging_->take();
    if (buffer == BufferPool::kNone) return std::nullopt;
    std::memcpy(staging_->at(buffer), from, bytes);
    from = staging_->at(buffer);
    registration = &arena_->registration();
  }
  if (free_offers_.empty()) {
    free_offers_.push_back(static_cast<u32>(offers_.size()));
    offers_.emplace_back();
  }
  const u32 place = free_offers_.back();
  free_offers_.pop_back();
  OfferRecord& record = offers_[place];
  const u32 generation = record.generation + 1;
  record = {std::move(owner), peer, buffer, generation, true};
  return Offered{{reinterpret_cast<u64>(from), registration->rkeys()},
                 place | generation << kTokenBits};
}

void World::on_taken(u32 token) {
  const u32 place = token & ((u32{1} << kTokenBits) - 1);
  if (place >= offers_.size()) return;
  OfferRecord& record = offers_[place];
  if (!record.is_open || (record.generation << kTokenBits | place) != token) return;
  record.is_open = false;
  if (record.buffer != BufferPool::kNone) staging_->give_back(record.buffer);
  free_offers_.push_back(place);
  const std::shared_ptr<Request> owner = std::move(record.owner);
  owner->on_offer_taken();
}

void World::drop_offers_to(u32 rank) {
  for (u32 place = 0; place < offers_.size(); ++place)
    if (offers_[place].is_open && offers_[place].peer == rank)
      on_taken(offers_[place].generation << kTokenBits | place);
}

void World::on_all_read(u32 peer, u32 token) {
  tell(peer, {.kind = Header::Kind::kTaken, .token = token});
}

void World::on_message(u32 from, const Header& header, std::span<const u8> payload) {
  if (header.credits != 0) {
    connections_[from]->add_credits(header.credits);
    on_room(from);
  }
  if (header.kind == Header::Kind::kTaken) return on_taken(header.token);
  if (header.kind == Header::Kind::kCredit) return;
  if (header.kind == Header::Kind::kLeaves) return on_left(from);
  const auto comm = comms_.find(header.comm);
  if (comm != comms_.end()) return comm->second->on_message(from, header, payload);
  orphans_[header.comm].push_back({from, {header, {payload.begin(), payload.end()}}});
}

void World::on_room(u32 rank) {
  std::deque<Told>& told = backlog_[rank];
  while (!told.empty() && connections_[rank]->can_send()) {
    connections_[rank]->send(told.front().header, {}, told.front().payload);
    told.pop_front();
  }
  if (!can_send(rank)) return;
  for (auto it = comms_.begin(); it != comms_.end();) (it++)->second->on_room();
}

// --- registrations

const Registration* World::registered(const void* address, u64 bytes) const {
  for (const auto& registration : registrations_)
    if (registration->holds(address, bytes)) return registration.get();
  return nullptr;
}

Expected<std::unique_ptr<Registration>> World::register_memory(const void* address, u64 bytes) {
  huge_pages_.on_use(address, bytes);
  return Registration::make(rails_, const_cast<void*>(address), bytes);
}

Error World::add_registration(void* address, u64 bytes) {
  auto made = register_memory(address, bytes);
  if (!made) return made.error();
  registrations_.push_back(std::move(*made));
  return {};
}

Error World::remove_registration(const void* address) {
  const auto removed = std::erase_if(
      registrations_, [&](const auto& registration) { return registration->base() == address; });
  return removed != 0 ? Error{} : Error{VERBENA_COLL_INVALID, "that address is not registered"};
}

// --- progress

// Links are in memory and cost little to look at. If nothing is expected of the queues, they have a
// turn now and then.
bool World::progress() {
  const bool any = poll_links();
  if (any && transfers_->is_idle() && ++polls_ % kPollsBetweenLooks != 0) return true;
  if (!any && links_only_ && transfers_->is_idle() && ++polls_ % kPollsOfLinks != 0) return false;
  return poll_queues() || any;
}

bool World::poll_links() {
  bool any = false;
  for (const auto& connection : connections_) {
    if (connection == nullptr || connection->link() == nullptr) continue;
    SharedLink& link = *connection->link();
    for (int i = 0; i < kCompletionsAtOnce && link.poll(); ++i) {
      const Header header = link.header();
      on_message(connection->peer(), header, link.payload());
      connection->take_from_link(header.kind);
      any = true;
    }
  }
  return any;
}

bool World::poll_queues() {
  bool any = false;
  ibv_wc completions[kCompletionsAtOnce];
  for (u32 rail = 0; rail < rails_.size(); ++rail) {
    const int count = ibv_poll_cq(rails_[rail]->cq(), kCompletionsAtOnce, completions);
    for (int i = 0; i < count; ++i) on_completion(rail, completions[i]);
    any |= count > 0;
  }
  if (any) transfers_->resume();
  return any;
}

void World::on_completion(u32 rail, const ibv_wc& completion) {
  if (completion.status != IBV_WC_SUCCESS) return on_failed_completion(rail, completion);
  const WorkId work = WorkId::of(completion.wr_id);
  Connection& connection = *connections_[work.peer];
  switch (work.kind) {
    case WorkKind::kSend:
      connection.on_sent(rail);
      connection.return_credits();
      return on_room(work.peer);
    case WorkKind::kRead: connection.on_sent(rail); return transfers_->on_read(work.index, false);
    case WorkKind::kReceive: {
      const auto [header, payload] = connection.message(work.index, completion.byte_len);
      on_message(work.peer, header, payload);
      return connection.give_back(work.index);
    }
  }
}

void World::on_failed_completion(u32 rail, const ibv_wc& completion) {
  const WorkId work = WorkId::of(completion.wr_id);
  if (work.kind != WorkKind::kReceive) connections_[work.peer]->on_sent(rail);
  lose(work.peer, std::string("cannot be reached: ") + ibv_wc_status_str(completion.status));
  if (work.kind == WorkKind::kRead) transfers_->on_read(work.index, true);
}

void World::lose(u32 rank, const std::string& how) {
  if (rank == rank_ || gone_[rank]) return;
  gone_[rank] = true;
  connections_[rank]->break_off();
  backlog_[rank].clear();
  for (auto it = comms_.begin(); it != comms_.end();) (it++)->second->on_lost(rank, how);
  drop_offers_to(rank);
}

// --- failures that no completion tells of

void World::keep_house(i64 now) {
  if (now < house_at_) return;
  house_at_ = now + kHousekeeping;
  read_star();
  const bool pings = now >= ping_at_;
  if (pings) ping_at_ = now + kPingInterval;
  for (u32 rank = 0; pings && rank < size(); ++rank)
    if (rank != rank_ && !gone_[rank]) connections_[rank]->ping();
  for (auto it = comms_.begin(); it != comms_.end();) {
    Communicator& comm = *(it++)->second;
    comm.check_left();
    comm.tagged().check_deadlines(now, comm.timeout_s);
    check_operation(comm, now);
  }
}

void World::check_operation(Communicator& comm, i64 now) {
  const auto hold = comm.shared_from_this();
  if (comm.current() == nullptr) return;
  const auto keep = comm.current()->shared_from_this();
  Operation& operation = static_cast<Operation&>(*keep);
  if (operation.is_failing()) {
    if (operation.verdict_at < 0 && now > -operation.verdict_at) return operation.give_up();
    if (operation.verdict_at >= 0) operation.verdict_at = -(now + kSecond);
    return;
  }
  if (!operation.has_started()) return;
  if (operation.deadline == 0) operation.deadline = after(now, comm.timeout_s);
  if (now < operation.deadline) return;
  if (operation.verdict_at == 0) {
    operation.verdict_at = now + kSecond;
    operation.answered.assign(comm.size(), false);
    operation.answered[comm.rank()] = true;
    return star_.send_to_all({.type = Notice::Type::kAsk,
                              .rank = static_cast<i32>(rank_),
                              .comm = comm.id(),
                              .operation = operation.number()});
  }
  if (now > operation.verdict_at) decide_who_is_missing(comm, operation);
}

void World::decide_who_is_missing(Communicator& comm, Operation& operation) {
  std::vector<u32> missing;
  for (u32 rank = 0; rank < comm.size(); ++rank)
    if (!operation.answered[rank]) missing.push_back(rank);
  // If nobody answers, the hub did not pass the question on.
  const std::optional<u32> hub = comm.rank_of(Star::kHub);
  if (!star_.is_hub() && hub && missing.size() + 1 == comm.size()) missing = {*hub};
  const bool all_take_part = missing.empty();
  if (all_take_part) missing = operation.waits_for();
  std::string names;
  for (const u32 rank : missing) names += (names.empty() ? "" : ", ") + std::to_string(rank);
  const std::string within = " within " + std::to_string(static_cast<int>(comm.timeout_s)) + " s";
  const std::string who = (missing.size() == 1 ? "rank " : "ranks ") + names;
  comm.fail({VERBENA_COLL_TIMEOUT,
             all_take_part ? "rank " + std::to_string(comm.rank()) + " gets nothing from " + who +
                                 within + ", though all ranks take part"
                           : who + " did not take part in " + operation.title() + within,
             missing.empty() ? -1 : static_cast<int>(comm.world_rank(missing.front()))},
            Communicator::Tell::kOthers);
}

void World::read_star() {
  const std::vector<int> descriptors = star_.descriptors();
  std::vector<pollfd> waiting;
  for (const int fd : descriptors) waiting.push_back({.fd = fd, .events = POLLIN, .revents = 0});
  if (poll(waiting.data(), waiting.size(), 0) <= 0) return;
  for (const Notice& notice : star_.read()) on_notice(notice);
}

void World::on_notice(const Notice& notice) {
  const u32 about = static_cast<u32>(notice.rank);
  switch (notice.type) {
    case Notice::Type::kLeaves:
      if (about >= size() || gone_[about]) return;
      while (progress()) {  // messages that it sent before
      }
      return on_left(about);
    case Notice::Type::kDied:
      if (about < size()) lose(about, "died");
      return;
    case Notice::Type::kFailed:
      if (const auto comm = comms_.find(notice.comm); comm != comms_.end())
        comm->second->fail({static_cast<int>(notice.word), notice.text, notice.rank},
                           Communicator::Tell::kNobody);
      return;
    case Notice::Type::kAsk: return answer(notice);
    case Notice::Type::kAnswer: {
      const u32 asker = static_cast<u32>(notice.word >> 32);
      if (asker != rank_) {
        if (asker < size() && star_.is_hub()) star_.send(asker, notice);
        return;
      }
      const auto comm = comms_.find(notice.comm);
      if (comm == comms_.end() || (notice.word & 1) == 0) return;
      Operation* const operation = comm->second->current();
      const auto rank = comm->second->rank_of(about);
      if (operation == nullptr || operation->number() != notice.operation || !rank) return;
      if (!operation->answered.empty()) operation->answered[*rank] = true;
      return;
    }
    case Notice::Type::kStuck: return;
  }
}

void World::on_left(u32 rank) {
  if (gone_[rank]) return;
  gone_[rank] = true;
  for (auto it = comms_.begin(); it != comms_.end();) (it++)->second->on_left(rank);
  drop_offers_to(rank);
}

void World::answer(const Notice& question) {
  const auto comm = comms_.find(question.comm);
  const bool takes_part = comm != comms_.end() && comm->second->has_entered(question.operation);
  const Notice reply{
      .type = Notice::Type::kAnswer,
      .rank = static_cast<i32>(rank_),
      .comm = question.comm,
      .operation = question.operation,
      .word = static_cast<u64>(static_cast<u32>(question.rank)) << 32 | (takes_part ? 1u : 0u)};
  star_.send(star_.is_hub() ? static_cast<u32>(question.rank) : Star::kHub, reply);
}

// --- waiting

// Patience: how long one waiter has polled without success.
class World::Patience {
 public:
  void on_progress() {
    empty_ = 0;
    since_ = 0;
  }
  // Returns whether it is time to look at the clock.
  [[nodiscard]] bool look() { return ++empty_ % kPollsBetweenLooks == 0; }
  [[nodiscard]] bool is_over(i64 now, i64 spin_ns) {
    if (since_ == 0) since_ = now;
    return now - since_ > spin_ns;
  }

 private:
  u32 empty_ = 0;
  i64 since_ = 0;
};

// The thread that polls moves the data that is under way. If it slept, the device's helper would do
// so on a core that a peer may need, and each completion would cost a wake-up.
i64 World::spin_time() const {
  const bool moves_data = !transfers_->is_idle() || free_offers_.size() != offers_.size();
  return moves_data && !is_crowded_ ? kSpinTimeForData : kSpinTime;
}

void World::let_others(std::unique_lock<std::mutex>& lock) {
  if (wanted_.load(std::memory_order_relaxed) == 0) return;
  lock.unlock();
  while (wanted_.load(std::memory_order_relaxed) != 0) std::this_thread::yield();
  lock.lock();
}

bool World::wait_until(std::unique_lock<std::mutex>& lock, i64 deadline,
                       const std::function<bool()>& condition) {
  ++waiters_;
  Patience patience;
  bool is_late = false;
  while (!condition() && !is_late) {
    if (progress()) {
      patience.on_progress();
      continue;
    }
    if (!patience.look()) continue;
    let_others(lock);
    if (is_crowded_) std::this_thread::yield();  // the thread that is waited for may need this core
    const i64 now = now_ns();
    keep_house(now);
    is_late = now >= deadline;
    if (patience.is_over(now, spin_time()) && !condition())
      sleep(lock, std::min(deadline, now + kLongestSleep));
  }
  if (--waiters_ == 0 && has_work()) wake_thread();
  return !is_late;
}

bool World::wait_until(i64 deadline, const std::function<bool()>& condition) {
  std::unique_lock lock(mutex_);
  return wait_until(lock, deadline, condition);
}

Error World::wait(Guard& guard, const Request& request) {
  wait_until(guard.lock_, std::numeric_limits<i64>::max(), [&] { return request.is_done(); });
  return request.error();
}

Error World::wait(const Request& request) {
  Guard guard(*this);
  return wait(guard, request);
}

void World::make_progress() {
  const Guard guard(*this);
  progress();
  keep_house(now_ns());
}

// From now on peers wake this process; several of its threads may sleep.
void World::say_asleep() {
  if (sleepers_++ == 0) sleep_word_->count.fetch_add(1, std::memory_order_seq_cst);
}
void World::say_awake() {
  if (--sleepers_ == 0) sleep_word_->count.fetch_add(1, std::memory_order_seq_cst);
}

// Sleeps until a completion queue or the star has something.
void World::sleep(std::unique_lock<std::mutex>& lock, i64 until) {
  for (const auto& rail : rails_) ibv_req_notify_cq(rail->cq(), 0);
  say_asleep();
  const bool any_from_links = poll_links();
  if (poll_queues() || any_from_links) return say_awake();
  std::vector<pollfd> waiting;
  for (const auto& rail : rails_)
    waiting.push_back({.fd = rail->channel()->fd, .events = POLLIN, .revents = 0});
  for (const int fd : star_.descriptors())
    waiting.push_back({.fd = fd, .events = POLLIN, .revents = 0});
  const i64 left = std::max<i64>(0, until - now_ns());
  lock.unlock();
  const timespec time{.tv_sec = left / kSecond, .tv_nsec = left % kSecond};
  ppoll(waiting.data(), waiting.size(), &time, nullptr);
  lock.lock();
  say_awake();
  for (u32 i = 0; i < rails_.size(); ++i) {
    if (waiting[i].revents == 0) continue;
    ibv_cq* cq = nullptr;
    void* context = nullptr;
    if (ibv_get_cq_event(rails_[i]->channel(), &cq, &context) == 0) ibv_ack_cq_events(cq, 1);
  }
}

// --- the thread

bool World::has_work() const {
  if (!transfers_->is_idle()) return true;
  for (const auto& told : backlog_)
    if (!told.empty()) return true;
  return std::ranges::any_of(comms_, [](const auto& comm) { return comm.second->has_work(); });
}

void World::wake_thread() {
  const u64 one = 1;
  if (wake_fd_ >= 0) static_cast<void>(!write(wake_fd_, &one, sizeof one));
}

void World::sleep_on_star(std::unique_lock<std::mutex>& lock) {
  std::vector<pollfd> waiting{{.fd = wake_fd_, .events = POLLIN, .revents = 0}};
  for (const int fd : star_.descriptors())
    waiting.push_back({.fd = fd, .events = POLLIN, .revents = 0});
  lock.unlock();
  poll(waiting.data(), waiting.size(), 500);
  u64 wakes = 0;
  static_cast<void>(!::read(wake_fd_, &wakes, sizeof wakes));
  lock.lock();
  if (waiters_ == 0) read_star();
}

void World::run_thread() {
  std::unique_lock lock(mutex_);
  Patience patience;
  while (!ends_) {
    if (waiters_ != 0 || !has_work()) {
      sleep_on_star(lock);
      patience.on_progress();
      continue;
    }
    let_others(lock);
    if (progress()) {
      patience.on_progress();
      continue;
    }
    if (!patience.look()) continue;
    const i64 now = now_ns();
    keep_house(now);
    if (patience.is_over(now, kThreadSpinTime)) sleep(lock, now + kLongestSleep);
  }
}

void World::leave() {
  {
    const Guard guard(*this);
    for (u32 rank = 0; rank < size(); ++rank)
      if (rank != rank_ && !gone_[rank]) connections_[rank]->ping();
  }
  wait_until(now_ns() + kDrainTime, [this] {
    for (u32 rank = 0; rank < size(); ++rank) {
      if (rank == rank_ || gone_[rank]) continue;
      if (!connections_[rank]->is_idle() || !backlog_[rank].empty()) return false;
    }
    return true;
  });
  const Guard guard(*this);
  for (u32 rank = 0; rank < size(); ++rank)
    if (rank != rank_ && !gone_[rank]) tell(rank, {.kind = Header::Kind::kLeaves});
  star_.send_to_all({.type = Notice::Type::kLeaves, .rank = static_cast<i32>(rank_)});
}

}  // namespace verbena::coll
