#include "tests/abi/elf_versions.h"

#include <elf.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <vector>

namespace verbena::test {
namespace {

constexpr unsigned kHiddenBit = 0x8000;  // of an entry of SHT_GNU_versym: not the default version

class ELFFile {
 public:
  explicit ELFFile(const std::string& path) {
    std::error_code none;
    const std::uintmax_t size = std::filesystem::file_size(path, none);
    if (none) return;
    bytes_.resize(size);  // hundreds of MB, with debug information: read in one piece
    std::ifstream(path, std::ios::binary).read(bytes_.data(), static_cast<std::streamsize>(size));
    if (bytes_.size() < sizeof(Elf64_Ehdr) || std::memcmp(bytes_.data(), ELFMAG, SELFMAG) != 0)
      return;
    const auto header = at<Elf64_Ehdr>(0);
    for (unsigned i = 0; i < header.e_shnum; ++i)
      sections_.push_back(at<Elf64_Shdr>(header.e_shoff + i * sizeof(Elf64_Shdr)));
  }

  const Elf64_Shdr* section(Elf64_Word type) const {
    for (const Elf64_Shdr& section : sections_)
      if (section.sh_type == type) return &section;
    return nullptr;
  }
  template <typename T>
  T at(std::size_t offset) const {
    T value{};
    if (offset + sizeof(T) <= bytes_.size()) std::memcpy(&value, bytes_.data() + offset, sizeof(T));
    return value;
  }
  // A string of the string table that belongs to `owner`.
  std::string text(const Elf64_Shdr& owner, std::size_t offset) const {
    return &bytes_.at(sections_.at(owner.sh_link).sh_offset + offset);
  }

 private:
  std::vector<char> bytes_;
  std::vector<Elf64_Shdr> sections_;
};

std::map<unsigned, std::string> version_names(const ELFFile& file) {
  std::map<unsigned, std::string> names;
  const Elf64_Shdr* section = file.section(SHT_GNU_verdef);
  if (section == nullptr) return names;
  std::size_t offset = section->sh_offset;
  for (unsigned i = 0; i < section->sh_info; ++i) {
    const auto definition = file.at<Elf64_Verdef>(offset);
    const auto name = file.at<Elf64_Verdaux>(offset + definition.vd_aux);
    if ((definition.vd_flags & VER_FLG_BASE) == 0)
      names[definition.vd_ndx] = file.text(*section, name.vda_name);
    offset += definition.vd_next;
  }
  return names;
}

}  // namespace

std::set<std::string> defined_versions(const std::string& path) {
  const ELFFile file(path);
  const Elf64_Shdr* symbols = file.section(SHT_DYNSYM);
  const Elf64_Shdr* versions = file.section(SHT_GNU_versym);
  std::set<std::string> found;
  if (symbols == nullptr || versions == nullptr) return found;
  const std::map<unsigned, std::string> names = version_names(file);
  for (std::size_t i = 0; i < symbols->sh_size / sizeof(Elf64_Sym); ++i) {
    const auto symbol = file.at<Elf64_Sym>(symbols->sh_offset + i * sizeof(Elf64_Sym));
    const unsigned version = file.at<Elf64_Versym>(versions->sh_offset + i * sizeof(Elf64_Versym));
    const auto name = names.find(version & ~kHiddenBit);
    if (symbol.st_shndx == SHN_UNDEF || symbol.st_shndx == SHN_ABS || name == names.end()) continue;
    found.insert(file.text(*symbols, symbol.st_name) + ((version & kHiddenBit) != 0 ? "@" : "@@") +
                 name->second);
  }
  return found;
}

}  // namespace verbena::test
