// Device::Impl: the parts of a device, and nothing else: each part knows its own subject.
// Inside src/device/ only.
#pragma once

#include "device/device.h"
#include "device/objects/event_queue.h"
#include "device/objects/object_table.h"
#include "device/objects/shared_receive_queue.h"
#include "device/objects/xrc_domain.h"
#include "device/port/cnp_queue.h"
#include "device/port/egress.h"
#include "device/port/gsi.h"
#include "device/port/ingress.h"
#include "device/port/local_traffic.h"
#include "device/port/multicast_table.h"
#include "device/qp/engine_runner.h"
#include "device/qp/qp_table.h"
#include "device/qp/streams.h"

namespace verbena {

struct Device::Impl {
  static constexpr u64 kQPNSeed = 0x51504e;  // QPNs and keys come from different streams
  explicit Impl(const DeviceConfig& c)
      : config(c),
        memory(c.limits.max_mr, c.limits.max_mw, PRNG(c.seed)),
        pds(c.limits.max_pd),
        cqs(c.limits.max_cq),
        srqs(c.limits.max_srq),
        xrcds(c.limits.max_xrcd),
        window{.packets = c.path.shared_window_packets},
        qps(c.first_qpn, c.limits.max_qp,
            c.hardening.random_qpns ? std::optional(c.seed ^ kQPNSeed) : std::nullopt),
        multicast({c.limits.max_multicast_groups, c.limits.max_qps_of_group}),
        cnps(config.congestion.notification),
        runner(config, qps, srqs, events, memory),
        gsi(port),
        ingress(config, qps, multicast, runner, cnps, gsi, port),
        egress(config, runner, cnps, gsi, port),
        streams(qps, runner, port) {
    memory.limit_registered_bytes(c.limits.max_registered_bytes);
    if (c.local.keys != nullptr) memory.publish_to(*c.local.keys);
  }

  // Returns the work that peers of this host have done to the QP without packets.
  [[nodiscard]] LocalWork local_work_of(const QueuePair& qp) const {
    return config.local.counts == nullptr ? LocalWork{}
                                          : config.local.counts->of(qp.attributes.qpn);
  }
  // Both ways.
  [[nodiscard]] QPTraffic local_traffic_of(const QueuePair& qp) const {
    const EngineCounters& engine = qp.engine->counters();
    QPTraffic traffic = as_packets(done_without_packets(engine), local_work_of(qp));
    traffic += as_packets(engine.local_acknowledgements);
    return traffic;
  }

  const DeviceConfig config;
  ProtectionTable memory;
  ObjectTable<ProtectionDomain> pds;
  ObjectTable<CompletionQueue> cqs;
  ObjectTable<SharedReceiveQueue> srqs;
  ObjectTable<XRCDomain> xrcds;
  SharedWindow window;
  QPTable qps;  // behind what QPs refer to

  u8 srq_generation = 0;  // of the SRQ made last

  PollHabit habit;

  MulticastTable multicast;
  AsyncEventQueue events;
  CNPQueue cnps;
  EngineRunner runner;
  Counters port;                 // without the transports, and what needed no packets of live QPs
  EngineCounters destroyed_qps;  // what their transports had counted
  Counters sum;                  // as last handed out
  GSI gsi;                       // counts in `port`
  Ingress ingress;
  Egress egress;
  Streams streams;  // of iWARP, in place of the two
};

}  // namespace verbena
