// Buffers that the library allocates. ibv_alloc_buf(3).
#include "abi/ibverbs/buf_object.h"

#include <unistd.h>

#include "abi/ibverbs/errors.h"
#include "abi/ibverbs/exceptions.h"
#include "abi/ibverbs/make.h"

namespace verbena::abi {
namespace {

// The resource type that a parent domain's allocator is told. Its upper half is the number of the
// kernel's driver: there is none.
constexpr u64 kBufferResource = 1;

std::size_t page_size() { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }

// Returns 0, or the errno. USE_DEFAULT leaves `buf` without memory.
int ask_allocator(BufObject& buf) {
  const PDObject& pd = *buf.pd;
  void* const memory =
      pd.allocate(buf.pd, pd.allocator_context, buf.size, page_size(), kBufferResource);
  if (memory == nullptr) return ENOMEM;
  if (memory != IBV_ALLOCATOR_USE_DEFAULT) buf.data = static_cast<u8*>(memory);
  return 0;
}

// Returns 0, or the errno.
int allocate(BufObject& buf) {
  if (buf.pd->allocate != nullptr)
    if (const int error = ask_allocator(buf); error != 0 || buf.data != nullptr) return error;
  void* memory = nullptr;
  if (const int error = ::posix_memalign(&memory, page_size(), buf.size); error != 0) return error;
  buf.memory.reset(static_cast<u8*>(memory));
  buf.data = buf.memory.get();
  return 0;
}

}  // namespace

Status destroy(BufObject& buf) {
  PDObject& pd = *buf.pd;
  if (buf.memory == nullptr) pd.release(&pd, pd.allocator_context, buf.data, kBufferResource);
  pd.owner().bufs.erase(&buf);
  delete &buf;
  return Status::kOk;
}

}  // namespace verbena::abi

using namespace verbena::abi;

void* ibv_alloc_buf(ibv_pd* pd, std::size_t size, ibv_buf** buf) try {
  if (size == 0) return fail(EINVAL);
  auto made = make<BufObject>();
  if (made == nullptr) return fail(ENOMEM);
  made->pd = &PDObject::of(pd);
  made->pd_use = Use(made->pd->users);
  made->size = size;
  if (const int error = allocate(*made); error != 0) return fail(error);
  made->pd->owner().bufs.insert(made.get());
  *buf = made.get();
  return made.release()->data;
} catch (...) {
  return fail(errno_of_exception());
}

void ibv_free_buf(ibv_buf* buf) try {
  if (buf != nullptr) static_cast<void>(destroy(BufObject::of(buf)));
} catch (...) {
  refuse(errno_of_exception());
}

// No dma-buf backs a buffer.
int ibv_export_buf_dmabuf_fd(ibv_buf*) try { return fail_with_minus_one(ENODATA); } catch (...) {
  return fail_with_minus_one(errno_of_exception());
}

ibv_mr* ibv_reg_buf_mr(ibv_pd* pd, ibv_buf* buf, void* addr, std::size_t length, int access) try {
  ibv_mr_init_attr attr{};
  attr.length = length;
  attr.access = access;
  attr.comp_mask = kMRInitBuf | kMRInitAddr;
  attr.addr = addr;
  attr.buf = buf;
  return ibv_reg_mr_ex(pd, &attr);
} catch (...) {
  return fail(errno_of_exception());
}
