// Names of the cases of tests that run for an IPv4 and then for an IPv6 address.
#pragma once

#include <gtest/gtest.h>

#include <string>

namespace verbena::test {

inline std::string family_name(const testing::TestParamInfo<const char*>& tested) {
  return tested.index == 0 ? "IPv4" : "IPv6";
}

}  // namespace verbena::test
