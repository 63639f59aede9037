#include "communicator/memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
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
                                              " bytes: " + std::strerror(errno));
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
  const int file = arena->file_ = memfd_create("verbena-coll", MFD_CLOEXEC);
  void* base = MAP_FAILED;
  if (file >= 0 && ftruncate(file, static_cast<off_t>(length)) == 0)
    base = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  const int error = errno;
  if (base == MAP_FAILED)
    return failure(VERBENA_COLL_SYSTEM,
                   "no memory for " + std::to_string(length) + " bytes: " + std::strerror(error));
  arena->base_ = static_cast<u8*>(base);
  arena->length_ = length;
  if (getrandom(base, sizeof(u64), 0) != sizeof(u64)) std::memcpy(base, &base, sizeof base);
  auto registration = Registration::make(rails, base, length);
  if (!registration) return tl::unexpected(registration.error());
  arena->registration_ = std::move(*registration);
  return arena;
}

Arena::~Arena() {
  registration_.reset();
  if (base_ != nullptr) munmap(base_, length_);
  if (file_ >= 0) close(file_);
}

Arena::Card Arena::card() const {
  Card card{
      .pid = getpid(), .address = reinterpret_cast<u64>(base_), .length = length_, .file = file_};
  std::memcpy(&card.nonce, base_, sizeof card.nonce);
  return card;
}

std::unique_ptr<PeerArena> PeerArena::map(const Arena::Card& card) {
  const std::string path = "/proc/" + std::to_string(card.pid) + "/fd/" + std::to_string(card.file);
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return nullptr;
  struct stat status {};
  void* base = MAP_FAILED;
  if (fstat(file, &status) == 0 && static_cast<u64>(status.st_size) == card.length)
    base = mmap(nullptr, card.length, PROT_READ, MAP_SHARED, file, 0);
  close(file);
  if (base == MAP_FAILED) return nullptr;
  std::unique_ptr<PeerArena> arena(new PeerArena(card, static_cast<const u8*>(base)));
  if (std::memcmp(base, &card.nonce, sizeof card.nonce) != 0) return nullptr;
  return arena;
}

PeerArena::~PeerArena() { munmap(const_cast<u8*>(base_), card_.length); }

u8* Arena::take(u64 length) {
  CHECK(taken_ + length <= length_);
  u8* const at = base_ + taken_;
  taken_ += length;
  return at;
}

}  // namespace verbena::coll
