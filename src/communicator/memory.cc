#include "communicator/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/check.h"

namespace verbena::coll {

Expected<std::unique_ptr<Registration>> Registration::make(Rails rails, void* address, u64 length) {
  std::unique_ptr<Registration> made(new Registration);
  made->base_ = static_cast<u8*>(address);
  made->length_ = length;
  for (u32 i = 0; i < rails.size(); ++i) {
    made->regions_[i] = rails[i]->register_memory(address, length);
    if (made->regions_[i] == nullptr)
      return failure(VERBENA_COLL_SYSTEM, "cannot register " + std::to_string(length) +
                                              " octets: " + std::strerror(errno));
  }
  return made;
}

Registration::~Registration() {
  for (ibv_mr* const region : regions_)
    if (region != nullptr) ibv_dereg_mr(region);
}

std::array<u32, kMaxRails> Registration::rkeys() const {
  std::array<u32, kMaxRails> keys{};
  for (u32 i = 0; i < keys.size(); ++i)
    if (regions_[i] != nullptr) keys[i] = regions_[i]->rkey;
  return keys;
}

Expected<std::unique_ptr<Arena>> Arena::make(Rails rails, u64 length) {
  std::unique_ptr<Arena> arena(new Arena);
  const int file = memfd_create("verbena-coll", MFD_CLOEXEC);
  void* base = MAP_FAILED;
  if (file >= 0 && ftruncate(file, static_cast<off_t>(length)) == 0)
    base = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  const int error = errno;
  if (file >= 0) close(file);
  if (base == MAP_FAILED)
    return failure(VERBENA_COLL_SYSTEM,
                   "no memory for " + std::to_string(length) + " octets: " + std::strerror(error));
  arena->base_ = static_cast<u8*>(base);
  arena->length_ = length;
  auto registration = Registration::make(rails, base, length);
  if (!registration) return tl::unexpected(registration.error());
  arena->registration_ = std::move(*registration);
  return arena;
}

Arena::~Arena() {
  registration_.reset();
  if (base_ != nullptr) munmap(base_, length_);
}

u8* Arena::take(u64 length) {
  CHECK(taken_ + length <= length_);
  u8* const at = base_ + taken_;
  taken_ += length;
  return at;
}

}  // namespace verbena::coll
