#include "cli/program.h"

#include <elf.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace verbena::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class ProgramTest : public ::testing::Test {
 protected:
  ProgramTest() {
    std::string name = (fs::temp_directory_path() / "verbena-test-XXXXXX").string();
    root_ = mkdtemp(name.data());
  }
  ~ProgramTest() override { fs::remove_all(root_); }
  fs::path add(const fs::path& name, const std::string& content, mode_t mode) const {
    const fs::path file = root_ / name;
    fs::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << content;
    EXPECT_EQ(chmod(file.c_str(), mode), 0);
    return file;
  }

  fs::path root_;
};

// The start of a 64-bit program for this machine, with one program header of the type.
std::string elf_with(std::uint32_t segment_type) {
  std::ifstream self("/proc/self/exe", std::ios::binary);
  Elf64_Ehdr header{};
  self.read(reinterpret_cast<char*>(&header), sizeof(header));
  header.e_phoff = sizeof(header);
  header.e_phnum = 1;
  Elf64_Phdr segment{};
  segment.p_type = segment_type;
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof(header));
  return bytes.append(reinterpret_cast<const char*>(&segment), sizeof(segment));
}

TEST_F(ProgramTest, IsFoundInTheOrderOfThePath) {
  add("a/prog", "#!/bin/sh\n", 0644);  // not executable: the search goes on
  const fs::path found = add("b/prog", "#!/bin/sh\n", 0755);
  add("c/prog", "#!/bin/sh\n", 0755);
  std::string path;
  for (const char* const folder : {"none", "a", "b", "c"}) path += (root_ / folder).string() + ":";
  EXPECT_EQ(find_program("prog", path).value(), found);
}

TEST_F(ProgramTest, NotFoundIs127) {
  for (const std::string name : {"no-such-program", "", "/no/such/program"}) {
    const auto program = find_program(name, root_.string());
    ASSERT_FALSE(program.has_value()) << name;
    EXPECT_EQ(program.error().exit_status, 127) << name;
    EXPECT_THAT(program.error().message, HasSubstr(name));
  }
}

TEST_F(ProgramTest, NotExecutableIs126) {
  const fs::path file = add("text", "hello", 0644);
  fs::create_directories(root_ / "folder");
  for (const fs::path& path : {file, root_ / "folder"}) {
    const auto program = find_program(path.string(), "");
    ASSERT_FALSE(program.has_value()) << path;
    EXPECT_EQ(program.error().exit_status, 126) << path;
  }
  const auto in_path = find_program("text", root_.string());
  ASSERT_FALSE(in_path.has_value());
  EXPECT_EQ(in_path.error().exit_status, 126);
}

TEST_F(ProgramTest, OrdinaryProgramsAndScriptsLoadTheLibrary) {
  EXPECT_EQ(library_use("/proc/self/exe"), LibraryUse::kLoads);
  EXPECT_EQ(library_use(add("script", "#!/bin/sh\n", 0755)), LibraryUse::kLoads);
  EXPECT_EQ(library_use(add("empty", "", 0755)), LibraryUse::kLoads);
  EXPECT_EQ(library_use(add("dynamic", elf_with(PT_INTERP), 0755)), LibraryUse::kLoads);
}

TEST_F(ProgramTest, StaticAndForeignProgramsDoNot) {
  EXPECT_EQ(library_use(add("static", elf_with(PT_LOAD), 0755)), LibraryUse::kStatic);
  std::string foreign = elf_with(PT_INTERP);
  foreign[EI_CLASS] = ELFCLASS32;
  EXPECT_EQ(library_use(add("foreign", foreign, 0755)), LibraryUse::kOtherMachine);
}

TEST_F(ProgramTest, ProgramsThatGainPrivilegeDoNot) {
  struct stat status {};
  if (geteuid() == 0) {
    const fs::path file = add("set-uid", "", 0755);
    ASSERT_EQ(chown(file.c_str(), 65534, 65534), 0);  // first: chown clears the bit
    ASSERT_EQ(chmod(file.c_str(), 04755), 0);
    EXPECT_EQ(library_use(file), LibraryUse::kPrivileged);
  } else if (stat("/bin/su", &status) == 0 && (status.st_mode & S_ISUID) != 0) {
    EXPECT_EQ(library_use("/bin/su"), LibraryUse::kPrivileged);
  }
  EXPECT_EQ(library_use(add("own", "", 04755)), LibraryUse::kLoads);  // it gains nothing
}

}  // namespace
}  // namespace verbena::cli
