#include "host/cm/port_directory.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "host/os/random.h"
#include "host/sharing/directory.h"
#include "host/sharing/process_channel.h"

namespace verbena::host {
namespace {

constexpr u64 kPortsMagic = 0x32504e4552424556;  // changes with the layout
constexpr Duration kPatience = sec(5);
constexpr int kReadTries = 100;  // each fails only if another process writes twice meanwhile

static_assert(sizeof(PortRecord) == 40 && std::is_trivially_copyable_v<PortRecord>);

Error in_use() { return {EADDRINUSE, "the RDMA port is in use"}; }

void remove_dead(PortTable& table) {
  for (const u32 slot : table.slots())
    if (!ProcessChannel::is_alive(slot)) table.forget(slot);
}

bool is_taken(const PortTable& table, PortRecord record, const PortRequest& request) {
  for (const PortPlace& place : request.places) {
    record.address = place.address;
    if (table.is_taken(record)) return true;
  }
  return false;
}

// Adds the records, or says why not. The dead are only looked for when they would matter.
Expected<BoundPort> add_to(PortTable& table, const PortRequest& request) {
  BoundPort bound{.owner = random_u64(), .port = request.port};
  if (bound.port == 0) {
    const std::optional<u16> free = table.find_free(request.space, bound.owner);
    if (!free) return failure(EADDRNOTAVAIL, "no RDMA port is free");
    bound.port = *free;
  }
  PortRecord record{.address = {},
                    .service = service_id_of({.space = request.space, .port = bound.port}),
                    .owner = bound.owner,
                    .slot = 0,
                    .reusable = request.reusable};
  if (is_taken(table, record, request)) {
    remove_dead(table);
    if (is_taken(table, record, request)) return tl::unexpected(in_use());
  }
  if (table.records().size() + request.places.size() > PortTable::kMaxRecords) remove_dead(table);
  for (const PortPlace& place : request.places) {
    record.address = place.address;
    record.slot = place.slot;
    if (!table.add(record)) return failure(EADDRNOTAVAIL, "too many RDMA ports are in use");
  }
  return bound;
}

}  // namespace

struct PortDirectory::Header {
  u64 magic = kPortsMagic;
  u64 generation = 0;  // even: the first place counts, odd: the second
  u64 count = 0;
  friend bool operator==(const Header&, const Header&) = default;

  bool is_valid() const { return magic == kPortsMagic && count <= PortTable::kMaxRecords; }
  off_t place() const {
    return static_cast<off_t>(sizeof(Header) +
                              (generation & 1) * PortTable::kMaxRecords * sizeof(PortRecord));
  }
};

Expected<PortDirectory> PortDirectory::open() {
  std::string tried;
  for (const std::string& path : shared_file_paths()) {
    Expected<PortDirectory> opened = open_file(path + "-ports");
    if (opened) return opened;
    tried += (tried.empty() ? "" : "; ") + opened.error().message;
  }
  return failure(EACCES, tried);
}

Expected<PortDirectory> PortDirectory::open_file(const std::string& path) {
  Expected<Descriptor> file = open_shared_file(path);
  if (!file) return tl::unexpected(file.error());
  return PortDirectory(std::move(*file), path);
}

PortDirectory::Header PortDirectory::read_header() const {
  Header header;
  if (::pread(file_.get(), &header, sizeof(header), 0) != sizeof(header) || !header.is_valid())
    return {};
  return header;
}

// Returns false if the directory was changed meanwhile.
bool PortDirectory::read_records(const Header& header, std::vector<PortRecord>& out) const {
  out.resize(header.count);
  const std::size_t size = out.size() * sizeof(PortRecord);
  if (::pread(file_.get(), out.data(), size, header.place()) != static_cast<ssize_t>(size))
    out.clear();
  return read_header() == header;
}

PortTable PortDirectory::read() const {
  std::vector<PortRecord> records;
  for (int i = 0; i < kReadTries; ++i)
    if (read_records(read_header(), records)) return PortTable(std::move(records));
  return {};
}

// With the lock held.
Expected<void> PortDirectory::write(const PortTable& table) {
  Header header = read_header();
  ++header.generation;
  header.count = table.records().size();
  const std::size_t size = header.count * sizeof(PortRecord);
  if (::pwrite(file_.get(), table.records().data(), size, header.place()) !=
          static_cast<ssize_t>(size) ||
      ::pwrite(file_.get(), &header, sizeof(header), 0) != sizeof(header))
    return failure(errno, "cannot write " + path_ + ": " + std::strerror(errno));
  return {};
}

// The lock belongs to an opened file, which threads share and a child after fork() would share:
// each change opens its own.
template <typename Change>
Expected<void> PortDirectory::change(Change&& apply) {
  Expected<Descriptor> file = open_shared_file(path_);
  if (!file) return tl::unexpected(file.error());
  Expected<Directory::Lock> lock = lock_shared_file(file->get(), path_, kPatience);
  if (!lock) return tl::unexpected(lock.error());
  PortTable table = read();
  if (Expected<void> applied = apply(table); !applied) return applied;
  return write(table);
}

Expected<BoundPort> PortDirectory::bind(const PortRequest& request) {
  Expected<BoundPort> bound;
  const Expected<void> changed = change([&](PortTable& table) -> Expected<void> {
    bound = add_to(table, request);
    if (!bound) return tl::unexpected(bound.error());
    return {};
  });
  if (!changed) return tl::unexpected(changed.error());
  return bound;
}

Expected<void> PortDirectory::listen(u64 owner) {
  return change([&](PortTable& table) -> Expected<void> {
    if (table.is_shared(owner)) remove_dead(table);
    if (table.is_shared(owner)) return tl::unexpected(in_use());
    table.set_listening(owner);
    return {};
  });
}

// An entry that cannot be removed now is removed when our slot is forgotten.
void PortDirectory::release(u64 owner) {
  (void)change([&](PortTable& table) -> Expected<void> {
    table.release(owner);
    return {};
  });
}

void PortDirectory::forget(u32 slot) {
  (void)change([&](PortTable& table) -> Expected<void> {
    table.forget(slot);
    return {};
  });
}

void HeldPort::release() {
  const u64 owner = std::exchange(owner_, 0);
  if (owner == 0 || process_ != ::getpid()) return;
  if (auto ports = PortDirectory::open()) ports->release(owner);
}

}  // namespace verbena::host
