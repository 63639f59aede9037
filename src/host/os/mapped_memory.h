// Queries about memory to the operating system: whether memory is mapped and so can be registered
// (a card finds out when it pins the memory; we must ask), and a call that brings its pages in.
#pragma once

#include <cstddef>

namespace verbena::host {

// Returns true if every page of [address, address + length) is mapped in this process now. Cheap:
// it walks mappings, not pages, and touches none. Mapped memory that later goes away is the
// program's bug.
[[nodiscard]] bool is_mapped(const void* address, std::size_t length);

enum class PageRight { kRead, kWrite };
// Returns true if, in addition, the process may read or write each page. If the kernel does not
// tell rights (no /proc), returns true for mapped memory: each later access meets the protection of
// its page anyway.
[[nodiscard]] bool is_mapped(const void* address, std::size_t length, PageRight right);

enum class PageIn { kToRead, kToWrite };
// Brings the pages in. Returns false if some are not mapped, or not with this right. If the kernel
// cannot (before 5.14), they come when they are touched.
[[nodiscard]] bool page_in(const void* address, std::size_t length, PageIn how);

}  // namespace verbena::host
