// Threads that read an event channel after another thread has destroyed it. rping has one: main()
// destroys the channel and returns, while the thread that read the last event is about to read on.
// With a card that read fails, if it is made before the process has ended, and rping then exits
// with 255; here it neither touches freed memory nor returns while the process ends.
#pragma once

#include <memory>

#include "abi/rdmacm/channel_object.h"

namespace verbena::rdmacm {

// Closes the channel, and keeps its memory until eight others have been destroyed.
void retire(std::unique_ptr<ChannelObject> channel);

// For a thread that found its channel destroyed. Returns after 100 ms, unless exit() is called
// meanwhile by another thread: then never.
void wait_for_end_of_process();

}  // namespace verbena::rdmacm
