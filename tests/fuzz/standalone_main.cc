// A main() for fuzz targets where there is no libFuzzer (gcc): the same command line, a plain
// mutation loop. Deterministic: the same arguments over the same corpus give the same inputs.
//
//   fuzz_NAME [-runs=N] [-seed=S] [FILE or FOLDER]...
//
// Every file is run once; then N mutants of them. Without paths the seeds are those in
// tests/fuzz/corpus/fuzz_NAME/. -verbose=1 names each file and numbers each mutant before it runs.
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/prng.h"
#include "tests/fuzz/fuzz.h"

namespace verbena::fuzz {
namespace {

using Input = std::vector<u8>;

constexpr std::size_t kMaxInput = 4096;  // bytes, as libFuzzer's default
constexpr u64 kMaxMutations = 4;         // per mutant

struct Options {
  u64 runs = 0;
  u64 seed = 1;
  bool verbose = false;
  std::vector<std::filesystem::path> paths;
};

// True when `argument` is "-NAME=NUMBER"; then sets `value`.
bool take_number(std::string_view argument, std::string_view name, u64& value) {
  if (!argument.starts_with(name)) return false;
  argument.remove_prefix(name.size());
  const char* end = argument.data() + argument.size();
  return std::from_chars(argument.data(), end, value).ptr == end;
}

bool parse(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    u64 verbose = 0;
    if (!argument.starts_with('-')) {
      options.paths.emplace_back(argument);
    } else if (take_number(argument, "-verbose=", verbose)) {
      options.verbose = verbose != 0;
    } else if (!take_number(argument, "-runs=", options.runs) &&
               !take_number(argument, "-seed=", options.seed)) {
      std::fprintf(stderr, "usage: %s [-runs=N] [-seed=S] [-verbose=1] [PATH]...\n", argv[0]);
      return false;
    }
  }
  if (options.paths.empty())
    options.paths.push_back(std::filesystem::path(VERBENA_CAPTURES_DIR) / "../fuzz/corpus" /
                            std::filesystem::path(argv[0]).filename());
  return true;
}

// Sorted, so that the order does not hang on the file system.
std::vector<std::filesystem::path> files_in(const std::vector<std::filesystem::path>& paths) {
  std::vector<std::filesystem::path> files;
  for (const std::filesystem::path& path : paths) {
    if (!std::filesystem::is_directory(path)) {
      files.push_back(path);
      continue;
    }
    for (const auto& entry : std::filesystem::directory_iterator(path))
      if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

bool read_file(const std::filesystem::path& path, Input& input) {
  std::ifstream in(path, std::ios::binary);
  input.assign(std::istreambuf_iterator<char>(in), {});
  return in.good() || in.eof();
}

std::size_t position(PRNG& prng, std::size_t size) {
  // Half of the time among the first 64 bytes: headers are where decoders decide.
  return prng.below(prng.chance(0.5) ? std::min<std::size_t>(size, 64) : size);
}

u8 interesting_byte(PRNG& prng) {
  constexpr std::array<u8, 8> kBytes = {0x00, 0x01, 0x0f, 0x10, 0x7f, 0x80, 0xf0, 0xff};
  return kBytes[prng.below(kBytes.size())];
}

void mutate_once(Input& input, PRNG& prng) {
  if (input.empty()) {
    input.resize(prng.in(1, 64));
    return;
  }
  const std::size_t at = position(prng, input.size());
  const auto where = input.begin() + static_cast<std::ptrdiff_t>(at);
  switch (prng.below(6)) {
    case 0: input[at] ^= static_cast<u8>(1u << prng.below(8)); break;
    case 1: input[at] = static_cast<u8>(prng.next()); break;
    case 2: input[at] = interesting_byte(prng); break;
    case 3: input.resize(at); break;
    case 4: input.insert(where, prng.in(1, 8), static_cast<u8>(prng.next())); break;
    case 5: input.erase(where); break;
  }
  if (input.size() > kMaxInput) input.resize(kMaxInput);
}

// The head of one seed and the tail of another.
Input crossed(const Input& a, const Input& b, PRNG& prng) {
  Input out(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(prng.in(0, a.size())));
  out.insert(out.end(), b.begin() + static_cast<std::ptrdiff_t>(prng.in(0, b.size())), b.end());
  return out;
}

Input mutant(const std::vector<Input>& seeds, PRNG& prng) {
  if (seeds.empty()) {
    Input random(prng.below(128));
    std::ranges::generate(random, [&prng] { return static_cast<u8>(prng.next()); });
    return random;
  }
  Input input = seeds[prng.below(seeds.size())];
  if (prng.chance(0.1)) input = crossed(input, seeds[prng.below(seeds.size())], prng);
  for (u64 n = prng.in(1, kMaxMutations); n > 0; --n) mutate_once(input, prng);
  return input;
}

// In memory of exactly its size, so that the address sanitizer sees the first byte behind it.
void run_one(const Input& input) {
  const std::unique_ptr<u8[]> exact(new u8[input.size()]);
  std::ranges::copy(input, exact.get());
  LLVMFuzzerTestOneInput(exact.get(), input.size());
}

int run(const Options& options) {
  std::vector<Input> seeds;
  for (const std::filesystem::path& file : files_in(options.paths)) {
    if (!read_file(file, seeds.emplace_back())) {
      std::fprintf(stderr, "cannot read %s\n", file.c_str());
      return 2;
    }
    if (options.verbose) std::printf("file %s\n", file.c_str());
    run_one(seeds.back());
  }
  PRNG prng(options.seed);
  for (u64 i = 0; i < options.runs; ++i) {
    if (options.verbose) {
      std::printf("run %llu\n", static_cast<unsigned long long>(i));
      std::fflush(stdout);
    }
    run_one(mutant(seeds, prng));
  }
  std::printf("%zu files, %llu mutants, seed %llu\n", seeds.size(),
              static_cast<unsigned long long>(options.runs),
              static_cast<unsigned long long>(options.seed));
  return 0;
}

}  // namespace
}  // namespace verbena::fuzz

int main(int argc, char** argv) {
  verbena::fuzz::Options options;
  if (!verbena::fuzz::parse(argc, argv, options)) return 2;
  return verbena::fuzz::run(options);
}
