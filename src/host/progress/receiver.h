// Receiver: which thread receives the next packet of an adapter. Five modes, and one table of what
// changes them; ProgressPolicy decides when that happens. In each mode but kHelper the helper
// thread sleeps until a time, and then looks whether the mode still fits.
#pragma once

#include <array>

#include "base/types.h"

namespace verbena::host {

enum class Receiver : u8 {
  kHelper,         // the helper: its epoll watches the link, and any packet wakes it
  kRestingHelper,  // the helper, after a rest: the program calls often, and nothing is urgent
  kCalls,          // any call of the program, mostly polls; the helper looks whether they go on
  kStayingPoll,    // a thread that has polled stays for a while, for a program that waits in memory
  kWaitingThread,  // a thread that waits for an event looks itself before it sleeps
};
inline constexpr std::size_t kReceivers = 5;

enum class ReceiverEvent : u8 {
  kHelperNeeded,  // the program sleeps, waits in memory, or no longer calls
  kCallsSuffice,  // the program spins, is awake, or its polls have received everything for long
  kCallsOften,    // the helper has received while the program called often
  kRestOver,
  kPollStays,
  kWaiterLooks,
  kStayOver,  // that thread returns to the program, which needs no helper
  kLookOver,  // likewise
};
inline constexpr std::size_t kReceiverEvents = 8;

// A row for each mode, a column for each event. Where one thread looks for all, others neither stay
// nor look besides, and their calls do not end its look. Their need for the helper does.
inline constexpr std::array<std::array<Receiver, kReceiverEvents>, kReceivers> kNextReceiver = [] {
  constexpr Receiver kHelp = Receiver::kHelper, kRest = Receiver::kRestingHelper,
                     kCall = Receiver::kCalls, kStay = Receiver::kStayingPoll,
                     kWait = Receiver::kWaitingThread;
  return std::array<std::array<Receiver, kReceiverEvents>, kReceivers>{{
      // needed suffice often  rested stays  looks  stayed looked
      {{kHelp, kCall, kRest, kHelp, kStay, kWait, kHelp, kHelp}},  // kHelper
      {{kHelp, kCall, kRest, kHelp, kStay, kWait, kRest, kRest}},  // kRestingHelper
      {{kHelp, kCall, kCall, kCall, kStay, kWait, kCall, kCall}},  // kCalls
      {{kHelp, kStay, kStay, kStay, kStay, kWait, kCall, kStay}},  // kStayingPoll
      {{kHelp, kWait, kWait, kWait, kWait, kWait, kWait, kCall}},  // kWaitingThread
  }};
}();

constexpr Receiver next_receiver(Receiver from, ReceiverEvent event) {
  return kNextReceiver[static_cast<std::size_t>(from)][static_cast<std::size_t>(event)];
}

}  // namespace verbena::host
