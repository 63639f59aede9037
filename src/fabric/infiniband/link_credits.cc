#include "fabric/infiniband/link_credits.h"

#include <algorithm>

namespace verbena::fabric {
namespace {

constexpr u32 kUpdatesOfABuffer = 8;
constexpr unsigned __int128 kBitPicoseconds = 8'000'000'000'000;

u32 blocks_of(u64 bytes) {
  constexpr u64 kBlock = CreditConfig::kBlockBytes;
  return static_cast<u32>(std::min<u64>((bytes + kBlock - 1) / kBlock, CreditConfig::kMostBlocks));
}

u64 bytes_of_round_trip(const InfiniBandConfig& config, const LinkConfig& link) {
  const Duration time = link.delay * 2 + config.latency;
  const auto on_the_way = static_cast<u64>(static_cast<unsigned __int128>(link.rate.bps()) *
                                           static_cast<u64>(time.ps()) / kBitPicoseconds);
  return on_the_way + 3 * u64{config.longest_packet()} + 2 * kFlowControlBytes;
}

}  // namespace

CreditConfig credits_for(const InfiniBandConfig& config, const LinkConfig& link) {
  const u64 needed =
      bytes_of_round_trip(config, link) * kUpdatesOfABuffer / (kUpdatesOfABuffer - 1);
  CreditConfig credits;
  credits.longest_blocks = blocks_of(config.longest_packet());
  credits.buffer_blocks =
      std::max(credits.longest_blocks, config.buffer_bytes != 0
                                           ? config.buffer_bytes / CreditConfig::kBlockBytes
                                           : blocks_of(needed));
  credits.update_blocks = config.credit_update_bytes != 0
                              ? blocks_of(config.credit_update_bytes)
                              : credits.buffer_blocks / kUpdatesOfABuffer;
  return credits;
}

LinkCredits::LinkCredits(const CreditConfig& config) : config_(config) {
  CHECK(config.longest_blocks <= config.buffer_blocks);
  CHECK(config.buffer_blocks <= CreditConfig::kMostBlocks);
  for (Lane& lane : lanes_) lane.limit = lane.told = config.buffer_blocks;
}

void LinkCredits::on_received(u32 lane, u32 bytes) {
  Lane& to = lanes_[lane];
  to.received += blocks_of(bytes);
  to.held += blocks_of(bytes);
  CHECK(to.held <= config_.buffer_blocks);
}

void LinkCredits::on_freed(u32 lane, u32 bytes) {
  CHECK(lanes_[lane].held >= blocks_of(bytes));
  lanes_[lane].held -= blocks_of(bytes);
}

bool LinkCredits::update_is_due(u32 lane) const {
  const u32 news = (limit_of(lane) - lanes_[lane].told) & kMask;
  const u32 left = (lanes_[lane].told - lanes_[lane].received) & kMask;
  return news >= std::max(1u, config_.update_blocks) ||
         (news != 0 && left < config_.longest_blocks);
}

u16 LinkCredits::tell(u32 lane) {
  lanes_[lane].told = limit_of(lane);
  return static_cast<u16>(lanes_[lane].told);
}

}  // namespace verbena::fabric
