#include "abi/ibverbs/send_builder.h"

#include <algorithm>
#include <cstring>

#include "abi/ibverbs/work_requests.h"
#include "base/checked.h"
#include "memory/touch.h"

namespace verbena::abi {
namespace {

template <typename T>
bool has_room(const std::vector<T>& storage, std::size_t count) {
  return count <= storage.capacity() - storage.size();
}

// Returns false if the CPU cannot read all of the buffers. memcpy() takes no null pointer.
bool copy_buffers(std::span<const ibv_data_buf> buffers, u8* to) {
  const auto is_null = [](const ibv_data_buf& buffer) {
    return buffer.addr == nullptr && buffer.length != 0;
  };
  if (std::ranges::any_of(buffers, is_null)) return false;
  return touch([buffers, to] {
    u8* at = to;
    for (const ibv_data_buf& buffer : buffers) {
      if (buffer.length != 0) std::memcpy(at, buffer.addr, buffer.length);
      at += buffer.length;
    }
  });
}

}  // namespace

SendBuilder::SendBuilder(const SendQueueLimits& limits) : limits_(limits) {
  limits_.max_sge = std::max(limits.max_sge, 1u);  // inline bytes take one
  binds_.reserve(limits.depth);
  requests_.reserve(limits.depth);
  sges_.reserve(std::size_t{limits.depth} * limits_.max_sge);
  inline_bytes_.reserve(std::size_t{limits.depth} * limits.max_inline_bytes);
}

void SendBuilder::start() {
  error_ = PostError::kOk;
  binds_.clear();
  requests_.clear();
  sges_.clear();
  inline_bytes_.clear();
}

void SendBuilder::fail(PostError error) {
  if (error_ == PostError::kOk) error_ = error;
}

void SendBuilder::begin(const SendWR& wr) {
  if (requests_.size() == limits_.depth) return fail(PostError::kQueueFull);
  requests_.push_back(wr);
}

RKey SendBuilder::key_of(const ibv_mw& mw) const {
  const auto last = std::find_if(binds_.rbegin(), binds_.rend(),
                                 [&mw](const Bind& bind) { return bind.mw == &mw; });
  return last != binds_.rend() ? last->new_key : RKey{mw.rkey};
}

void SendBuilder::begin_bind(SendWR wr, ibv_mw& mw) {
  wr.mw = key_of(mw);
  begin(wr);
  if (error_ == PostError::kOk) binds_.push_back({.mw = &mw, .new_key = wr.mw_new});
}

void SendBuilder::rename_windows() {
  for (const Bind& bind : binds_) bind.mw->rkey = bind.new_key.value;
}

SendWR* SendBuilder::current() {
  if (requests_.empty()) fail(PostError::kBadOpcode);
  return error_ == PostError::kOk ? &requests_.back() : nullptr;
}

void SendBuilder::set_sges(std::span<const ibv_sge> sges) {
  SendWR* wr = current();
  if (wr == nullptr) return;
  if (sges.size() > limits_.max_sge || !has_room(sges_, sges.size()))
    return fail(PostError::kTooManySGEs);
  const std::size_t first = sges_.size();
  for (const ibv_sge& sge : sges) sges_.push_back(to_sge(sge));
  wr->sg_list = std::span(sges_).subspan(first);
}

void SendBuilder::set_inline(std::span<const ibv_data_buf> buffers) {
  SendWR* wr = current();
  if (wr == nullptr) return;
  const auto length = checked_total<std::size_t>(buffers, &ibv_data_buf::length);
  if (!length || *length > limits_.max_inline_bytes || !has_room(inline_bytes_, *length) ||
      !has_room(sges_, 1))
    return fail(PostError::kInlineTooLong);
  const std::size_t first = inline_bytes_.size();
  inline_bytes_.resize(first + *length);
  if (!copy_buffers(buffers, inline_bytes_.data() + first)) return fail(PostError::kUnreadable);
  sges_.push_back({.address = reinterpret_cast<u64>(inline_bytes_.data() + first),
                   .length = static_cast<u32>(*length),
                   .l_key = {}});
  wr->sg_list = std::span(sges_).last(1);
  wr->inline_data = true;
}

void SendBuilder::set_destination(const AddressVector& path, QPN dest_qp, QKey q_key) {
  SendWR* wr = current();
  if (wr == nullptr) return;
  wr->destination = path;
  wr->dest_qp = dest_qp;
  wr->q_key = q_key;
}

void SendBuilder::set_xrc_srq(u32 number) {
  if (SendWR* wr = current(); wr != nullptr) wr->xrc_srq = number;
}

}  // namespace verbena::abi
