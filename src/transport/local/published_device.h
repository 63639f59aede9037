// PublishedDevice: the facts that a device publishes for other processes of its host, in shared
// memory: QPs that accept requests, and keys. LocalPorts: the objects by which a driver lets a
// device's QPs work without packets.
#pragma once

#include "memory/published_keys.h"
#include "transport/local/local_counts.h"
#include "transport/local/local_packets.h"
#include "transport/local/local_progress.h"
#include "transport/local/published_qps.h"
#include "transport/peer_memory.h"

namespace verbena {

struct PublishedDevice {
  PublishedKeys keys;
  PublishedQPs qps;
  LocalProgress progress;
};

struct LocalPorts {
  KeyPublisher* keys = nullptr;       // nullptr: nothing can be imported
  QPPublisher* qps = nullptr;         // nullptr: peers on the host send packets
  LocalProgress* progress = nullptr;  // nullptr: peers wait for acknowledgements
  PeerMemoryFinder* peers = nullptr;  // nullptr: we send packets
  LocalCounts* counts = nullptr;      // nullptr with `qps`
  LocalPackets* packets = nullptr;    // nullptr: each packet is a frame
};

}  // namespace verbena
