// Fuzz target: a device among hostile peers. The input says which frames arrive, what the
// application does in between, and when time passes: device/hostile_world.h, which also checks that
// no byte changes that no key allows to. Frames come as they are, and repaired (ICRC, keys,
// numbers) so that they get past the first checks.
#include "device/hostile_world.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  verbena::test::HostileWorld world;
  world.run({data, size});
  return 0;
}
