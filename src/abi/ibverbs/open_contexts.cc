// Opening and closing devices, and what a context offers. ibv_open_device(3).
#include "abi/ibverbs/context_object.h"

#include <cstdio>

#include "abi/ibverbs/async_events.h"
#include "abi/ibverbs/buf_object.h"
#include "abi/ibverbs/channel_object.h"
#include "abi/ibverbs/check/hooks.h"
#include "abi/ibverbs/command_file.h"
#include "abi/ibverbs/comp_cntr_object.h"
#include "abi/ibverbs/cq_object.h"
#include "abi/ibverbs/dm_object.h"
#include "abi/ibverbs/dmah_object.h"
#include "abi/ibverbs/errors.h"
#include "abi/ibverbs/exceptions.h"
#include "abi/ibverbs/make.h"
#include "abi/ibverbs/mr_object.h"
#include "abi/ibverbs/mw_object.h"
#include "abi/ibverbs/operations.h"
#include "abi/ibverbs/qp_object.h"
#include "abi/ibverbs/srq_object.h"
#include "abi/ibverbs/undo.h"
#include "abi/ibverbs/xrcd_object.h"

namespace verbena::abi {
namespace {

ibv_context_ops operations() {
  ibv_context_ops ops{};
  ops.alloc_mw = guarded<alloc_mw>;
  ops.bind_mw = guarded<bind_mw>;
  ops.dealloc_mw = guarded<dealloc_mw>;
  ops.poll_cq = poll_cq;
  ops.req_notify_cq = request_notification;
  ops.post_srq_recv = post_srq_receive;
  ops.post_send = post_send;
  ops.post_recv = post_receive;
  return ops;
}

// Destroys every object of one kind, the last reference of its kind first: it cannot be busy then.
template <typename T>
void withdraw_all(const LiveSet<T>& objects) {
  while (T* object = objects.any()) {
    CHECK(withdraw(*object) == Status::kOk);
    delete object;
  }
}
template <typename T>
void destroy_all(const LiveSet<T>& objects) {
  while (T* object = objects.any()) CHECK(destroy(*object) == Status::kOk);
}

// Forgets the context's objects of one kind. An object that another context shares lives on.
template <typename T>
void forget_all(const LiveSet<T>& objects) {
  while (T* object = objects.any()) forget(*object);
}

std::nullptr_t report(const host::Error& error) {
  std::fprintf(stderr, "verbena: %s\n", error.message.c_str());
  return fail(error.error);
}

}  // namespace

ContextObject::ContextObject(DeviceObject& opened, std::shared_ptr<host::Adapter> shared,
                             std::unique_ptr<AsyncEvents> events, host::Descriptor file)
    : verbs_context{},
      device(opened),
      adapter(std::move(shared)),
      async_events(std::move(events)),
      command_file(std::move(file)) {
  sz = sizeof(verbs_context);
  verbs_context::advise_mr = guarded<abi::advise_mr>;
  verbs_context::alloc_null_mr = guarded<abi::alloc_null_mr>;
  verbs_context::alloc_dm = guarded<abi::alloc_dm>;
  verbs_context::free_dm = guarded<abi::free_dm>;
  verbs_context::reg_dm_mr = guarded<abi::reg_dm_mr>;
  verbs_context::alloc_td = guarded<abi::alloc_td>;
  verbs_context::dealloc_td = guarded<abi::dealloc_td>;
  verbs_context::alloc_parent_domain = guarded<abi::alloc_parent_domain>;
  verbs_context::modify_cq = guarded<abi::modify_cq>;
  verbs_context::query_port = guarded<abi::query_port>;
  verbs_context::query_rt_values = guarded<abi::query_rt_values>;
  verbs_context::query_device_ex = guarded<abi::query_device_ex>;
  verbs_context::create_cq_ex = guarded<abi::create_cq_ex>;
  verbs_context::create_qp_ex = guarded<abi::create_qp_ex>;
  verbs_context::open_qp = guarded<abi::open_qp>;
  verbs_context::create_srq_ex = guarded<abi::create_srq_ex>;
  verbs_context::get_srq_num = guarded<abi::get_srq_num>;
  verbs_context::open_xrcd = guarded<abi::open_xrcd>;
  verbs_context::close_xrcd = guarded<abi::close_xrcd>;

  context.device = &device.verbs;
  context.ops = operations();
  context.cmd_fd = command_file.get();
  context.async_fd = async_events->fd();
  context.num_comp_vectors = 1;
  context.abi_compat = __VERBS_ABI_IS_EXTENDED;
  open_contexts().insert(this);
  Undo listed([this] { open_contexts().erase(this); });
  adapter->add_port_listener(this);
  listed.keep();
}

ContextObject::~ContextObject() {
  open_contexts().erase(this);
  adapter->remove_port_listener(this);
  while (QPObject* const qp = qps.any()) {
    adapter->detach_from_all(qp->queue);
    CHECK(withdraw(*qp) == Status::kOk);
    delete qp;
  }
  withdraw_all(srqs);
  destroy_all(xrcds);
  withdraw_all(cqs);
  destroy_all(mws);
  forget_all(mrs);
  destroy_all(dms);
  destroy_all(dmahs);
  destroy_all(bufs);
  destroy_all(comp_cntrs);
  destroy_all(parent_domains);
  destroy_all(tds);
  forget_all(pds);
  destroy_all(channels);
}

void ContextObject::on_async_event(const AsyncEvent& event) {
  async_events->push(to_ibv(event.type, {.port_num = kPort}));
}

LiveSet<ContextObject>& open_contexts() {
  static auto& contexts = *new LiveSet<ContextObject>("context");
  return contexts;
}

ContextObject* open_context(DeviceObject& device, host::Descriptor imported) {
  Checker::start();
  auto adapter = host::Adapter::open(device.address);
  if (!adapter) return report(adapter.error());
  checks::opened(**adapter);
  host::Descriptor command_file =
      imported.is_open()
          ? std::move(imported)
          : CommandFile::describe(device.address, (*adapter)->export_place()).write();
  if (!command_file.is_open()) return fail(errno);
  auto events = ContextObject::AsyncEvents::create();
  if (!events) return report(events.error());
  auto context =
      make<ContextObject>(device, std::move(*adapter), std::move(*events), std::move(command_file));
  if (context == nullptr) return fail(ENOMEM);
  return context.release();
}

}  // namespace verbena::abi

using namespace verbena;
using namespace verbena::abi;

ibv_context* ibv_open_device(ibv_device* device) try {
  ContextObject* context = open_context(DeviceObject::of(device));
  return context == nullptr ? nullptr : &context->context;
} catch (...) {
  return fail(errno_of_exception());
}

int ibv_close_device(ibv_context* context) try {
  ContextObject& self = ContextObject::of(context);
  checks::destroyed(&self);
  const checks::LeavingBehind rest;
  delete &self;
  return 0;
} catch (...) {
  return refuse(errno_of_exception());
}
