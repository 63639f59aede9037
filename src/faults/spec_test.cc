#include "faults/spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace verbena::faults {
namespace {

using testing::HasSubstr;

std::vector<Rule> rules(std::string_view spec) {
  auto parsed = parse_rules(spec);
  EXPECT_TRUE(parsed.has_value()) << spec << ": " << (parsed ? "" : parsed.error());
  return parsed.value_or(std::vector<Rule>{});
}
Rule rule(std::string_view spec) {
  const std::vector<Rule> all = rules(spec);
  EXPECT_EQ(all.size(), 1u) << spec;
  return all.empty() ? Rule{} : all.front();
}
std::string mistake(std::string_view spec) {
  const auto parsed = parse_rules(spec);
  EXPECT_FALSE(parsed.has_value()) << spec;
  return parsed ? "" : parsed.error();
}

TEST(FaultSpecTest, NothingIsNoRules) {
  EXPECT_TRUE(rules("").empty());
  EXPECT_TRUE(rules(" ; ;\n# nothing but a comment\n").empty());
}

TEST(FaultSpecTest, EachActionWithItsValues) {
  EXPECT_EQ(std::get<Loss>(rule("loss 1%").action).probability, 0.01);
  EXPECT_EQ(std::get<Loss>(rule("loss").action).probability, 1);
  const auto burst =
      std::get<BurstLoss>(rule("burst-loss enter=2% leave=50% inside=80% outside=1%").action);
  EXPECT_EQ(burst.enter, 0.02);
  EXPECT_EQ(burst.leave, 0.5);
  EXPECT_EQ(burst.inside, 0.8);
  EXPECT_EQ(burst.outside, 0.01);
  EXPECT_EQ(std::get<Reorder>(rule("reorder 5% by=20us").action).by, us(20));
  EXPECT_EQ(std::get<Duplicate>(rule("duplicate 5%").action).probability, 0.05);
  EXPECT_EQ(std::get<Delay>(rule("delay by=1ms jitter=50us").action).jitter, us(50));
  EXPECT_TRUE(std::get<Corrupt>(rule("corrupt icrc=good bits=3").action).good_icrc);
  EXPECT_EQ(std::get<Corrupt>(rule("corrupt icrc=good bits=3").action).bits, 3u);
  EXPECT_EQ(std::get<Rate>(rule("rate limit=10Gbit queue=1ms").action).queue, ms(1));
  EXPECT_EQ(std::get<Mark>(rule("mark 10%").action).probability, 0.1);
  EXPECT_TRUE(std::holds_alternative<Blackhole>(rule("blackhole").action));
  EXPECT_EQ(std::get<Flap>(rule("flap up=1s down=100ms").action).down, ms(100));
  EXPECT_EQ(std::get<Refuse>(rule("rnr timer=5").action).kind, AETHKind::kRNRNAK);
  EXPECT_EQ(std::get<Refuse>(rule("rnr timer=5").action).value, 5);
  EXPECT_EQ(std::get<Refuse>(rule("nak code=remote-access").action).value, 2);
  EXPECT_TRUE(std::holds_alternative<BreakQP>(rule("qp-error").action));
  EXPECT_TRUE(std::holds_alternative<OverrunCQ>(rule("cq-overrun").action));
  EXPECT_EQ(std::get<RefuseRegistration>(rule("registration-error 50%").action).probability, 0.5);
}

TEST(FaultSpecTest, Selectors) {
  const Selector s = rule(
                         "loss dir=rx qp=0x11 peer=10.0.0.2 opcode=ack psn=5-9 message=2- nth=3 "
                         "every=2 count=4 from=10ms for=1s")
                         .selector;
  EXPECT_EQ(s.direction, Direction::kReceive);
  EXPECT_EQ(s.qp, QPN{0x11});
  EXPECT_EQ(s.peer, GID::parse("10.0.0.2"));
  EXPECT_TRUE(s.opcodes->test(0x11));
  EXPECT_EQ(s.psns->last, 9u);
  EXPECT_EQ(s.messages->first, 2u);
  EXPECT_EQ(s.occurrences->first, 3u);
  EXPECT_EQ(s.every, 2u);
  EXPECT_EQ(s.limit, 4u);
  EXPECT_EQ(s.from, ms(10));
  EXPECT_EQ(s.lasting, sec(1));
}

TEST(FaultSpecTest, ManyRulesInOneTextOrFile) {
  EXPECT_EQ(rules("loss 1%; delay by=1ms").size(), 2u);
  EXPECT_EQ(rules("loss 1%   # of all\n\ndelay by=1ms,jitter=1us\r\n").size(), 2u);
  EXPECT_EQ(rules(" loss 1% ;delay by=1ms")[0].text, "loss 1% ");
}

TEST(FaultSpecTest, MistakesAreNamed) {
  EXPECT_THAT(mistake("los 1%"), HasSubstr("unknown fault 'los'; there are blackhole"));
  EXPECT_THAT(mistake("loss 150%"), HasSubstr("'150%' is not a probability"));
  EXPECT_THAT(mistake("loss 1% 2%"), HasSubstr("unexpected '2%'"));
  EXPECT_THAT(mistake("loss by=3us"), HasSubstr("unknown key 'by'"));
  EXPECT_THAT(mistake("loss nth=1 nth=2"), HasSubstr("'nth' is there twice"));
  EXPECT_THAT(mistake("loss opcode=wrte"), HasSubstr("'opcode=wrte' is not send, write"));
  EXPECT_THAT(mistake("loss qp=0x1000000"), HasSubstr("24 bits"));
  EXPECT_THAT(mistake("loss every=0"), HasSubstr("every=0"));
  EXPECT_THAT(mistake("delay"), HasSubstr("delay needs by=TIME"));
  EXPECT_THAT(mistake("rate 10Gbit"), HasSubstr("rate needs limit=RATE"));
  EXPECT_THAT(mistake("flap up=1s"), HasSubstr("flap needs"));
  EXPECT_THAT(mistake("nak"), HasSubstr("nak needs code="));
  EXPECT_THAT(mistake("blackhole 5%"), HasSubstr("unexpected '5%'"));
  EXPECT_THAT(mistake("nth=3"), HasSubstr("nth"));
  EXPECT_THAT(mistake("loss 1%; delay by=x"), HasSubstr("fault ' delay by=x'"));
}

}  // namespace
}  // namespace verbena::faults
