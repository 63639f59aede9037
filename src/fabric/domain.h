// Domain: the part of a network that one thread simulates: its events, its frames and its counters.
// Nothing in it is shared with another domain. Frames that go over a link to another domain are put
// in an outbox, which the other domain empties before the next window.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "device/port/frame.h"
#include "fabric/event_queue.h"
#include "fabric/frame_pool.h"
#include "fabric/sent_frame.h"
#include "fabric/trace_buffer.h"
#include "transport/stream_gather.h"

namespace verbena::fabric {

// Outbox: frames on their way to another domain, with their arrivals, and signals.
struct Outbox {
  std::vector<Event> arrivals;
  std::vector<Event> signals;
  std::vector<Frame> frames;
  std::vector<PathTelemetry> paths;       // where they are collected
  u64 first_window = EventQueue::kNever;  // in which any of it is due

  void clear() {
    arrivals.clear();
    signals.clear();
    frames.clear();
    paths.clear();
    first_window = EventQueue::kNever;
  }
};

// ConnectionRequest: a request of a host for one of its connections, executed between windows.
struct ConnectionRequest {
  enum class Kind : u8 { kOpen, kSend, kClose };
  Kind kind = Kind::kOpen;
  u32 connection = 0;
  u32 bytes = 0, word = 0;  // kSend
};

class Domain {
 public:
  Domain(const Windows& windows, std::span<const u32> node_of_place, u32 its_number, u32 domains)
      : events(windows, node_of_place),
        number(its_number),
        outboxes_{Boxes(domains), Boxes(domains)} {}

  EventQueue events;
  FramePool frames;
  Time now;
  Duration known_since = sec(1);  // what happens now has been certain for so long: port.h
  Time latest;                    // of all events so far
  Counters counters;
  TraceBuffer told;  // in this window
  std::vector<SentFrame> tapped;
  std::vector<ConnectionRequest> requests;  // in this window
  // State of the host being simulated: one for all hosts, which stays in the cache.
  PacketView arrived;
  EgressFrame leaving;
  std::unique_ptr<StreamGather> gathered;  // nullptr if no host has needed it
  Trace* trace = &told;
  const u32 number;

  // --- to and from other domains. While one box of a pair is filled, the other can be emptied.
  [[gnu::noinline]] void hand_over(u32 domain, const Event& arrival) {
    Outbox& box = outboxes_[filling_][domain];
    box.arrivals.push_back(arrival);
    box.frames.push_back(frames[arrival.subject]);
    if (frames.has_paths()) {
      box.paths.resize(box.frames.size());
      box.paths.back() = frames.path(arrival.subject);
    }
    box.first_window = std::min(box.first_window, events.window_at_neighbour(arrival));
    frames.give_back(arrival.subject);
  }
  void hand_over_signal(u32 domain, const Event& signal) {
    Outbox& box = outboxes_[filling_][domain];
    box.signals.push_back(signal);
    box.first_window = std::min(box.first_window, events.window_of(signal.at, signal.place()));
  }
  void change_boxes() { filling_ ^= 1; }
  // Returns the outbox filled since the last change.
  [[nodiscard]] const Outbox& filled_for(u32 domain) const { return outboxes_[filling_][domain]; }
  // Returns the outbox filled until the last change.
  [[nodiscard]] Outbox& to_empty_for(u32 domain) { return outboxes_[filling_ ^ 1u][domain]; }
  void accept(Outbox& box) {
    for (std::size_t i = 0; i < box.arrivals.size(); ++i) {
      Event arrival = box.arrivals[i];
      arrival.subject = frames.take();
      frames[arrival.subject] = box.frames[i];
      if (i < box.paths.size()) frames.path(arrival.subject) = box.paths[i];
      events.add(arrival);
    }
    for (const Event& signal : box.signals) events.add(signal);
    box.clear();
  }

 private:
  using Boxes = std::vector<Outbox>;
  std::array<Boxes, 2> outboxes_;  // by domain
  u32 filling_ = 0;
};

}  // namespace verbena::fabric
