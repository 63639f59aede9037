// LocalCounts: the operations that peers of this host have done on each QP of a device without
// packets. The peers count them in memory that they share with the device's process, which reads
// the counts for its statistics. Nothing else depends on them. In zeroed memory all counts are 0.
#pragma once

#include <array>
#include <atomic>

#include "transport/local/published_qps.h"

namespace verbena {

struct LocalWork {
  u64 writes = 0, write_packets = 0, write_bytes = 0;  // packets that copies replaced
  u64 reads = 0, read_packets = 0, read_bytes = 0;
};

class LocalCounts {
 public:
  // A QP has one peer, so its counts have one writer.
  void add(QPN qpn, const LocalWork& more) {
    Place& place = places_[qpn.value % PublishedQPs::kPlaces];
    add(place.writes, more.writes);
    add(place.write_packets, more.write_packets);
    add(place.write_bytes, more.write_bytes);
    add(place.reads, more.reads);
    add(place.read_packets, more.read_packets);
    add(place.read_bytes, more.read_bytes);
  }
  [[nodiscard]] LocalWork of(QPN qpn) const {
    const Place& place = places_[qpn.value % PublishedQPs::kPlaces];
    return {.writes = place.writes.load(std::memory_order_relaxed),
            .write_packets = place.write_packets.load(std::memory_order_relaxed),
            .write_bytes = place.write_bytes.load(std::memory_order_relaxed),
            .reads = place.reads.load(std::memory_order_relaxed),
            .read_packets = place.read_packets.load(std::memory_order_relaxed),
            .read_bytes = place.read_bytes.load(std::memory_order_relaxed)};
  }
  void clear(QPN qpn) {
    Place& place = places_[qpn.value % PublishedQPs::kPlaces];
    for (std::atomic<u64>* const count : {&place.writes, &place.write_packets, &place.write_bytes,
                                          &place.reads, &place.read_packets, &place.read_bytes})
      count->store(0, std::memory_order_relaxed);
  }

 private:
  struct Place {
    std::atomic<u64> writes, write_packets, write_bytes, reads, read_packets, read_bytes;
  };
  static void add(std::atomic<u64>& count, u64 more) {
    count.store(count.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
  }

  std::array<Place, PublishedQPs::kPlaces> places_;
};

}  // namespace verbena
