// Work requests of verbs as those of the core. ibv_post_send(3), ibv_post_recv(3).
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <bit>
#include <span>

#include "transport/work_request.h"

namespace verbena::abi {

// Both have the same layout. As a whole: what is copied at once, soon after it was made field by
// field, is waited for.
constexpr SGE to_sge(const ibv_sge& sge) { return std::bit_cast<SGE>(sge); }
static_assert(to_sge({.addr = 1, .length = 2, .lkey = 3}) == SGE{1, 2, LKey{3}});

// The scatter/gather list of one request, in the core's form. One is made per call and filled per
// request, so nothing is initialized.
class SGEList {
 public:
  SGEList() {}
  // Returns false if `count` is negative, or more than any request may have.
  [[nodiscard]] bool assign(const ibv_sge* list, int count) {
    if (count < 0 || static_cast<u32>(count) > kMaxSGE) return false;
    for (count_ = 0; count_ < static_cast<u32>(count); ++count_)
      sges_[count_] = to_sge(list[count_]);
    return true;
  }
  [[nodiscard]] std::span<const SGE> sges() const { return {sges_.data(), count_}; }

 private:
  u32 count_ = 0;
  union {
    std::array<SGE, kMaxSGE> sges_;
  };
};

// A request in the core's form. Only what is of its operation and service is ever set, and nothing
// is initialized before: most of it is of few requests.
union SendWRRoom {
  SendWRRoom() {}
  SendWR wr;
};

// Sets what every operation has, by the bits of ibv_send_flags.
void set_flags(SendRequest& wr, unsigned send_flags);

// Returns the region, range and rights that the window is bound to.
[[nodiscard]] MWBind to_mw_bind(const ibv_mw_bind_info& info);

// Translates all but the scatter/gather list, which `sges` takes. Returns kOk, or why the request
// cannot be posted. `to` may be uninitialized: its UDDestination is set for UD alone, and its
// WindowBinding for binds alone.
[[nodiscard]] PostError translate(const ibv_qp& qp, const ibv_send_wr& from, SGEList& sges,
                                  SendWR& to);
[[nodiscard]] PostError translate(const ibv_recv_wr& from, SGEList& sges, RecvWR& to);

}  // namespace verbena::abi
