#include "agent/region.h"

#include <cerrno>
#include <cstring>

namespace verbena::agent {
namespace {

static_assert(transfer::kMaxRails == coll::kMaxRails);
static_assert(u8{transfer::kRemoteRead} == VERBENA_REMOTE_READ &&
              u8{transfer::kRemoteWrite} == VERBENA_REMOTE_WRITE);

int access_of(unsigned rights) {
  return ((rights & VERBENA_REMOTE_READ) != 0 ? IBV_ACCESS_REMOTE_READ : 0) |
         ((rights & VERBENA_REMOTE_WRITE) != 0 ? IBV_ACCESS_REMOTE_WRITE : 0) |
         ((rights & (VERBENA_LOCAL_WRITE | VERBENA_REMOTE_WRITE)) != 0 ? IBV_ACCESS_LOCAL_WRITE
                                                                       : 0);
}

}  // namespace

Expected<std::unique_ptr<Region>> Region::make(Rails rails, u64 id, void* address, u64 length,
                                               unsigned rights) {
  std::unique_ptr<Region> region(new Region);
  region->published_ = {
      .id = id,
      .address = reinterpret_cast<u64>(address),
      .length = length,
      .rights = static_cast<u8>(rights & (VERBENA_REMOTE_READ | VERBENA_REMOTE_WRITE))};
  region->is_writable_ = (access_of(rights) & IBV_ACCESS_LOCAL_WRITE) != 0;
  for (std::size_t i = 0; i < rails.size(); ++i) {
    ibv_mr* const mr = ibv_reg_mr(rails[i]->pd(), address, length, access_of(rights));
    if (mr == nullptr)
      return failure(VERBENA_TRANSFER_SYSTEM, "cannot register " + std::to_string(length) +
                                                  " bytes: " + std::strerror(errno));
    region->regions_[i] = mr;
    region->lkeys_[i] = mr->lkey;
    region->published_.rkeys[i] = mr->rkey;
  }
  return region;
}

Region::~Region() {
  for (ibv_mr* const mr : regions_)
    if (mr != nullptr) ibv_dereg_mr(mr);
}

bool Region::holds(u64 address, u64 length) const {
  return address >= published_.address && length <= published_.length &&
         address - published_.address <= published_.length - length;
}

}  // namespace verbena::agent
