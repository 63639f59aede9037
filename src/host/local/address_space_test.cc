#include "host/local/address_space.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "host/os/mapping.h"
#include "host/os/page_for_test.h"

namespace verbena::host {
namespace {

using test::address_of;
using test::kPage;

TEST(AddressSpaceTest, TellsPrivateMemoryFromThatOfAFile) {
  Expected<Mapping> file = Mapping::create(2 * kPage);
  ASSERT_TRUE(file);
  void* const anonymous = ::mmap(nullptr, kPage, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const AddressSpace space(AddressSpace::Look::kThoroughly);
  const std::optional<MappedArea> of_file = space.at(address_of(file->data() + kPage));
  ASSERT_TRUE(of_file);
  EXPECT_EQ(of_file->begin, address_of(file->data()));
  EXPECT_EQ(of_file->end, of_file->begin + 2 * kPage);
  EXPECT_TRUE(of_file->is_shared && of_file->is_writable && !of_file->is_executable);
  EXPECT_NE(of_file->inode, 0u);
  EXPECT_EQ(of_file->name, "/memfd:verbena (deleted)");
  const std::optional<MappedArea> of_none = space.at(address_of(anonymous));
  ASSERT_TRUE(of_none);
  EXPECT_FALSE(of_none->is_shared || of_none->is_writable);
  EXPECT_EQ(of_none->inode, 0u);
  ::munmap(anonymous, kPage);
  EXPECT_FALSE(space.at(0));
}

TEST(AddressSpaceTest, ReadsTheKernelsText) {
  const std::optional<MappedArea> area = parse_mapped_area(
      "7f0fa65fe000-7f0fa6600000 rw-s 00003000 00:01 1027       /memfd:a name (deleted)");
  ASSERT_TRUE(area);
  EXPECT_EQ(area->begin, 0x7f0fa65fe000u);
  EXPECT_EQ(area->end, 0x7f0fa6600000u);
  EXPECT_TRUE(area->is_readable && area->is_writable && area->is_shared && !area->is_executable);
  EXPECT_EQ(area->offset, 0x3000u);
  EXPECT_EQ(area->device, 1u);
  EXPECT_EQ(area->inode, 1027u);
  EXPECT_EQ(area->name, "/memfd:a name (deleted)");
  EXPECT_EQ(parse_mapped_area("5000-6000 r-xp 00000000 00:00 0")->name, "");
  EXPECT_FALSE(parse_mapped_area("no mapping"));
}

}  // namespace
}  // namespace verbena::host
