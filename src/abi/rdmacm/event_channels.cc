// rdma_create_event_channel(3), rdma_destroy_event_channel(3).
#include "abi/ibverbs/check/for_rdmacm.h"
#include "abi/rdmacm/channel_object.h"
#include "abi/rdmacm/late_readers.h"
#include "abi/rdmacm/results.h"

using namespace verbena::rdmacm;

rdma_event_channel* rdma_create_event_channel() try {
  ChannelObject* const channel = ChannelObject::create();
  if (channel != nullptr) verbena_checks_created(channel, "event channel");
  return channel;
} catch (...) {
  return verbena::abi::fail(errno_of_exception());
}

void rdma_destroy_event_channel(rdma_event_channel* channel) try {
  if (channel == nullptr) return;
  verbena_checks_destroyed(channel);
  retire(std::unique_ptr<ChannelObject>(&ChannelObject::of(channel)));
} catch (...) {
  verbena::abi::refuse(errno_of_exception());
}
