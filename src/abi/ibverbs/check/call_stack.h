// Where the program is, and how to say it. backtrace(3), dladdr(3).
#pragma once

#include <string>

#include "check/site.h"

namespace verbena::abi {

// The calling thread's stack, from the first caller outside of this library on.
[[nodiscard]] check::Site call_site();

// One frame: "function+0x12 (/path/of/module+0x1234)"; the latter is what addr2line -e takes.
[[nodiscard]] std::string describe_frame(const void* return_address);

// Whether the frame is in librdmacm, which makes objects of its own for a program.
[[nodiscard]] bool is_in_rdmacm(const void* return_address);

}  // namespace verbena::abi
