// Input: steps of 256 bytes, each a MAD to a CMAgent. Byte 7 of the MAD (Class Specific, which CM
// does not use) says from whom it comes, what is repaired in it (class, IDs, ServiceID) so that it
// gets past the first checks, and whether the program acts or time passes before it.
// Checked: every MAD that decodes encodes to one that means the same and has a route; and when the
// program has gone and time has passed, nothing is left.
#include <algorithm>
#include <vector>

#include "base/bytes.h"
#include "connect/cm_agent.h"
#include "connect/ip_cm.h"
#include "connect/mad_route.h"
#include "tests/fuzz/fuzz.h"
#include "wire/ib/cm/message.h"

namespace verbena::fuzz {
namespace {

constexpr ServiceId kService{0x1061c06};
constexpr std::size_t kStepAt = 7;

void check_mad(std::span<const u8> in) {
  check_header<MADHeader>(in);
  check_header<cm::IPCMHeader>(in);
  check_header<cm::Path>(in);
  const std::optional<cm::Message> message = cm::Message::decode(in);
  CHECK(message.has_value() == route_of(in).has_value());
  if (!message) return;
  CHECK(cm::Message::decode(message->encode()) == message);
  const auto* req = std::get_if<cm::REQ>(&message->body);
  if (req != nullptr) (void)parse_ip_request(req->service_id, req->private_data);
}

class Session {
 public:
  Session() { CHECK(agent_.listen({.service_id = kService, .backlog = 4}).has_value()); }

  void step(cm::MADBytes mad) {
    const u8 how = mad[kStepAt];
    repair(how, mad);
    if ((how & 0x20) != 0) act();
    if ((how & 0x40) != 0) pass();
    agent_.on_mad({.source = GID::from_ipv4(how & 0x01 ? 2 : 3),
                   .destination = gid_,
                   .source_qp = kGSIQPN,
                   .mad = mad},
                  now_);
    drain();
  }

  void finish() {
    for (const CommId id : ids_) (void)agent_.abandon(id, now_);
    drain();
    constexpr int kMaxTimers = 10'000;
    for (int i = 0; i < kMaxTimers && agent_.next_timer() != Time::never(); ++i) pass();
    CHECK(agent_.connections() == 0);
  }

 private:
  void repair(u8 how, cm::MADBytes& mad) const {
    constexpr std::array<u8, 4> kCMHeader = {MADHeader::kBaseVersion, 0x07, cm::kClassVersion,
                                             0x03};
    if ((how & 0x80) == 0) return;
    std::ranges::copy(kCMHeader, mad.begin());
    mad[16] = 0;
    mad[17] = static_cast<u8>(0x10 + mad[17] % 11);
    if ((how & 0x02) != 0) store_be64(&mad[32], kService.value);  // of a REQ or SIDR_REQ
    if (ids_.empty()) return;
    if ((how & 0x04) != 0) store_be32(&mad[28], ids_[mad[28] % ids_.size()].value);
    if ((how & 0x08) != 0) store_be32(&mad[24], peer_ids_[mad[24] % peer_ids_.size()].value);
    if ((how & 0x10) != 0) store_be32(&mad[24], ids_[mad[24] % ids_.size()].value);  // SIDR_REP
  }

  // Calls that the state does not allow are refused.
  void act() {
    const auto id = agent_.connect(
        {.local_gid = gid_, .remote_gid = GID::from_ipv4(2), .qpn = QPN{1}, .max_cm_retries = 1},
        now_);
    if (id.has_value()) learn(*id, CommId{});
    for (const CommId known : ids_) {
      (void)agent_.accept(known, {.qpn = QPN{2}}, now_);
      (void)agent_.ready_to_use(known, {});
      (void)agent_.reply_disconnect(known, {}, now_);
    }
  }

  void pass() {
    if (agent_.next_timer() == Time::never()) return;
    now_ = std::max(now_, agent_.next_timer());
    agent_.on_timer(now_);
    drain();
  }

  void drain() {
    for (MADOut out; agent_.poll_mad(out);) CHECK(cm::Message::decode(out.mad).has_value());
    while (const std::optional<CMEvent> event = agent_.poll_event()) {
      if (const auto* request = std::get_if<ConnectRequest>(&event->what))
        learn(event->id, request->req.local_comm_id);
      if (const auto* request = std::get_if<SIDRRequest>(&event->what))
        learn(event->id, request->req.request_id);
      if (const auto* reply = std::get_if<ReplyReceived>(&event->what))
        learn(event->id, reply->rep.local_comm_id);
    }
  }

  void learn(CommId ours, CommId theirs) {
    ids_.push_back(ours);
    peer_ids_.push_back(theirs);
  }

  const GID gid_ = GID::from_ipv4(1);
  CMAgent agent_{{.seed = 1, .max_connections = 8}};
  Time now_;
  std::vector<CommId> ids_, peer_ids_;
};

}  // namespace
}  // namespace verbena::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::span<const verbena::u8> in(data, size);
  verbena::fuzz::check_mad(in);
  verbena::fuzz::Session session;
  while (!in.empty()) {
    const auto step = in.first(std::min(in.size(), verbena::kMADSize));
    in = in.subspan(step.size());
    verbena::cm::MADBytes mad{};
    std::ranges::copy(step, mad.begin());
    session.step(mad);
  }
  session.finish();
  return 0;
}
