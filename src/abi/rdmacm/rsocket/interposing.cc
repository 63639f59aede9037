#include "abi/rdmacm/rsocket/interposing.h"

#include <dlfcn.h>

namespace verbena::rdmacm::rsocket {
namespace {

// Returns the object that gives the program the function, or nullptr if none is found.
const void* provider_of(const char* function) {
  Dl_info info{};
  void* const symbol = dlsym(RTLD_DEFAULT, function);
  return symbol != nullptr && dladdr(symbol, &info) != 0 ? info.dli_fbase : nullptr;
}

}  // namespace

bool refuses_type_flags() {
  static const bool refuses = [] {
    const void* const libc = provider_of("getpid");
    const void* const accept = provider_of("accept");
    return accept != libc && provider_of("accept4") != accept;
  }();
  return refuses;
}

}  // namespace verbena::rdmacm::rsocket
