#include "jobs/chakra/exchanges.h"

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "collectives/make_schedule.h"

namespace verbena::jobs::chakra {
namespace {

using collectives::Operation;
using Kind = Node::Kind;

// Returns the bytes of the operation as the simulator counts them. Traces count the bytes that the
// rank begins with; an AllGather ends with all ranks' parts.
u64 bytes_of(const Node& node, std::size_t members) {
  return node.operation == Operation::kAllGather ? node.bytes * members : node.bytes;
}

class Finder {
 public:
  Finder(std::span<RankGraph> ranks, const ProcessGroups& groups)
      : ranks_(ranks), groups_(groups) {}

  // Returns the error, or "" if there is none.
  std::string find() {
    for (u32 rank = 0; rank < ranks_.size() && mistake_.empty(); ++rank)
      for (u32 item = 0; item < ranks_[rank].items.size() && mistake_.empty(); ++item) {
        if (kind_of(rank, item) == Kind::kOperates) take_part(rank, item);
        if (kind_of(rank, item) == Kind::kSends) send(rank, item);
      }
    for (u32 rank = 0; rank < ranks_.size() && mistake_.empty(); ++rank)
      for (u32 item = 0; item < ranks_[rank].items.size() && mistake_.empty(); ++item)
        if (kind_of(rank, item) == Kind::kReceives) receive(rank, item);
    if (mistake_.empty()) look_for_missing();
    return mistake_;
  }

  [[nodiscard]] Exchanges take() { return std::move(found_); }

 private:
  [[nodiscard]] Item& item_of(u32 rank, u32 item) const { return ranks_[rank].items[item]; }
  [[nodiscard]] Kind kind_of(u32 rank, u32 item) const { return item_of(rank, item).node->kind; }
  [[nodiscard]] std::string place(u32 rank, u32 item) const {
    return place_of(*ranks_[rank].trace, *item_of(rank, item).node);
  }
  void complain(u32 rank, u32 item, const std::string& what) {
    mistake_ = place(rank, item) + what;
  }

  // --- collective operations

  // Returns no members if there is no such group. ASTRA-sim takes "" and "0" for all ranks.
  [[nodiscard]] std::vector<u32> members_of(const std::string& group) const {
    if (const auto found = groups_.find(group); found != groups_.end()) return found->second;
    if (!group.empty() && group != "0") return {};
    std::vector<u32> all;
    for (u32 rank = 0; rank < ranks_.size(); ++rank) all.push_back(rank);
    return all;
  }

  // Returns nullopt if there is no such group, or the rank is not in it.
  std::optional<u32> group_of(u32 rank, u32 item) {
    const std::string& name = item_of(rank, item).node->group;
    const auto [known, is_new] = group_parties_.emplace(name, found_.parties.size());
    if (is_new) found_.parties.push_back({Party::Kind::kGroup, name, members_of(name), {}});
    const std::vector<u32>& members = found_.parties[known->second].ranks;
    if (members.empty()) {
      complain(rank, item, fmt::format("there is no group {}", name));
    } else if (const u32 last = *std::ranges::max_element(members); last >= ranks_.size()) {
      complain(rank, item, fmt::format("group {} has rank {}, of {}", name, last, ranks_.size()));
    } else if (std::ranges::find(members, rank) == members.end()) {
      complain(rank, item, fmt::format("rank {} is not in group {}", rank, name));
    }
    return mistake_.empty() ? std::optional(known->second) : std::nullopt;
  }

  void take_part(u32 rank, u32 number) {
    const std::optional<u32> party_number = group_of(rank, number);
    if (!party_number) return;
    Party& party = found_.parties[*party_number];
    if (party.ranks.size() == 1) return;
    Item& item = item_of(rank, number);
    item.member = static_cast<u32>(std::ranges::find(party.ranks, rank) - party.ranks.begin());
    const u32 count = counts_[{rank, *party_number}]++;
    if (count == party.exchanges.size()) open(*party_number, *item.node);
    item.exchange = party.exchanges[count];
    Exchange& exchange = found_.all[item.exchange];
    exchange.items[item.member] = number;
    const u64 bytes = bytes_of(*item.node, party.ranks.size());
    if (bytes > collectives::kMaxBytes) return complain(rank, number, "more than 1 TiB");
    if (exchange.operation != *item.node->operation || exchange.bytes != bytes)
      complain(rank, number, differs(exchange, rank));
  }

  void open(u32 party_number, const Node& node) {
    Party& party = found_.parties[party_number];
    party.exchanges.push_back(static_cast<u32>(found_.all.size()));
    const auto root = std::ranges::find(party.ranks, node.root.value_or(party.ranks[0]));
    found_.all.push_back(
        {.party = party_number,
         .operation = *node.operation,
         .bytes = bytes_of(node, party.ranks.size()),
         .root = static_cast<u32>(root != party.ranks.end() ? root - party.ranks.begin() : 0),
         .items = std::vector<u32>(party.ranks.size(), Item::kNone)});
  }

  // Returns the difference from another member's operation in the same exchange.
  [[nodiscard]] std::string differs(const Exchange& exchange, u32 rank) const {
    const Party& party = found_.parties[exchange.party];
    u32 other = 0;
    while (exchange.items[other] == Item::kNone || party.ranks[other] == rank) ++other;
    return fmt::format("it is to be one operation with {}an {} of {} bytes",
                       place(party.ranks[other], exchange.items[other]),
                       name_of(exchange.operation), exchange.bytes);
  }

  // --- messages

  void send(u32 rank, u32 number) {
    Item& item = item_of(rank, number);
    const u64 to = item.node->peer;
    if (to >= ranks_.size() || to == rank)
      return complain(rank, number, fmt::format("it sends to {}, which is no other rank", to));
    const u32 receiver = static_cast<u32>(to);
    const auto [known, is_new] =
        pair_parties_.emplace(std::pair(rank, receiver), found_.parties.size());
    if (is_new) found_.parties.push_back({Party::Kind::kPair, "", {rank, receiver}, {}});
    item.exchange = static_cast<u32>(found_.all.size());
    found_.parties[known->second].exchanges.push_back(item.exchange);
    sent_[{rank, receiver, item.node->tag}].push_back(item.exchange);
    found_.all.push_back({.party = known->second,
                          .operation = Operation::kBroadcast,
                          .bytes = item.node->bytes,
                          .root = 0,
                          .items = {number, Item::kNone}});
  }

  void receive(u32 rank, u32 number) {
    Item& item = item_of(rank, number);
    const Node& node = *item.node;
    if (node.peer >= ranks_.size() || node.peer == rank)
      return complain(rank, number,
                      fmt::format("it receives from {}, which is no other rank", node.peer));
    const std::tuple key(static_cast<u32>(node.peer), rank, node.tag);
    const std::vector<u32>& sent = sent_[key];
    const u32 count = received_[key]++;
    if (count >= sent.size())
      return complain(
          rank, number,
          fmt::format("rank {} sends no such message (tag {}) that often", node.peer, node.tag));
    item.exchange = sent[count];
    item.member = 1;
    Exchange& exchange = found_.all[item.exchange];
    exchange.items[1] = number;
    if (exchange.bytes != node.bytes)
      complain(rank, number,
               fmt::format("it receives {} bytes of {}{} bytes", node.bytes,
                           place(static_cast<u32>(node.peer), exchange.items[0]), exchange.bytes));
  }

  void look_for_missing() {
    for (const Exchange& exchange : found_.all) {
      const Party& party = found_.parties[exchange.party];
      const auto missing = std::ranges::find(exchange.items, Item::kNone);
      if (missing == exchange.items.end()) continue;
      const auto there =
          std::ranges::find_if(exchange.items, [](u32 item) { return item != Item::kNone; });
      const auto rank_at = [&](auto at) {
        return party.ranks[static_cast<std::size_t>(at - exchange.items.begin())];
      };
      return complain(rank_at(there), *there,
                      fmt::format("rank {} never takes part in it", rank_at(missing)));
    }
  }

  const std::span<RankGraph> ranks_;
  const ProcessGroups& groups_;
  Exchanges found_;
  std::map<std::string, u32> group_parties_;
  std::map<std::pair<u32, u32>, u32> pair_parties_;
  std::map<std::pair<u32, u32>, u32> counts_;                   // operations, by rank and party
  std::map<std::tuple<u32, u32, u64>, std::vector<u32>> sent_;  // by sender, receiver, tag
  std::map<std::tuple<u32, u32, u64>, u32> received_;
  std::string mistake_;
};

}  // namespace

fabric::Parsed<Exchanges> find_exchanges(std::span<RankGraph> ranks, const ProcessGroups& groups) {
  Finder finder(ranks, groups);
  if (const std::string mistake = finder.find(); !mistake.empty())
    return tl::unexpected(fabric::InputError{mistake});
  return finder.take();
}

}  // namespace verbena::jobs::chakra
