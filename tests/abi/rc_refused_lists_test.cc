// One request among others is refused: those before it are done, it and those behind it change
// nothing, whatever shares its copy, its packets or its call.
#include <algorithm>
#include <array>
#include <string>
#include <tuple>
#include <vector>

#include "tests/abi/rc_ends.h"

namespace verbena::test {
namespace {

constexpr std::uint32_t kSlot = 32 << 10;  // bytes of each request's memory, at either end
constexpr std::size_t kListLength = 6, kRefusedPlace = 2;

const Way kListWays[] = {
    {"Writes8", IBV_WR_RDMA_WRITE, 8},          {"Writes4096", IBV_WR_RDMA_WRITE, 4096},
    {"Writes20000", IBV_WR_RDMA_WRITE, 20'000}, {"Reads8", IBV_WR_RDMA_READ, 8},
    {"Reads4096", IBV_WR_RDMA_READ, 4096},      {"Reads20000", IBV_WR_RDMA_READ, 20'000},
};

enum class Refused { kKey, kBounds, kPages };
enum class Posted { kTogether, kOneByOne };

using ListCase = std::tuple<const Way*, Memory, Refused, Posted>;

class RCRefusedListsTest : public RCEnds, public testing::WithParamInterface<ListCase> {
 protected:
  RCRefusedListsTest() : RCEnds(*std::get<const Way*>(GetParam()), std::get<Memory>(GetParam())) {}

  void prepare_requests();
  void refuse(ibv_send_wr& wr);
  void post_all();
  void check_completions() const;
  void check_memory();

  std::array<ibv_sge, kListLength> sges_{};
  std::array<ibv_send_wr, kListLength> requests_{};
};

void RCRefusedListsTest::prepare_requests() {
  for (std::size_t i = 0; i < kListLength; ++i) {
    sges_[i] = sge;
    sges_[i].addr += i * kSlot;
    requests_[i] = send_wr(i, way().opcode, &sges_[i]);
    requests_[i].wr.rdma = {.remote_addr = target + i * kSlot, .rkey = r_key};
  }
}

void RCRefusedListsTest::refuse(ibv_send_wr& wr) {
  switch (std::get<Refused>(GetParam())) {
    case Refused::kKey: wr.wr.rdma.rkey ^= 0x5500; return;
    case Refused::kBounds: wr.wr.rdma.remote_addr = there->address() + kSize - 4; return;
    case Refused::kPages: there->protect(PROT_NONE, kRefusedPlace * kSlot, kSlot); return;
  }
}

void RCRefusedListsTest::post_all() {
  ibv_send_wr* bad = nullptr;
  if (std::get<Posted>(GetParam()) == Posted::kOneByOne) {
    for (ibv_send_wr& wr : requests_) ASSERT_EQ(ibv_post_send(qp_, &wr, &bad), 0);
    return;
  }
  for (std::size_t i = 1; i < kListLength; ++i) requests_[i - 1].next = &requests_[i];
  ASSERT_EQ(ibv_post_send(qp_, requests_.data(), &bad), 0);
}

void RCRefusedListsTest::check_completions() const {
  for (std::size_t i = 0; i < kListLength; ++i) {
    const ibv_wc wc = wait_for_completion();
    EXPECT_EQ(wc.wr_id, i);
    EXPECT_EQ(wc.status, i < kRefusedPlace    ? IBV_WC_SUCCESS
                         : i == kRefusedPlace ? IBV_WC_REM_ACCESS_ERR
                                              : IBV_WC_WR_FLUSH_ERR);
  }
}

// do_without_refusal() leaves 'c' in our memory and 'd' in the target's.
void RCRefusedListsTest::check_memory() {
  if (std::get<Refused>(GetParam()) == Refused::kPages)
    there->protect(PROT_READ, kRefusedPlace * kSlot, kSlot);
  const bool writes = is_write(way());
  std::vector<char> expected(kSize, writes ? 'd' : 'c');
  for (std::size_t i = 0; i < kRefusedPlace; ++i)
    std::fill_n(expected.begin() + static_cast<std::ptrdiff_t>(i * kSlot), way().length,
                writes ? 'c' : 'd');
  EXPECT_EQ((writes ? there : here)->content(), expected);
}

TEST_P(RCRefusedListsTest, EndAtTheRefusedRequest) {
  do_without_refusal();
  prepare_requests();
  refuse(requests_[kRefusedPlace]);
  post_all();
  check_completions();
  check_memory();
}

// A GPU's memory has no protection of pages.
std::vector<ListCase> all_list_cases() {
  std::vector<ListCase> all;
  for (const Way& way : kListWays)
    for (const Memory memory : {Memory::kPrivate, Memory::kOfAFile, Memory::kOfAGPU})
      for (const Refused refused : {Refused::kKey, Refused::kBounds, Refused::kPages})
        for (const Posted posted : {Posted::kTogether, Posted::kOneByOne})
          if (memory != Memory::kOfAGPU || refused != Refused::kPages)
            all.emplace_back(&way, memory, refused, posted);
  return all;
}

std::string name_of_list_case(const testing::TestParamInfo<ListCase>& test) {
  const auto& [way, memory, refused, posted] = test.param;
  const char* const where = memory == Memory::kPrivate   ? ""
                            : memory == Memory::kOfAFile ? "ToAFile"
                                                         : "OnAGPU";
  const char* const what = refused == Refused::kKey      ? "UnknownKey"
                           : refused == Refused::kBounds ? "BeyondTheEnd"
                                                         : "PagesWithoutAccess";
  return std::string(way->name) + where + what +
         (posted == Posted::kTogether ? "Together" : "OneByOne");
}

INSTANTIATE_TEST_SUITE_P(All, RCRefusedListsTest, testing::ValuesIn(all_list_cases()),
                         name_of_list_case);

}  // namespace
}  // namespace verbena::test
