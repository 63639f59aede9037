// Exchanges: what several ranks of a trace do together: collective operations and messages, each
// with the nodes of all its members. The k-th operation that a rank has of a group is the k-th of
// all its members; the k-th receive of a tag from a rank is that rank's k-th send of the tag.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "jobs/chakra/rank_graph.h"

namespace verbena::jobs::chakra {

// Party: ranks whose exchanges follow each other: a process group, or a sender and its receiver.
struct Party {
  enum class Kind : u8 { kGroup, kPair };

  Kind kind = Kind::kGroup;
  std::string name;            // of a group
  std::vector<u32> ranks;      // of a pair: the sender, the receiver
  std::vector<u32> exchanges;  // in their order
};

struct Exchange {
  u32 party = 0;
  collectives::Operation operation{};  // a message: kBroadcast by its sender
  u64 bytes = 0;                       // as nccl-tests counts them
  u32 root = 0;                        // a member
  std::vector<u32> items;              // by member: the item of its rank
};

struct Exchanges {
  std::vector<Party> parties;
  std::vector<Exchange> all;
};

// Sets the exchange of each item. Operations of groups with one member have none.
[[nodiscard]] fabric::Parsed<Exchanges> find_exchanges(std::span<RankGraph> ranks,
                                                       const ProcessGroups& groups);

}  // namespace verbena::jobs::chakra
