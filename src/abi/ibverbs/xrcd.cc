// XRC domains. ibv_open_xrcd(3).
#include <fcntl.h>

#include <map>
#include <mutex>

#include "abi/ibverbs/errors.h"
#include "abi/ibverbs/make.h"
#include "abi/ibverbs/operations.h"
#include "abi/ibverbs/undo.h"
#include "abi/ibverbs/xrcd_object.h"
#include "host/os/held_file.h"

namespace verbena::abi {
namespace {

// The domains of this process that were opened through files. A file is held until another takes
// its entry: that its domain is closed shows when it is next asked for.
struct FileXRCDs {
  struct Key {
    const host::Adapter* adapter;
    host::HeldFile::Inode inode;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  struct Entry {
    std::weak_ptr<OpenXRCD> open;
    host::HeldFile file;
  };
  std::mutex mutex;
  std::map<Key, Entry> entries;

  void drop_closed() {
    std::erase_if(entries, [](const auto& entry) { return entry.second.open.expired(); });
  }
};

FileXRCDs& file_xrcds() {
  static FileXRCDs* const instance = new FileXRCDs;  // exit handlers may close domains
  return *instance;
}

std::shared_ptr<OpenXRCD> open_new(ContextObject& owner) {
  if (owner.is_iwarp()) return fail(EOPNOTSUPP);
  const Result<XRCDomain*> domain = owner.enter()->open_xrcd();
  if (!domain) return fail(domain.error());
  Undo opened([&] { static_cast<void>(owner.enter()->close_xrcd(*domain)); });
  auto open = std::make_shared<OpenXRCD>(owner.adapter, *domain);
  opened.keep();  // it closes the domain
  return open;
}

// As Linux has it: EAGAIN where there is none and O_CREAT is not given, EINVAL where there is one
// and O_EXCL is.
std::shared_ptr<OpenXRCD> open_of_file(ContextObject& owner, int fd, int oflags) {
  host::Expected<host::HeldFile> file = host::HeldFile::hold(fd);
  if (!file) return fail(file.error().error);
  FileXRCDs& known = file_xrcds();
  const std::lock_guard lock(known.mutex);
  known.drop_closed();
  const FileXRCDs::Key key{.adapter = owner.adapter.get(), .inode = file->inode()};
  if (const auto found = known.entries.find(key); found != known.entries.end())
    if (std::shared_ptr<OpenXRCD> open = found->second.open.lock()) {
      if ((oflags & O_EXCL) != 0) return fail(EINVAL);
      return open;
    }
  if ((oflags & O_CREAT) == 0) return fail(EAGAIN);
  std::shared_ptr<OpenXRCD> open = open_new(owner);
  if (open != nullptr)
    known.entries.insert_or_assign(key, FileXRCDs::Entry{.open = open, .file = std::move(*file)});
  return open;
}

}  // namespace

OpenXRCD::~OpenXRCD() { CHECK(adapter_->enter()->close_xrcd(domain_) == Status::kOk); }

ibv_xrcd* open_xrcd(ibv_context* context, ibv_xrcd_init_attr* attr) {
  constexpr u32 kBoth = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
  if ((attr->comp_mask & ~kBoth) != 0) return fail(EOPNOTSUPP);
  if (attr->comp_mask != kBoth) return fail(EINVAL);
  ContextObject& owner = ContextObject::of(context);
  std::shared_ptr<OpenXRCD> open =
      attr->fd == -1 ? open_new(owner) : open_of_file(owner, attr->fd, attr->oflags);
  if (open == nullptr) return nullptr;
  auto xrcd = make<XRCDObject>(context, std::move(open));
  if (xrcd == nullptr) return fail(ENOMEM);
  owner.xrcds.insert(xrcd.get());
  return xrcd.release();
}

Status destroy(XRCDObject& xrcd) {
  if (xrcd.users != 0) return Status::kBusy;
  xrcd.owner().xrcds.erase(&xrcd);
  delete &xrcd;
  return Status::kOk;
}

int close_xrcd(ibv_xrcd* xrcd) { return refuse(destroy(XRCDObject::of(xrcd))); }

}  // namespace verbena::abi
