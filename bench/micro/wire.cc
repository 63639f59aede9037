// Headers to bytes and back, and the ICRC of a RoCEv2 packet.
#include <benchmark/benchmark.h>

#include <array>
#include <vector>

#include "wire/ib/packet.h"
#include "wire/roce/icrc.h"

namespace {

using namespace verbena;

PacketHeaders write_first() {
  PacketHeaders headers;
  headers.bth.opcode = {Service::kRC, Op::kRDMAWriteFirst};
  headers.bth.dest_qp = QPN{0x123};
  headers.bth.psn = PSN{77};
  headers.reth = {.virtual_address = 0x7f0012345678, .r_key = RKey{0x1234}, .dma_length = 65536};
  return headers;
}

void encode(benchmark::State& state) {
  const PacketHeaders headers = write_first();
  std::array<u8, kMaxHeadersSize> out{};
  for (auto _ : state) {
    headers.encode(out);
    benchmark::DoNotOptimize(out);
  }
}

void decode(benchmark::State& state) {
  std::vector<u8> packet(write_first().size() + 4096);
  write_first().encode(packet);
  for (auto _ : state) benchmark::DoNotOptimize(PacketView::decode(packet));
}

void icrc(benchmark::State& state) {
  std::vector<u8> packet(static_cast<std::size_t>(state.range(0)));
  write_first().encode(packet);
  const RoCEv2Envelope envelope{.source = GID::from_ipv4(0x0a000001),
                                .destination = GID::from_ipv4(0x0a000002),
                                .udp_source_port = 50000};
  for (auto _ : state) benchmark::DoNotOptimize(icrc_of(envelope, packet));
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

BENCHMARK(encode);
BENCHMARK(decode);
BENCHMARK(icrc)->Arg(64)->Arg(1024)->Arg(4096 + 28);

}  // namespace
