#include "faults/spec.h"

#include <initializer_list>
#include <map>

#include "faults/values.h"

namespace verbena::faults {
namespace {

constexpr std::string_view kSpace = " \t\r,";

std::vector<std::string_view> split(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> words;
  while (true) {
    const std::size_t begin = text.find_first_not_of(separators);
    if (begin == std::string_view::npos) return words;
    text.remove_prefix(begin);
    const std::size_t size = std::min(text.find_first_of(separators), text.size());
    words.push_back(text.substr(0, size));
    text.remove_prefix(size);
  }
}

std::string joined(std::initializer_list<std::string_view> parts) {
  std::string all;
  for (const std::string_view part : parts) all.append(part);
  return all;
}

// The words of one rule. Each is removed when it is understood; the first mistake is kept.
class Words {
 public:
  explicit Words(std::string_view rule) : rule_(rule) {
    for (std::string_view word : split(rule, kSpace)) take_in(word);
  }

  const std::string& action() const { return action_; }

  // Parses the word after the action that has no key. `value` stays if there is none.
  void probability(double& value) {
    if (!plain_) return;
    if (const auto parsed = parse_probability(*plain_))
      value = *parsed;
    else
      wrong(*plain_, "a probability as 1% or 0.01");
    plain_.reset();
  }
  // Parses the value of a key. `value` stays if the key is not there.
  template <typename T, typename Parse>
  void value(std::string_view key, T& value, Parse parse, std::string_view expected) {
    const auto found = keys_.find(key);
    if (found == keys_.end()) return;
    if (const auto parsed = parse(found->second))
      value = static_cast<T>(*parsed);
    else
      wrong(joined({key, "=", found->second}), expected);
    keys_.erase(found);
  }
  void duration(std::string_view key, Duration& d) {
    value(key, d, parse_duration, "a time as 20us or 1.5ms");
  }
  void chance(std::string_view key, double& p) {
    value(key, p, parse_probability, "a probability as 1% or 0.01");
  }
  void need(bool is_there, std::string_view what) {
    if (!is_there) complain({action_, " needs ", what});
  }
  void complain(std::initializer_list<std::string_view> what) {
    if (mistake_.empty()) mistake_ = joined({"fault '", rule_, "': ", joined(what)});
  }
  // Reports words that were not understood.
  void finish() {
    if (plain_) complain({"unexpected '", *plain_, "'"});
    if (!keys_.empty()) complain({"unknown key '", keys_.begin()->first, "'"});
  }
  const std::string& mistake() const { return mistake_; }

 private:
  void take_in(std::string_view word) {
    const std::size_t equals = word.find('=');
    if (equals != std::string_view::npos) {
      if (!keys_.emplace(word.substr(0, equals), word.substr(equals + 1)).second)
        complain({"'", word.substr(0, equals), "' is there twice"});
    } else if (action_.empty()) {
      action_ = word;
    } else if (!plain_) {
      plain_ = word;
    } else {
      complain({"unexpected '", word, "'"});
    }
  }
  void wrong(std::string_view what, std::string_view expected) {
    complain({"'", what, "' is not ", expected});
  }

  std::string_view rule_;
  std::string action_;
  std::optional<std::string_view> plain_;
  std::map<std::string_view, std::string_view> keys_;
  std::string mistake_;
};

std::optional<bool> parse_icrc(std::string_view text) {
  if (text == "good") return true;
  return text == "bad" ? std::optional(false) : std::nullopt;
}

std::optional<Direction> parse_direction(std::string_view text) {
  if (text == "tx") return Direction::kTransmit;
  return text == "rx" ? std::optional(Direction::kReceive) : std::nullopt;
}

std::optional<NAKCode> parse_nak(std::string_view text) {
  if (text == "sequence") return NAKCode::kPSNSequenceError;
  if (text == "invalid-request") return NAKCode::kInvalidRequest;
  if (text == "remote-access") return NAKCode::kRemoteAccessError;
  if (text == "remote-operational") return NAKCode::kRemoteOperationalError;
  return std::nullopt;
}

std::optional<u64> parse_positive(std::string_view text) {
  const std::optional<u64> n = parse_number(text);
  return n && *n > 0 && *n < (u64{1} << 32) ? n : std::nullopt;
}

std::optional<u64> parse_timer(std::string_view text) {
  const std::optional<u64> n = parse_number(text);
  return n && *n < 32 ? n : std::nullopt;
}

Action read_burst_loss(Words& words) {
  BurstLoss burst;
  words.chance("enter", burst.enter);
  words.chance("leave", burst.leave);
  words.chance("inside", burst.inside);
  words.chance("outside", burst.outside);
  return burst;
}

Action read_delay(Words& words) {
  Delay delay;
  words.duration("by", delay.by);
  words.duration("jitter", delay.jitter);
  words.need(delay.by + delay.jitter > Duration{}, "by=TIME or jitter=TIME");
  return delay;
}

Action read_corrupt(Words& words) {
  Corrupt corrupt;
  words.probability(corrupt.probability);
  words.value("bits", corrupt.bits, parse_positive, "a number from 1 on");
  words.value("icrc", corrupt.good_icrc, parse_icrc, "bad or good");
  return corrupt;
}

Action read_rate(Words& words) {
  Rate rate;
  words.value("limit", rate.bits_per_second, parse_rate, "a rate as 10Gbit or 100Mbit");
  words.duration("queue", rate.queue);
  words.need(rate.bits_per_second != 0, "limit=RATE");
  return rate;
}

Action read_flap(Words& words) {
  Flap flap;
  words.duration("up", flap.up);
  words.duration("down", flap.down);
  words.need(flap.up > Duration{} && flap.down > Duration{}, "up=TIME and down=TIME");
  return flap;
}

constexpr u8 kDefaultRNRTimer = 12;  // 0.64 ms

Action read_rnr(Words& words) {
  Refuse refuse{.kind = AETHKind::kRNRNAK, .value = kDefaultRNRTimer};
  words.probability(refuse.probability);
  words.value("timer", refuse.value, parse_timer, "a RNR timer's code, 0 to 31");
  return refuse;
}

Action read_nak(Words& words) {
  Refuse refuse;
  words.probability(refuse.probability);
  std::optional<NAKCode> code;
  words.value("code", code, parse_nak,
              "sequence, invalid-request, remote-access or remote-operational");
  words.need(code.has_value(),
             "code=sequence, invalid-request, remote-access or remote-operational");
  refuse.value = static_cast<u8>(code.value_or(NAKCode::kInvalidRequest));
  return refuse;
}

// Reads an action that has a probability and, for some, a time.
template <typename T>
Action read_simple(Words& words) {
  T action;
  words.probability(action.probability);
  if constexpr (requires { action.by; }) words.duration("by", action.by);
  return action;
}
template <typename T>
Action read_bare(Words&) {
  return T{};
}

using Read = Action (*)(Words&);
const std::map<std::string_view, Read> kActions = {
    {"loss", read_simple<Loss>},
    {"burst-loss", read_burst_loss},
    {"reorder", read_simple<Reorder>},
    {"duplicate", read_simple<Duplicate>},
    {"delay", read_delay},
    {"corrupt", read_corrupt},
    {"rate", read_rate},
    {"mark", read_simple<Mark>},
    {"blackhole", read_bare<Blackhole>},
    {"flap", read_flap},
    {"rnr", read_rnr},
    {"nak", read_nak},
    {"qp-error", read_bare<BreakQP>},
    {"cq-overrun", read_bare<OverrunCQ>},
    {"registration-error", read_simple<RefuseRegistration>},
};

Selector read_selector(Words& words) {
  Selector s;
  words.value("dir", s.direction, parse_direction, "tx or rx");
  std::optional<u64> qp;
  words.value("qp", qp, parse_number, "a QPN");
  if (qp && *qp > kMask24) words.complain({"a QPN has 24 bits"});
  if (qp) s.qp = QPN{static_cast<u32>(*qp)};
  words.value("peer", s.peer, GID::parse, "an IP address");
  words.value("opcode", s.opcodes, parse_opcodes,
              "send, write, read, read-request, read-response, atomic, ack, cnp, first, middle, "
              "last, only, or a number, or some of them with | between");
  words.value("psn", s.psns, parse_interval, "a number or A-B");
  words.value("message", s.messages, parse_interval, "a number or A-B");
  words.value("nth", s.occurrences, parse_interval, "a number or A-B");
  words.value("every", s.every, parse_positive, "a number from 1 on");
  words.value("count", s.limit, parse_number, "a number");
  words.duration("from", s.from);
  words.value("for", s.lasting, parse_duration, "a time as 20us or 1.5ms");
  return s;
}

std::string known_actions() {
  std::string names;
  for (const auto& [name, read] : kActions) names.append(names.empty() ? "" : ", ").append(name);
  return names;
}

}  // namespace

tl::expected<std::vector<Rule>, std::string> parse_rules(std::string_view spec) {
  std::vector<Rule> rules;
  for (std::string_view line : split(spec, "\n")) {
    line = line.substr(0, line.find('#'));
    for (const std::string_view text : split(line, ";")) {
      Words words(text);
      if (words.action().empty() && words.mistake().empty()) {
        words.finish();
        if (!words.mistake().empty()) return tl::unexpected(words.mistake());
        continue;
      }
      const auto read = kActions.find(words.action());
      if (read == kActions.end())
        return tl::unexpected(
            joined({"unknown fault '", words.action(), "'; there are ", known_actions()}));
      Rule rule{.action = read->second(words), .selector = read_selector(words), .text = {}};
      words.finish();
      if (!words.mistake().empty()) return tl::unexpected(words.mistake());
      rule.text = text.substr(std::min(text.find_first_not_of(kSpace), text.size()));
      rules.push_back(std::move(rule));
    }
  }
  return rules;
}

}  // namespace verbena::faults
