// Two UC engines joined by a link that loses, repeats and reorders packets, all from one seed. The
// arrived messages are compared with a plain record of the sent ones. UC promises little (IBTA
// 9.8.2): each message is delivered whole or not at all, and nothing else is written.
#include <gtest/gtest.h>

#include <deque>

#include "transport/uc/engine.h"
#include "transport/unreliable_test_peer.h"

namespace verbena {
namespace {

using Peer = test::TestPeer<UCEngine>;

struct Faults {
  double loss = 0, duplicate = 0, reorder = 0;
};

class LossyLink {
 public:
  LossyLink(PRNG prng, const Faults& faults) : prng_(prng), faults_(faults) {}

  void send(test::PacketBytes packet) {
    if (prng_.chance(faults_.loss)) return;
    if (prng_.chance(faults_.duplicate)) packets_.push_back(packet);
    const bool overtakes = !packets_.empty() && prng_.chance(faults_.reorder);
    const auto behind = static_cast<std::ptrdiff_t>(
        overtakes ? packets_.size() - std::min<u64>(packets_.size(), prng_.in(1, 4))
                  : packets_.size());
    packets_.insert(packets_.begin() + behind, std::move(packet));
  }
  bool empty() const { return packets_.empty(); }
  test::PacketBytes receive() {
    test::PacketBytes packet = std::move(packets_.front());
    packets_.pop_front();
    return packet;
  }

 private:
  PRNG prng_;
  Faults faults_;
  std::deque<test::PacketBytes> packets_;
};

// The receiver's buffer: receives of kReceiveSize, then one slot for the WRITE of each message,
// with a gap that nothing may write behind each.
class UCLossyLinkTest : public testing::TestWithParam<u64> {
 protected:
  static constexpr u64 kMessages = 200;
  static constexpr u64 kMaxLength = 1500;
  static constexpr u64 kReceives = 8;
  static constexpr u64 kSlot = kMaxLength + 64;
  static constexpr u64 kWrites = kReceives * kSlot;

  struct Message {
    SendOp op = SendOp::kSend;
    u64 length = 0;
    u8 at(u64 i, u64 id) const { return static_cast<u8>(id * 7 + i * 13 + 1); }
  };

  UCLossyLinkTest() {
    from_.qp.path_mtu = to_.qp.path_mtu = prng_.chance(0.5) ? MTU::k256 : MTU::k512;
    from_.to_rts();
    to_.to_rts();
    for (u64 i = 0; i < kReceives; ++i) post_receive(i);
  }
  static Faults faults_of(u64 seed) {
    if (seed % 4 == 0) return {};
    return {.loss = 0.05, .duplicate = seed % 4 > 1 ? 0.05 : 0, .reorder = seed % 4 > 2 ? 0.05 : 0};
  }
  bool faultless() const { return GetParam() % 4 == 0; }
  static u64 slot_of(u64 id) { return kWrites + id * kSlot; }

  void post_receive(u64 i) { to_.post_receive(i, {to_.sge(i * kSlot, kMaxLength)}); }
  void post_message(u64 id);
  void deliver_one();
  void check_completion(const CQE& cqe);
  void check_receive(const CQE& cqe, u64 id);
  void check_slot(u64 id, bool whole) const;
  void check_guards() const;

  PRNG prng_{GetParam()};
  Peer from_{QPType::kUC, QPN{1}, QPN{2}, {.memory_bytes = kMaxLength}};
  Peer to_{QPType::kUC, QPN{2}, QPN{1}, {.memory_bytes = kWrites + kMessages * kSlot}};
  LossyLink link_{prng_.fork(), faults_of(GetParam())};
  std::vector<Message> messages_;
  std::vector<u64> deliveries_ = std::vector<u64>(kMessages);
};

// Every message but a plain WRITE names itself in its immediate.
void UCLossyLinkTest::post_message(u64 id) {
  constexpr std::array kOps = {SendOp::kSendWithImmediate, SendOp::kRDMAWrite,
                               SendOp::kRDMAWriteWithImmediate};
  const Message message{kOps[prng_.below(kOps.size())], prng_.below(kMaxLength + 1)};
  messages_.push_back(message);
  for (u64 i = 0; i < message.length; ++i) from_.buffer[i] = message.at(i, id);
  SendWR wr;
  wr.wr_id = id;
  wr.op = message.op;
  wr.signaled = true;
  wr.immediate = static_cast<u32>(id);
  wr.remote_address = Peer::kIova + slot_of(id);
  wr.r_key = to_.keys.r_key;
  ASSERT_EQ(from_.post(wr, {from_.sge(0, message.length)}), PostError::kOk);
  for (test::PacketBytes& packet : from_.sent()) link_.send(std::move(packet));
  ASSERT_EQ(test::outcomes(from_.send_cqes()),
            (std::vector<std::pair<u64, WQEStatus>>{{id, WQEStatus::kSuccess}}));
}

void UCLossyLinkTest::deliver_one() {
  to_.deliver(link_.receive());
  for (const CQE& cqe : to_.receive_cqes()) check_completion(cqe);
}

void UCLossyLinkTest::check_completion(const CQE& cqe) {
  ASSERT_EQ(cqe.status, WQEStatus::kSuccess);
  ASSERT_LT(cqe.immediate, messages_.size());
  const u64 id = cqe.immediate;
  ASSERT_EQ(cqe.byte_length, messages_[id].length);
  ++deliveries_[id];
  if (cqe.op == CompletionOp::kReceive) {
    check_receive(cqe, id);
  } else {
    ASSERT_EQ(messages_[id].op, SendOp::kRDMAWriteWithImmediate);
    check_slot(id, true);  // the data is there when the completion is
  }
  post_receive(cqe.wr_id);
}

void UCLossyLinkTest::check_receive(const CQE& cqe, u64 id) {
  ASSERT_EQ(messages_[id].op, SendOp::kSendWithImmediate);
  for (u64 i = 0; i < messages_[id].length; ++i)
    ASSERT_EQ(to_.buffer[cqe.wr_id * kSlot + i], messages_[id].at(i, id));
}

// Each byte of the slot is the message's or was never written; `whole`: all of them are.
void UCLossyLinkTest::check_slot(u64 id, bool whole) const {
  const Message& message = messages_[id];
  const bool write = message.op != SendOp::kSendWithImmediate;
  for (u64 i = 0; i < kSlot; ++i) {
    const u8 byte = to_.buffer[slot_of(id) + i];
    const bool written = write && i < message.length && byte == message.at(i, id);
    ASSERT_TRUE(written || (byte == 0 && !(whole && i < message.length))) << id << " " << i;
  }
}

void UCLossyLinkTest::check_guards() const {
  for (u64 i = 0; i < kReceives; ++i)
    for (u64 at = kMaxLength; at < kSlot; ++at) ASSERT_EQ(to_.buffer[i * kSlot + at], 0);
}

TEST_P(UCLossyLinkTest, DeliversEachMessageWholeOrNotAtAll) {
  for (u64 id = 0; id < kMessages || !link_.empty();) {
    const bool post = id < kMessages && (link_.empty() || prng_.chance(0.3));
    post ? post_message(id++) : deliver_one();
    ASSERT_FALSE(HasFatalFailure()) << "SIM_SEED=" << GetParam();
  }
  check_guards();
  u64 delivered = 0;
  for (u64 id = 0; id < kMessages; ++id) {
    check_slot(id, faultless() && messages_[id].op != SendOp::kSendWithImmediate);
    delivered += deliveries_[id] != 0;
    const u64 expected = messages_[id].op == SendOp::kRDMAWrite ? 0 : 1;
    if (faultless()) {
      ASSERT_EQ(deliveries_[id], expected) << id;
    }
  }
  EXPECT_GT(delivered, kMessages / 4);  // most messages are of a few packets, and faults are rare
}

INSTANTIATE_TEST_SUITE_P(Seeds, UCLossyLinkTest, testing::Range<u64>(0, 200));

}  // namespace
}  // namespace verbena
