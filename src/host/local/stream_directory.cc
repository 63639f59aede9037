#include "host/local/stream_directory.h"

#include <unistd.h>

#include <array>
#include <bit>

#include "host/sharing/directory.h"

namespace verbena::host {
namespace {

// 512 KiB at most, of which the file takes what is written.
constexpr u64 kStreamPlaces = 1u << 16;

struct StreamRecord {
  u32 qpn = 0;
  u32 check = 0;  // more of the hash; 0: nothing was written
};
constexpr ssize_t kStreamRecordSize = sizeof(StreamRecord);

u64 mixed(u64 hash, u64 word) {  // as splitmix64
  hash = (hash ^ word) + 0x9e3779b97f4a7c15;
  hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9;
  hash = (hash ^ (hash >> 27)) * 0x94d049bb133111eb;
  return hash ^ (hash >> 31);
}

u64 hash_of(const TCPTuple& end) {
  u64 hash = mixed(0, u64{end.local_port} << 16 | end.remote_port);
  for (const GID& address : {end.local, end.remote})
    for (const u64 word : std::bit_cast<std::array<u64, 2>>(address)) hash = mixed(hash, word);
  return hash;
}

u32 check_of(u64 hash) { return static_cast<u32>(hash >> 32) | 1; }
off_t place_of_stream(u64 hash) {
  return static_cast<off_t>(hash % kStreamPlaces) * kStreamRecordSize;
}

}  // namespace

Expected<StreamDirectory> StreamDirectory::open() {
  for (const std::string& path : shared_file_paths())
    if (Expected<Descriptor> file = open_shared_file(path + "-streams"))
      return StreamDirectory(std::move(*file));
  return failure(EACCES, "no place for a file that processes share");
}

bool StreamDirectory::set(const TCPTuple& end, QPN qpn) {
  const u64 hash = hash_of(end);
  const StreamRecord record{qpn.value, check_of(hash)};
  return ::pwrite(file_.get(), &record, kStreamRecordSize, place_of_stream(hash)) ==
         kStreamRecordSize;
}

std::optional<QPN> StreamDirectory::find(const TCPTuple& end) const {
  const u64 hash = hash_of(end);
  StreamRecord record;
  if (::pread(file_.get(), &record, kStreamRecordSize, place_of_stream(hash)) !=
          kStreamRecordSize ||
      record.check != check_of(hash))
    return std::nullopt;
  return QPN{record.qpn};
}

}  // namespace verbena::host
