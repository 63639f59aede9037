// Receiver: which thread receives the next packet of an adapter. Six modes, and one table of what
// changes them; ProgressPolicy decides when that happens. In kHelper and kSleepingWaiter a thread
// sleeps until the link has something. In each other mode the helper sleeps until a time, and then
// looks whether the mode still fits.
// kRestingHelper is not kCalls with an early check: a program that sleeps during the rest calls no
// more, and its packets would wait for the next check too.
#pragma once

#include <array>

#include "base/types.h"

namespace verbena::host {

enum class Receiver : u8 {
  kHelper,          // the helper: its epoll watches the link, and any packet wakes it
  kRestingHelper,   // the helper, after a rest: the program calls often, and nothing is urgent
  kCalls,           // any call of the program, mostly polls; the helper looks whether they go on
  kStayingPoll,     // a thread that has polled stays for a while, if the program waits in memory
  kLookingWaiter,   // a thread that waits for an event looks itself before it sleeps
  kSleepingWaiter,  // that thread sleeps on the link's descriptors, and any packet wakes it
};
inline constexpr std::size_t kReceivers = 6;

enum class ReceiverEvent : u8 {
  kHelperNeeded,  // the program sleeps, waits in memory, or no longer calls
  kCallsSuffice,  // the program spins, is awake, or its polls have received everything for long
  kCallsOften,    // the helper has received while the program called often
  kRestOver,
  kPollStays,
  kStayOver,  // that thread returns to the program, which needs no helper
  kWaiterLooks,
  kWaiterSleeps,
  kWaiterLeaves,  // it has its event, or gives up
};
inline constexpr std::size_t kReceiverEvents = 9;

// A row for each mode, a column for each event. A thread that waits receives for all until it
// leaves: meanwhile others neither stay nor look, and nobody needs the helper.
inline constexpr std::array<std::array<Receiver, kReceiverEvents>, kReceivers> kNextReceiver = [] {
  constexpr Receiver kHelp = Receiver::kHelper, kRest = Receiver::kRestingHelper,
                     kCall = Receiver::kCalls, kStay = Receiver::kStayingPoll,
                     kLook = Receiver::kLookingWaiter, kDoze = Receiver::kSleepingWaiter;
  return std::array<std::array<Receiver, kReceiverEvents>, kReceivers>{{
      // needed suffice often  rested stays  stayed looks  sleeps leaves
      {{kHelp, kCall, kRest, kHelp, kStay, kHelp, kLook, kHelp, kHelp}},  // kHelper
      {{kHelp, kCall, kRest, kHelp, kStay, kRest, kLook, kRest, kRest}},  // kRestingHelper
      {{kHelp, kCall, kCall, kCall, kStay, kCall, kLook, kCall, kCall}},  // kCalls
      {{kHelp, kStay, kStay, kStay, kStay, kCall, kLook, kStay, kStay}},  // kStayingPoll
      {{kLook, kLook, kLook, kLook, kLook, kLook, kLook, kDoze, kCall}},  // kLookingWaiter
      {{kDoze, kDoze, kDoze, kDoze, kDoze, kDoze, kLook, kDoze, kCall}},  // kSleepingWaiter
  }};
}();

constexpr Receiver next_receiver(Receiver from, ReceiverEvent event) {
  return kNextReceiver[static_cast<std::size_t>(from)][static_cast<std::size_t>(event)];
}

}  // namespace verbena::host
