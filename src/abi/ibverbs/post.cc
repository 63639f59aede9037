// Posting chains of work requests. ibv_post_send(3), ibv_post_recv(3), ibv_post_srq_recv(3).
// A whole chain is posted under one session: one lock, and its packets leave in one batch. The
// requests before a bad one are posted.
#include "abi/ibverbs/check/hooks.h"
#include "abi/ibverbs/errors.h"
#include "abi/ibverbs/exceptions.h"
#include "abi/ibverbs/operations.h"
#include "abi/ibverbs/qp_object.h"
#include "abi/ibverbs/srq_object.h"
#include "abi/ibverbs/undo.h"
#include "abi/ibverbs/work_requests.h"

namespace verbena::abi {
namespace {

template <typename WR>
void tell(host::Adapter::Session& session, const QPObject& qp, const WR& wr, PostError error) {
  if (!checks::active()) return;
  if (error == PostError::kOk) {
    checks::posted(qp, wr);
  } else {
    checks::refused(qp, error, session->attributes_of(qp.queue).state);
  }
}

PostError post_one(host::Adapter::Session& session, QPObject& qp, const ibv_send_wr& wr) {
  SGEList sges;
  SendWRRoom room;
  SendWR& request = room.wr;
  if (const PostError error = translate(qp.qp_base, wr, sges, request); error != PostError::kOk)
    return error;
  const PostError error = wr.next == nullptr
                              ? session->post_last_send(qp.queue, request, session.now())
                              : session->post_send(qp.queue, request, session.now());
  tell(session, qp, request, error);
  // The window's key once the bind has been carried out. ibv_bind_mw(3)
  if (error == PostError::kOk && wr.opcode == IBV_WR_BIND_MW) wr.bind_mw.mw->rkey = wr.bind_mw.rkey;
  return error;
}

PostError post_one(host::Adapter::Session& session, QPObject& qp, const ibv_recv_wr& wr) {
  SGEList sges;
  RecvWR request;
  if (const PostError error = translate(wr, sges, request); error != PostError::kOk) return error;
  const PostError error = session->post_receive(qp.queue, request, session.now());
  tell(session, qp, request, error);
  return error;
}

PostError post_one(host::Adapter::Session& session, SRQObject& srq, const ibv_recv_wr& wr) {
  SGEList sges;
  RecvWR request;
  if (const PostError error = translate(wr, sges, request); error != PostError::kOk) return error;
  const PostError error = session->post_srq_receive(srq.queue, request, session.now());
  if (checks::active() && error == PostError::kOk) checks::posted(srq, request);
  return error;
}

template <typename Queue, typename WR>
PostError post_each(host::Adapter::Session& session, Queue& queue, WR*& wr) {
  for (; wr != nullptr; wr = wr->next)
    if (const PostError error = post_one(session, queue, *wr); error != PostError::kOk)
      return error;
  return PostError::kOk;
}

// Posts the chain; on an error `wr` is the request that was refused.
template <typename Queue>
PostError post_chain(Queue& queue, ibv_send_wr*& wr) {
  host::Adapter::Session session = queue.owner().enter();
  const PostError error = post_each(session, queue, wr);
  if (!session->has_output()) session.end_sent();
  return error;
}

// As a rule a receive has no effect before a message comes for it, at whatever time.
template <typename Queue>
PostError post_chain(Queue& queue, ibv_recv_wr*& wr) {
  host::Adapter::Session session = queue.owner().enter(host::Adapter::Clock::kLast);
  const PostError error = post_each(session, queue, wr);
  if (!session->has_output()) session.end_quietly();
  return error;
}

template <typename Queue, typename WR>
int post(Queue& queue, WR* wr, WR** bad_wr) {
  Undo posted([&] { *bad_wr = wr; });
  const PostError error = post_chain(queue, wr);
  if (error == PostError::kOk) posted.keep();
  return refuse(to_errno(error));
}

}  // namespace

int post_send(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad_wr) try {
  return post(QPObject::of(qp), wr, bad_wr);
} catch (...) {
  return verbena::abi::refuse(verbena::abi::errno_of_exception());
}

int post_receive(ibv_qp* qp, ibv_recv_wr* wr, ibv_recv_wr** bad_wr) try {
  return post(QPObject::of(qp), wr, bad_wr);
} catch (...) {
  return verbena::abi::refuse(verbena::abi::errno_of_exception());
}

int post_srq_receive(ibv_srq* srq, ibv_recv_wr* wr, ibv_recv_wr** bad_wr) try {
  return post(SRQObject::of(srq), wr, bad_wr);
} catch (...) {
  return verbena::abi::refuse(verbena::abi::errno_of_exception());
}

}  // namespace verbena::abi
