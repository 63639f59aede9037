#include "host/local/process_memory.h"

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "host/sharing/process_channel.h"
#include "host/sharing/qpn_slot.h"
#include "memory/ordered_copy.h"

namespace verbena::host {
namespace {

// Whether the stores of one copy are seen before those of the next.
#if defined(__x86_64__)
constexpr bool kStoresStayInOrder = true;
#else
constexpr bool kStoresStayInOrder = false;
#endif

// Programs poll the end of a buffer for a WRITE (memory/ordered_copy.h). The kernel copies vector
// by vector, in the order of our list and the peer's; inside a vector there is no order. So the
// last store is a vector of its own. Only our list has it, and only if stores stay in order: for
// each vector of the peer the kernel looks up its pages again, 0.35 us.
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

u64 bytes_in(std::span<const PeerRange> ranges) {
  u64 bytes = 0;
  for (const PeerRange& range : ranges) bytes += range.length_bytes;
  return bytes;
}

void* pointer_of(u64 address) { return reinterpret_cast<void*>(address); }
u64 address_of(const u8* pointer) { return reinterpret_cast<u64>(pointer); }

// The bytes of a list of pieces, one after the other.
class PieceWalk {
 public:
  explicit PieceWalk(std::span<const MemoryPiece> pieces) : piece_(pieces.data()) {}

  // The next, `length` of them or less; not to be asked for more than there are.
  MutableBytes next(u64 length) {
    if (offset_ == piece_->length_bytes) {
      ++piece_;
      offset_ = 0;
    }
    const u64 take = std::min(length, piece_->length_bytes - offset_);
    u8* const at = piece_->data + offset_;
    offset_ += take;
    return {at, take};
  }

 private:
  const MemoryPiece* piece_;
  u64 offset_ = 0;
};

// Inside touch().
void write_to(u8* to, u64 length, PieceWalk& from) {
  for (MutableBytes part; length != 0; to += part.size(), length -= part.size()) {
    part = from.next(length);
    if (part.size() == length)
      copy_last_bytes_last(to, part);
    else
      std::memcpy(to, part.data(), part.size());
  }
}

void read_from(const u8* from, u64 length, PieceWalk& to) {
  for (MutableBytes part; length != 0; from += part.size(), length -= part.size()) {
    part = to.next(length);
    std::memcpy(part.data(), from, part.size());
  }
}

}  // namespace

// Passage: while it exists, the keys that are found in the tables stay valid.
class ProcessMemory::Passage {
 public:
  explicit Passage(ProcessMemory& to)
      : gates_(to.segment_.shared().gates), gate_(to.own_slot_), entry_(gates_.pass_in(gate_)) {
    if (entry_.withdrawals != to.withdrawals_) to.drop_withdrawn();
  }
  ~Passage() { gates_.pass_out(gate_, entry_.look); }
  Passage(const Passage&) = delete;
  Passage& operator=(const Passage&) = delete;

 private:
  AccessGates& gates_;
  const u32 gate_;
  const AccessGates::Entry entry_;
};

// Where the ranges of a call are.
struct ProcessMemory::Targets {
  struct Target {
    u64 address;  // in the peer
    u8* here;     // nullptr: not mapped
  };
  std::array<Target, kMaxRanges> targets;
  bool all_here = true;

  Targets() {}  // leaves them uninitialized on purpose: one is made per call
};

// Vectors: the arguments of the system call. Adjacent ranges in the peer are merged into one.
struct ProcessMemory::Vectors {
  std::array<iovec, kMaxPieces + 2 * kMaxRanges> local;
  std::array<iovec, 2 * kMaxRanges> remote;
  u32 local_count = 0, remote_count = 0;
  u64 bytes = 0;

  Vectors() {}  // leaves them uninitialized on purpose: one is made per call

  static Vectors to_write(std::span<const MemoryPiece> from, std::span<const PeerRange> to,
                          const Targets& targets) {
    Vectors vectors;
    PieceWalk walk(from);
    for (std::size_t i = 0; i < to.size(); ++i)
      vectors.add_written(walk, targets.targets[i].address, to[i].length_bytes);
    return vectors;
  }
  static Vectors to_write(Bytes from, u64 to) {
    // Which is only read.
    const MemoryPiece piece{const_cast<u8*>(from.data()), from.size()};
    Vectors vectors;
    PieceWalk walk({&piece, 1});
    vectors.add_written(walk, to, static_cast<u32>(from.size()));
    return vectors;
  }
  static Vectors to_read(std::span<const PeerRange> from, const Targets& targets,
                         std::span<const MemoryPiece> to) {
    Vectors vectors;
    PieceWalk walk(to);
    for (std::size_t i = 0; i < from.size(); ++i)
      vectors.add(walk, targets.targets[i].address, from[i].length_bytes);
    return vectors;
  }
  static Vectors to_read(u64 from, MutableBytes to) {
    const MemoryPiece piece{to.data(), to.size()};
    Vectors vectors;
    PieceWalk walk({&piece, 1});
    vectors.add(walk, from, static_cast<u32>(to.size()));
    return vectors;
  }

 private:
  void add_written(PieceWalk& walk, u64 address, u32 length) {
    const u32 last =
        is_one_store(address, length) ? 0 : size_of_last_store(address + length, length);
    add(walk, address, length - last);
    if (last != 0) add(walk, address + length - last, last);
  }
  void add(PieceWalk& walk, u64 address, u64 length) {
    add_remote(address, length);
    bytes += length;
    for (MutableBytes part; length != 0; length -= part.size()) {
      part = walk.next(length);
      local[local_count++] = {part.data(), part.size()};
    }
  }
  void add_remote(u64 address, u64 length) {
    if (iovec* const before = remote_count == 0 ? nullptr : &remote[remote_count - 1];
        kStoresStayInOrder && before != nullptr &&
        pointer_of(address) == static_cast<u8*>(before->iov_base) + before->iov_len)
      before->iov_len += length;
    else
      remote[remote_count++] = {pointer_of(address), length};
  }
};

ProcessMemory::ProcessMemory(PeerSegment segment, u32 pid, u32 own_slot,
                             const std::atomic<bool>& enabled)
    : segment_(std::move(segment)),
      pid_(pid),
      own_slot_(own_slot),
      life_(segment_.header().life.look()),
      enabled_(enabled),
      mappings_(pid, segment_.shared().mappers, own_slot),
      far_regions_(pid == static_cast<u32>(::getpid()) ? cuda::CudaPeerRegion::Owner::kThisProcess
                                                       : cuda::CudaPeerRegion::Owner::kAnother,
                   segment_.shared().mappers, own_slot),
      late_gate_(segment_.shared().late_gates, own_slot) {
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

void ProcessMemory::drop_withdrawn() {
  withdrawals_ = segment_.shared().gates.withdrawals();
  mappings_.drop_withdrawn(segment_.device().keys);
  far_regions_.drop_withdrawn(segment_.device().keys);
}

// Calls take(key, range, address) for each range, with its address in the peer, while it returns
// true. Returns false if the peer would not accept all of them.
template <typename Take>
bool ProcessMemory::take_each(const QPAttributes& qp, std::span<const PeerRange> ranges,
                              Access need, Take take) {
  const PublishedDevice& device = segment_.device();
  PublishedQP peer;
  if (!is_open() || !device.qps.find(qp.dest_qp, peer) || !peer.accepts_from(qp) ||
      !peer.permits(need, qp))
    return false;
  std::optional<PublishedKey> key;  // that of the range before, mostly
  for (const PeerRange& range : ranges) {
    if (!key || key->key != range.r_key.value) key = device.keys.find(peer.pd, range.r_key, need);
    if (!key) return false;
    const std::optional<u64> address = key->locate(range.address, range.length_bytes);
    if (!address || !take(*key, range, *address)) return false;
  }
  return true;
}

bool ProcessMemory::translate(const QPAttributes& qp, std::span<const PeerRange> ranges,
                              Access need, Targets& out) {
  Targets::Target* to = out.targets.data();
  return take_each(
      qp, ranges, need, [&](const PublishedKey& key, const PeerRange& range, u64 address) {
        if (key.is_far()) return false;
        u8* const here =
            mappings_.find(segment_.device().keys, key, address, range.length_bytes, need);
        out.all_here &= here != nullptr;
        *to++ = {address, here};
        return true;
      });
}

// Hold: the same for copies that end late.
class ProcessMemory::Hold {
 public:
  explicit Hold(std::shared_ptr<ProcessMemory> of) : of_(std::move(of)) {}
  ~Hold() { of_->late_gate_.leave(); }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;

 private:
  const std::shared_ptr<ProcessMemory> of_;
};

Admission ProcessMemory::admit(const QPAttributes& qp, Access need,
                               std::span<const PeerRange> ranges, std::span<PeerPlace> out) {
  if (!enabled_.load(std::memory_order_relaxed) || !is_alive() || !late_gate_.enter())
    return Admission::kRefused;
  const auto hold = std::make_shared<const Hold>(shared_from_this());
  if (segment_.shared().gates.withdrawals() != withdrawals_) drop_withdrawn();
  PeerPlace* to = out.data();
  Admission refusal = Admission::kRefused;
  const auto take = [&](const PublishedKey& key, const PeerRange& range, u64) {
    if (!key.is_far()) {
      refusal = Admission::kOtherMemory;
      return false;
    }
    const std::shared_ptr<PeerRegion>& region = far_regions_.find(segment_.device().keys, key);
    if (region == nullptr) return false;
    *to++ = {region, range.address - key.start, hold};
    return true;
  };
  return take_each(qp, ranges, need, take) ? Admission::kAdmitted : refusal;
}

template <typename Copy>
bool ProcessMemory::copy(const Vectors& vectors, Copy call) {
  // The process ID is looked at last: it may have become another's.
  if (refused_ || !is_alive()) return false;
  const ssize_t copied = call(static_cast<pid_t>(pid_), vectors.local.data(), vectors.local_count,
                              vectors.remote.data(), vectors.remote_count, 0);
  if (copied < 0 && errno != EFAULT) refused_ = true;
  return copied >= 0 && static_cast<u64>(copied) == vectors.bytes;
}

bool ProcessMemory::write(const QPAttributes& qp, std::span<const MemoryPiece> from,
                          std::span<const PeerRange> to) {
  if (!enabled_.load(std::memory_order_relaxed)) return false;
  Targets targets;
  const Passage passage(*this);
  if (!translate(qp, to, Access::kRemoteWrite, targets)) return false;
  const bool done =
      targets.all_here ? write_here(from, to, targets) : write_there(from, to, targets);
  if (done)
    segment_.shared().counts.add(qp.dest_qp, {.writes = messages_in(to),
                                              .write_packets = packets_in(to, qp.path_mtu),
                                              .write_bytes = bytes_in(to)});
  return done;
}

bool ProcessMemory::read(const QPAttributes& qp, std::span<const PeerRange> from,
                         std::span<const MemoryPiece> to) {
  if (!enabled_.load(std::memory_order_relaxed)) return false;
  Targets targets;
  const Passage passage(*this);
  if (!translate(qp, from, Access::kRemoteRead, targets)) return false;
  const bool done = targets.all_here ? read_here(from, targets, to) : read_there(from, targets, to);
  if (done)
    segment_.shared().counts.add(qp.dest_qp, {.reads = messages_in(from),
                                              .read_packets = packets_in(from, qp.path_mtu),
                                              .read_bytes = bytes_in(from)});
  return done;
}

bool ProcessMemory::write_here(std::span<const MemoryPiece> from, std::span<const PeerRange> to,
                               const Targets& targets) const {
  return is_alive() && touch([&] {
           PieceWalk walk(from);
           for (std::size_t i = 0; i < to.size(); ++i)
             write_to(targets.targets[i].here, to[i].length_bytes, walk);
         });
}

bool ProcessMemory::read_here(std::span<const PeerRange> from, const Targets& targets,
                              std::span<const MemoryPiece> to) const {
  return is_alive() && touch([&] {
           PieceWalk walk(to);
           for (std::size_t i = 0; i < from.size(); ++i)
             read_from(targets.targets[i].here, from[i].length_bytes, walk);
         });
}

// Returns true if each message is one piece and `is` holds for any of them and its place in the
// peer.
template <typename Is>
bool ProcessMemory::any_piece(std::span<const MemoryPiece> ours, std::span<const PeerRange> theirs,
                              const Targets& targets, Is is) {
  if (ours.size() != theirs.size()) return false;
  bool any = false;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    if (ours[i].length_bytes != theirs[i].length_bytes) return false;
    any |= is(ours[i], targets.targets[i].address);
  }
  return any;
}

template <typename Do>
bool ProcessMemory::all_pieces(std::span<const MemoryPiece> ours, const Targets& targets,
                               Do copy_one) {
  for (std::size_t i = 0; i < ours.size(); ++i)
    if (!copy_one(ours[i], targets.targets[i].address)) return false;
  return true;
}

bool ProcessMemory::write_there(std::span<const MemoryPiece> from, std::span<const PeerRange> to,
                                const Targets& targets) {
  const bool is_staged = any_piece(from, to, targets, [](const MemoryPiece& piece, u64 address) {
    return Staging::suits(address, address_of(piece.data), piece.length_bytes);
  });
  if (is_staged)
    return all_pieces(from, targets, [this](const MemoryPiece& piece, u64 address) {
      return write_staged({piece.data, piece.length_bytes}, address);
    });
  return copy(Vectors::to_write(from, to, targets), ::process_vm_writev);
}

bool ProcessMemory::write_staged(Bytes from, u64 to) {
  for (MutableBytes stage; !from.empty(); from = from.subspan(stage.size()), to += stage.size()) {
    stage = staging_.beside(to, from.size());
    if (!touch([&] { std::memcpy(stage.data(), from.data(), stage.size()); })) return false;
    if (!copy(Vectors::to_write(stage, to), ::process_vm_writev)) return false;
  }
  return true;
}

bool ProcessMemory::read_there(std::span<const PeerRange> from, const Targets& targets,
                               std::span<const MemoryPiece> to) {
  const bool is_staged = any_piece(to, from, targets, [](const MemoryPiece& piece, u64 address) {
    return Staging::suits(address_of(piece.data), address, piece.length_bytes);
  });
  if (is_staged)
    return all_pieces(to, targets, [this](const MemoryPiece& piece, u64 address) {
      return read_staged(address, {piece.data, piece.length_bytes});
    });
  return copy(Vectors::to_read(from, targets, to), ::process_vm_readv);
}

bool ProcessMemory::read_staged(u64 from, MutableBytes to) {
  for (MutableBytes stage; !to.empty(); to = to.subspan(stage.size()), from += stage.size()) {
    stage = staging_.beside(from, to.size());
    if (!copy(Vectors::to_read(from, stage), ::process_vm_readv)) return false;
    if (!touch([&] { std::memcpy(to.data(), stage.data(), stage.size()); })) return false;
  }
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
  const Passage passage(*this);
  const std::optional<u64> to = locate(region, offset, from.size(), Access::kLocalWrite);
  return to && copy(Vectors::to_write(from, *to), ::process_vm_writev);
}

bool ProcessMemory::read(const PublishedKey& region, u64 offset, MutableBytes to) {
  const Passage passage(*this);
  const std::optional<u64> from = locate(region, offset, to.size(), Access::kLocalRead);
  return from && copy(Vectors::to_read(*from, to), ::process_vm_readv);
}

}  // namespace verbena::host
