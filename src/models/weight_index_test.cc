#include "models/weight_index.h"

#include <gtest/gtest.h>

namespace verbena::models {
namespace {

const TensorNames kFiles = {
    {"m-1.safetensors", {"a", "b"}}, {"m-2.safetensors", {"c"}}, {"sub/n.safetensors", {"d"}}};

TEST(WeightIndexTest, AnIndexThatFits) {
  EXPECT_EQ(fault_of_index("m.safetensors.index.json",
                           R"({"metadata": {"total_size": 12},
                               "weight_map": {"a": "m-1.safetensors", "c": "m-2.safetensors"}})",
                           kFiles),
            "");
  EXPECT_EQ(fault_of_index("sub/n.safetensors.index.json",
                           R"({"weight_map": {"d": "n.safetensors"}})", kFiles),
            "");
}

TEST(WeightIndexTest, AnIndexThatLies) {
  struct Case {
    const char *json, *fault;
  };
  for (const Case& c : {Case{R"({"weight_map": {"a": "m-3.safetensors"}})",
                             "i: it names m-3.safetensors, which is no safetensors file here"},
                        Case{R"({"weight_map": {"d": "n.safetensors"}})",
                             "i: it names n.safetensors, which is no safetensors file here"},
                        Case{R"({"weight_map": {"a": "m-2.safetensors"}})",
                             "i: tensor a is not in m-2.safetensors"},
                        Case{R"({"weight_map": {"a": 1}})", "i: tensor a has no file"},
                        Case{R"({"weight_map": []})", "i: it has no weight_map"},
                        Case{"[]", "i: it has no weight_map"}})
    EXPECT_EQ(fault_of_index("i", c.json, kFiles), c.fault);
  EXPECT_NE(fault_of_index("i", R"({"weight_map": {"a")", kFiles), "");
}

TEST(WeightIndexTest, IsKnownByItsName) {
  EXPECT_TRUE(is_weight_index("sub/model.safetensors.index.json"));
  EXPECT_FALSE(is_weight_index("index.json"));
}

}  // namespace
}  // namespace verbena::models
