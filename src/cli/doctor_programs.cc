#include "cli/doctor_programs.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>
#include <vector>

#include <fmt/format.h>

#include "cli/library_folder.h"

namespace verbena::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kNamed = 3;  // programs of a kind; of the others only the number

struct Paths {
  std::vector<fs::path> verbs;
  std::optional<fs::path> preloaded;
};

Paths paths_in(std::string_view maps) {
  Paths paths;
  std::istringstream lines{std::string(maps)};
  for (std::string line; std::getline(lines, line);) {
    const std::size_t slash = line.find('/');
    if (slash == line.npos) continue;
    const fs::path path = line.substr(slash);
    const std::string file = path.filename().string();
    if (file == kPreloadedName)
      paths.preloaded = path;
    else if (file.starts_with(kLibraryName))
      paths.verbs.push_back(path);
  }
  return paths;
}

std::string text_of(const fs::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

bool is_number(const std::string& name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) { return c >= '0' && c <= '9'; });
}

// "4711 (ucx_info)", and the library of the first.
struct Programs {
  std::vector<std::string> names;
  std::string library;

  void add(const fs::path& process, const OtherLibrary& other) {
    std::string name = text_of(process / "comm");
    std::erase_if(name, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 127; });
    names.push_back(fmt::format("{} ({})", process.filename().string(), name));
    if (library.empty()) library = other.path;
  }
  [[nodiscard]] std::string text() const {
    const std::size_t named = std::min(names.size(), kNamed);
    std::string list = fmt::format("{}", fmt::join(names.begin(), names.begin() + named, ", "));
    if (named != names.size()) list += fmt::format(" and {} more", names.size() - named);
    return list;
  }
};

}  // namespace

std::optional<OtherLibrary> other_libibverbs(std::string_view maps) {
  const Paths paths = paths_in(maps);
  if (paths.verbs.empty()) return std::nullopt;
  const bool has_ours = std::ranges::any_of(paths.verbs, [&](const fs::path& path) {
    const fs::path beside = path.parent_path() / kPreloadedName;
    std::error_code error;
    return beside == paths.preloaded || fs::exists(beside, error);
  });
  if (has_ours) return std::nullopt;
  return OtherLibrary{paths.verbs.front().string(), paths.preloaded.has_value()};
}

Finding examine_programs(const fs::path& proc) {
  Programs bypassing, elsewhere;
  std::error_code error;
  for (const auto& process : fs::directory_iterator(proc, error)) {
    if (!is_number(process.path().filename().string())) continue;
    if (const auto other = other_libibverbs(text_of(process.path() / "maps")))
      (other->under_verbena_run ? bypassing : elsewhere).add(process.path(), *other);
  }
  if (!bypassing.names.empty())
    return {Verdict::kWarning, "programs",
            fmt::format("{} run under verbena run, but have loaded {}: they see no device",
                        bypassing.text(), bypassing.library),
            "remove the RPATH of the program or of its libraries (readelf -d shows it), or the "
            "absolute name by which it opens the library"};
  if (!elsewhere.names.empty())
    return {Verdict::kOk, "programs",
            fmt::format("{} use {} and are not run by verbena run", elsewhere.text(),
                        elsewhere.library)};
  return {Verdict::kOk, "programs", "none that runs has loaded another libibverbs"};
}

}  // namespace verbena::cli
