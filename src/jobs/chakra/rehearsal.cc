#include "jobs/chakra/rehearsal.h"

#include <array>
#include <functional>
#include <queue>
#include <tuple>

#include <fmt/format.h>

namespace verbena::jobs::chakra {
namespace {

template <typename T>
using LowestFirst = std::priority_queue<T, std::vector<T>, std::greater<>>;

class Stage {
 public:
  Stage(std::span<const RankGraph> ranks, const Exchanges& exchanges)
      : ranks_(ranks), exchanges_(exchanges), actors_(ranks.size()), begun_(exchanges.all.size()) {
    for (u32 rank = 0; rank < ranks.size(); ++rank) enter(rank);
    for (const Party& party : exchanges.parties) parts_.emplace_back(party.ranks.size());
  }

  Rehearsal play() {
    for (u32 rank = 0; rank < ranks_.size(); ++rank)
      for (u32 item = 0; item < ranks_[rank].items.size(); ++item)
        if (ranks_[rank].items[item].after.empty()) make_ready(rank, item);
    for (;;) {
      while (!done_.empty()) end(std::exchange(done_, {}));
      if (computing_.empty()) break;
      const auto [at, rank, item] = computing_.top();
      computing_.pop();
      now_ = at;
      end_computing(rank, item);
    }
    Rehearsal result;
    result.mistake = what_never_comes();
    for (Actor& actor : actors_) result.orders.push_back(std::move(actor.order));
    return result;
  }

 private:
  enum Unit : u8 { kGPU, kCPU };
  struct Actor {
    std::vector<u32> missing;              // by item: how many it waits for
    std::vector<std::vector<u32>> behind;  // by item
    std::array<LowestFirst<u32>, 2> next;  // by unit: items that could compute
    std::array<u32, 2> free = {1, 1};      // by unit
    std::vector<u32> order;
  };
  struct Part {    // of a member in a party
    u32 next = 0;  // exchange of the party's
    bool is_in_it = false;
  };
  using Place = std::pair<u32, u32>;  // rank, item

  static Unit unit_of(const Item& item) { return item.node->is_of_cpu ? kCPU : kGPU; }

  void enter(u32 rank) {
    Actor& actor = actors_[rank];
    const std::vector<Item>& items = ranks_[rank].items;
    actor.behind.resize(items.size());
    for (u32 number = 0; number < items.size(); ++number) {
      actor.missing.push_back(static_cast<u32>(items[number].after.size()));
      for (const u32 before : items[number].after) actor.behind[before].push_back(number);
    }
  }

  void make_ready(u32 rank, u32 number) {
    const Item& item = ranks_[rank].items[number];
    if (item.exchange != Item::kNone)
      return go_on(exchanges_.all[item.exchange].party, item.member);
    if (item.computes()) {
      actors_[rank].next[unit_of(item)].push(number);
      return compute(rank, unit_of(item));
    }
    actors_[rank].order.push_back(number);
    done_.emplace_back(rank, number);
  }

  void compute(u32 rank, Unit unit) {
    Actor& actor = actors_[rank];
    if (actor.free[unit] == 0 || actor.next[unit].empty()) return;
    const u32 number = actor.next[unit].top();
    actor.next[unit].pop();
    actor.free[unit] = 0;
    actor.order.push_back(number);
    computing_.emplace(now_ + ranks_[rank].items[number].lasts, rank, number);
  }

  void end_computing(u32 rank, u32 number) {
    const Unit unit = unit_of(ranks_[rank].items[number]);
    actors_[rank].free[unit] = 1;
    end({{rank, number}});
    compute(rank, unit);
  }

  // Begins the member's next exchange, if the member is free and ready for it.
  void go_on(u32 party_number, u32 member) {
    const Party& party = exchanges_.parties[party_number];
    Part& part = parts_[party_number][member];
    if (part.is_in_it || part.next == party.exchanges.size()) return;
    const u32 number = party.exchanges[part.next], rank = party.ranks[member];
    const u32 item = exchanges_.all[number].items[member];
    if (actors_[rank].missing[item] != 0) return;
    part.is_in_it = true;
    actors_[rank].order.push_back(item);
    ++begun_[number];
    const bool all = begun_[number] == party.ranks.size();
    for (u32 other = 0; other < party.ranks.size(); ++other)
      if (all || (party.kind == Party::Kind::kPair && member == 0 && other == 0))
        leave(party_number, other, number);
  }

  // Ends the member's part in the exchange. Members that have left it already are in another one.
  void leave(u32 party_number, u32 member, u32 number) {
    const Party& party = exchanges_.parties[party_number];
    Part& part = parts_[party_number][member];
    if (!part.is_in_it || party.exchanges[part.next] != number) return;
    part.is_in_it = false;
    ++part.next;
    done_.emplace_back(party.ranks[member], exchanges_.all[number].items[member]);
  }

  void end(const std::vector<Place>& places) {
    for (const auto& [rank, number] : places) {
      const Item& item = ranks_[rank].items[number];
      if (item.exchange != Item::kNone) go_on(exchanges_.all[item.exchange].party, item.member);
      for (const u32 behind : actors_[rank].behind[number])
        if (--actors_[rank].missing[behind] == 0) make_ready(rank, behind);
    }
  }

  // Returns the error of the exchange that never ends; a member that waits alone in an exchange
  // comes first.
  [[nodiscard]] std::string what_never_comes() const {
    std::string what;
    for (u32 number = 0; number < exchanges_.parties.size(); ++number)
      for (u32 member = 0; member < exchanges_.parties[number].ranks.size(); ++member) {
        const Part& part = parts_[number][member];
        if (part.is_in_it) return place(number, member) + "the others never come to it";
        if (part.next != exchanges_.parties[number].exchanges.size() && what.empty())
          what = place(number, member) + "it waits for what comes after it on other ranks";
      }
    return what;
  }

  // Returns the place of the member's next exchange in its trace.
  [[nodiscard]] std::string place(u32 number, u32 member) const {
    const Party& party = exchanges_.parties[number];
    const RankGraph& graph = ranks_[party.ranks[member]];
    const Exchange& exchange = exchanges_.all[party.exchanges[parts_[number][member].next]];
    return place_of(*graph.trace, *graph.items[exchange.items[member]].node);
  }

  const std::span<const RankGraph> ranks_;
  const Exchanges& exchanges_;
  std::vector<Actor> actors_;
  std::vector<u32> begun_;                             // members, by exchange
  std::vector<std::vector<Part>> parts_;               // by party and member
  LowestFirst<std::tuple<Time, u32, u32>> computing_;  // until when, rank, item
  std::vector<Place> done_;
  Time now_;
};

}  // namespace

Rehearsal rehearse(std::span<const RankGraph> ranks, const Exchanges& exchanges) {
  return Stage(ranks, exchanges).play();
}

}  // namespace verbena::jobs::chakra
