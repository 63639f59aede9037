#include "host/progress/helper_alarm.h"

#include <algorithm>

namespace verbena::host {
namespace {

constexpr Duration kTimersRunByCalls = us(500);  // how late they are if no call follows, at most
constexpr Duration kLookWhileCalled = ms(2);     // how late what is held is then, at most

}  // namespace

bool HelperAlarm::tell(Link& link, Time device, Time others, Time now) {
  policy_.listens() ? helper_->listen() : helper_->ignore();
  const Listening listening = policy_.is_listened_to() ? Listening::kYes : Listening::kNo;
  const bool has_come = link.on_listening(listening);
  listening_ = listening;
  alarm_ = helper_->wake_at(deadline(device, others, now), now);
  return has_come;
}

// Returns when the helper checks the program and held packets. Frequent calls send held packets
// themselves, and a new alarm takes 15 us on a virtual machine. So the alarm is late for held
// packets, and calls defer it once in kLookWhileCalled.
Time HelperAlarm::next_look(Time now) const {
  const Time check = policy_.next_check();
  return holding_.held_lately(now) ? std::min(check, now + kLookWhileCalled) : check;
}

// Calls run the device's timers too: while they come, the helper only looks whether they still do.
// Nobody calls while a thread sleeps on the link.
Time HelperAlarm::deadline(Time device, Time others, Time now) const {
  const Time check = next_look(now), by_calls = now + kTimersRunByCalls;
  if (!policy_.is_listened_to()) return check;
  return std::min(
      {check, others, holding_.is_called_often(now) ? std::max(device, by_calls) : device});
}

}  // namespace verbena::host
