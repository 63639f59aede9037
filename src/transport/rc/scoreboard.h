// Scoreboard: the state of the packets that a requester with selective repeat has in flight, and
// which of them are lost. After the scoreboard of RFC 6675, 4, with IRN's rule: only packets that
// later ones have overtaken are lost (Mittal et al., SIGCOMM 2018, 3.1); and RACK's rule for
// repeated packets (RFC 8985, 3): one is lost again when a packet that was sent after it has
// arrived.
//
// For a request that an ACK answers, the scoreboard records whether the peer has it: executed, or
// kept. READs, atomics, FLUSHes and ATOMIC WRITEs are answered by their responses: it records which
// responses have arrived, PSN by PSN. Until the peer has executed such a request, it also records
// whether the peer has it.
//
// Four marks, all inside unacked .. frontier of the requester:
//   executed      the peer has executed all before it
//   kept_end      after the last that the peer is known to have
//   answered_end  after the last PSN for which the peer has sent an answer
//   forced_end    unconfirmed packets before it are repeated, overtaken or not
// Three bits a packet from construction; other memory is allocated at the first loss.
#pragma once

#include <memory>

#include "transport/rc/psn_set.h"
#include "wire/ib/sack_eth.h"

namespace verbena {

class Scoreboard {
 public:
  // `reordering_packets`: by how many later ones a packet may be overtaken without being lost.
  Scoreboard(u32 window_packets, u32 reordering_packets);
  void reset(PSN first);

  // --- the peer's answers
  void on_executed(PSN end);  // all before `end`
  // `psn` is the oldest that the peer lacks: a packet that it had kept and could not execute is
  // gone.
  void on_missing(PSN psn);
  void on_heard(PSN end);  // an answer about a PSN before `end`: earlier answers are due
  // Records all kept packets before `frontier`. Returns false if nothing is new.
  [[nodiscard]] bool on_sack(const SackETH& sack, PSN frontier);
  void on_answer(PSN psn) { answered_.add(psn); }  // the response has arrived

  // --- the requester's actions
  void on_sent(PSN psn) { last_sent_ = psn; }  // for the first time
  void on_resent(PSN psn, u32 psns, PSN frontier);
  void on_acknowledged(PSN psn, u32 psns);  // completed
  void force(PSN end);                      // after silence, or after a peer has asked for a pause

  // --- conclusions
  [[nodiscard]] PSN executed() const { return executed_; }
  [[nodiscard]] bool is_executed(PSN psn) const { return psn.before(executed_); }
  [[nodiscard]] bool has_answer(PSN psn) const { return answered_.has(psn); }
  // Returns true if the peer has the request that begins at this PSN.
  [[nodiscard]] bool is_there(PSN psn) const { return is_executed(psn) || kept_.has(psn); }
  [[nodiscard]] bool was_resent(PSN psn) const { return resent_.has(psn); }
  // Returns true if the request, or its answer although the peer has executed it, is lost.
  [[nodiscard]] bool request_is_lost(PSN psn) const;
  [[nodiscard]] bool answer_is_lost(PSN psn, PSN frontier) const;

 private:
  bool is_forced(PSN psn) const { return psn.before(forced_end_) && !resent_.has(psn); }
  bool is_overtaken(PSN psn, PSN end) const;

  const u32 window_, reordering_;
  PSNSet kept_, answered_, resent_;
  std::unique_ptr<PSN[]> resent_before_;  // by slot: the frontier when the packet was repeated
  PSN executed_, kept_end_, answered_end_, forced_end_, last_sent_;
};

}  // namespace verbena
