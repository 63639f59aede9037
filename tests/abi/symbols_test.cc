// The names and versions that libibverbs.so.1 exports, against the installed one of rdma-core and
// against what rdma-core has published since.
#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "tests/abi/elf_versions.h"

namespace verbena::test {
namespace {

using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;

constexpr char kOurs[] = VERBENA_LIBRARY_DIR "/libibverbs.so.1";
constexpr char kInstalled[] = "/usr/lib/x86_64-linux-gnu/libibverbs.so.1";

TEST(SymbolsTest, EverythingOfTheInstalledLibraryIsThere) {
  if (access(kInstalled, R_OK) != 0) GTEST_SKIP() << kInstalled << " is not installed";
  const std::set<std::string> ours = defined_versions(kOurs);
  const std::set<std::string> theirs = defined_versions(kInstalled);
  ASSERT_THAT(theirs, Not(IsEmpty()));
  std::vector<std::string> missing;
  std::ranges::set_difference(theirs, ours, std::back_inserter(missing));
  EXPECT_THAT(missing, IsEmpty());
}

TEST(SymbolsTest, VersionsNewerThanDebian12AreThere) {
  EXPECT_THAT(defined_versions(kOurs), IsSupersetOf({
                                           "ibv_alloc_dmah@@IBVERBS_1.15",
                                           "ibv_dealloc_dmah@@IBVERBS_1.15",
                                           "ibv_reg_mr_ex@@IBVERBS_1.15",
                                           "ibv_dm_export_dmabuf_fd@@IBVERBS_1.16",
                                           "ibv_query_port_speed@@IBVERBS_1.16",
                                           "ibv_alloc_buf@@IBVERBS_1.17",
                                           "ibv_free_buf@@IBVERBS_1.17",
                                           "ibv_reg_buf_mr@@IBVERBS_1.17",
                                           "_ibv_query_comp_cntr_caps@@IBVERBS_1.18",
                                           "ibv_create_comp_cntr@@IBVERBS_1.18",
                                           "ibv_destroy_comp_cntr@@IBVERBS_1.18",
                                           "ibv_export_buf_dmabuf_fd@@IBVERBS_1.18",
                                           "ibv_inc_comp_cntr@@IBVERBS_1.18",
                                           "ibv_inc_err_comp_cntr@@IBVERBS_1.18",
                                           "ibv_qp_attach_comp_cntr@@IBVERBS_1.18",
                                           "ibv_read_comp_cntr@@IBVERBS_1.18",
                                           "ibv_read_err_comp_cntr@@IBVERBS_1.18",
                                           "ibv_set_comp_cntr@@IBVERBS_1.18",
                                           "ibv_set_err_comp_cntr@@IBVERBS_1.18",
                                       }));
}

TEST(SymbolsTest, PrivateNodesOfOtherDistributionsHaveTheSameNames) {
  const std::set<std::string> ours = defined_versions(kOurs);
  const std::string debian12 = "@@IBVERBS_PRIVATE_34";
  std::size_t names = 0;
  for (const std::string& symbol : ours) {
    if (!symbol.ends_with(debian12) || symbol.starts_with("verbs_register_driver_")) continue;
    const std::string name = symbol.substr(0, symbol.size() - debian12.size());
    for (const char* node : {"57", "59", "64", "65"})
      EXPECT_TRUE(ours.contains(name + "@IBVERBS_PRIVATE_" + node)) << name << " at " << node;
    ++names;
  }
  EXPECT_GE(names, 88u);
  for (const char* node : {"34", "57", "59", "64", "65"})
    EXPECT_TRUE(
        ours.contains(std::string("verbs_register_driver_") + node + "@@IBVERBS_PRIVATE_" + node));
}

// A name that is not in the map is not exported: C++ names of ours, or of a static libstdc++, would
// clash with the program's.
TEST(SymbolsTest, NothingElseIsExported) {
  for (const std::string& symbol : defined_versions(kOurs)) {
    if (symbol.ends_with("@@VERBENA_PRIVATE")) continue;  // for our librdmacm.so.1
    if (symbol.ends_with("@@VERBENA_1.0")) continue;      // <verbena/verbena.h>
    const std::string name = symbol.substr(0, symbol.find('@'));
    EXPECT_TRUE(name.starts_with("ibv_") || name.starts_with("_ibv_") ||
                name.starts_with("verbs_") || name.starts_with("_verbs_") ||
                name == "__verbs_log" || name == "__ioctl_final_num_attrs" ||
                name == "execute_ioctl" || name == "mult_to_ibv_rate" || name == "mbps_to_ibv_rate")
        << symbol;
  }
}

}  // namespace
}  // namespace verbena::test
