// Input: bytes of a TCP stream that carries iWARP, from its first on, or from an FPDU.
#include <vector>

#include "tests/fuzz/fuzz.h"
#include "wire/eth/tcp.h"
#include "wire/iwarp/ddp.h"
#include "wire/iwarp/mpa.h"
#include "wire/iwarp/rdmap.h"

namespace verbena::fuzz {
namespace {

using namespace iwarp;

void check_ulpdu(std::span<const u8> ulpdu) {
  check_header<DDPTagged>(ulpdu);
  check_header<DDPUntagged>(ulpdu);
  const std::optional<DDPUntagged> untagged = DDPUntagged::decode(ulpdu);
  CHECK(!untagged || !DDPTagged::decode(ulpdu));
  if (!untagged) return;
  if (const std::optional<RDMAPOpcode> opcode = opcode_of(untagged->control))
    CHECK(opcode_of(control_of(*opcode)) == opcode);
  check_header<RDMAPReadRequest>(ulpdu.subspan(DDPUntagged::kSize));
  check_header<RDMAPTerminate>(ulpdu.subspan(DDPUntagged::kSize));
}

// As long as there are whole FPDUs; each is what append_fpdu() makes of its ULPDU, but for the pad.
void check_stream(std::span<const u8> stream, CRCUse crc) {
  for (;;) {
    const FPDUView fpdu = FPDUView::decode(stream, crc);
    if (fpdu.status != FPDUView::Status::kWhole) return;
    CHECK(fpdu.size > fpdu.ulpdu.size() && fpdu.size <= stream.size());
    std::vector<u8> again;
    append_fpdu(fpdu.ulpdu, crc, again);
    CHECK(again.size() == fpdu.size);
    check_ulpdu(fpdu.ulpdu);
    stream = stream.subspan(fpdu.size);
  }
}

}  // namespace
}  // namespace verbena::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace verbena;
  std::span<const u8> in(data, size);
  fuzz::check_header<TCPHeader>(in);
  fuzz::check_header<iwarp::MPAFrame>(in);
  fuzz::check_header<iwarp::MPAEnhancement>(in);
  if (iwarp::MPAFrame::decode(in)) in = in.subspan(iwarp::MPAFrame::kSize);
  fuzz::check_stream(in, iwarp::CRCUse::kNotUsed);
  fuzz::check_stream(in, iwarp::CRCUse::kUsed);
  return 0;
}
