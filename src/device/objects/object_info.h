// ObjectInfo: the facts about an object that is not a QP, for observers of a device: for statistics
// and for `rdma resource show`. No part of the data path uses it.
#pragma once

#include "base/types.h"

namespace verbena {

enum class ObjectKind : u8 { kPD, kCQ, kMR, kSRQ };
inline constexpr u32 kObjectKinds = 4;

struct ObjectInfo {
  u32 number = 0;       // among the objects of its kind in this device. MR: the index of its key
  u32 pd = 0;           // MR and SRQ: the number of the PD
  u32 uses = 0;         // PD, CQ and SRQ: objects that refer to it
  u32 key = 0;          // MR: L_Key and R_Key
  u64 size = 0;         // CQ: CQEs. SRQ: WQEs. MR: bytes
  bool is_xrc = false;  // SRQ
  u8 reserved[7] = {};  // 0
  friend bool operator==(const ObjectInfo&, const ObjectInfo&) = default;
};

// A place in a table of objects: where a list begins or goes on. No object is at kNoPlace.
inline constexpr u32 kNoPlace = ~u32{0};

}  // namespace verbena
