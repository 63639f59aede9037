// HeldFrame: a frame that a fault delays or changes: a copy that owns its bytes.
#pragma once

#include <vector>

#include "device/port/frame.h"
#include "faults/filter.h"

namespace verbena::faults {

class HeldFrame {
 public:
  // Gathers the payload and adds the ICRC of the wire if `identification` is known. Otherwise the
  // ICRC is 0: the link that sends the frame computes its own.
  [[nodiscard]] static HeldFrame of(const EgressFrame& frame, u16 identification = 0);
  [[nodiscard]] static HeldFrame of(const IngressFrame& frame);
  // Makes a response without payload to `request`, as its responder would send it. IBTA Vol 1,
  // 9.7.5
  [[nodiscard]] static HeldFrame answer_to(const EgressFrame& request, const Verdict::Answer& what);
  // Returns nullopt if the request does not decode.
  [[nodiscard]] static std::optional<HeldFrame> answer_to(const IngressFrame& request,
                                                          const Verdict::Answer& what,
                                                          QPN requester);

  // Flips bits: of the payload (the ICRC is made right again), or anywhere that the ICRC covers.
  void corrupt(const Verdict::Corruption& corruption);
  void mark();  // ECN: congestion experienced

  // The view is valid while this object lives and does not change. If bits were flipped under a bad
  // ICRC, an egress view has icrc_flip set.
  [[nodiscard]] EgressFrame egress() const;
  [[nodiscard]] IngressFrame ingress() const;

  friend bool operator==(const HeldFrame&, const HeldFrame&) = default;

 private:
  void add_icrc();
  [[nodiscard]] u32 right_icrc(Bytes transport) const;  // of BTH .. end of pad

  GID source_, destination_;
  GIDType type_ = GIDType::kRoCEv2;
  u16 udp_source_port_ = 0, identification_ = 0;
  bool identification_known_ = true;
  std::optional<u16> other_identification_;
  u8 traffic_class_ = 0, hop_limit_ = 0;
  QPN source_qp_{};
  u8 headers_size_ = 0;
  u32 icrc_flip_ = 0;
  std::vector<u8> transport_;  // BTH .. ICRC
};

}  // namespace verbena::faults
