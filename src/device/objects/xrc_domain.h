// XRCDomain: which SRQs the XRC target QPs of the same domain may receive into. IBTA Annex A14.
#pragma once

#include "device/objects/object_table.h"
#include "device/objects/shared_receive_queue.h"
#include "transport/xrc_receives.h"

namespace verbena {

class XRCDomain final : public XRCReceives {
 public:
  XRCDomain(u32 slot, const ObjectTable<SharedReceiveQueue>& srqs) : slot_(slot), srqs_(srqs) {}

  u32 table_slot() const { return slot_; }
  // Returns nullptr if no SRQ of this domain has that number (any more).
  [[nodiscard]] SharedReceiveQueue* srq(u32 number) const;
  [[nodiscard]] std::optional<XRCReceiveQueue> find(u32 srq_number) const override;

  u32 users = 0;  // SRQs and target QPs

 private:
  u32 slot_;
  const ObjectTable<SharedReceiveQueue>& srqs_;
};

}  // namespace verbena
