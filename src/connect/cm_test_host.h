// TestHost: a CMAgent with its two outputs drained, for the tests of connect/.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "connect/cm_agent.h"

namespace verbena::test {

inline constexpr ServiceId kService{0x1061c06};  // port 7174 of RDMA_PS_TCP

inline std::string name_of(const cm::Body& body) {
  static constexpr std::array kNames = {"REQ",  "MRA",      "REJ",      "REP", "RTU", "DREQ",
                                        "DREP", "SIDR_REQ", "SIDR_REP", "LAP", "APR"};
  return kNames.at(body.index());
}

inline std::string name_of(const CMEvent& event) {
  static constexpr std::array kNames = {
      "ConnectRequest", "ReplyReceived", "ReceiptAcknowledged", "Established", "Rejected",
      "Unreachable",    "Disconnected",  "TimeWaitExit",        "SIDRRequest", "SIDRReply"};
  return kNames.at(event.what.index());
}

class TestHost {
 public:
  TestHost(const char* gid_text, const CMConfig& config)
      : gid(*GID::parse(gid_text)), agent(config) {}

  std::vector<MADOut> mads() {
    std::vector<MADOut> all;
    for (MADOut out; agent.poll_mad(out);) all.push_back(out);
    return all;
  }
  std::vector<CMEvent> events() {
    std::vector<CMEvent> all;
    while (std::optional<CMEvent> event = agent.poll_event()) all.push_back(*event);
    return all;
  }
  void receive(const MADOut& mad, Time now) {
    agent.on_mad({.source = mad.source,
                  .destination = mad.destination,
                  .source_qp = kGSIQPN,
                  .mad = mad.mad},
                 now);
  }
  // A forged message from `peer`.
  void receive(const GID& peer, const cm::Body& body, Time now, u64 transaction_id = 1) {
    receive({.source = peer,
             .destination = gid,
             .mad = cm::Message{.transaction_id = transaction_id, .body = body}.encode()},
            now);
  }

  const GID gid;
  CMAgent agent;
};

inline cm::Body body_of(const MADOut& mad) { return cm::Message::decode(mad.mad)->body; }

// "REJ DREQ": the names, in order; "" for none.
inline void append_name(std::string& names, const std::string& name) {
  if (!names.empty()) names += ' ';
  names += name;
}
inline std::string names_of(const std::vector<MADOut>& mads) {
  std::string names;
  for (const MADOut& mad : mads) append_name(names, name_of(body_of(mad)));
  return names;
}
inline std::string names_of(const std::vector<CMEvent>& events) {
  std::string names;
  for (const CMEvent& event : events) append_name(names, name_of(event));
  return names;
}

}  // namespace verbena::test
