// CMAgent: communication management of one process on one device: its listeners, connections and
// SIDR exchanges. MADs and calls in, MADs and events out. IBTA Vol 1, chapter 12, with state
// diagrams in 12.9.5 to 12.9.7. Where the specification leaves a choice, the agent does as Linux
// (drivers/infiniband/core/cm.c), because Linux is the peer.
//
// Sans-IO: no socket, clock, thread, lock, global or log sink. Allocates for a connection and its
// place in the tables, never for a MAD that matches none. Same calls in the same order give the
// same outputs, bit for bit. One owner; not thread-safe.
//
// Contract: after any call, drain poll_mad() and poll_event(), then re-read next_timer(). If a
// driver does not drain, MADs are lost (counters().output_drops), which the peer repeats, but never
// events. `now` never goes back.
//
// The life of a connection (kDREQSent and kDREQReceived may cross; then both go to kTimeWait):
//   connect -> kREQSent -> ReplyReceived -> ready_to_use -> kEstablished
//   ConnectRequest -> accept -> kREPSent -> Established, or establish -> kEstablished
//   disconnect -> kDREQSent -> Disconnected -> kTimeWait -> TimeWaitExit
//   Disconnected -> reply_disconnect -> kTimeWait -> TimeWaitExit
//
// Before kEstablished, Rejected or Unreachable end it instead. Exactly one of ReplyReceived,
// Rejected and Unreachable answers connect(); exactly one of Established, Rejected, Unreachable and
// Disconnected answers accept(), unless establish() did.
//
// An ID is dead after reject(), abandon(), sidr_reply() and the events that say so: calls with it
// return kNotFound. A call that the state does not allow returns kInvalidArgument and has no
// effect.
#pragma once

#include <optional>
#include <span>

#include "base/prng.h"
#include "base/ring.h"
#include "base/status.h"
#include "base/time.h"
#include "connect/cm_config.h"
#include "connect/cm_counters.h"
#include "connect/cm_event.h"
#include "connect/cm_params.h"
#include "connect/connection_table.h"
#include "connect/listener_table.h"
#include "connect/mad_frame.h"

namespace verbena {

class CMAgent {
 public:
  explicit CMAgent(const CMConfig& config);
  CMAgent(const CMAgent&) = delete;
  CMAgent& operator=(const CMAgent&) = delete;

  // Returns kBusy if a listener with the same parameters exists, kNoMemory beyond max_listeners.
  [[nodiscard]] Result<ListenerId> listen(const ListenParams& params);
  // Requests that were reported remain.
  [[nodiscard]] Status unlisten(ListenerId id);

  // Active side. Returns kNoMemory beyond max_connections.
  [[nodiscard]] Result<CommId> connect(const ConnectParams& params, Time now);
  // The QP can receive and send: sends the RTU.
  [[nodiscard]] Status ready_to_use(CommId id, std::span<const u8> private_data);

  // Passive side. The program has taken the request from its queue, so the request no longer counts
  // against the backlog. accept(), reject(), sidr_reply() and abandon() imply it.
  [[nodiscard]] Status take_request(CommId id);
  [[nodiscard]] Status accept(CommId id, const AcceptParams& params, Time now);
  // The QP has received a packet: the peer is ready although its RTU has not arrived. 12.9.8.1.
  // Returns kBusy if the connection is established.
  [[nodiscard]] Status establish(CommId id);

  // Both sides.
  [[nodiscard]] Status mra(CommId id, const MRAParams& params);
  [[nodiscard]] Status reject(CommId id, const RejectParams& params, Time now);
  [[nodiscard]] Status disconnect(CommId id, std::span<const u8> private_data, Time now);
  [[nodiscard]] Status reply_disconnect(CommId id, std::span<const u8> private_data, Time now);
  // The program has ended: ends the connection as politely as its state allows, and reports no
  // more.
  [[nodiscard]] Status abandon(CommId id, Time now);

  // SIDR, for UD. 12.11.
  [[nodiscard]] Result<CommId> sidr_request(const SIDRRequestParams& params, Time now);
  [[nodiscard]] Status sidr_reply(CommId id, const SIDRReplyParams& params, Time now);

  void on_mad(const MADFrame& frame, Time now);
  void on_timer(Time now);  // at or after next_timer(); an early call does nothing
  [[nodiscard]] bool has_output() const { return !mads_.empty() || !events_.empty(); }
  [[nodiscard]] bool poll_mad(MADOut& out);  // returns false if there is none
  [[nodiscard]] std::optional<CMEvent> poll_event();
  [[nodiscard]] Time next_timer() const { return connections_.next_deadline(); }

  [[nodiscard]] const CMCounters& counters() const { return counters_; }
  // Returns the number of connections in all states, lingering ones included.
  [[nodiscard]] std::size_t connections() const { return connections_.size(); }

 private:
  struct Incoming {  // the MAD that is being handled
    const MADFrame& frame;
    u64 transaction_id;
    u32 attribute_modifier;
    Time now;
  };
  using What = decltype(CMEvent::what);

  // cm_agent.cc: functions that all parts use
  CMConnection* visible(CommId id);
  CMConnection* matched(const Incoming& in, CommId ours, CommId theirs);
  CMConnection* from_peer(const Incoming& in, CMConnection* connection);
  bool make_room();
  CMConnection& add_connection();
  void send(CMConnection& connection, const cm::Body& body, u32 attribute_modifier = 0);
  void prepare(CMConnection& connection, const cm::Body& body, u32 attribute_modifier = 0);
  void send_again(const CMConnection& connection);
  void answer(const Incoming& in, const cm::Body& body);
  void transmit(const GID& source, const GID& destination, const cm::MADBytes& mad);
  void tell(const CMConnection& connection, const What& what);
  void await_answer(CMConnection& connection, Time now);
  void stop_waiting(CMConnection& connection);
  void retire(CMConnection& connection, Time now);
  void expire(CMConnection& connection, Time now);
  void give_up(CMConnection& connection, Time now);

  // cm_agent_active.cc
  bool adopt_reply(const Incoming& in, const cm::REP& rep, CMConnection& connection);
  void repeat_for_rep(const CMConnection& connection);
  void on_message(const Incoming& in, const cm::REP& rep);

  // cm_agent_passive.cc
  std::optional<cm::RejectReason> refusal(const Incoming& in, const cm::REQ& req,
                                          const Listener* listener);
  void repeat_for_req(const CMConnection& connection);
  void add_request(const Incoming& in, const cm::REQ& req, Listener& listener);
  void on_message(const Incoming& in, const cm::REQ& req);
  void on_message(const Incoming& in, const cm::RTU& rtu);

  // cm_agent_refuse.cc: REJ, MRA and stale connections
  void refuse(CMConnection& connection, const RejectParams& params, Time now);
  void refuse_for_timeout(CMConnection& connection, Time now);
  void drop_stale(CMConnection& connection, Time now);
  CMConnection* rejected(const Incoming& in, const cm::REJ& rej);
  void ask_again(CMConnection& c, Time now);
  void on_message(const Incoming& in, const cm::REJ& rej);
  void on_message(const Incoming& in, const cm::MRA& mra);

  // cm_agent_release.cc: DREQ, DREP, TimeWait; LAP and APR
  void send_dreq(CMConnection& connection, std::span<const u8> private_data, Time now);
  void send_drep(CMConnection& connection, std::span<const u8> private_data, Time now);
  void disconnected(CMConnection& connection, const Disconnected& what);
  void enter_time_wait(CMConnection& connection, Time now);
  void on_message(const Incoming& in, const cm::DREQ& dreq);
  void on_message(const Incoming& in, const cm::DREP& drep);
  void on_message(const Incoming& in, const cm::LAP& lap);
  void on_message(const Incoming& in, const cm::APR& apr);

  // cm_agent_sidr.cc
  void answer_sidr(CMConnection& connection, const SIDRReplyParams& params, Time now);
  void on_message(const Incoming& in, const cm::SIDRREQ& req);
  void on_message(const Incoming& in, const cm::SIDRREP& rep);

  const CMConfig config_;
  const CommIdSpace comm_ids_;
  PRNG prng_;
  ListenerTable listeners_;
  ConnectionTable connections_;
  Ring<MADOut> mads_;
  Ring<CMEvent> events_;
  CMCounters counters_;
};

}  // namespace verbena
