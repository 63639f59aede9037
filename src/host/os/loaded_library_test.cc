#include "host/os/loaded_library.h"

#include <gtest/gtest.h>

namespace verbena::host {
namespace {

constexpr const char* kLibrary = "libanl.so.1";  // of the C library; nothing links with it

TEST(LoadedLibraryTest, IsFoundWhenTheProgramHasLoadedIt) {
  LoadedLibrary library(kLibrary);
  EXPECT_EQ(library.find(), nullptr);
  void* const loaded = ::dlopen(kLibrary, RTLD_NOW);
  ASSERT_NE(loaded, nullptr) << ::dlerror();
  EXPECT_EQ(library.find(), loaded);
  EXPECT_EQ(library.find(), loaded);
}

// A failed search leaves an error behind.
TEST(LoadedLibraryTest, IsSearchedOnceWhileTheProgramLoadsNothing) {
  LoadedLibrary library("libof-nobody.so.1");
  EXPECT_EQ(library.find(), nullptr);
  EXPECT_NE(::dlerror(), nullptr);
  EXPECT_EQ(library.find(), nullptr);
  EXPECT_EQ(::dlerror(), nullptr);
}

}  // namespace
}  // namespace verbena::host
