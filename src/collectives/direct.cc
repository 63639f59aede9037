#include "collectives/direct.h"

namespace verbena::collectives {

Direct::Direct(const Shape& shape) : Schedule(shape) {
  if (!is_all_to_all())
    pieces_ = pieces((shape.octets + shape.channels - 1) / shape.channels, shape.chunk_octets);
}

Range Direct::message(const Range& memory, u32 block, u32 channel, u64 piece) const {
  const u64 element = shape().element_octets;
  const Range whole = is_all_to_all() ? part(memory, ranks(), block, element) : memory;
  return part(part(whole, shape().channels, channel, element), pieces_, piece, element);
}

u64 Direct::steps(u32, u32) const { return 2 * (is_all_to_all() ? ranks() - 1 : pieces_); }

Step Direct::step(u32 rank, u32 lane, u64 index) const {
  const u64 number = index / 2;
  const u32 distance = is_all_to_all() ? static_cast<u32>(number) + 1 : 1;
  const u64 piece = is_all_to_all() ? 0 : number;
  const u32 to = (rank + distance) % ranks(), from = (rank + ranks() - distance) % ranks();
  return index % 2 == 0 ? Step{Action::kSend, to, message(input(rank), to, lane, piece)}
                        : Step{Action::kCopy, from, message(output(rank), from, lane, piece)};
}

}  // namespace verbena::collectives
