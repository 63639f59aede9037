// The selection of each flow's rate control: an algorithm and its parameters.
#pragma once

#include <variant>

#include "congestion/constant_rate.h"
#include "congestion/dcqcn/parameters.h"
#include "congestion/dctcp/dctcp.h"
#include "congestion/hpcc/hpcc.h"
#include "congestion/ib_cc/ib_cc.h"
#include "congestion/swift/swift.h"
#include "congestion/timely/timely.h"

namespace verbena {

// Every flow sends as fast as it can.
struct UncontrolledParameters {
  [[nodiscard]] bool valid() const { return true; }
};

// A bound of a flow's data in flight, besides the algorithm's own.
struct WindowParameters {
  enum class Kind : u8 {
    kNone,
    kFixed,
    kByRate,  // in proportion to the rate: `bytes` at line_rate
  };
  Kind kind = Kind::kNone;
  u64 bytes = 0;     // of payload; 1 .. 100 MB
  Rate line_rate{};  // kByRate

  [[nodiscard]] bool valid() const;
};

struct CongestionParameters {
  std::variant<UncontrolledParameters, ConstantRateParameters, DCQCNParameters, TIMELYParameters,
               SwiftParameters, HPCCParameters, DCTCPParameters, IBCCParameters>
      algorithm{};
  WindowParameters window{};
  NotificationParameters notification{};

  // Returns true if all values are within the ranges that their headers name.
  [[nodiscard]] bool valid() const;
  [[nodiscard]] bool controls() const {
    return !std::holds_alternative<UncontrolledParameters>(algorithm);
  }
};

}  // namespace verbena
