// Completion channels and their events. ibv_create_comp_channel(3), ibv_get_cq_event(3).
#include "abi/ibverbs/channel_object.h"

#include <pthread.h>

#include "abi/ibverbs/cq_object.h"
#include "abi/ibverbs/errors.h"
#include "abi/ibverbs/exceptions.h"
#include "abi/ibverbs/make.h"

namespace verbena::abi {
namespace {

// Tells the adapter when the thread no longer sleeps, and also when it is cancelled.
class Sleep {
 public:
  explicit Sleep(host::Adapter* adapter) : adapter_(adapter) {}
  ~Sleep() {
    if (adapter_ != nullptr) adapter_->on_awake();
  }
  Sleep(const Sleep&) = delete;
  Sleep& operator=(const Sleep&) = delete;

 private:
  host::Adapter* adapter_;  // nullptr if the thread does not sleep
};

// A cancellation point, as the read(2) in it.
tl::expected<CQObject*, int> next_event(ChannelObject& channel) {
  host::EventQueue<CQObject*>& ready = *channel.ready;
  if (!ready.is_empty() || !ready.blocks()) return ready.pop();
  host::Adapter& adapter = *channel.owner().adapter;
  pthread_testcancel();
  ready.await();
  const bool sleeps = adapter.look_before_sleep([&ready] { return !ready.is_empty(); });
  const Sleep sleep(sleeps ? &adapter : nullptr);
  const std::optional<CQObject*> found = ready.take_awaited();
  return found ? *found : ready.pop();
}

}  // namespace

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
  const tl::expected<CQObject*, int> ready = next_event(ChannelObject::of(channel));
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
