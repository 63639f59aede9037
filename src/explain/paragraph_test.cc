// Each cause from its facts, and the text that people read.
#include "explain/paragraph.h"

#include <gmock/gmock.h>

#include "explain/text.h"

namespace verbena::explain {
namespace {

using testing::HasSubstr;
using testing::Not;

const GID kUs = GID::from_ipv4(0x0a000001), kThem = GID::from_ipv4(0x0a000002);

PacketRecord packet(Direction direction, i64 at_ms, Op op, u32 psn, u16 bytes = 64) {
  return {.at = Time() + ms(at_ms),
          .qp = QPN{0x11},
          .psn = PSN(psn),
          .transport_bytes = bytes,
          .opcode = Opcode{Service::kRC, op}.to_byte(),
          .direction = direction};
}
PacketRecord request(i64 at_ms, u32 psn, u16 bytes = 64) {
  return packet(Direction::kSent, at_ms, Op::kRDMAWriteOnly, psn, bytes);
}
PacketRecord answer(i64 at_ms, u32 psn, u8 syndrome = 0x1f) {
  PacketRecord record = packet(Direction::kReceived, at_ms, Op::kAcknowledge, psn);
  record.syndrome = syndrome;
  return record;
}
PacketRecord lost(PacketRecord record) {
  record.rule = 1;
  return record;
}
PacketRecord dropped(PacketRecord record, Reception why) {
  record.reception = why;
  return record;
}

// A WRITE that ended with `status`, 100 ms after it was posted.
Facts failed(WQEStatus status) {
  Facts facts;
  facts.qp.type = QPType::kRC;
  facts.qp.state = QPState::kError;
  facts.qp.qpn = QPN{0x11};
  facts.qp.dest_qp = QPN{0x22};
  facts.qp.path.source = kUs;
  facts.qp.path.destination = kThem;
  facts.qp.retry_count = 7;
  facts.qp.ack_timeout = 14;
  facts.status = status;
  facts.at = Time() + ms(200);
  facts.fault.requester = {.status = status,
                           .wr_id = 0xabc,
                           .op = SendOp::kRDMAWrite,
                           .length_bytes = 48,
                           .remote_address = 0x7000,
                           .r_key = RKey{0x1234},
                           .posted = Time() + ms(100)};
  facts.packets = {request(100, 5), request(150, 5)};
  facts.rules = {"blackhole dir=tx"};
  return facts;
}

PeerFacts::QP good_peer() {
  return {.state = QPState::kRTS,
          .dest_qp = QPN{0x11},
          .p_key = kDefaultPKey,
          .source = kThem,
          .destination = kUs};
}

Facts silence_on_device(const std::optional<PeerFacts::QP>& peer) {
  Facts facts = failed(WQEStatus::kRetryExceeded);
  facts.peer.place = PeerFacts::Place::kThisDevice;
  facts.peer.qp = peer;
  return facts;
}

std::string said(const Facts& facts) {  // without its line breaks
  std::string out = paragraph(facts);
  for (std::size_t at; (at = out.find("\n ")) != std::string::npos;) out.erase(at, 2);
  return out;
}

TEST(ParagraphTest, SaysWhichQPWorkAndPackets) {
  const std::string out = said(failed(WQEStatus::kRetryExceeded));
  EXPECT_THAT(out, HasSubstr("QP 0x000011 (RC, Error) to QP 0x000022 at 10.0.0.2"));
  EXPECT_THAT(out, HasSubstr("RDMA WRITE of 48 bytes (wr_id 0xabc, remote address 0x7000, R_Key "
                             "0x00001234) ended with IBV_WC_RETRY_EXC_ERR (transport retry counter "
                             "exceeded) 100.0 ms after it was posted."));
  EXPECT_THAT(out, HasSubstr("Packets before: -100.0 ms sent RDMA WRITE Only PSN 5, 64 bytes, 2 "
                             "times, last -50.0 ms. Likely cause:"));
  EXPECT_EQ(out.back(), '\n');
}

TEST(ParagraphTest, PacketsThatFollowEachOtherAreToldTogether) {
  Facts facts = failed(WQEStatus::kRetryExceeded);
  facts.packets = {request(100, 5), request(110, 6), request(120, 7), answer(130, 5),
                   request(140, 6), request(150, 6), request(160, 7)};
  EXPECT_THAT(said(facts),
              HasSubstr("-100.0 ms sent RDMA WRITE Only .. RDMA WRITE Only PSN 5-7, at most 64 "
                        "bytes each; -70.0 ms got Acknowledge PSN 5; -60.0 ms sent RDMA WRITE Only "
                        "PSN 6, 64 bytes, 2 times, last -50.0 ms; -40.0 ms sent RDMA WRITE Only "
                        "PSN 7, 64 bytes. Likely"));
}

TEST(ParagraphTest, AHistoryThatBeganEarlierSaysSo) {
  Facts facts = failed(WQEStatus::kRetryExceeded);
  facts.packets.assign(PacketHistory::kDepth, request(100, 5));
  EXPECT_THAT(said(facts), HasSubstr(", at least 16 times, last -100.0 ms."));
}

TEST(ParagraphTest, LinesAreOfOneWidth) {
  const std::string out = paragraph(failed(WQEStatus::kRetryExceeded));
  for (std::size_t at = 0, end; (end = out.find('\n', at)) != std::string::npos; at = end + 1)
    EXPECT_LE(end - at, 100u);
  EXPECT_EQ(wrapped("", 10), "\n");
  EXPECT_EQ(wrapped("one two three four", 9), "one two\n  three\n  four\n");
}

TEST(DiagnosisTest, NothingEverCameBack) {
  EXPECT_EQ(diagnose(failed(WQEStatus::kRetryExceeded)), Cause::kNeverAnswered);
}

TEST(DiagnosisTest, ItCameBackAndStopped) {
  Facts facts = failed(WQEStatus::kRetryExceeded);
  facts.packets.insert(facts.packets.begin(), answer(90, 4));
  EXPECT_EQ(diagnose(facts), Cause::kStoppedAnswering);
  EXPECT_THAT(said(facts), HasSubstr("then stopped, 110.0 ms ago"));
  facts = failed(WQEStatus::kRetryExceeded);
  facts.fault.requester.answered = true;  // and the history has forgotten it
  EXPECT_EQ(diagnose(facts), Cause::kStoppedAnswering);
}

TEST(DiagnosisTest, AnswersThatWereDroppedHere) {
  const std::pair<Reception, Cause> cases[] = {{Reception::kPKey, Cause::kDroppedPKey},
                                               {Reception::kSource, Cause::kDroppedSource},
                                               {Reception::kState, Cause::kDroppedState},
                                               {Reception::kService, Cause::kDroppedService},
                                               {Reception::kBadICRC, Cause::kDroppedICRC}};
  for (const auto& [why, cause] : cases) {
    Facts facts = failed(WQEStatus::kRetryExceeded);
    facts.packets.push_back(dropped(answer(151, 5), why));
    EXPECT_EQ(diagnose(facts), cause);
    facts.packets.push_back(answer(152, 5));  // that is past: the last answer was good
    EXPECT_EQ(diagnose(facts), Cause::kStoppedAnswering);
  }
}

TEST(DiagnosisTest, AddressesOfTwoFamilies) {
  Facts facts = failed(WQEStatus::kRetryExceeded);
  facts.qp.path.destination = *GID::parse("fd00::2");
  EXPECT_EQ(diagnose(facts), Cause::kGIDFamilies);
}

TEST(DiagnosisTest, PacketsThatDoNotFitThePath) {
  Facts facts = failed(WQEStatus::kRetryExceeded);
  facts.packets = {request(80, 4), answer(81, 4), request(100, 5, 4124)};
  facts.peer.path_mtu = 1500;
  EXPECT_EQ(diagnose(facts), Cause::kPathMTU);
  EXPECT_THAT(said(facts), HasSubstr("packets of 4156 bytes (IP)"));
  facts.peer.path_mtu = 4156;
  EXPECT_EQ(diagnose(facts), Cause::kStoppedAnswering);
}

TEST(DiagnosisTest, APeerProcessThatHasEnded) {
  Facts facts = failed(WQEStatus::kRetryExceeded);
  facts.peer = {.place = PeerFacts::Place::kThisHost, .process_alive = false};
  EXPECT_EQ(diagnose(facts), Cause::kPeerQPMissing) << "it never answered";
  facts.fault.requester.answered = true;
  EXPECT_EQ(diagnose(facts), Cause::kPeerProcessEnded);
  facts.peer.process_alive = true;
  EXPECT_EQ(diagnose(facts), Cause::kStoppedAnswering);
  EXPECT_THAT(said(facts), HasSubstr("its process lives"));
}

TEST(DiagnosisTest, WhatICMPSays) {
  Facts facts = failed(WQEStatus::kRetryExceeded);
  facts.peer.port_refused = true;
  EXPECT_EQ(diagnose(facts), Cause::kPeerPortClosed);
  facts.fault.requester.answered = true;
  EXPECT_EQ(diagnose(facts), Cause::kPeerProcessEnded);
  facts.peer = {.host_unreachable = true};
  EXPECT_EQ(diagnose(facts), Cause::kPeerUnreachable);
}

TEST(DiagnosisTest, APeerOnThisDevice) {
  EXPECT_EQ(diagnose(silence_on_device(std::nullopt)), Cause::kPeerQPMissing);
  PeerFacts::QP peer = good_peer();
  EXPECT_EQ(diagnose(silence_on_device(peer)), Cause::kNeverAnswered);
  peer.state = QPState::kInit;
  EXPECT_EQ(diagnose(silence_on_device(peer)), Cause::kPeerQPNotReady);
  peer.state = QPState::kError;
  EXPECT_EQ(diagnose(silence_on_device(peer)), Cause::kPeerQPInError);
  peer = good_peer();
  peer.dest_qp = QPN{0x12};
  EXPECT_EQ(diagnose(silence_on_device(peer)), Cause::kPeerQPOfAnother);
  peer = good_peer();
  peer.p_key = PKey{0x8001};
  EXPECT_EQ(diagnose(silence_on_device(peer)), Cause::kPeerPKey);
  peer = good_peer();
  peer.destination = kThem;
  EXPECT_EQ(diagnose(silence_on_device(peer)), Cause::kPeerAddressOfAnother);
}

TEST(DiagnosisTest, AFaultRuleThatLosesHalfOrMore) {
  Facts facts = failed(WQEStatus::kRetryExceeded);
  facts.packets = {answer(90, 4), lost(request(100, 5)), request(150, 5)};
  EXPECT_EQ(diagnose(facts), Cause::kFaultRule);
  EXPECT_THAT(said(facts), HasSubstr("the fault rule 'blackhole dir=tx'"));
  facts.packets.push_back(request(160, 5));
  EXPECT_EQ(diagnose(facts), Cause::kStoppedAnswering) << "most packets got through";
  facts.packets.push_back(lost(answer(161, 5)));
  EXPECT_EQ(diagnose(facts), Cause::kFaultRule) << "an answer was lost";
  facts.packets = {lost(request(80, 4)), request(85, 4), answer(90, 4), request(150, 5)};
  EXPECT_EQ(diagnose(facts), Cause::kStoppedAnswering) << "long over";
}

TEST(DiagnosisTest, AFaultRuleThatAnswersForThePeer) {
  Facts facts = failed(WQEStatus::kRemoteAccess);
  facts.packets = {lost(request(150, 5)), answer(151, 5, 0x62)};
  EXPECT_EQ(diagnose(facts), Cause::kFaultRule);
  facts.packets = {lost(request(140, 4)), request(150, 5), answer(151, 5, 0x62)};
  EXPECT_EQ(diagnose(facts), Cause::kRemoteAccess);
}

TEST(DiagnosisTest, NoReceive) {
  Facts facts = failed(WQEStatus::kRNRRetryExceeded);
  facts.qp.rnr_retry_count = 3;
  facts.packets.push_back(answer(151, 5, 0x20 | 12));
  EXPECT_EQ(diagnose(facts), Cause::kNoReceive);
  EXPECT_THAT(said(facts), HasSubstr("no receive posted (in its receive queue or SRQ): it said so "
                                     "(RNR NAK) 4 times in a row, with a timer of 640.0 us"));
  facts.peer.qp = good_peer();
  facts.peer.qp->has_srq = true;
  EXPECT_THAT(said(facts), HasSubstr("its SRQ is empty"));
}

TEST(DiagnosisTest, RemoteAccessSaysWhatTheWireTells) {
  const Facts facts = failed(WQEStatus::kRemoteAccess);
  EXPECT_EQ(diagnose(facts), Cause::kRemoteAccess);
  EXPECT_THAT(said(facts), HasSubstr("refused access to [0x7000, 0x7030) with R_Key 0x00001234"));
  EXPECT_THAT(said(facts), HasSubstr("the NAK does not tell which"));
}

TEST(DiagnosisTest, RemoteAccessSaysMoreOfThisDevice) {
  Facts facts = failed(WQEStatus::kRemoteAccess);
  facts.peer.qp = good_peer();
  facts.peer.qp->fault = {.refusal = Refusal::kRemoteMemory,
                          .remote_address = 0x7000,
                          .length_bytes = 48,
                          .r_key = RKey{0x1234},
                          .memory = MemoryFault::kBadKey};
  EXPECT_THAT(said(facts), HasSubstr("R_Key 0x00001234 is not known"));
  facts.peer.qp->fault.memory = MemoryFault::kBounds;
  facts.peer.qp->fault.key = KeyInfo{.address = 0x6000, .length = 0x1010};
  EXPECT_THAT(said(facts), HasSubstr("[0x7000, 0x7030) is out of bounds: R_Key 0x00001234 covers "
                                     "[0x6000, 0x7010)"));
  facts.peer.qp->fault.memory = MemoryFault::kAccess;
  facts.peer.qp->fault.key->access = Access::kLocalWrite | Access::kRemoteRead;
  EXPECT_THAT(said(facts), HasSubstr("IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ"));
}

TEST(DiagnosisTest, RemoteInvalidRequestByItsOperation) {
  Facts facts = failed(WQEStatus::kRemoteInvalidRequest);
  EXPECT_THAT(said(facts), HasSubstr("IBV_ACCESS_REMOTE_WRITE is not in its qp_access_flags"));
  facts.fault.requester.op = SendOp::kSend;
  EXPECT_THAT(said(facts), HasSubstr("48 bytes is longer than the receive"));
  EXPECT_THAT(said(facts), Not(HasSubstr("R_Key")));
  facts.fault.requester.op = SendOp::kFetchAdd;
  EXPECT_THAT(said(facts), HasSubstr("max_dest_rd_atomic"));
  facts.fault.requester.remote_address = 0x7004;
  EXPECT_THAT(said(facts), HasSubstr("no multiple of 8"));
}

TEST(DiagnosisTest, OurOwnMemory) {
  Facts facts = failed(WQEStatus::kLocalProtection);
  RefusedSGE& refused = facts.fault.requester.refused;
  refused = {.fault = MemoryFault::kBadKey,
             .index = 1,
             .sge = {.address = 0x9000, .length = 16, .l_key = LKey{7}}};
  EXPECT_THAT(said(facts), HasSubstr("SGE 1 (address 0x9000, length 16, L_Key 0x00000007): L_Key "
                                     "0x00000007 is not known"));
  refused.key = KeyInfo{.pd = PDId{2}};
  EXPECT_THAT(said(facts), HasSubstr("in another protection domain"));
  refused.fault = MemoryFault::kBounds;
  EXPECT_THAT(said(facts), HasSubstr("out of bounds"));
  refused.fault = MemoryFault::kAccess;
  EXPECT_THAT(said(facts), HasSubstr("lacks IBV_ACCESS_LOCAL_WRITE"));
  refused.fault = MemoryFault::kGone;
  EXPECT_THAT(said(facts), HasSubstr("the memory at [0x9000, 0x9010) is not there any more"));
  refused.fault = MemoryFault::kProtected;
  EXPECT_THAT(said(facts), HasSubstr("its pages are read-only"));
  EXPECT_THAT(said(facts), HasSubstr("Try: memory that stays mapped until ibv_dereg_mr"));
  EXPECT_THAT(said(facts), testing::Not(HasSubstr("unmapped")));
}

TEST(DiagnosisTest, AMessageTooLongForItsReceive) {
  Facts facts = failed(WQEStatus::kLocalLength);
  facts.told = Told::kByReceiveCompletion;
  facts.wr_id = 9;
  facts.fault.responder = {
      .refusal = Refusal::kReceiveTooSmall, .wr_id = 9, .message_bytes = 2048, .room_bytes = 100};
  EXPECT_EQ(diagnose(facts), Cause::kReceiveTooSmall);
  EXPECT_THAT(said(facts), HasSubstr("the receive with wr_id 0x9 ended with IBV_WC_LOC_LEN_ERR"));
  EXPECT_THAT(said(facts),
              HasSubstr("a message of at least 2048 bytes came to a receive of 100 bytes"));
}

TEST(DiagnosisTest, EventsOfTheResponder) {
  Facts facts = failed(WQEStatus::kSuccess);
  facts.told = Told::kByEvent;
  facts.event = AsyncEventType::kQPAccessError;
  EXPECT_EQ(diagnose(facts), Cause::kUnknown);
  facts.fault.responder = {.refusal = Refusal::kNotEnabled,
                           .opcode = {Service::kRC, Op::kRDMAReadRequest}};
  EXPECT_EQ(diagnose(facts), Cause::kRefusedRequest);
  EXPECT_THAT(said(facts), HasSubstr("asynchronous event IBV_EVENT_QP_ACCESS_ERR"));
  EXPECT_THAT(said(facts), HasSubstr("not enabled by the qp_access_flags"));
  facts.injected = true;
  EXPECT_EQ(diagnose(facts), Cause::kFaultRule);
}

TEST(DiagnosisTest, EveryCauseHasItsWords) {
  Facts facts = failed(WQEStatus::kRetryExceeded);
  facts.peer.qp = good_peer();
  for (u8 cause = 0; cause <= static_cast<u8>(Cause::kUnknown); ++cause) {
    const Advice advice = advice_for(static_cast<Cause>(cause), facts);
    EXPECT_FALSE(advice.cause.empty()) << int{cause};
    EXPECT_EQ(advice.cause.back(), '.') << int{cause};
  }
}

TEST(ParagraphTest, AnOverrunCQ) {
  EXPECT_THAT(overrun_paragraph(63, false), HasSubstr("63 entries"));
  EXPECT_THAT(overrun_paragraph(63, true), HasSubstr("cq-overrun"));
}

}  // namespace
}  // namespace verbena::explain
