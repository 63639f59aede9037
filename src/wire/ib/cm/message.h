// Message: any CM message with the transaction it belongs to, as a whole MAD of 256 bytes.
// IBTA Vol 1, 12.6 and 16.7: class 7, class version 2, method Send.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <variant>

#include "wire/ib/cm/apr.h"
#include "wire/ib/cm/drep.h"
#include "wire/ib/cm/dreq.h"
#include "wire/ib/cm/lap.h"
#include "wire/ib/cm/mra.h"
#include "wire/ib/cm/rej.h"
#include "wire/ib/cm/rep.h"
#include "wire/ib/cm/req.h"
#include "wire/ib/cm/rtu.h"
#include "wire/ib/cm/sidr_rep.h"
#include "wire/ib/cm/sidr_req.h"
#include "wire/ib/mad.h"

namespace verbena::cm {

using MADBytes = std::array<u8, kMADSize>;
using Body = std::variant<REQ, MRA, REJ, REP, RTU, DREQ, DREP, SIDRREQ, SIDRREP, LAP, APR>;

struct Message {
  u64 transaction_id = 0;
  u32 attribute_modifier = 0;  // of REQ and REP: the options of ece.h
  Body body{};
  // Returns nullopt for fewer than 256 bytes, or if it is not a CM message of this version.
  [[nodiscard]] static std::optional<Message> decode(std::span<const u8> mad);
  [[nodiscard]] MADBytes encode() const;
  friend bool operator==(const Message&, const Message&) = default;
};

}  // namespace verbena::cm
