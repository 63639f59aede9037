// Input: steps of 258 bytes: what happens, where, and a MAD of 256 bytes that a program of a host
// sends. Some of the MAD is repaired first (class, version, method, path), so that it gets past the
// first checks. Cables are pulled, and time passes.
// Checked: nothing crashes; what comes out is a whole MAD for a host that exists; traps that wait
// are bounded; the subnet still answers a well-formed question at the end.
#include <algorithm>
#include <array>
#include <vector>

#include "management/mad_agents.h"
#include "management/subnet.h"
#include "tests/fuzz/fuzz.h"

namespace verbena::fuzz {
namespace {

using namespace management;

constexpr std::size_t kStep = 2 + kMADSize;
constexpr u32 kHosts = 3;

class Session {
 public:
  Session() {
    for (u32 i = 0; i < kHosts; ++i) hosts_[i] = {subnet_.add_node({.guid = 0x100 * (i + 1)}), 1};
    switch_ = subnet_.add_node({.type = NodeType::kSwitch, .guid = 0x1000, .ports = kHosts});
    for (u32 i = 0; i < kHosts; ++i)
      subnet_.join(hosts_[i], {switch_, static_cast<u8>(i + 1)}, link_kind_of(100'000'000'000));
    client_ = agents_.open(hosts_[0]);
    CHECK(
        agents_.add(client_, 0,
                    {.mgmt_class = 0x81, .class_version = 1, .method_mask = {~u64{0}, ~u64{0}}}) ==
        MADAgents::Registration::kDone);
  }

  void step(std::span<const u8, kStep> in) {
    const u8 how = in[0], where = in[1];
    now_ = now_ + ms(where);
    if ((how & 0x80) != 0) subnet_.set_plugged(hosts_[where % kHosts], (how & 0x40) != 0, now_);
    Datagram datagram;
    datagram.dlid = static_cast<u16>(in[2 + 32] << 8 | in[2 + 33]);
    datagram.mad.assign(in.begin() + 2, in.end());
    repair(how, datagram.mad);
    if ((how & 0x20) != 0)
      agents_.send(client_, 0, std::move(datagram), ms(10), where % 4, now_);
    else
      subnet_.send(hosts_[where % kHosts], std::move(datagram), now_);
    subnet_.on_timer(now_);
    agents_.on_timer(now_);
    drain();
  }

  // A directed route to the switch is answered whatever was done, unless an M_Key was set.
  void end() {
    for (const PortPlace host : hosts_) subnet_.set_plugged(host, true, now_);
    drain();
    if (!subnet_.port(hosts_[0]).peer || subnet_.port({switch_, 0})[port_info::kMKey] != 0 ||
        subnet_.port(hosts_[0]).physical_state() != PhysicalState::kLinkUp)
      return;
    Datagram question;
    question.mad.assign(kMADSize, 0);
    MADHeader{.mgmt_class = MgmtClass::kSubnDirectedRoute,
              .class_version = 1,
              .method = MADMethod::kGet,
              .class_specific = 1,
              .attribute_id = static_cast<u16>(SMPAttribute::kNodeInfo)}
        .encode(std::span(question.mad).first<MADHeader::kSize>());
    std::fill_n(question.mad.begin() + 32, 4, u8{0xff});
    question.mad[129] = 1;
    subnet_.send(hosts_[0], question, now_);
    const std::optional<Delivery> answer = subnet_.poll_delivery();
    CHECK(answer && answer->datagram.mad[64 + 2] == static_cast<u8>(NodeType::kSwitch));
  }

 private:
  static void repair(u8 how, std::vector<u8>& mad) {
    constexpr std::array<u8, 4> kClasses = {0x81, 0x01, 0x04, 0x03};
    if ((how & 1) == 0) return;
    mad[0] = 1;
    mad[1] = kClasses[how >> 1 & 3];
    mad[2] = 1;
    if ((how & 8) != 0) mad[3] = static_cast<u8>(1 + (how >> 4 & 1));  // Get or Set
    mad[4] &= 0x80;
    mad[6] = 0;
    mad[7] %= 4;
    std::fill_n(mad.begin() + 32, 4, u8{0xff});
    for (std::size_t hop = 1; hop < 4; ++hop)
      mad[128 + hop] = static_cast<u8>(mad[128 + hop] % (kHosts + 2));
  }

  void drain() {
    for (bool any = true; any;) {
      any = false;
      while (std::optional<Delivery> out = agents_.poll_to_send()) {
        subnet_.send(out->at, std::move(out->datagram), now_);
        any = true;
      }
      while (std::optional<Delivery> in = subnet_.poll_delivery()) {
        CHECK(!subnet_.node(in->at.node).is_switch());
        CHECK(in->datagram.mad.size() >= kMADSize);
        agents_.deliver(std::move(*in), now_);
        any = true;
      }
    }
    while (agents_.poll_received()) {
    }
    while (subnet_.poll_event()) {
    }
    (void)subnet_.take_changed();
  }

  Subnet subnet_;
  MADAgents agents_;
  std::array<PortPlace, kHosts> hosts_{};
  u32 switch_ = 0, client_ = 0;
  Time now_ = Time() + sec(1);
};

}  // namespace
}  // namespace verbena::fuzz

extern "C" int LLVMFuzzerTestOneInput(const verbena::u8* data, std::size_t size) {
  using namespace verbena;
  fuzz::Session session;
  for (std::span<const u8> rest(data, size); rest.size() >= fuzz::kStep;
       rest = rest.subspan(fuzz::kStep))
    session.step(rest.first<fuzz::kStep>());
  session.end();
  return 0;
}
