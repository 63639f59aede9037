#include "abi/ibverbs/check/symbol_table.h"

#include <elf.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <span>
#include <vector>

namespace verbena::abi {
namespace {

// A file that may be anything: nothing is read beyond its end.
class ELFFile {
 public:
  explicit ELFFile(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    bytes_.assign(std::istreambuf_iterator<char>(in), {});
  }
  [[nodiscard]] std::optional<Symbol> find(u64 offset) const {
    const auto header = read<Elf64_Ehdr>(0);
    if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
        header->e_ident[EI_CLASS] != ELFCLASS64)
      return std::nullopt;
    const u64 address = offset + base_address(*header);
    for (const u32 type : {SHT_SYMTAB, SHT_DYNSYM})
      if (auto symbol = find_in(*header, type, address)) return symbol;
    return std::nullopt;
  }

 private:
  template <typename T>
  [[nodiscard]] std::optional<T> read(u64 at) const {
    T value;
    if (at > bytes_.size() || bytes_.size() - at < sizeof value) return std::nullopt;
    std::memcpy(&value, bytes_.data() + at, sizeof value);
    return value;
  }
  // Where the file says that its first byte goes: not 0 in a program that is not relocatable.
  [[nodiscard]] u64 base_address(const Elf64_Ehdr& header) const {
    for (u64 i = 0; i < header.e_phnum; ++i) {
      const auto segment = read<Elf64_Phdr>(header.e_phoff + i * sizeof(Elf64_Phdr));
      if (segment && segment->p_type == PT_LOAD) return segment->p_vaddr - segment->p_offset;
    }
    return 0;
  }
  [[nodiscard]] std::optional<Elf64_Shdr> section(const Elf64_Ehdr& header, u64 index) const {
    return read<Elf64_Shdr>(header.e_shoff + index * sizeof(Elf64_Shdr));
  }
  [[nodiscard]] std::optional<Symbol> find_in(const Elf64_Ehdr& header, u32 type,
                                              u64 address) const {
    for (u64 i = 0; i < header.e_shnum; ++i) {
      const auto table = section(header, i);
      if (!table || table->sh_type != type) continue;
      const auto names = section(header, table->sh_link);
      if (!names) return std::nullopt;
      for (u64 at = 0; at + sizeof(Elf64_Sym) <= table->sh_size; at += sizeof(Elf64_Sym)) {
        const auto symbol = read<Elf64_Sym>(table->sh_offset + at);
        if (!symbol) return std::nullopt;
        if (ELF64_ST_TYPE(symbol->st_info) == STT_FUNC && address >= symbol->st_value &&
            address - symbol->st_value < symbol->st_size)
          return Symbol{name_at(names->sh_offset + symbol->st_name), address - symbol->st_value};
      }
    }
    return std::nullopt;
  }
  [[nodiscard]] std::string name_at(u64 at) const {
    if (at >= bytes_.size()) return "?";
    const char* const name = bytes_.data() + at;
    return {name, strnlen(name, bytes_.size() - at)};
  }

  std::vector<char> bytes_;
};

}  // namespace

std::optional<Symbol> find_symbol(const std::string& module, u64 offset) {
  return ELFFile(module).find(offset);
}

}  // namespace verbena::abi
