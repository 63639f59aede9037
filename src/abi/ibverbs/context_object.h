// ContextObject: an open device. All contexts of one address in a process share an Adapter; each
// has its own queue of asynchronous events, and owns what is made from it.
#pragma once

#include <atomic>
#include <memory>

#include "abi/ibverbs/device_object.h"
#include "abi/ibverbs/live_set.h"
#include "host/adapter.h"
#include "host/events/event_queue.h"
#include "host/os/descriptor.h"

namespace verbena::abi {

struct ChannelObject;
struct BufObject;
struct CQObject;
struct CompCntrObject;
struct DMAHObject;
struct DMObject;
struct MRObject;
struct MWObject;
struct PDObject;
struct QPObject;
struct SRQObject;
struct TDObject;
struct XRCDObject;

struct ContextObject final : verbs_context, host::EventTarget {
  using AsyncEvents = host::EventQueue<ibv_async_event>;
  ContextObject(DeviceObject& opened, std::shared_ptr<host::Adapter> shared,
                std::unique_ptr<AsyncEvents> events, host::Descriptor command_file);
  ~ContextObject() override;  // destroys what the application left
  ContextObject(const ContextObject&) = delete;
  ContextObject& operator=(const ContextObject&) = delete;

  static ContextObject& of(ibv_context* context) {
    return *static_cast<ContextObject*>(verbs_get_ctx(context));
  }
  [[nodiscard]] host::Adapter::Session enter(
      host::Adapter::Clock clock = host::Adapter::Clock::kNow) {
    return adapter->enter(clock);
  }
  [[nodiscard]] const DeviceConfig& config() const { return adapter->device().config(); }

  // It has RC QPs and their connections: no datagrams, address handles, multicast or XRC.
  [[nodiscard]] bool is_iwarp() const { return config().transport == Transport::kIWARP; }

  [[nodiscard]] host::EventDescriptor* on_completion_event() override { return nullptr; }
  void on_async_event(const AsyncEvent& event) override;  // of the port

  DeviceObject& device;
  const std::shared_ptr<host::Adapter> adapter;
  const std::unique_ptr<AsyncEvents> async_events;
  const host::Descriptor command_file;  // command_file.h

  LiveSet<ChannelObject> channels{"completion channel"};
  LiveSet<CQObject> cqs{"CQ"};
  LiveSet<MRObject> mrs{"MR"};
  LiveSet<MWObject> mws{"MW"};
  LiveSet<PDObject> pds{"PD"}, parent_domains{"parent domain"};
  LiveSet<QPObject> qps{"QP"};
  LiveSet<SRQObject> srqs{"SRQ"};
  LiveSet<XRCDObject> xrcds{"XRC domain"};
  LiveSet<TDObject> tds{"thread domain"};
  LiveSet<DMObject> dms{"DM"};
  LiveSet<DMAHObject> dmahs{"DMAH"};
  LiveSet<BufObject> bufs{"buffer"};
  LiveSet<CompCntrObject> comp_cntrs{"completion counter"};
  std::atomic<u64> dm_bytes{0};  // of all dms together
};

// All contexts of this process, for objects that they share.
[[nodiscard]] LiveSet<ContextObject>& open_contexts();
// Takes the command file over, if one was imported. nullptr and errno on failure.
[[nodiscard]] ContextObject* open_context(DeviceObject& device, host::Descriptor imported = {});

inline constexpr u8 kPort = 1;  // the only one

}  // namespace verbena::abi
