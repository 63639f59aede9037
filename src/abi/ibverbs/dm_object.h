// DMObject: device memory. The device is software: it is this process's memory, in a file that can
// be exported.
#pragma once

#include "abi/ibverbs/context_object.h"
#include "abi/ibverbs/use_count.h"
#include "host/os/mapping.h"

namespace verbena::abi {

inline constexpr u64 kMaxDMBytes = 64 << 20;  // of one context, all together

// Device memory is accessed by words: a range of it begins and ends at one.
[[nodiscard]] constexpr bool is_whole_words(u64 offset, u64 length) {
  constexpr u64 kWord = 4;  // bytes, as in mlx5's
  return offset % kWord == 0 && length % kWord == 0;
}

struct DMObject : ibv_dm {
  static DMObject& of(ibv_dm* dm) { return *static_cast<DMObject*>(dm); }
  [[nodiscard]] ContextObject& owner() const { return ContextObject::of(context); }
  [[nodiscard]] bool covers(u64 offset, u64 length) const {
    return offset <= memory->size() && length <= memory->size() - offset;
  }

  std::shared_ptr<host::Mapping> memory;  // also of those that ibv_import_dm has made of it
  UseCount users;                         // regions of it
};

// Deleted; kBusy and unchanged while a region of it is left.
[[nodiscard]] Status destroy(DMObject& dm);
// Another object of the same memory, in `context`. nullptr: no memory for it.
[[nodiscard]] DMObject* import_dm(ContextObject& context, std::shared_ptr<host::Mapping> memory,
                                  u32 handle);

}  // namespace verbena::abi
