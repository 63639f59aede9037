// Ledger: a program's use of the verbs so far, and the errors in it. Calls come in as the program
// makes them; findings are polled out. docs/check.md describes each check.
//
// Sans-IO: no clock, thread, lock or log. It reads the program's memory (memory/touch.h), writes
// none, and asks the device nothing. One owner; not thread-safe. It allocates: it exists only when
// a program is checked.
//
// The caller names objects by pointers that are unique at any time. Work for an unknown object is
// ignored.
#pragma once

#include <map>
#include <string>
#include <unordered_map>

#include "check/findings.h"
#include "check/memory_in_use.h"
#include "check/regions.h"
#include "check/settings.h"
#include "check/work_queue.h"
#include "memory/write_log.h"
#include "transport/cqe.h"
#include "transport/qp_attributes.h"
#include "transport/work_request.h"

namespace verbena::check {

using Handle = const void*;

struct QPName {
  DeviceId device = nullptr;
  QPN qpn;
  friend auto operator<=>(const QPName& a, const QPName& b) {
    return std::pair(a.device, a.qpn.value) <=> std::pair(b.device, b.qpn.value);
  }
};

struct QPFacts {
  PDId pd;
  Handle send_cq = nullptr, receive_cq = nullptr;
  Handle srq = nullptr;  // nullptr: its own receive queue
  u32 send_depth = 0;
  bool signal_all = false;
  bool is_datagram = false;  // the peer's answer shows that unsignaled sends have left
};

class Ledger {
 public:
  explicit Ledger(const Settings& settings) : settings_(settings) {}

  // --- memory
  void on_region(DeviceId device, LKey key, const Region& region);
  // Returns the QPs whose work in flight names the key. They may have entered Error by themselves:
  // on_qp_state().
  [[nodiscard]] std::vector<QPN> users_of(DeviceId device, LKey key) const;
  void on_deregister(DeviceId device, LKey key, const Site& at);
  void on_region_changed(DeviceId device, LKey old_key, LKey key, const Region& region);
  [[nodiscard]] const Region* find_region(DeviceId device, LKey key) const {
    return regions_.find(device, key);
  }

  // --- queues
  void on_cq(Handle cq, u32 capacity);  // created or resized; 0: may overrun
  void on_cq_gone(Handle cq) { cqs_.erase(cq); }
  void on_srq(Handle srq, DeviceId device, PDId pd, u32 number);
  void on_srq_gone(Handle srq);
  void on_qp(const QPName& name, const QPFacts& facts);
  void on_qp_gone(const QPName& name);
  void on_qp_state(const QPName& name, QPState to);
  void on_refused_transition(QPState from, QPState to, const Site& at);

  // --- work. `written`: the device's log of peers' writes until then.
  void on_send(const QPName& name, const SendWR& wr, const WriteLog& written, const Site& at);
  void on_receive(const QPName& name, const RecvWR& wr, const Site& at);
  void on_srq_receive(Handle srq, const RecvWR& wr, const Site& at);
  void on_refused(const QPName& name, PostError error, QPState state, const Site& at);
  void on_polled(DeviceId device, const CQE& cqe, const WriteLog& written, const Site& at);
  // The number of RNR NAKs that the QP has sent in its life; to be called before on_qp_gone().
  void on_rnr_naks(const QPName& name, u64 count, const Site& at);

  // --- objects
  void on_created(Handle object, std::string_view kind, const Site& at);
  void on_destroyed(Handle object) { objects_.erase(object); }
  void on_left_behind(Handle object);  // destroyed with its context
  void on_slow_destruction(std::string_view kind, u64 events, const Site& at);
  struct Object {
    std::string kind;
    Site created;
  };
  [[nodiscard]] std::vector<Object> left() const;  // objects that the program never destroyed

  [[nodiscard]] std::optional<Finding> poll_finding() { return findings_.poll(); }

 private:
  struct CQ {
    u32 capacity = 0;
    u64 pending = 0;  // completions that may come, or that came and were not polled
  };
  struct SRQ {
    DeviceId device = nullptr;
    PDId pd;
    u32 number = 0;
    WorkQueue receives;
    Handle cq = nullptr;  // the CQ of all its receives, if known
    bool several_cqs = false;
    bool lost_some = false;  // a queue pair was destroyed, and perhaps receives with it
  };
  struct QP {
    QPFacts facts;
    WorkQueue sends, receives;
    std::map<u32, Site> invalidated;  // R_Keys; the peer has sent nothing since
    bool failed = false;              // in Error: the remaining work is only flushed
    bool ever_received = false;       // had a receive posted
  };

  // The time and place of a poll, for checks of other work.
  struct Moment {
    const WriteLog& written;
    const Site& at;
  };

  template <typename Visit>
  void for_each_work(Visit visit);
  void check_memory(DeviceId device, PDId pd, Work& work);
  void check_mapped(DeviceId device, const Work& work);
  void check_keys(DeviceId device, PDId pd, const Work& work);
  void check_alignment(const QPName& name, const SendWR& wr, const Site& at);
  void check_reclaimable(const QP& qp, const QPName& name, const Site& at);
  void check_unchanged(const QPName& name, const Work& work, const Moment& now);
  void check_still_unchanged(const QPName& name, QP& qp, const Moment& now);
  void check_invalidated(const QPName& name, const Work& work, const CQE& cqe);
  void watch(Work& work);
  void fill(Work& work);
  void let_go(Work& work);
  void expect(Handle cq, const Site& at);
  void settle(Handle cq, u64 count);
  void forget_work(QP& qp);
  void forget_region(DeviceId device, LKey key);
  void on_user_gone(SRQ& srq);
  void on_receive_polled(const QPName& name, QP* qp, const CQE& cqe, const Moment& now);
  void on_send_polled(const QPName& name, QP& qp, const CQE& cqe, const Moment& now);
  [[nodiscard]] const Work* work_naming(DeviceId device, LKey key) const;
  [[nodiscard]] const Work* work_naming(const QP& qp, LKey key) const;
  [[nodiscard]] SRQ* srq_numbered(DeviceId device, u32 number);

  const Settings settings_;
  Regions regions_;
  MemoryInUse filled_;  // memory that receives, READs and atomics in flight write to
  MemoryInUse sent_;    // memory that is hashed
  std::map<QPName, QP> qps_;
  std::unordered_map<Handle, CQ> cqs_;
  std::unordered_map<Handle, SRQ> srqs_;
  std::unordered_map<Handle, Object> objects_;
  u64 heard_ = 0;  // receives polled
  std::vector<Object> left_behind_;
  Findings findings_;
};

}  // namespace verbena::check
