// RCWorkload: random work on RC connections between two hosts, both ways at once, and the plain
// model it is checked against: memory as it should be, and the completions that should come. The
// model knows nothing of packets; it relies only on what a reliable connection promises:
//   - every work request completes once, in order, with success;
//   - a WRITE, SEND or atomic has its effect once, in the order of its queue;
//   - a READ or atomic brings what the memory held at its place in that order;
//   - a receive completes with its message in it, messages in order.
// So that the last two are exact, a WRITE over what an unfinished READ reads is fenced.
#pragma once

#include <array>
#include <deque>
#include <map>
#include <memory>

#include "tests/sim/host.h"

namespace verbena::sim {

// All the choices that make up a run.
struct RCPlan {
  LinkConfig link{};
  bool ipv6 = false;
  std::array<Egress, 2> egress{};
  std::array<u32, 2> window_packets = {1024, 1024}, window_bytes = {1u << 20, 1u << 20};
  std::optional<Duration> min_probe_timeout{};
  std::array<Retransmission, 2> retransmission{};
  u32 reordering_packets = 3;
  u32 connections = 1;
  u32 operations = 20;  // of each side of each connection
  u32 max_bytes = 4096;
  u32 send_depth = 16, receive_depth = 8, max_sge = 4, max_inline_bytes = 64;
  bool shared_receive_queue = false;
  bool xrc = false;  // a connection is an XRC initiator and a target each way; all receives are
                     // shared, and there are no windows, which would be those of another QP
  bool completion_events = false;  // the application sleeps until notified
  u32 completions_per_event = 0;   // it takes so many and sleeps again; 0: all
  Duration receive_delay{};        // a receive is posted up to so long after the last was used
  Duration posting_gap = us(2);    // up to so long between two bursts of posting
  std::vector<std::array<QPConfig, 2>> qps{};  // of each connection

  // A plan drawn from the PRNG, with faults that a connection survives.
  [[nodiscard]] static RCPlan draw(PRNG& prng);
  [[nodiscard]] static RCPlan draw_xrc(PRNG& prng);
  // `plan` with selective repeat, at one end or both, and a network that reorders much.
  [[nodiscard]] static RCPlan with_selective_repeat(RCPlan plan, PRNG& prng);
};

class RCWorkload {
 public:
  RCWorkload(World& world, const RCPlan& plan);
  ~RCWorkload();

  // Runs to the end, tears down. Returns nullopt if all is as the model says, else the difference.
  [[nodiscard]] std::optional<std::string> run(Duration limit);
  // Returns the counters of either host, also after run().
  [[nodiscard]] const Counters& counters(std::size_t side) const;

 private:
  static constexpr u64 kSourceBytes = 64 * 1024;
  static constexpr u32 kWordsPerEnd = 4;
  static constexpr u64 kGapBytes = 16;  // at most, between two pieces of a landing place
  static constexpr u32 kEndShift = 40;  // wr_id: end | counter
  struct Range {                        // in an arena
    u64 offset = 0;
    u64 length = 0;
    bool overlaps(const Range& o) const {
      return offset < o.offset + o.length && o.offset < offset + length;
    }
  };
  struct Piece {
    Range range;
    LKey l_key;
  };
  // A work request on its way, with what should come of it.
  struct Request {
    SendWR wr;
    std::vector<SGE> sges;
    std::vector<Piece> landing;           // READ, atomic: where the data goes
    std::optional<u64> slot;              // that they lie in
    std::optional<std::vector<u8>> data;  // that should come; none: not known (a shared counter)
    Range remote;                         // READ: at the peer
    std::optional<std::size_t> window;    // BIND_MW, LOCAL_INV
  };
  struct Message {  // what a receive of the peer should complete with
    CompletionOp op = CompletionOp::kReceive;
    u32 byte_length = 0;
    std::optional<u32> immediate, invalidated;
    std::vector<u8> data;  // SEND; WRITE: for the check of memory at `written`
    Range written;
    bool overwritten = false;  // by a later WRITE
  };
  struct Receive {
    u64 slot = 0;
    std::vector<Piece> pieces;
  };
  struct Window {
    RKey key;
    enum class State : u8 { kFree, kBinding, kOurs, kPeers } state = State::kFree;
  };
  struct Site;
  struct End {  // one side of a connection
    Site* site = nullptr;
    End* peer = nullptr;
    QueuePair* qp = nullptr;
    QueuePair* receiver = nullptr;  // what the peer's requests go to: the same, or an XRC target
    u32 index = 0;
    u32 left = 0;  // operations still to be posted
    u32 since_signaled = 0;
    u64 next_wr_id = 0;
    std::optional<Request> ready;  // built, but the queue was full
    std::deque<Request> requests;  // posted, not known to be complete
    std::deque<Message> messages;  // posted by us, not received by the peer
    Range zone;                    // at the peer: what we write, and read back
    RKey zone_key, words_key;
    LKey zone_l_key;              // the peer's, to bind windows to
    Range words;                  // at the peer: our own atomics
    std::vector<Window> windows;  // on what the peer may write here
    std::deque<RKey> lent;        // by the peer, on our zone
    bool post_scheduled = false;
  };
  struct Site : Host {  // one host
    using Host::Host;
    Range source;
    MRKeys source_keys, landing_keys;
    std::vector<u64> receive_slots;  // where a receive, and
    std::vector<u64> free_slots;     // where a READ or atomic can land
    u64 landing_end = 0;
    std::vector<std::unique_ptr<End>> ends;
    std::map<u64, Receive> receives;  // posted, by wr_id
    u64 next_receive_id = 0;
    Range shared_word;  // that all ends of the peer add to
    RKey shared_key;
    u64 added = 0;
    bool poll_scheduled = false;
  };

  // set-up
  void lay_out(Site& site);
  void open(Site& site);
  void connect_all();
  void create_qps(End& end);
  void start(Site& site);

  // the application
  void poll(Site& site);
  [[nodiscard]] std::vector<CQE> poll_after_event(Site& site);
  void schedule_poll(Site& site);
  void schedule_post(End& end, Duration wait);
  void post(End& end);
  void schedule_receive(Site& site, End* end, Duration wait);
  void post_receive(Site& site, End* end);

  // requests
  Request build(End& end);
  void build_some(End& end, Request& r);
  void build_send(End& end, Request& r);
  void build_write(End& end, Request& r);
  void build_read(End& end, Request& r);
  void build_atomic(End& end, Request& r);
  void build_atomic_write(End& end, Request& r);
  void build_flush(End& end, Request& r);
  bool build_window(End& end, Request& r);
  std::vector<u8> gather(End& end, Request& r, u32 limit);
  std::vector<Piece> land(Site& site, u64 slot, u32 length, u32 max_pieces);
  void land(End& end, Request& r, u32 length);
  static std::vector<SGE> sges_of(const Site& site, const std::vector<Piece>& pieces);
  u32 draw_length();
  bool reads_now(const End& end, const Range& range) const;

  // completions
  void on_cqe(Site& site, const CQE& cqe);
  void on_send_cqe(End& end, const CQE& cqe);
  void on_receive_cqe(End& end, const CQE& cqe);
  void finished(End& end, Request& r);
  void expect_scattered(Site& site, const std::vector<Piece>& pieces, Bytes data, const char* what);

  std::optional<std::string> check_end();
  void fail(const Site& site, const std::string& what);

  World& world_;
  const RCPlan plan_;
  PRNG prng_;
  std::array<std::unique_ptr<Site>, 2> sites_;
  std::optional<std::string> failure_;
};

}  // namespace verbena::sim
