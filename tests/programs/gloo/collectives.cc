// Collective operations of gloo over one of its transports. Each rank fills its vector, runs the
// algorithm, and compares every element with the result that it computes itself.
//
// usage: collectives RANK RANKS ibverbs|tcp FOLDER ALGORITHM ELEMENTS ROUNDS [ADDRESS]
//
// FOLDER: empty, common to the ranks, which find each other by files in it. ADDRESS: this rank's,
// for tcp (default: 127.0.0.1). Prints the median time of a round, and how many elements are wrong.
#include <gloo/allreduce_bcube.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/barrier_all_to_one.h>
#include <gloo/broadcast_one_to_all.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/ibverbs/device.h>
#include <gloo/transport/tcp/device.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using ContextPointer = std::shared_ptr<gloo::Context>;

std::shared_ptr<gloo::transport::Device> make_device(const std::string& transport,
                                                     const char* address) {
  if (transport == "tcp") {
    gloo::transport::tcp::attr attributes;
    attributes.hostname = address;
    return gloo::transport::tcp::CreateDevice(attributes);
  }
  gloo::transport::ibverbs::attr attributes;
  attributes.name = "verbena0";
  attributes.port = 1;
  attributes.index = 3;  // the GID of the IPv4 address
  return gloo::transport::ibverbs::CreateDevice(attributes);
}

std::unique_ptr<gloo::Algorithm> make_algorithm(const std::string& name,
                                                const ContextPointer& context,
                                                const std::vector<float*>& vectors, int elements) {
  if (name == "ring")
    return std::make_unique<gloo::AllreduceRing<float>>(context, vectors, elements);
  if (name == "ring_chunked")
    return std::make_unique<gloo::AllreduceRingChunked<float>>(context, vectors, elements);
  if (name == "halving_doubling")
    return std::make_unique<gloo::AllreduceHalvingDoubling<float>>(context, vectors, elements);
  if (name == "bcube")
    return std::make_unique<gloo::AllreduceBcube<float>>(context, vectors, elements);
  if (name == "broadcast")
    return std::make_unique<gloo::BroadcastOneToAll<float>>(context, vectors, elements);
  std::fprintf(stderr, "no algorithm %s\n", name.c_str());
  std::exit(2);
}

// Small whole numbers, so that sums are exact.
float filled(int rank, int element, int round) {
  return static_cast<float>(rank + (element + round) % 7);
}

float expected(bool is_broadcast, int ranks, int element, int round) {
  if (is_broadcast) return filled(0, element, round);
  float sum = 0;
  for (int rank = 0; rank < ranks; ++rank) sum += filled(rank, element, round);
  return sum;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 8) return 2;
  const int rank = std::atoi(arguments[1]), ranks = std::atoi(arguments[2]);
  const int elements = std::atoi(arguments[6]), rounds = std::atoi(arguments[7]);
  const std::string algorithm_name = arguments[5];

  gloo::rendezvous::FileStore store(arguments[4]);
  auto context = std::make_shared<gloo::rendezvous::Context>(rank, ranks);
  auto device = make_device(arguments[3], count > 8 ? arguments[8] : "127.0.0.1");
  context->connectFullMesh(store, device);

  std::vector<float> vector(elements);
  const auto algorithm = make_algorithm(algorithm_name, context, {vector.data()}, elements);
  gloo::BarrierAllToOne barrier(context);
  std::vector<double> times_us;
  long wrong = 0;
  for (int round = 0; round < rounds; ++round) {
    for (int i = 0; i < elements; ++i) vector[i] = filled(rank, i, round);
    barrier.run();  // gloo's bcube, over TCP as well, may overwrite a slower rank's last round
    const auto start = Clock::now();
    algorithm->run();
    times_us.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
    for (int i = 0; i < elements; ++i)
      wrong += vector[i] != expected(algorithm_name == "broadcast", ranks, i, round);
  }
  std::sort(times_us.begin(), times_us.end());
  std::printf("median us: %.1f, wrong elements: %ld\n", times_us[times_us.size() / 2], wrong);
  std::fflush(stdout);
  // A pair's destructor does not wait for its sends: a peer may still need the last ones.
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  return wrong != 0;
}
