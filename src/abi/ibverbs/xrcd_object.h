// XRCDObject: an XRC domain as a context has opened it. ibv_open_xrcd(3). Contexts of one process
// that open one file's have the same domain. Other processes that open that file have one of their
// own: each process has a device of its own, and its SRQs are out of the others' reach.
#pragma once

#include <atomic>
#include <memory>

#include "abi/ibverbs/context_object.h"

namespace verbena::abi {

// The domain itself; closed with its last XRCDObject.
class OpenXRCD {
 public:
  OpenXRCD(std::shared_ptr<host::Adapter> adapter, XRCDomain* domain)
      : adapter_(std::move(adapter)), domain_(domain) {}
  ~OpenXRCD();
  OpenXRCD(const OpenXRCD&) = delete;
  OpenXRCD& operator=(const OpenXRCD&) = delete;

  [[nodiscard]] XRCDomain* domain() const { return domain_; }

 private:
  const std::shared_ptr<host::Adapter> adapter_;
  XRCDomain* const domain_;
};

struct XRCDObject final : ibv_xrcd {
  XRCDObject(ibv_context* opener, std::shared_ptr<OpenXRCD> opened)
      : ibv_xrcd{.context = opener}, open(std::move(opened)) {}

  static XRCDObject& of(ibv_xrcd* xrcd) { return *static_cast<XRCDObject*>(xrcd); }
  [[nodiscard]] ContextObject& owner() const { return ContextObject::of(context); }

  const std::shared_ptr<OpenXRCD> open;
  std::atomic<u32> users{0};  // SRQs and QPs made with this object
};

// Closed and deleted; kBusy and unchanged while something made with it is left.
[[nodiscard]] Status destroy(XRCDObject& xrcd);

}  // namespace verbena::abi
