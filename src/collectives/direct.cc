#include "collectives/direct.h"

namespace verbena::collectives {

Range Direct::message(const Range& memory, u32 block, u32 channel) const {
  const u64 element = shape().element_bytes;
  const Range whole = is_all_to_all() ? part(memory, ranks(), block, element) : memory;
  return part(whole, shape().channels, channel, element);
}

u64 Direct::steps(u32, u32) const { return 2 * u64{is_all_to_all() ? ranks() - 1 : 1}; }

Step Direct::step(u32 rank, u32 lane, u64 index) const {
  const u32 distance = static_cast<u32>(index / 2) + 1;
  const u32 to = (rank + distance) % ranks(), from = (rank + ranks() - distance) % ranks();
  return index % 2 == 0 ? Step{Action::kSend, to, message(input(rank), to, lane)}
                        : Step{Action::kCopy, from, message(output(rank), from, lane)};
}

Pipeline Direct::pipeline() const {
  Pipeline pipeline;
  for (u64 round = 0; round < steps(0, 0) / 2; ++round)
    pipeline.stages.push_back({.lanes = lanes_of_channels(0, 1), .window = [round](u32, u32) {
                                 return StepWindow{2 * round, 2};
                               }});
  return pipeline;
}

}  // namespace verbena::collectives
