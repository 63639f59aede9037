#include "communicator/tagged.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "communicator/communicator.h"
#include "communicator/world.h"

namespace verbena::coll {
namespace {

template <typename Container>
void drop_done(Container& requests) {
  std::erase_if(requests, [](const auto& request) { return request->is_done(); });
}

}  // namespace

// --- Send

std::string TaggedSend::title() const {
  return "Send to rank " + std::to_string(to_) + " with tag " + std::to_string(tag_);
}

void TaggedSend::fail(Error error) {
  if (done_) return;
  error_ = {error.status, title() + ": " + error.text, error.rank};
  done_ = true;
}

bool TaggedSend::try_start() {
  World& world = comm_.world();
  const u32 peer = comm_.world_rank(to_);
  if (!world.can_send(peer)) return false;
  Header header{
      .kind = Header::Kind::kTagEager, .comm = comm_.id(), .operation = tag_, .length = bytes_};
  if (bytes_ <= kEagerBytes) {
    world.connection(peer).send(header, {}, {buffer_, bytes_});
    done_ = true;
    return true;
  }
  const auto self = shared_from_this();
  auto offered =
      bytes_ <= kBufferedBytes ? world.offer(self, peer, buffer_, bytes_, nullptr) : std::nullopt;
  if (!offered) {
    const Registration* registration = world.registered(buffer_, bytes_);
    if (registration == nullptr) {
      auto made = world.register_memory(buffer_, bytes_);
      if (!made) {
        fail(made.error());
        return true;
      }
      registration_ = std::move(*made);
      registration = registration_.get();
    }
    offered = world.offer(self, peer, buffer_, bytes_, registration);
  }
  header.kind = Header::Kind::kTagOffer;
  header.token = offered->token;
  world.connection(peer).send(header, bytes_of(offered->offer), {});
  comm_.tagged().offered_.push_back(std::static_pointer_cast<TaggedSend>(self));
  return true;
}

// --- Recv

std::string TaggedRecv::title() const {
  return "Recv from " + (from_ ? "rank " + std::to_string(*from_) : "any rank") + " with tag " +
         std::to_string(tag_);
}

void TaggedRecv::fail(Error error) {
  if (done_) return;
  error_ = {error.status, title() + ": " + error.text, error.rank};
  done_ = !reading_;
}

void TaggedRecv::on_transfer_lost() {
  reading_ = false;
  if (error_.status == VERBENA_COLL_OK)
    error_ = {VERBENA_COLL_PEER, title() + ": rank " + std::to_string(source_) + " is lost",
              source_};
  done_ = true;
}

void TaggedRecv::take(u32 from, const Header& header, std::span<const u8> payload) {
  World& world = comm_.world();
  const u32 peer = comm_.world_rank(from);
  source_ = static_cast<int>(from);
  const bool is_offer = header.kind == Header::Kind::kTagOffer;
  if (header.length > bytes_) {
    fail({VERBENA_COLL_MISMATCH,
          "rank " + std::to_string(from) + " sends " + std::to_string(header.length) +
              " bytes, and there is room for " + std::to_string(bytes_),
          static_cast<int>(peer)});
    if (is_offer)
      world.tell(peer, {.kind = Header::Kind::kTaken, .token = header.token, .count = 1});
    return;
  }
  if (!is_offer) {
    if (!payload.empty()) std::memcpy(buffer_, payload.data(), payload.size());
    done_ = true;
    return;
  }
  const Registration* direct = nullptr;
  if (header.length > kBufferedBytes) {
    direct = world.registered(buffer_, bytes_);
    if (direct == nullptr) {
      auto made = world.register_memory(buffer_, header.length);
      if (made) registration_ = std::move(*made);
      direct = registration_.get();  // nullptr if the transfer uses buffers
    }
  }
  Transfer transfer{.owner = shared_from_this(),
                    .peer = peer,
                    .token = header.token,
                    .to = buffer_,
                    .length = header.length,
                    .direct = direct};
  std::memcpy(&transfer.from, payload.data(), sizeof transfer.from);
  reading_ = true;
  world.transfers().start(std::move(transfer));
}

// --- Tagged

void Tagged::start(std::shared_ptr<TaggedSend> send) {
  const bool waits =
      std::ranges::any_of(blocked_, [&](const auto& other) { return other->to() == send->to(); });
  if (waits || !send->try_start()) blocked_.push_back(std::move(send));
}

void Tagged::start(std::shared_ptr<TaggedRecv> recv) {
  const auto first = std::ranges::find_if(unexpected_, [&](const Unexpected& message) {
    return recv->fits(message.from, static_cast<u32>(message.header.operation));
  });
  if (first == unexpected_.end()) return posted_.push_back(std::move(recv));
  const Unexpected message = std::move(*first);
  unexpected_.erase(first);
  recv->take(message.from, message.header, message.payload);
  if (recv->is_reading()) reading_.push_back(std::move(recv));
}

void Tagged::on_message(u32 from, const Header& header, std::span<const u8> payload) {
  drop_done(reading_);
  const u32 tag = static_cast<u32>(header.operation);
  const auto first =
      std::ranges::find_if(posted_, [&](const auto& recv) { return recv->fits(from, tag); });
  if (first == posted_.end()) {
    unexpected_.push_back({from, header, {payload.begin(), payload.end()}});
    return;
  }
  const std::shared_ptr<TaggedRecv> recv = *first;
  posted_.erase(first);
  recv->take(from, header, payload);
  if (recv->is_reading()) reading_.push_back(recv);
}

void Tagged::on_room() {
  if (blocked_.empty()) return;
  std::vector<u32> full;
  for (const auto& send : std::exchange(blocked_, {})) {
    const bool waits = std::ranges::count(full, send->to()) != 0;
    if (!waits && send->try_start()) continue;
    full.push_back(send->to());
    blocked_.push_back(send);
  }
}

void Tagged::fail_all(const Error& error) {
  for (const auto& send : std::exchange(blocked_, {})) send->fail(error);
  for (const auto& send : std::exchange(offered_, {})) send->fail(error);
  for (const auto& recv : std::exchange(posted_, {})) recv->fail(error);
  for (const auto& recv : reading_) recv->fail(error);
  for (const Unexpected& message : std::exchange(unexpected_, {}))
    if (message.header.kind == Header::Kind::kTagOffer)
      comm_.world().tell(comm_.world_rank(message.from),
                         {.kind = Header::Kind::kTaken, .token = message.header.token});
}

void Tagged::fail_those_of(u32 rank, const Error& error) {
  for (const auto& send : blocked_)
    if (send->to() == rank) send->fail(error);
  for (const auto& send : offered_)
    if (send->to() == rank) send->fail(error);
  for (const auto& recv : posted_)
    if (recv->from() == rank) recv->fail(error);
  drop_done(blocked_);
  drop_done(offered_);
  drop_done(posted_);
}

bool Tagged::has_work() const {
  const auto is_open = [](const auto& request) { return !request->is_done(); };
  return std::ranges::any_of(blocked_, is_open) || std::ranges::any_of(offered_, is_open) ||
         std::ranges::any_of(posted_, is_open) || std::ranges::any_of(reading_, is_open);
}

void Tagged::check_deadlines(i64 now, double timeout_s) {
  drop_done(offered_);
  drop_done(reading_);
  const auto late = [&](auto& request) {
    if (request->deadline == 0) request->deadline = after(now, timeout_s);
    return now > request->deadline;
  };
  const std::string within =
      "nothing happened within " + std::to_string(static_cast<int>(timeout_s)) + " s";
  for (const auto& send : blocked_)
    if (late(send)) send->fail({VERBENA_COLL_TIMEOUT, within, static_cast<int>(send->to())});
  for (const auto& send : offered_)
    if (late(send)) send->fail({VERBENA_COLL_TIMEOUT, within, static_cast<int>(send->to())});
  for (const auto& recv : posted_)
    if (late(recv)) recv->fail({VERBENA_COLL_TIMEOUT, within});
  drop_done(blocked_);
  drop_done(offered_);
  drop_done(posted_);
}

}  // namespace verbena::coll
