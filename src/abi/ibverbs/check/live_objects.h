// The objects that a program has made and not destroyed, for the checker (check/checker.h). LiveSet
// reports them.
#pragma once

#include <string_view>

namespace verbena::abi::checks {

// `kind`: a word that outlives the object.
void created(const void* object, std::string_view kind);
void destroyed(const void* object);

// While one lives, what this thread destroys is what the program left to its context's end.
class LeavingBehind {
 public:
  LeavingBehind();
  ~LeavingBehind();
  LeavingBehind(const LeavingBehind&) = delete;
  LeavingBehind& operator=(const LeavingBehind&) = delete;
};

}  // namespace verbena::abi::checks
