// ibv_rate and its two units: multiples of 2.5 Gb/s, and Mb/s. IBTA Vol 1, 9.11.1 (IPD), table 56;
// the values are those of the man pages ibv_rate_to_mult and ibv_rate_to_mbps.
#include <infiniband/verbs.h>
#include "abi/ibverbs/exceptions.h"

namespace {

struct NamedRate {
  ibv_rate code;
  int mult;  // -1: no multiple of 2.5 Gb/s
  int mbps;
};

constexpr NamedRate kRates[] = {
    {IBV_RATE_2_5_GBPS, 1, 2500},       {IBV_RATE_5_GBPS, 2, 5000},
    {IBV_RATE_10_GBPS, 4, 10000},       {IBV_RATE_20_GBPS, 8, 20000},
    {IBV_RATE_30_GBPS, 12, 30000},      {IBV_RATE_40_GBPS, 16, 40000},
    {IBV_RATE_60_GBPS, 24, 60000},      {IBV_RATE_80_GBPS, 32, 80000},
    {IBV_RATE_120_GBPS, 48, 120000},    {IBV_RATE_14_GBPS, -1, 14062},
    {IBV_RATE_56_GBPS, -1, 56250},      {IBV_RATE_112_GBPS, -1, 112500},
    {IBV_RATE_168_GBPS, -1, 168750},    {IBV_RATE_25_GBPS, -1, 25781},
    {IBV_RATE_100_GBPS, -1, 103125},    {IBV_RATE_200_GBPS, -1, 206250},
    {IBV_RATE_300_GBPS, -1, 309375},    {IBV_RATE_28_GBPS, 11, 28125},
    {IBV_RATE_50_GBPS, 20, 53125},      {IBV_RATE_400_GBPS, 160, 425000},
    {IBV_RATE_600_GBPS, 240, 637500},   {IBV_RATE_800_GBPS, 320, 850000},
    {IBV_RATE_1200_GBPS, 480, 1275000},
};

// Returns the first rate whose `field` is `value`, or nullptr.
template <typename T>
const NamedRate* find(T NamedRate::*field, T value) {
  for (const NamedRate& rate : kRates)
    if (rate.*field == value) return &rate;
  return nullptr;
}

}  // namespace

int ibv_rate_to_mult(ibv_rate rate) try {
  const NamedRate* found = find(&NamedRate::code, rate);
  return found == nullptr ? -1 : found->mult;
} catch (...) {
  return verbena::abi::fail_with_minus_one(verbena::abi::errno_of_exception());
}

ibv_rate mult_to_ibv_rate(int mult) try {
  const NamedRate* found = mult < 0 ? nullptr : find(&NamedRate::mult, mult);
  return found == nullptr ? IBV_RATE_MAX : found->code;
} catch (...) {
  return IBV_RATE_MAX;
}

int ibv_rate_to_mbps(ibv_rate rate) try {
  const NamedRate* found = find(&NamedRate::code, rate);
  return found == nullptr ? -1 : found->mbps;
} catch (...) {
  return verbena::abi::fail_with_minus_one(verbena::abi::errno_of_exception());
}

ibv_rate mbps_to_ibv_rate(int mbps) try {
  const NamedRate* found = find(&NamedRate::mbps, mbps);
  return found == nullptr ? IBV_RATE_MAX : found->code;
} catch (...) {
  return IBV_RATE_MAX;
}
