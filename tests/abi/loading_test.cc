// The libraries of rdma-core that programs are linked to load on top of our libibverbs.so.1, with
// every symbol bound at once. Each in a process of its own, which this test starts from its own
// binary.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/abi/verbs_library.h"

namespace verbena::test {
namespace {

constexpr char kLibraryVariable[] = "VERBENA_TEST_LOAD";  // what the child loads
constexpr char kSystemLibraries[] = "/usr/lib/x86_64-linux-gnu";

std::vector<std::string> candidates() {
  std::vector<std::string> paths;
  for (const char* name : {"libmlx5.so.1", "libmlx4.so.1", "libefa.so.1", "librdmacm.so.1"})
    paths.push_back(std::string(kSystemLibraries) + "/" + name);
  std::error_code none;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(kSystemLibraries) + "/libibverbs", none))
    if (entry.path().extension() == ".so") paths.push_back(entry.path());
  std::erase_if(paths, [](const std::string& path) { return !std::filesystem::exists(path); });
  return paths;
}

int run_child(const std::string& library) {
  std::vector<std::string> environment = {kLibraryVariable + ("=" + library),
                                          std::string("LD_LIBRARY_PATH=") + VERBENA_LIBRARY_DIR,
                                          "LD_BIND_NOW=1", "ASAN_OPTIONS=detect_leaks=0"};
  std::vector<char*> envp;
  for (std::string& variable : environment) envp.push_back(variable.data());
  envp.push_back(nullptr);
  std::string filter = "--gtest_filter=LoadingChild.*", brief = "--gtest_brief=1";
  char* argv[] = {filter.data(), filter.data(), brief.data(), nullptr};
  pid_t child = 0;
  if (posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, argv, envp.data()) != 0) return -1;
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

// Runs only where the variable is set: in the child.
TEST(LoadingChild, LoadsOnOurLibrary) {
  const char* library = std::getenv(kLibraryVariable);
  if (library == nullptr) GTEST_SKIP() << "started by LoadingTest";
  void* loaded = dlopen(library, RTLD_NOW);
  ASSERT_NE(loaded, nullptr) << dlerror();
  void* verbs = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(verbs, nullptr) << library << " is not linked to libibverbs.so.1";
  Dl_info where{};
  ASSERT_NE(dladdr(dlsym(verbs, "ibv_get_device_list"), &where), 0);
  EXPECT_EQ(std::string(where.dli_fname), VERBENA_LIBRARY_DIR "/libibverbs.so.1");
}

// libmlx5's own verbs are called by perftest and UCX on any device; they must see that ours is not
// theirs.
TEST(LoadingChild, OurDeviceIsNotOneOfMellanox) {
  const char* library = std::getenv(kLibraryVariable);
  if (library == nullptr) GTEST_SKIP() << "started by LoadingTest";
  void* loaded = dlopen(library, RTLD_NOW);
  ASSERT_NE(loaded, nullptr) << dlerror();
  const auto is_supported =
      reinterpret_cast<bool (*)(ibv_device*)>(dlsym(loaded, "mlx5dv_is_supported"));
  if (is_supported == nullptr) GTEST_SKIP() << "another library";
  setenv("VERBENA_ADDRESS", "127.0.0.1", 1);
  ibv_device** devices = VerbsLibrary::get().get_device_list(nullptr);
  ASSERT_NE(devices, nullptr);
  EXPECT_FALSE(is_supported(devices[0]));
  VerbsLibrary::get().free_device_list(devices);
}

TEST(LoadingTest, LibrariesOfRdmaCoreLoad) {
  const std::vector<std::string> libraries = candidates();
  if (libraries.empty()) GTEST_SKIP() << "no library of rdma-core is installed";
  for (const std::string& library : libraries) EXPECT_EQ(run_child(library), 0) << library;
}

}  // namespace
}  // namespace verbena::test
