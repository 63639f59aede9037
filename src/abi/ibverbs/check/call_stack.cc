#include "abi/ibverbs/check/call_stack.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <execinfo.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "abi/ibverbs/check/symbol_table.h"
#include "check/words.h"

// Where this library lies, by the linker.
extern "C" [[gnu::visibility("hidden")]] const char __ehdr_start[];
extern "C" [[gnu::visibility("hidden")]] const char _end[];

namespace verbena::abi {
namespace {

constexpr int kMaxOwnFrames = 12;

bool is_own(const void* address) {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  return at >= reinterpret_cast<std::uintptr_t>(&__ehdr_start[0]) &&
         at < reinterpret_cast<std::uintptr_t>(&_end[0]);
}

std::string demangled(const std::string& name) {
  int status = 0;
  char* const text = __cxxabiv1::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
  std::string result = status == 0 && text != nullptr ? text : name;
  std::free(text);
  return result;
}

}  // namespace

check::Site call_site() {
  std::array<void*, check::Site::kMaxFrames + kMaxOwnFrames> frames;
  const int count = backtrace(frames.data(), static_cast<int>(frames.size()));
  const std::span taken = std::span(frames).first(static_cast<std::size_t>(std::max(count, 0)));
  const auto first = std::ranges::find_if_not(taken, is_own);
  check::Site site;
  for (auto at = first; at != taken.end() && site.count < check::Site::kMaxFrames; ++at)
    site.frames[site.count++] = *at;
  return site;
}

// A return address may be the first byte of the next function: the call is before it.
std::string describe_frame(const void* return_address) {
  const auto* const at = static_cast<const char*>(return_address) - 1;
  Dl_info module{};
  if (dladdr(at, &module) == 0 || module.dli_fname == nullptr)
    return check::hex(reinterpret_cast<u64>(return_address));
  const u64 offset = static_cast<u64>(at - static_cast<const char*>(module.dli_fbase));
  const std::string place = std::string(module.dli_fname) + "+" + check::hex(offset);
  const auto symbol = find_symbol(module.dli_fname, offset);
  return symbol ? demangled(symbol->name) + "+" + check::hex(symbol->offset) + " (" + place + ")"
                : place;
}

bool is_in_rdmacm(const void* return_address) {
  Dl_info module{};
  return return_address != nullptr && dladdr(return_address, &module) != 0 &&
         module.dli_fname != nullptr && std::strstr(module.dli_fname, "librdmacm.so") != nullptr;
}

}  // namespace verbena::abi
