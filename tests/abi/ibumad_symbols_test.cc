// The names and versions that libibumad.so.3 exports, against the installed one of rdma-core.
#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>

#include "tests/abi/elf_versions.h"

namespace verbena::test {
namespace {

using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;

constexpr char kOurIBUMAD[] = VERBENA_LIBRARY_DIR "/libibumad.so.3";
constexpr char kInstalledIBUMAD[] = "/usr/lib/x86_64-linux-gnu/libibumad.so.3";

TEST(IBUMADSymbolsTest, EverythingOfTheInstalledLibraryIsThere) {
  if (access(kInstalledIBUMAD, R_OK) != 0) GTEST_SKIP() << kInstalledIBUMAD << " is not installed";
  const std::set<std::string> ours = defined_versions(kOurIBUMAD);
  const std::set<std::string> theirs = defined_versions(kInstalledIBUMAD);
  ASSERT_THAT(theirs, Not(IsEmpty()));
  std::vector<std::string> missing;
  std::ranges::set_difference(theirs, ours, std::back_inserter(missing));
  EXPECT_THAT(missing, IsEmpty());
}

// Debian 12's library lacks them; libibmad.so.5 of Debian 13 does not load without IBUMAD_1.4.
TEST(IBUMADSymbolsTest, NewerReleasesSymbolsAreThere) {
  EXPECT_THAT(defined_versions(kOurIBUMAD),
              IsSupersetOf({"umad_open_smi_port@@IBUMAD_1.3", "umad_get_smi_gsi_pairs@@IBUMAD_1.4",
                            "umad_get_smi_gsi_pair_by_ca_name@@IBUMAD_1.4"}));
}

TEST(IBUMADSymbolsTest, NothingElseIsExported) {
  for (const std::string& symbol : defined_versions(kOurIBUMAD))
    EXPECT_TRUE(symbol.starts_with("umad_") && symbol.find("@@IBUMAD_1.") != std::string::npos)
        << symbol;
}

}  // namespace
}  // namespace verbena::test
