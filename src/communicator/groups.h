// Communicators made of others: a split by color, and what is left after a failure.
#pragma once

#include <memory>

#include "communicator/communicator.h"
#include "communicator/world.h"

namespace verbena::coll {

// All ranks call it. nullptr: this rank is in none.
[[nodiscard]] Expected<std::shared_ptr<Communicator>> split(World& world, Communicator& comm,
                                                            int color, int key);

// All ranks that are alive call it. They exchange their sets of lost ranks until all sets are
// equal.
[[nodiscard]] Expected<std::shared_ptr<Communicator>> shrink(World& world, Communicator& comm);

}  // namespace verbena::coll
