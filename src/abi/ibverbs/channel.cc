// Completion channels and their events. ibv_create_comp_channel(3), ibv_get_cq_event(3).
#include "abi/ibverbs/channel_object.h"

#include "abi/ibverbs/cq_object.h"
#include "abi/ibverbs/errors.h"
#include "abi/ibverbs/exceptions.h"
#include "abi/ibverbs/make.h"
#include "host/events/event_wait.h"

namespace verbena::abi {

Status destroy(ChannelObject& channel) {
  if (channel.in_use()) return Status::kBusy;
  channel.owner().channels.erase(&channel);
  delete &channel;
  return Status::kOk;
}

}  // namespace verbena::abi

using namespace verbena;
using namespace verbena::abi;

ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) try {
  auto channel = make<ChannelObject>();
  if (channel == nullptr) return fail(ENOMEM);
  auto ready = host::EventQueue<CQObject*>::create();
  if (!ready) return fail(ready.error().error);
  channel->ready = std::move(*ready);
  channel->context = context;
  channel->fd = channel->ready->fd();
  channel->owner().channels.insert(channel.get());
  return channel.release();
} catch (...) {
  return fail(errno_of_exception());
}

int ibv_destroy_comp_channel(ibv_comp_channel* channel) try {
  return refuse(destroy(ChannelObject::of(channel)));
} catch (...) {
  return refuse(errno_of_exception());
}

int ibv_get_cq_event(ibv_comp_channel* channel, ibv_cq** cq, void** cq_context) try {
  ChannelObject& object = ChannelObject::of(channel);
  const tl::expected<CQObject*, int> ready =
      host::wait_for_event(*object.owner().adapter, *object.ready);
  if (!ready) return fail_with_minus_one(ready.error());
  *cq = (*ready)->verbs();
  *cq_context = (*ready)->cq_context;
  return 0;
} catch (...) {
  return fail_with_minus_one(errno_of_exception());
}

void ibv_ack_cq_events(ibv_cq* cq, unsigned nevents) try {
  CQObject::of(cq).completion_events.on_acknowledged(nevents);
} catch (...) {
  refuse(errno_of_exception());
}
