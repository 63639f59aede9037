// Whether memory is there to be registered. A card pins it and so finds out; we must ask.
#pragma once

#include <cstddef>

namespace verbena::host {

// True when every page of [address, address + length) is mapped in this process now. Cheap: it
// walks mappings, not pages, and touches none. Mapped memory that later goes away is the program's
// bug.
[[nodiscard]] bool is_mapped(const void* address, std::size_t length);

}  // namespace verbena::host
