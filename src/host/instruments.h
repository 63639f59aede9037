// Instruments: the tools that a user attaches to one adapter, for faults or observation: fault
// rules, a capture, explanations of errors. They stand on the adapter's link, or on its streams, in
// this order: QPs, faults, capture, wire. Not thread-safe: the adapter's lock guards it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "host/capture/capture_file.h"
#include "host/explain/explainer.h"
#include "host/links/faulty_link.h"
#include "host/local/local_path.h"
#include "host/os/quick_clock.h"
#include "host/stream_side.h"

namespace verbena::host {

class Instruments {
 public:
  // The adapter's; they outlive this. `link` is replaced by one that stands on it. `local`: nullptr
  // where there is no path to peers on this host.
  Instruments(Device& device, std::unique_ptr<Link>& link, LocalPath* local, QuickClock& clock)
      : device_(device), link_(link), local_(local), clock_(clock) {}

  // QPs have TCP connections: before all other calls.
  void use_streams(StreamSide* streams) { streams_ = streams; }

  // Captures all frames from now on. `file` outlives this. Once, before set_faults().
  void capture_to(CaptureFile& file, const std::string& interface);
  // From now on, explains why work ended in error. Call it once, before set_faults(). nullptr means
  // no explanations.
  void explain_with(std::unique_ptr<Explainer> explainer);
  // Replaces the earlier rules. EINVAL: a rule has no meaning on this device.
  [[nodiscard]] Expected<void> set_faults(std::vector<faults::Rule> rules, u64 seed, Time now);

  [[nodiscard]] faults::FaultFilter* filter();  // nullptr: there are no rules
  [[nodiscard]] Explainer* explainer() const { return explainer_.get(); }

  // Breaks the objects that rules have named since the last call. Returns false if there were none.
  // `now` is the time of the device's clock.
  bool fail_objects(Time now);
  void note_sent(const EgressFrame& frame, Time now) {
    if (explainer_ != nullptr) explainer_->history().on_sent(frame, now);
  }
  void note_received(const IngressFrame& frame, Reception reception, Time now) {
    if (explainer_ != nullptr) add_to_history(frame, reception, now);
  }

 private:
  [[nodiscard]] Expected<void> set_stream_faults(std::vector<faults::Rule> rules, u64 seed,
                                                 Time now);
  void choose_path();
  void add_to_history(const IngressFrame& frame, Reception reception, Time now);
  void note_object_fault(const ObjectFault& fault, const QueuePair* qp);
  [[nodiscard]] std::optional<ObjectFault> poll_object_fault();
  [[nodiscard]] std::optional<QPN> peer_of(QPN local) const;
  [[nodiscard]] DropListener drop_listener();
  void drop_to_capture(faults::Direction direction, const faults::HeldFrame& frame,
                       std::string_view cause);
  void drop_to_history(faults::Direction direction, const faults::HeldFrame& frame,
                       std::string_view cause);

  Device& device_;
  std::unique_ptr<Link>& link_;
  LocalPath* const local_;
  QuickClock& clock_;
  StreamSide* streams_ = nullptr;
  FaultyLink* faulty_ = nullptr;  // link_, where there are rules
  bool stream_faults_ = false;    // the same, of streams_
  CaptureFile* capture_ = nullptr;
  u32 capture_interface_ = 0;
  std::unique_ptr<Explainer> explainer_;
};

}  // namespace verbena::host
