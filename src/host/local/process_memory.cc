#include "host/local/process_memory.h"

#include <sys/uio.h>

#include <algorithm>
#include <cerrno>

#include "host/process_channel.h"
#include "host/qpn_slot.h"

namespace verbena::host {
namespace {

class Passage {
 public:
  Passage(AccessGates& gates, u32 gate) : gates_(gates), gate_(gate) { gates_.pass_in(gate_); }
  ~Passage() { gates_.pass_out(gate_); }
  Passage(const Passage&) = delete;
  Passage& operator=(const Passage&) = delete;

 private:
  AccessGates& gates_;
  u32 gate_;
};

// Programs poll the end of a buffer for a WRITE (memory/ordered_copy.h). The kernel copies vector
// by vector, each with no order inside: so what is stored last is a vector of its own.
u32 size_of_last_store(u64 end, u32 length) {
  for (const u32 size : {8u, 4u, 2u})
    if (length > size && end % size == 0) return size;
  return length > 1 ? 1 : 0;
}

bool is_one_store(u64 address, u32 length) {
  return length <= 8 && (length & (length - 1)) == 0 && address % length == 0;
}

u64 messages_in(std::span<const PeerRange> ranges) {
  return static_cast<u64>(std::ranges::count_if(ranges, &PeerRange::ends_message));
}

u64 packets_in(std::span<const PeerRange> ranges, MTU mtu) {
  const u64 size = bytes(mtu);
  u64 packets = 0;
  for (const PeerRange& range : ranges) packets += (range.length_bytes + size - 1) / size;
  return packets;
}

void* pointer_of(u64 address) { return reinterpret_cast<void*>(address); }

}  // namespace

struct ProcessMemory::Vectors {
  std::array<iovec, kMaxPieces> local;
  std::array<iovec, 2 * kMaxRanges> remote;
  u32 local_count = 0, remote_count = 0;
  u64 bytes = 0;

  explicit Vectors(std::span<const MemoryPiece> pieces) {  // leaves the rest uninitialized
    for (const MemoryPiece& piece : pieces) {
      local[local_count++] = {piece.data, piece.length_bytes};
      bytes += piece.length_bytes;
    }
  }
  void add_remote(u64 address, u32 length) {
    remote[remote_count++] = {pointer_of(address), length};
  }
  void add_written(u64 address, u32 length) {
    const u32 last =
        is_one_store(address, length) ? 0 : size_of_last_store(address + length, length);
    add_remote(address, length - last);
    if (last != 0) add_remote(address + length - last, last);
  }
};

ProcessMemory::ProcessMemory(PeerSegment segment, u32 pid, u32 own_slot,
                             const std::atomic<bool>& enabled)
    : segment_(std::move(segment)),
      pid_(pid),
      own_slot_(own_slot),
      life_(segment_.header().life.look()),
      enabled_(enabled) {
  segment_.shared().gates.come();
  segment_.shared().gates.shut(own_slot_);  // whoever had our slot before is gone
}

bool ProcessMemory::has(const GID& gid) const {
  const SegmentHeader& header = segment_.header();
  const auto gids = std::span(header.gids).first(std::min(header.gid_count, header.kMaxGIDs));
  return std::ranges::find(gids, gid) != gids.end();
}

Mapping ProcessMemory::claim_ring() {
  RingClaims& rings = segment_.shared().rings;
  std::optional<u32> ring = rings.claim(own_slot_);
  for (u32 slot = kFirstSlot; slot <= kLastSlot && !ring; ++slot)
    if (rings.find(slot) && !ProcessChannel::is_alive(slot))
      ring = rings.take_over(own_slot_, slot);
  if (!ring) return {};
  Expected<Mapping> mapping = map_ring(segment_.fd(), *ring);
  return mapping ? std::move(*mapping) : Mapping();
}

// Inside the gate: what is found here stays allowed until we are out.
bool ProcessMemory::translate(const QPAttributes& qp, std::span<const PeerRange> ranges,
                              Access need, Vectors& out) const {
  const PublishedDevice& device = segment_.device();
  PublishedQP peer;
  if (!is_open() || !device.qps.find(qp.dest_qp, peer) || !peer.accepts_from(qp) ||
      !peer.access.has(need))
    return false;
  for (const PeerRange& range : ranges) {
    const std::optional<u64> address =
        device.keys.find(peer.pd, range.r_key, range.address, range.length_bytes, need);
    if (!address) return false;
    if (need == Access::kRemoteWrite)
      out.add_written(*address, range.length_bytes);
    else
      out.add_remote(*address, range.length_bytes);
  }
  return true;
}

template <typename Copy>
bool ProcessMemory::copy(const Vectors& vectors, Copy call) {
  // The process ID is looked at last: it may have become another's.
  if (!is_alive()) return false;
  const ssize_t copied = call(static_cast<pid_t>(pid_), vectors.local.data(), vectors.local_count,
                              vectors.remote.data(), vectors.remote_count, 0);
  if (copied < 0 && errno != EFAULT) refused_ = true;
  return copied >= 0 && static_cast<u64>(copied) == vectors.bytes;
}

bool ProcessMemory::write(const QPAttributes& qp, std::span<const MemoryPiece> from,
                          std::span<const PeerRange> to) {
  if (refused_ || !enabled_.load(std::memory_order_relaxed)) return false;
  Vectors vectors(from);
  const Passage passage(segment_.shared().gates, own_slot_);
  if (!translate(qp, to, Access::kRemoteWrite, vectors) || !copy(vectors, ::process_vm_writev))
    return false;
  segment_.shared().counts.add(qp.dest_qp, {.writes = messages_in(to),
                                            .write_packets = packets_in(to, qp.path_mtu),
                                            .write_octets = vectors.bytes});
  return true;
}

bool ProcessMemory::read(const QPAttributes& qp, std::span<const PeerRange> from,
                         std::span<const MemoryPiece> to) {
  if (refused_ || !enabled_.load(std::memory_order_relaxed)) return false;
  Vectors vectors(to);
  const Passage passage(segment_.shared().gates, own_slot_);
  if (!translate(qp, from, Access::kRemoteRead, vectors) || !copy(vectors, ::process_vm_readv))
    return false;
  segment_.shared().counts.add(qp.dest_qp, {.reads = messages_in(from),
                                            .read_packets = packets_in(from, qp.path_mtu),
                                            .read_octets = vectors.bytes});
  return true;
}

int ProcessMemory::refusal() const {
  u8 byte = 0;
  iovec here{&byte, 1}, nowhere{nullptr, 1};
  (void)::process_vm_readv(static_cast<pid_t>(pid_), &here, 1, &nowhere, 1, 0);
  return errno == EFAULT ? 0 : errno;
}

// Inside the gate.
std::optional<u64> ProcessMemory::locate(const PublishedKey& region, u64 offset, u64 length,
                                         Access need) const {
  const std::optional<PublishedKey> now = exported(region.key);
  if (!now || now->pd != region.pd || !now->access.has(need)) return std::nullopt;
  return now->locate(region.start + offset, length);
}

bool ProcessMemory::write(const PublishedKey& region, u64 offset, Bytes from) {
  if (refused_) return false;
  const MemoryPiece piece{const_cast<u8*>(from.data()), from.size()};  // which is only read
  Vectors vectors(std::span(&piece, 1));
  const Passage passage(segment_.shared().gates, own_slot_);
  const std::optional<u64> to = locate(region, offset, from.size(), Access::kLocalWrite);
  if (!to) return false;
  vectors.add_written(*to, static_cast<u32>(from.size()));
  return copy(vectors, ::process_vm_writev);
}

bool ProcessMemory::read(const PublishedKey& region, u64 offset, MutableBytes to) {
  if (refused_) return false;
  const MemoryPiece piece{to.data(), to.size()};
  Vectors vectors(std::span(&piece, 1));
  const Passage passage(segment_.shared().gates, own_slot_);
  const std::optional<u64> from = locate(region, offset, to.size(), Access::kLocalRead);
  if (!from) return false;
  vectors.add_remote(*from, static_cast<u32>(to.size()));
  return copy(vectors, ::process_vm_readv);
}

}  // namespace verbena::host
