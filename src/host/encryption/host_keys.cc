#include "host/encryption/host_keys.h"

#include <sys/stat.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "host/os/clock.h"
#include "host/os/random.h"

namespace verbena::host {
namespace {

constexpr u64 kHostKeysMagic = 0x3153594b50535056;  // changes with the layout
constexpr Duration kLockPatience = ms(200);
constexpr u32 kNumbers = 1u << kSPINumberBits;
constexpr u32 kTries = 64;  // places looked at for a free one

void fill_with_random(std::span<u8> out) {
  for (std::size_t at = 0; at < out.size(); at += sizeof(u64)) {
    const u64 random = random_u64();
    std::memcpy(out.data() + at, &random, sizeof(random));
  }
}

}  // namespace

struct HostKeys::File {
  struct Entry {
    std::atomic<u32> spi;  // 0: free
    std::atomic<u32> generation;
    std::atomic<u64> shared_window;  // the newest IV's low half, and which before it were there
    AssociationEnds ends;
    PSPVersion version;
  };

  std::atomic<u64> magic;
  i64 rotated_at_ns;
  u32 selector;  // of the master key that issues: 0 or 1
  u32 next_number;
  std::array<PSPMasterKey, 2> master;
  std::array<Entry, kMaxAssociations> entries;

  Entry& entry_of(u32 spi) { return entries[spi % kMaxAssociations]; }
};

HostKeys::HostKeys(const OpenSSL& ssl, Descriptor file, std::string path, Mapping memory,
                   Duration rotation)
    : ssl_(&ssl),
      descriptor_(std::move(file)),
      path_(std::move(path)),
      memory_(std::move(memory)),
      rotation_(rotation) {}

Expected<HostKeys> HostKeys::open(const OpenSSL& ssl, const std::string& name, Duration rotation) {
  std::string tried;
  for (const std::string& path : shared_file_paths()) {
    Expected<HostKeys> opened = open_file(ssl, path + "-psp-" + name, rotation);
    if (opened) return opened;
    tried += (tried.empty() ? "" : "; ") + opened.error().message;
  }
  return failure(EACCES, tried);
}

Expected<HostKeys> HostKeys::open_file(const OpenSSL& ssl, const std::string& path,
                                       Duration rotation) {
  Expected<Descriptor> file = open_shared_file(path);
  if (!file) return tl::unexpected(file.error());
  const Expected<Directory::Lock> lock = lock_shared_file(file->get(), path, kLockPatience);
  if (!lock) return tl::unexpected(lock.error());
  if (::ftruncate(file->get(), sizeof(File)) != 0)
    return failure(errno, "cannot enlarge " + path + ": " + std::strerror(errno));
  Expected<Mapping> memory = Mapping::of_file(file->get(), 0, sizeof(File), MapAccess::kReadWrite);
  if (!memory) return tl::unexpected(memory.error());
  HostKeys keys(ssl, std::move(*file), path, std::move(*memory), rotation);
  if (keys.file().magic.load() != kHostKeysMagic) keys.begin(monotonic_now());
  return keys;
}

void HostKeys::begin(Time now) {
  for (File::Entry& entry : file().entries) entry.spi.store(0);
  for (PSPMasterKey& key : file().master) fill_with_random(key);
  file().rotated_at_ns = now.ns();
  file().selector = 0;
  file().next_number = static_cast<u32>(random_u64() % kNumbers);
  file().magic.store(kHostKeysMagic);
}

// Replaces the other master key by a new one, which issues from now on. Keys that the old one
// issued are no longer valid; senders had a whole rotation to ask for new keys.
void HostKeys::rotate(Time now) {
  const u32 selector = file().selector ^ 1;
  for (File::Entry& entry : file().entries)
    if (entry.spi.load() >> 31 == selector) entry.spi.store(0);
  fill_with_random(file().master[selector]);
  file().selector = selector;
  file().rotated_at_ns = now.ns();
}

u32 HostKeys::free_number() {
  const u32 first = file().next_number;
  for (u32 i = 0; i < kTries; ++i) {
    const u32 number = (first + i) % kNumbers;
    if (number != 0 && file().entry_of(number).spi.load() == 0) return number;
  }
  return first == 0 ? 1 : first;
}

Expected<IssuedAssociation> HostKeys::issue(u32 slot, const AssociationEnds& ends,
                                            PSPVersion version, Time now) {
  const Expected<Directory::Lock> lock = lock_shared_file(descriptor_.get(), path_, kLockPatience);
  if (!lock) return tl::unexpected(lock.error());
  const i64 age_ns = now.ns() - file().rotated_at_ns;
  const u32 number_before = file().next_number;
  if (age_ns < 0 || age_ns >= rotation_.ns()) rotate(now);
  const u32 number = free_number();
  file().next_number = (number + 1) % kNumbers;
  if (file().next_number < number_before) rotate(now);  // numbers begin anew: so does the key

  const u32 spi = file().selector << 31 | slot << kSPINumberBits | number;
  File::Entry& entry = file().entry_of(spi);
  entry.spi.store(0);
  entry.ends = ends;
  entry.version = version;
  entry.shared_window.store(0);
  entry.generation.fetch_add(1);
  entry.spi.store(spi);
  const Duration left = rotation_ - ns(now.ns() - file().rotated_at_ns);
  return IssuedAssociation{
      .spi = spi,
      .key = derive_psp_key(*ssl_, file().master[file().selector], spi, version),
      .renew_after = left,
      .expires_after = left + rotation_};
}

Expected<void> HostKeys::forget_slot(u32 slot) {
  const Expected<Directory::Lock> lock = lock_shared_file(descriptor_.get(), path_, kLockPatience);
  if (!lock) return tl::unexpected(lock.error());
  for (File::Entry& entry : file().entries)
    if (slot_of_spi(entry.spi.load()) == slot) entry.spi.store(0);
  return {};
}

bool HostKeys::is_valid(u32 spi, u32 generation) const {
  const File::Entry& entry = file().entry_of(spi);
  return spi != 0 && entry.spi.load(std::memory_order_acquire) == spi &&
         entry.generation.load(std::memory_order_relaxed) == generation;
}

std::optional<HostKeys::Known> HostKeys::find(u32 spi) const {
  const File::Entry& entry = file().entry_of(spi);
  if (spi == 0 || entry.spi.load(std::memory_order_acquire) != spi) return std::nullopt;
  const Known known{
      .ends = entry.ends, .version = entry.version, .generation = entry.generation.load()};
  if (!is_valid(spi, known.generation)) return std::nullopt;  // it was issued anew meanwhile
  return known;
}

bool HostKeys::note_shared(u32 spi, u64 iv) {
  constexpr u32 kBits = 32;
  std::atomic<u64>& window = file().entry_of(spi).shared_window;
  const u32 count = static_cast<u32>(iv);
  if (count == 0) return false;
  u64 seen = window.load();
  for (;;) {
    const u32 newest = static_cast<u32>(seen >> kBits);
    u32 before = static_cast<u32>(seen);  // bit i: newest - i
    u32 newest_after = newest;
    if (count > newest) {
      const u32 step = count - newest;
      before = (step < kBits ? before << step : 0) | 1;
      newest_after = count;
    } else {
      const u32 age = newest - count;
      if (age >= kBits || (before >> age & 1) != 0) return false;
      before |= 1u << age;
    }
    if (window.compare_exchange_weak(seen, u64{newest_after} << kBits | before)) return true;
  }
}

// The master key may be renewed while it is read: then the association is gone after it.
std::optional<PSPKey> HostKeys::derive(u32 spi, PSPVersion version) const {
  const std::optional<Known> known = find(spi);
  if (!known) return std::nullopt;
  const PSPKey key = derive_psp_key(*ssl_, file().master[spi >> 31], spi, version);
  return is_valid(spi, known->generation) ? std::optional(key) : std::nullopt;
}

}  // namespace verbena::host
