#include "abi/rdmacm/channel_object.h"

#include "abi/ibverbs/make.h"
#include "abi/rdmacm/results.h"

namespace verbena::rdmacm {

ChannelObject* ChannelObject::create() {
  auto queue = host::EventQueue<EventObject*>::create();
  if (!queue) {
    errno = queue.error().error;
    return nullptr;
  }
  auto channel = abi::make<ChannelObject>();
  if (channel == nullptr) return abi::fail(ENOMEM);
  channel->events = std::move(*queue);
  channel->fd = channel->events->fd();
  return channel.release();
}

ChannelObject::~ChannelObject() { close(); }

void ChannelObject::close() {
  std::vector<EventObject*> left;
  events->remove_if([&](EventObject* event) {
    left.push_back(event);
    return true;
  });
  for (EventObject* event : left) delete event;
  events->close();
  fd = -1;
}

std::vector<std::unique_ptr<EventObject>> ChannelObject::take_events_of(const IdObject& id) {
  std::vector<std::unique_ptr<EventObject>> taken;
  events->remove_if([&](EventObject* event) {
    if (&event->owner != &id) return false;
    taken.emplace_back(event);
    return true;
  });
  return taken;
}

}  // namespace verbena::rdmacm
