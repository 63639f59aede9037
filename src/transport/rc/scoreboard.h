// Scoreboard: what a requester with selective repeat knows of the packets that it has in flight,
// and which of them are lost. After the scoreboard of RFC 6675, 4, with IRN's rule: only what later
// packets have overtaken (Mittal et al., SIGCOMM 2018, 3.1), and RACK's for what was sent again
// (RFC 8985, 3): it is lost again when something that was sent after it has come.
//
// Of a request that an ACK answers it counts whether the peer has it: executed, or kept. Of READs,
// atomics and their like, which answer themselves, whether the answer has come, PSN by PSN; and
// until the peer has executed the request, whether it has that.
//
// Four marks, all inside unacked .. frontier of the requester:
//   executed      the peer has executed all before it
//   kept_end      after the last that the peer is known to have
//   answered_end  after the last that an answer of the peer was about
//   forced_end    what is before it and not known to have come goes again, overtaken or not
// Three bits a packet from construction; what else is needed is taken at the first loss.
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

  // --- what the peer says
  void on_executed(PSN end);  // all before `end`
  // The oldest that it has not: one that it had kept and could not execute is gone.
  void on_missing(PSN psn);
  void on_heard(PSN end);  // an answer about what is before `end`: earlier answers are due
  // All kept that lies before `frontier`. False: nothing new.
  [[nodiscard]] bool on_sack(const SackETH& sack, PSN frontier);
  void on_answer(PSN psn) { answered_.add(psn); }  // has come

  // --- what the requester does
  void on_sent(PSN psn) { last_sent_ = psn; }  // for the first time
  void on_resent(PSN psn, u32 psns, PSN frontier);
  void on_acknowledged(PSN psn, u32 psns);  // done with
  void force(PSN end);                      // silence, or a peer that asked us to wait

  // --- what follows
  [[nodiscard]] PSN executed() const { return executed_; }
  [[nodiscard]] bool is_executed(PSN psn) const { return psn.before(executed_); }
  [[nodiscard]] bool has_answer(PSN psn) const { return answered_.has(psn); }
  // The peer has the request that begins at this PSN.
  [[nodiscard]] bool is_there(PSN psn) const { return is_executed(psn) || kept_.has(psn); }
  [[nodiscard]] bool was_resent(PSN psn) const { return resent_.has(psn); }
  // Of a request that is not there, or of an answer that has not come although it was executed.
  [[nodiscard]] bool request_is_lost(PSN psn) const;
  [[nodiscard]] bool answer_is_lost(PSN psn, PSN frontier) const;

 private:
  bool is_forced(PSN psn) const { return psn.before(forced_end_) && !resent_.has(psn); }
  bool is_overtaken(PSN psn, PSN end) const;

  const u32 window_, reordering_;
  PSNSet kept_, answered_, resent_;
  std::unique_ptr<PSN[]> resent_before_;  // by slot: the frontier when it was sent again
  PSN executed_, kept_end_, answered_end_, forced_end_, last_sent_;
};

}  // namespace verbena
