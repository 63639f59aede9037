// Device: one soft RNIC with one port. Packets, work requests and the time go in by calls; frames,
// completions and events are polled out. IBTA Vol 1, chapters 10 and 11.
//
// Sans-IO: no socket, clock, thread, lock, global or log sink; no allocation per packet.
// Same calls in the same order give the same outputs, bit for bit. One owner; not thread-safe.
// Contract: after any call that takes `now`, drain poll_frame(), poll_completion_event() and
// poll_async_event(), then re-read next_timer() and next_send(). (After modify_srq(),
// poll_async_event().) `now` never goes back.
//
// Objects are named by pointers that stay good until their destroy call. Calling with a pointer
// that was never returned, or was destroyed, is the caller's bug. Destroying an object that another
// one still uses is kBusy.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "base/status.h"
#include "congestion/congestion_control.h"
#include "device/device_config.h"
#include "device/objects/async_event.h"
#include "device/objects/cq_moderation.h"
#include "device/objects/notify_on.h"
#include "device/objects/object_info.h"
#include "device/objects/protection_domain.h"
#include "device/objects/srq_init.h"
#include "device/port/counters.h"
#include "device/port/frame.h"
#include "device/port/gsi.h"
#include "device/port/reception.h"
#include "device/qp/qp_init.h"
#include "device/qp/qp_modify.h"
#include "device/qp/qp_traffic.h"
#include "transport/engine.h"

namespace verbena {

class Streams;

class Device {
 public:
  explicit Device(const DeviceConfig& config);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  [[nodiscard]] const DeviceConfig& config() const;
  [[nodiscard]] const Counters& counters() const;  // sums over all QPs, also destroyed ones
  [[nodiscard]] ProtectionTable& memory();         // registration and windows: see its header

  // --- protection domains
  [[nodiscard]] Result<ProtectionDomain*> alloc_pd();
  [[nodiscard]] Status dealloc_pd(ProtectionDomain* pd);  // kBusy: MR, MW, QP or SRQ left in it

  // --- completion queues
  [[nodiscard]] Result<CompletionQueue*> create_cq(u32 min_cqe, void* user,
                                                   OnOverrun on_overrun = OnOverrun::kFail);
  [[nodiscard]] Status resize_cq(CompletionQueue* cq, u32 min_cqe);  // kInvalidArgument: holds more
  [[nodiscard]] Status destroy_cq(CompletionQueue* cq);
  [[nodiscard]] u32 poll_cq(CompletionQueue* cq, std::span<CQE> out);  // how many were taken
  // One event at the next fitting CQE, IBTA 11.4.2.2; or for one that is there already, if it still
  // is 1 ms later, or at hurry_leftovers(): for a program that sleeps now.
  void request_notification(CompletionQueue* cq, NotifyOn on, Time now);
  void hurry_leftovers();
  // Whether one is requested of any CQ and not due yet: a program may sleep until then.
  [[nodiscard]] bool has_requested_notification() const;
  void moderate_cq(CompletionQueue* cq, const CQModeration& moderation);
  [[nodiscard]] u32 capacity_of(const CompletionQueue* cq) const;
  [[nodiscard]] bool overrun(const CompletionQueue* cq) const;

  // --- shared receive queues
  [[nodiscard]] Result<SharedReceiveQueue*> create_srq(const SRQInit& init);
  // A limit arms kSRQLimitReached; it is due at once when fewer WQEs are left already. 0 disarms.
  // kInvalidArgument, and nothing changes: the depth would be below the limit or below the entries
  // that are not free, or beyond the device's.
  [[nodiscard]] Status modify_srq(SharedReceiveQueue* srq, const SRQModify& asked);
  [[nodiscard]] u32 srq_limit(const SharedReceiveQueue* srq) const;
  [[nodiscard]] const ReceiveQueueLimits& limits_of(const SharedReceiveQueue* srq) const;
  // Returns the number by which XRC requests name the SRQ. Other SRQs have one too.
  [[nodiscard]] u32 number_of(const SharedReceiveQueue* srq) const;
  [[nodiscard]] Status destroy_srq(SharedReceiveQueue* srq);
  [[nodiscard]] PostError post_srq_receive(SharedReceiveQueue* srq, const RecvWR& wr, Time now);

  // --- XRC domains
  [[nodiscard]] Result<XRCDomain*> open_xrcd();
  [[nodiscard]] Status close_xrcd(XRCDomain* xrcd);  // kBusy: QP or SRQ left in it

  // --- queue pairs
  [[nodiscard]] Result<QueuePair*> create_qp(const QPInit& init);
  // kInvalidArgument: a transition, attribute or value that is not allowed, and nothing has
  // changed; kNotSupported: automatic path migration.
  [[nodiscard]] Status modify_qp(QueuePair* qp, const QPModify& change, Time now);
  // kBusy: attached to a multicast group. Its completions that have not been polled go with it.
  [[nodiscard]] Status destroy_qp(QueuePair* qp);
  // `counter` outlives the QP. kInvalidArgument: not in Reset or Init; kBusy: one of these
  // operations has a counter already.
  [[nodiscard]] Status attach_counter(QueuePair* qp, std::span<const CountedOp> ops,
                                      CompletionCounter& counter);
  [[nodiscard]] const QPAttributes& attributes_of(const QueuePair* qp) const;
  [[nodiscard]] const QPInit& init_of(const QueuePair* qp) const;  // limits as granted
  // UD: goes from the GID table's entry wr.destination.source_gid_index; wr.destination.source is
  // not looked at.
  [[nodiscard]] PostError post_send(QueuePair* qp, const SendWR& wr, Time now);
  // The same where nothing is posted after it before poll_frame(): to a peer of this host it may go
  // at once.
  [[nodiscard]] PostError post_last_send(QueuePair* qp, const SendWR& wr, Time now);
  // All of them, or none.
  [[nodiscard]] PostError post_sends(QueuePair* qp, std::span<const SendWR> wrs, Time now);
  [[nodiscard]] PostError post_receive(QueuePair* qp, const RecvWR& wr, Time now);
  [[nodiscard]] QueuePair* find_qp(QPN qpn);  // nullptr if there is none

  // --- for observers
  // Returns the QP with the least number that is not below `from`, or nullptr.
  [[nodiscard]] const QueuePair* find_qp_from(QPN from) const;
  [[nodiscard]] u32 qp_count() const;
  [[nodiscard]] u32 object_count(ObjectKind kind) const;
  // Fills `out` with objects of the kind from `place` on, and returns how many they are. `place` is
  // then where the rest begins; kNoPlace: there is no more.
  [[nodiscard]] std::size_t list_objects(ObjectKind kind, u32& place,
                                         std::span<ObjectInfo> out) const;
  [[nodiscard]] QPTraffic traffic_of(const QueuePair* qp) const;
  // SQD: work that had started is not done yet.
  [[nodiscard]] bool is_draining(const QueuePair* qp) const;
  [[nodiscard]] EngineCounters counters_of(const QueuePair* qp) const;
  // Returns the known facts about the errors that have ended its work, for explanations.
  [[nodiscard]] const QPFault& fault_of(const QueuePair* qp) const;

  // Returns the present state, which gives the rate; nullopt if the QP goes as fast as it can.
  [[nodiscard]] const std::optional<CongestionControl>& congestion_of(const QueuePair* qp) const;

  // --- injected faults
  void fail_qp(QueuePair* qp, Time now);           // Error, as if its hardware had failed
  void overrun_cq(CompletionQueue* cq, Time now);  // as if one CQE too many had come

  // --- multicast. The driver has to see to it that frames for the group come.
  // UD only. kInvalidArgument: not UD, no multicast GID, or of an IP version without a GID here;
  // kNoMemory: a limit. It may be attached already.
  [[nodiscard]] Status attach_multicast(QueuePair* qp, const GID& group);
  [[nodiscard]] Status detach_multicast(QueuePair* qp, const GID& group);  // kInvalidArgument: not
  [[nodiscard]] bool receives_multicast(const GID& group) const;           // a QP is attached
  // Returns a group that the QP is attached to, or nullopt.
  [[nodiscard]] std::optional<GID> multicast_group_of(const QueuePair* qp) const;

  // --- byte streams, of an iWARP device: its QPs have no packets
  [[nodiscard]] Streams& streams();

  // --- management datagrams, by QP 1
  [[nodiscard]] bool poll_gsi(GSIMessage& out);  // a received one; returns false if there is none
  // From the path's source address. kAgain: too many wait to be sent.
  [[nodiscard]] Status post_gsi(const AddressVector& path, const MADBytes& mad);

  // --- the port
  Reception on_frame(const IngressFrame& frame, Time now);
  // The same for a packet that the driver vouches for and has decoded, as a simulated link does:
  // there is no ICRC, and of frame.transport only the size counts.
  Reception on_packet(const PacketView& packet, const IngressFrame& frame, Time now);
  void on_timer(Time now);  // at or after next_timer(); an early call does nothing
  // Does the deferred work (transport/engine.h): the program polls, or is about to sleep. Returns
  // false if nothing was deferred, always so if next_timer() is later than kDeferral from now.
  [[nodiscard]] bool run_deferred(Time now);
  [[nodiscard]] bool may_have_deferred() const;  // false if nothing is deferred
  // Returns false if there is nothing to send now. Frames of one QP come in runs, so that a link
  // can batch them. They may be trains if the caller asks for trains.
  [[nodiscard]] bool poll_frame(Time now, EgressFrame& out, Trains trains = Trains::kNo);
  // The same, but only frames that inform the peer: CNPs and, with AcknowledgementOrder::kFirst,
  // acknowledgements. For a driver whose data has to wait (PFC), or which has a queue for these.
  [[nodiscard]] bool poll_acknowledgement(Time now, EgressFrame& out);
  // Between the two the QP sends nothing but acknowledgements: PFC pauses the priority that it has.
  void pause(QueuePair* qp);
  void resume(QueuePair* qp);
  // Returns false if there is nothing to poll: no event, and no frame except of a QP that is held.
  [[nodiscard]] bool has_output() const;
  [[nodiscard]] bool has_frames() const;
  [[nodiscard]] bool has_events() const;
  [[nodiscard]] Time next_timer() const;  // Time::never(): nothing armed
  // When to try poll_frame() again, for a QP that is held to a rate; Time::never(): there is none.
  [[nodiscard]] Time next_send() const;
  // Returns the user pointer of a CQ whose notification is due, or nullopt.
  [[nodiscard]] std::optional<void*> poll_completion_event();
  [[nodiscard]] std::optional<AsyncEvent> poll_async_event();
  // For a driver of many devices, which knows whose turn is near: fetches into the cache what a
  // packet of that QP will need. Steps 0 .. kFetchSteps - 1, some time apart: each goes on from
  // what the one before it has fetched.
  static constexpr u32 kFetchSteps = 4;
  void fetch(u32 step, QPN qpn) const;
  // The user pointer given at creation, for events.
  [[nodiscard]] static void* user_of(const QueuePair* qp);
  [[nodiscard]] static void* user_of(const CompletionQueue* cq);
  [[nodiscard]] static void* user_of(const SharedReceiveQueue* srq);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace verbena
