// Link: how RoCE frames leave and reach this host. The adapter feeds the device from it; a link
// calls nobody. Not thread-safe: the adapter's lock guards it.
#pragma once

#include <optional>
#include <span>

#include "base/time.h"
#include "device/port/frame.h"
#include "host/os/error.h"

namespace verbena::host {

struct LinkCounters {
  u64 sent_frames = 0, sent_bursts = 0;  // a burst is one or more frames in one datagram call
  u64 send_dropped = 0;                  // frames that the network would not take in time
  u64 segmentation_refused = 0;          // bursts the kernel would not cut; sent one by one instead
  u64 received_frames = 0, received_datagrams = 0;
  u64 receive_dropped = 0;            // truncated, or for a process that is gone
  u64 handed_on = 0, taken_over = 0;  // frames that first reached the wrong process of this host
  // Where the link encrypts. Frames:
  u64 encrypted = 0, decrypted = 0;
  u64 refused_unencrypted = 0;  // no encrypted packet
  u64 refused_spi = 0;          // of no association that this host knows
  u64 refused_source = 0;       // of an association of other addresses
  u64 refused_icv = 0;          // not authentic
  u64 refused_replay = 0;       // that were there before
  u64 refused_vni = 0;          // of no packet of this link's virtual network
  u64 refused_vlan = 0;         // without the tag of this link's VLAN
  // Handshakes for keys: this host got a key, gave one, got none, gave none.
  u64 keys_agreed = 0, keys_issued = 0, key_failures = 0, key_refusals = 0;
};

// Listening: whether a thread sleeps until descriptors() are readable.
enum class Listening { kNo, kYes };

// Where receive() looks.
enum class Look {
  kLikely,     // sources that have been quiet are only looked at now and then
  kEverywhere  // all; nothing found means nothing was there
};

class Link {
 public:
  virtual ~Link() = default;

  // Takes a frame for sending. Its payload may be read until flush() returns.
  virtual void append(const EgressFrame& frame) = 0;
  // Whether it may be a train of frames.
  [[nodiscard]] virtual Trains takes() const { return Trains::kNo; }
  virtual void flush() = 0;  // sends all that was appended; bounded in time
  // Whether all that was appended may wait for the next flush(), and none of it is read any more.
  [[nodiscard]] virtual bool may_wait() const { return false; }

  // Receives one batch of pending frames, without blocking. The previous batch must have been
  // polled out. Returns false if nothing was pending where it looked.
  [[nodiscard]] virtual bool receive(Look look) = 0;
  // Takes the next frame of the batch, valid until the next call of this or receive(). Returns
  // false if there are no more.
  [[nodiscard]] virtual bool poll_frame(IngressFrame& out, Time now) = 0;
  // Returns the packet of the frame polled last, if the link answers for it: it has no ICRC, and of
  // frame.transport only the size counts. Returns nullptr if it is to be checked and decoded.
  [[nodiscard]] virtual const PacketView* decoded() const { return nullptr; }
  // Returns the destination QP of the frame that comes so many after the one polled last; 0 if it
  // is unknown.
  [[nodiscard]] virtual QPN upcoming(u32) const { return {}; }
  // When poll_frame() has one that did not come just now; never(): none waits.
  [[nodiscard]] virtual Time next_timer() const { return Time::never(); }
  // Readable when receive() would find something. The same ones for the whole life of the link.
  [[nodiscard]] virtual std::span<const int> descriptors() const = 0;
  // May be called repeatedly. Returns true if receive() would find frames that make no descriptor
  // readable.
  [[nodiscard]] virtual bool on_listening(Listening) { return false; }
  // Whether it may have called the kernel since the last question, so that time has gone by.
  [[nodiscard]] virtual bool take_called() { return true; }

  // From now on, receives the frames for an IP multicast group, until it leaves the group. Joined
  // once.
  [[nodiscard]] virtual Expected<void> join_multicast(const GID& group) = 0;
  virtual void leave_multicast(const GID& group) = 0;

  // Goes away from the network, so that other processes' traffic is not disturbed by our end.
  // Afterwards nothing is sent or received.
  virtual void leave() = 0;
  // In a child after fork(): closes our copies of the descriptors, and says nothing to anybody.
  virtual void abandon() = 0;

  [[nodiscard]] virtual const LinkCounters& counters() const = 0;
};

}  // namespace verbena::host
