// The names and versions that librdmacm.so.1 exports, against the installed one of rdma-core and
// against what rdma-core has published since.
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

constexpr char kOurs[] = VERBENA_LIBRARY_DIR "/librdmacm.so.1";
constexpr char kInstalled[] = "/usr/lib/x86_64-linux-gnu/librdmacm.so.1";

TEST(RDMACMSymbolsTest, EverythingOfTheInstalledLibraryIsThere) {
  if (access(kInstalled, R_OK) != 0) GTEST_SKIP() << kInstalled << " is not installed";
  const std::set<std::string> ours = defined_versions(kOurs);
  const std::set<std::string> theirs = defined_versions(kInstalled);
  ASSERT_THAT(theirs, Not(IsEmpty()));
  std::vector<std::string> missing;
  std::ranges::set_difference(theirs, ours, std::back_inserter(missing));
  EXPECT_THAT(missing, IsEmpty());
}

TEST(RDMACMSymbolsTest, VersionsNewerThanDebian12AreThere) {
  EXPECT_THAT(defined_versions(kOurs),
              IsSupersetOf({"rdma_query_addrinfo@@RDMACM_1.4", "rdma_resolve_addrinfo@@RDMACM_1.4",
                            "rdma_write_cm_event@@RDMACM_1.4"}));
}

TEST(RDMACMSymbolsTest, NothingElseIsExported) {
  for (const std::string& symbol : defined_versions(kOurs))
    EXPECT_TRUE(symbol.starts_with("r") && symbol.find("@@RDMACM_1.") != std::string::npos)
        << symbol;
}

}  // namespace
}  // namespace verbena::test
