// The heap of a program that simulates: some hundred megabytes, all of which are gone through again
// and again, a few lines here and there. On pages of 4 KiB most of that misses the TLB.
#pragma once

namespace verbena::cli {

// The next gibibyte that the program allocates lies together, on huge pages where the kernel has
// them (madvise(2), MADV_HUGEPAGE); only what is used takes memory. Of the C library's malloc; to
// be called once, before anything large is allocated. Where it is not possible, nothing changes.
void put_heap_on_huge_pages();

}  // namespace verbena::cli
