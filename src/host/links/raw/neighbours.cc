#include "host/links/raw/neighbours.h"

#include "base/bytes.h"
#include "host/network/next_hop.h"

namespace verbena::host {
namespace {

constexpr Duration kNeighbourInterval = sec(1);
constexpr Duration kUnsettledInterval = ms(1);  // an answer is on its way
constexpr Duration kQuestionInterval = ms(20);

std::size_t hash_of(const GID& gid) {
  constexpr u64 kGolden = 0x9e3779b97f4a7c15;  // 2^64 / golden ratio. Knuth, TAOCP 3, 6.4
  const u64 mix = load_be64(gid.bytes.data()) ^ load_be64(gid.bytes.data() + 8);
  return static_cast<std::size_t>(mix * kGolden >> 32);
}

}  // namespace

Neighbours::Entry& Neighbours::entry_of(const GID& destination) {
  Entry& entry = entries_[hash_of(destination) % kEntries];
  if (entry.destination != destination) {
    entry = {};
    entry.destination = destination;
  }
  return entry;
}

const Neighbours::Route& Neighbours::towards(const GID& destination, Time now) {
  Entry& entry = entry_of(destination);
  if (now >= entry.next_look) look_up(entry, now);
  return entry.route;
}

std::optional<NextHop> Neighbours::next_hop(const GID& destination) const {
  return NextHop::towards(destination, destination.is_link_local() ? interface_index_ : 0);
}

void Neighbours::look_up(Entry& entry, Time now) const {
  entry.route = {};
  entry.next_look = now + kNeighbourInterval;
  if (entry.destination.is_multicast()) return;
  const std::optional<NextHop> hop = next_hop(entry.destination);
  if (!hop) {
    entry.route.way = Way::kThisHost;
    return;
  }
  if (hop->interface_index() != interface_index_) return;
  const std::optional<Neighbour> neighbour = hop->neighbour();
  if (neighbour) entry.route.mac = neighbour->mac;
  if (!neighbour || neighbour->is_stale) {
    entry.route.way = Way::kUnsettled;
    entry.next_look = now + kUnsettledInterval;
  } else {
    entry.route.way = hop->is_behind_router() ? Way::kRouter : Way::kNeighbour;
  }
}

void Neighbours::ask(const GID& destination, Time now) {
  Entry& entry = entry_of(destination);
  if (now < entry.next_question) return;
  entry.next_question = now + kQuestionInterval;
  if (const std::optional<NextHop> hop = next_hop(destination)) hop->ask();
}

}  // namespace verbena::host
