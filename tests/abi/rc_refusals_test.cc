// One table: each way that a request takes between processes of one host, through each refusal that
// a responder or a requester has. The outcome is that of packets on a wire, at both ends, whatever
// the way. ctest runs this with VERBENA_LOCAL=off and with VERBENA_SHARE=on too.
#include <poll.h>

#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "tests/abi/rc_ends.h"

namespace verbena::test {
namespace {

// --- the ways

const Way kWays[] = {
    {"Write1", IBV_WR_RDMA_WRITE, 1},
    {"Write8", IBV_WR_RDMA_WRITE, 8},
    {"Write8Inline", IBV_WR_RDMA_WRITE, 8, 0, IBV_SEND_INLINE},
    {"Write4096", IBV_WR_RDMA_WRITE, 4096},
    {"WriteShifted", IBV_WR_RDMA_WRITE, 20'000, 8},
    {"WriteLong", IBV_WR_RDMA_WRITE, 128 << 10},
    {.name = "WriteGathered", .opcode = IBV_WR_RDMA_WRITE, .length = 20'000, .pieces = 3},
    {"Write8WithImm", IBV_WR_RDMA_WRITE_WITH_IMM, 8},
    {"Write4096WithImm", IBV_WR_RDMA_WRITE_WITH_IMM, 4096},
    {"Read1", IBV_WR_RDMA_READ, 1},
    {"Read8", IBV_WR_RDMA_READ, 8},
    {"Read4096", IBV_WR_RDMA_READ, 4096},
    {"ReadShifted", IBV_WR_RDMA_READ, 20'000, 8},
    {"ReadLong", IBV_WR_RDMA_READ, 128 << 10},
    {.name = "ReadScattered", .opcode = IBV_WR_RDMA_READ, .length = 20'000, .pieces = 3},
    {"FetchAdd", IBV_WR_ATOMIC_FETCH_AND_ADD, 8},
    {"CompareSwap", IBV_WR_ATOMIC_CMP_AND_SWP, 8},
    {"Send8", IBV_WR_SEND, 8},
    {"Send8Inline", IBV_WR_SEND, 8, 0, IBV_SEND_INLINE},
    {"Send8WithImm", IBV_WR_SEND_WITH_IMM, 8},
    {"Send4096", IBV_WR_SEND, 4096},
    {.name = "SendGathered", .opcode = IBV_WR_SEND, .length = 900, .pieces = 3},
    {.name = "Send8ToAnSRQ", .opcode = IBV_WR_SEND, .length = 8, .takes_from_an_srq = true},
    {.name = "Send4096ToAnSRQ", .opcode = IBV_WR_SEND, .length = 4096, .takes_from_an_srq = true},
};

constexpr std::uint32_t kPathMTU = 1024;

bool is_any(const Way&) { return true; }
bool changes_target(const Way& way) { return is_write(way) || is_atomic(way); }
bool is_copied_later(const Way& way) { return !is_inline(way); }
bool is_refused_locally(const Way& way) { return is_copied_later(way) && !is_atomic(way); }
bool is_long(const Way& way) { return (is_write(way) || is_read(way)) && way.length > kPathMTU; }
bool takes_receive_first(const Way& way) {
  return is_send(way) || (takes_receive(way) && way.length <= kPathMTU);
}

// --- the refusals

using Ends = RCEnds;

struct Refusal {
  const char* name;
  bool (*concerns)(const Way& way);
  void (*prepare)(Ends& ends);
  ibv_wc_status status = IBV_WC_SUCCESS;          // IBV_WC_SUCCESS: it is no refusal
  std::optional<ibv_event_type> event{};          // at the peer
  ibv_wc_status receive_status = IBV_WC_SUCCESS;  // IBV_WC_SUCCESS: the receive is not in error
  enum class Changes { kNothing, kSome } changes = Changes::kNothing;  // in memory
};
using Changes = Refusal::Changes;

constexpr Ends::Attributes kImpatient{.timeout = 8, .retry_cnt = 1};

Ends::Attributes silent_in(ibv_qp_state state) {
  Ends::Attributes attributes = kImpatient;
  attributes.peer_state = state;
  return attributes;
}

const Refusal kRefusals[] = {
    {"Nothing", is_any, [](Ends&) {}},
    {"TheLastByte", is_rdma,
     [](Ends& ends) { ends.target = ends.there->address() + Ends::kSize - ends.sge.length; }},

    // keys, bounds, rights
    {"UnknownKey", is_rdma, [](Ends& ends) { ends.r_key ^= 0x5500; }, IBV_WC_REM_ACCESS_ERR,
     IBV_EVENT_QP_ACCESS_ERR},
    {"BeyondTheEnd", is_rdma,
     [](Ends& ends) {
       ends.target =
           ends.there->address() + Ends::kSize - ends.sge.length + (is_atomic(ends.way()) ? 8 : 1);
     },
     IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR},
    {"BeforeTheStart", is_rdma, [](Ends& ends) { ends.target = ends.there->address() - 8; },
     IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR},
    {"AroundTheEndOfAddresses", is_rdma, [](Ends& ends) { ends.target = ~std::uint64_t{0} - 7; },
     IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR},
    {"MisalignedAddress", is_atomic, [](Ends& ends) { ends.target += 4; }, IBV_WC_REM_INV_REQ_ERR,
     IBV_EVENT_QP_REQ_ERR},
    {"Deregistered", is_rdma, [](Ends& ends) { ends.deregister_target(); }, IBV_WC_REM_ACCESS_ERR,
     IBV_EVENT_QP_ACCESS_ERR},
    {"OfAnotherDomain", is_rdma, [](Ends& ends) { ends.move_target(); }, IBV_WC_REM_ACCESS_ERR,
     IBV_EVENT_QP_ACCESS_ERR},
    {"WithoutTheRight", is_rdma,
     [](Ends& ends) { ends.replace_target(Ends::kAll & ~right_of(ends.way())); },
     IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR},
    {"QPWithoutTheRight", is_rdma,
     [](Ends& ends) {
       ends.change_rights_of_peer(static_cast<unsigned>(Ends::kAll & ~right_of(ends.way())));
     },
     IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR},

    // regions that have changed
    {"ReregisteredWithAllRights", is_rdma,
     [](Ends& ends) { ends.change_rights_of_target(Ends::kAll); }},
    {"ReregisteredWithoutTheRight", is_rdma,
     [](Ends& ends) { ends.change_rights_of_target(Ends::kAll & ~right_of(ends.way())); },
     IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR},
    {"ReregisteredInAnotherDomain", is_rdma, [](Ends& ends) { ends.change_domain_of_target(); },
     IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR},
    {"ReregisteredWithTheOldKey", is_rdma,
     [](Ends& ends) {
       const std::uint32_t old = ends.r_key;
       ends.halve_target();
       ends.r_key = old;
     },
     IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR},
    {"ReregisteredAndShorter", is_rdma,
     [](Ends& ends) {
       ends.halve_target();
       ends.target = ends.there->address() + Ends::kSize / 2 - ends.sge.length + 8;
     },
     IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR},

    // windows
    {"WindowOfType1", is_rdma, [](Ends& ends) { ends.open_window({.type = IBV_MW_TYPE_1}); }},
    {"WindowOfType2", is_rdma, [](Ends& ends) { ends.open_window({}); }},
    {"WindowWithoutTheRight", is_rdma,
     [](Ends& ends) { ends.open_window({.access = Ends::kRemote & ~right_of(ends.way())}); },
     IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR},
    {"BeforeTheWindow", is_rdma,
     [](Ends& ends) {
       ends.open_window({.offset = 64, .length = Ends::kSize - 64});
       ends.target = ends.there->address() + 56;
     },
     IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR},
    {"BeyondTheWindow", is_rdma,
     [](Ends& ends) {
       ends.open_window({.length = Ends::kSize / 2});
       ends.target = ends.there->address() + Ends::kSize / 2 - ends.sge.length + 8;
     },
     IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR},
    {"UnboundWindowOfType1", is_rdma,
     [](Ends& ends) {
       ends.open_window({.type = IBV_MW_TYPE_1});
       ends.close_window();
     },
     IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR},
    {"InvalidatedWindowOfType2", is_rdma,
     [](Ends& ends) {
       ends.open_window({});
       ends.close_window();
     },
     IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR},
    {"WindowOfAnotherQP", is_rdma, [](Ends& ends) { ends.open_window({.is_of_another_qp = true}); },
     IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR},

    // resources and lengths that both ends have agreed on
    {"NoResourceForReads", is_answered,
     [](Ends& ends) { ends.reconnect({.max_dest_rd_atomic = 0}); }, IBV_WC_REM_INV_REQ_ERR,
     IBV_EVENT_QP_REQ_ERR},
    {"NoResourceForReadsIsNoneForOthers", [](const Way& way) { return !is_answered(way); },
     [](Ends& ends) { ends.reconnect({.max_dest_rd_atomic = 0}); }},
    {"AnotherMTU", [](const Way& way) { return is_write(way) && is_long(way); },
     [](Ends& ends) { ends.reconnect({.peer_mtu = IBV_MTU_512}); }, IBV_WC_REM_INV_REQ_ERR,
     IBV_EVENT_QP_REQ_ERR},

    // states and PSNs
    {"PeerInRTR", is_any, [](Ends& ends) { ends.reconnect({.peer_state = IBV_QPS_RTR}); },
     IBV_WC_SUCCESS, IBV_EVENT_COMM_EST},
    {"PeerInSQD", is_any, [](Ends& ends) { ends.set_state_of_peer(IBV_QPS_SQD); }},
    {"PeerInReset", is_any,
     [](Ends& ends) {
       ends.reconnect(silent_in(IBV_QPS_RESET));
       ends.receives = 0;
     },
     IBV_WC_RETRY_EXC_ERR},
    {"PeerInInit", is_any, [](Ends& ends) { ends.reconnect(silent_in(IBV_QPS_INIT)); },
     IBV_WC_RETRY_EXC_ERR},
    {"PeerInError", is_any, [](Ends& ends) { ends.reconnect(silent_in(IBV_QPS_ERR)); },
     IBV_WC_RETRY_EXC_ERR},
    {"PeerDestroyed", is_any,
     [](Ends& ends) {
       ends.reconnect(kImpatient);
       ends.destroy_peer();
       ends.receives = 0;
     },
     IBV_WC_RETRY_EXC_ERR},
    // A packet does not name the QP that it is from: the peer executes it, and answers another QP.
    {"PeerOfAnotherQP", is_any,
     [](Ends& ends) {
       Ends::Attributes attributes = kImpatient;
       attributes.peers_peer = ends.another_qp();
       ends.reconnect(attributes);
     },
     IBV_WC_RETRY_EXC_ERR, std::nullopt, IBV_WC_SUCCESS, Changes::kSome},
    {"PeerOfAnotherAddress", is_any,
     [](Ends& ends) {
       Ends::Attributes attributes = kImpatient;
       attributes.peers_last_byte = 9;
       ends.reconnect(attributes);
     },
     IBV_WC_RETRY_EXC_ERR},
    {"AnotherPSN", is_any,
     [](Ends& ends) {
       Ends::Attributes attributes = kImpatient;
       attributes.sq_psn = 200;
       ends.reconnect(attributes);
     },
     IBV_WC_RETRY_EXC_ERR},
    {"PeerBeganAnew", is_any,
     [](Ends& ends) {
       ends.reconnect(kImpatient);
       ends.exchange_a_message();
       ends.reconnect_peer(kImpatient);
     },
     IBV_WC_RETRY_EXC_ERR},
    {"OwnError", is_any, [](Ends& ends) { ends.set_own_state(IBV_QPS_ERR); }, IBV_WC_WR_FLUSH_ERR},

    // the target's pages
    {"UnmappedPages", is_rdma, [](Ends& ends) { ends.there->unmap(); }, IBV_WC_REM_ACCESS_ERR,
     IBV_EVENT_QP_ACCESS_ERR},

    // receives
    {"NoReceive", takes_receive_first,
     [](Ends& ends) {
       ends.reconnect({});
       ends.receives = 0;
     },
     IBV_WC_RNR_RETRY_EXC_ERR},
    {"ALateReceive", takes_receive,
     [](Ends& ends) {
       ends.reconnect({.rnr_retry = 7});
       ends.post_receives_late();
     }},
    {"ReceiveTooSmall", is_send, [](Ends& ends) { --ends.receive_length; }, IBV_WC_REM_INV_REQ_ERR,
     std::nullopt, IBV_WC_LOC_LEN_ERR, Changes::kSome},
    {"ReceiveOfAnUnknownKey", is_send, [](Ends& ends) { ends.receive_key ^= 0x5500; },
     IBV_WC_REM_OP_ERR, std::nullopt, IBV_WC_LOC_PROT_ERR},
    {"ReceiveOfAnotherDomain", is_send, [](Ends& ends) { ends.move_target(); }, IBV_WC_REM_OP_ERR,
     std::nullopt, IBV_WC_LOC_PROT_ERR},
    {"ReceiveInADeregisteredRegion", is_send, [](Ends& ends) { ends.deregister_target(); },
     IBV_WC_REM_OP_ERR, std::nullopt, IBV_WC_LOC_PROT_ERR},
    {"ReceiveWithoutTheRight", is_send,
     [](Ends& ends) { ends.replace_target(IBV_ACCESS_REMOTE_READ); }, IBV_WC_REM_OP_ERR,
     std::nullopt, IBV_WC_LOC_PROT_ERR},
    {"ReceiveReregisteredWithoutTheRight", is_send,
     [](Ends& ends) { ends.change_rights_of_target(IBV_ACCESS_REMOTE_READ); }, IBV_WC_REM_OP_ERR,
     std::nullopt, IBV_WC_LOC_PROT_ERR},
    {"ReceiveIntoUnmappedPages", is_send, [](Ends& ends) { ends.there->unmap(); },
     IBV_WC_REM_OP_ERR, std::nullopt, IBV_WC_LOC_PROT_ERR},

    // the requester's own memory. Packets before the one that fails have changed something, as has
    // an atomic when its response is stored.
    {"OwnUnknownKey", is_refused_locally, [](Ends& ends) { ends.sge.lkey ^= 0x5500; },
     IBV_WC_LOC_PROT_ERR},
    {"OwnBounds", is_refused_locally,
     [](Ends& ends) { ends.sge.addr = ends.here->address() + Ends::kSize - ends.sge.length + 1; },
     IBV_WC_LOC_PROT_ERR, std::nullopt, IBV_WC_SUCCESS, Changes::kSome},
    {"OwnDeregistered", is_refused_locally, [](Ends& ends) { ends.deregister_own(); },
     IBV_WC_LOC_PROT_ERR},
    {"OwnOfAnotherDomain", is_refused_locally, [](Ends& ends) { ends.move_own(); },
     IBV_WC_LOC_PROT_ERR},
    {"OwnWithoutTheRight", is_read, [](Ends& ends) { ends.replace_own(IBV_ACCESS_REMOTE_READ); },
     IBV_WC_LOC_PROT_ERR},
    {"OwnWithoutTheRightAndAnAtomic", is_atomic,
     [](Ends& ends) { ends.replace_own(IBV_ACCESS_REMOTE_READ); }, IBV_WC_LOC_PROT_ERR,
     std::nullopt, IBV_WC_SUCCESS, Changes::kSome},
    {"OwnUnmappedPages", is_refused_locally, [](Ends& ends) { ends.here->unmap(); },
     IBV_WC_LOC_PROT_ERR},
};

// Refusals by the protection of pages; a GPU's memory has none.
const Refusal kRefusalsOfPages[] = {
    {"ReadOnlyPages", changes_target, [](Ends& ends) { ends.there->protect(PROT_READ); },
     IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR},
    {"ReadOnlyLastPage", [](const Way& way) { return is_write(way) && is_long(way); },
     [](Ends& ends) { ends.protect_last_page_of_target(PROT_READ); }, IBV_WC_REM_ACCESS_ERR,
     IBV_EVENT_QP_ACCESS_ERR, IBV_WC_SUCCESS, Changes::kSome},
    {"ReadOnlyPagesAreRead", is_read, [](Ends& ends) { ends.there->protect(PROT_READ); }},
    {"PagesWithoutAccess", is_rdma, [](Ends& ends) { ends.there->protect(PROT_NONE); },
     IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR},
    {"ReceiveIntoReadOnlyPages", is_send, [](Ends& ends) { ends.there->protect(PROT_READ); },
     IBV_WC_REM_OP_ERR, std::nullopt, IBV_WC_LOC_PROT_ERR},
    {"OwnReadOnlyPages", is_read, [](Ends& ends) { ends.here->protect(PROT_READ); },
     IBV_WC_LOC_PROT_ERR},
    {"OwnReadOnlyPagesAndAnAtomic", is_atomic, [](Ends& ends) { ends.here->protect(PROT_READ); },
     IBV_WC_LOC_PROT_ERR, std::nullopt, IBV_WC_SUCCESS, Changes::kSome},
    {"OwnReadOnlyPagesAreSent",
     [](const Way& way) { return !is_answered(way) && is_copied_later(way); },
     [](Ends& ends) { ends.here->protect(PROT_READ); }},
    {"OwnPagesWithoutAccess", is_refused_locally, [](Ends& ends) { ends.here->protect(PROT_NONE); },
     IBV_WC_LOC_PROT_ERR},
};

// --- the outcome

using RefusalCase = std::tuple<const Way*, Memory, const Refusal*>;

class RCRefusalsTest : public RCEnds, public testing::WithParamInterface<RefusalCase> {
 protected:
  RCRefusalsTest()
      : RCEnds(*std::get<const Way*>(GetParam()), std::get<Memory>(GetParam())),
        refusal_(*std::get<const Refusal*>(GetParam())) {}
  bool is_refused() const { return refusal_.status != IBV_WC_SUCCESS; }
  void check_completions();
  void check_event(ibv_event_type type) const;

  const Refusal& refusal_;
};

void RCRefusalsTest::check_completions() {
  const ibv_wc second = wait_for_completion(), third = wait_for_completion();
  EXPECT_EQ(second.wr_id, 2u);
  EXPECT_EQ(third.wr_id, 3u);
  EXPECT_EQ(second.status, refusal_.status);
  EXPECT_EQ(third.status, is_refused() ? IBV_WC_WR_FLUSH_ERR : IBV_WC_SUCCESS);
  EXPECT_EQ(state_of(qp_), is_refused() ? IBV_QPS_ERR : IBV_QPS_RTS);
  EXPECT_TRUE(!is_refused() || !refusal_.event || state_of(peer_) == IBV_QPS_ERR);
  if (refusal_.receive_status == IBV_WC_SUCCESS) return;
  EXPECT_EQ(wait_for_completion(peer_cq_).status, refusal_.receive_status);
  EXPECT_EQ(state_of(peer_), IBV_QPS_ERR);
}

void RCRefusalsTest::check_event(ibv_event_type type) const {
  pollfd readable{.fd = context->async_fd, .events = POLLIN, .revents = 0};
  ASSERT_EQ(::poll(&readable, 1, 10'000), 1);
  ibv_async_event event{};
  ASSERT_EQ(verbs.get_async_event(context, &event), 0);
  EXPECT_EQ(event.event_type, type);
  EXPECT_EQ(event.element.qp, peer_);
  verbs.ack_async_event(&event);
}

TEST_P(RCRefusalsTest, AreThoseOfTheWire) {
  do_without_refusal();
  refusal_.prepare(*this);
  ibv_send_wr second = request(2), third = request(3), *bad = nullptr;
  second.next = &third;
  post_receives(receives);
  ASSERT_EQ(ibv_post_send(qp_, &second, &bad), 0);
  check_completions();
  if (is_refused() && refusal_.changes == Changes::kNothing) {
    here->expect_all('c');
    there->expect_all('d');
  }
  if (refusal_.event) check_event(*refusal_.event);
}

// Inline data is never in a GPU's memory.
bool is_possible(const Way& way, Memory memory) {
  return memory != Memory::kOfAGPU || is_copied_later(way);
}

std::vector<RefusalCase> all_cases() {
  std::vector<RefusalCase> all;
  const auto add = [&all](const Refusal& refusal, std::initializer_list<Memory> memories) {
    for (const Way& way : kWays)
      for (const Memory memory : memories)
        if (refusal.concerns(way) && is_possible(way, memory))
          all.emplace_back(&way, memory, &refusal);
  };
  for (const Refusal& refusal : kRefusals)
    add(refusal, {Memory::kPrivate, Memory::kOfAFile, Memory::kOfAGPU});
  for (const Refusal& refusal : kRefusalsOfPages)
    add(refusal, {Memory::kPrivate, Memory::kOfAFile});
  return all;
}

std::string name_of(const testing::TestParamInfo<RefusalCase>& test) {
  const auto& [way, memory, refusal] = test.param;
  const char* const where = memory == Memory::kPrivate   ? "To"
                            : memory == Memory::kOfAFile ? "ToAFile"
                                                         : "OnAGPUTo";
  return std::string(way->name) + where + refusal->name;
}

INSTANTIATE_TEST_SUITE_P(All, RCRefusalsTest, testing::ValuesIn(all_cases()), name_of);

}  // namespace
}  // namespace verbena::test
