#include "explain/names.h"

#include "base/check.h"
#include "wire/ib/aeth.h"

namespace verbena::explain {

const char* name_of(QPType type) {
  switch (type) {
    case QPType::kRC: return "RC";
    case QPType::kUC: return "UC";
    case QPType::kUD: return "UD";
    case QPType::kXRCInitiator: return "XRC initiator";
    case QPType::kXRCTarget: return "XRC target";
    case QPType::kRawPacket: return "raw packet";
  }
  CHECK_UNREACHABLE();
}

const char* name_of(QPState state) {
  switch (state) {
    case QPState::kReset: return "Reset";
    case QPState::kInit: return "Init";
    case QPState::kRTR: return "RTR";
    case QPState::kRTS: return "RTS";
    case QPState::kSQD: return "SQD";
    case QPState::kSQE: return "SQE";
    case QPState::kError: return "Error";
  }
  CHECK_UNREACHABLE();
}

const char* name_of(SendOp op) {
  switch (op) {
    case SendOp::kSend: return "SEND";
    case SendOp::kSendWithImmediate: return "SEND with immediate";
    case SendOp::kSendWithInvalidate: return "SEND with invalidate";
    case SendOp::kRDMAWrite: return "RDMA WRITE";
    case SendOp::kRDMAWriteWithImmediate: return "RDMA WRITE with immediate";
    case SendOp::kRDMARead: return "RDMA READ";
    case SendOp::kCompareSwap: return "compare and swap";
    case SendOp::kFetchAdd: return "fetch and add";
    case SendOp::kFlush: return "FLUSH";
    case SendOp::kAtomicWrite: return "ATOMIC WRITE";
    case SendOp::kBindMW: return "bind memory window";
    case SendOp::kLocalInvalidate: return "local invalidate";
  }
  CHECK_UNREACHABLE();
}

const char* name_of(WQEStatus status) {
  switch (status) {
    case WQEStatus::kSuccess: return "IBV_WC_SUCCESS (success)";
    case WQEStatus::kLocalLength: return "IBV_WC_LOC_LEN_ERR (local length error)";
    case WQEStatus::kLocalQPOperation: return "IBV_WC_LOC_QP_OP_ERR (local QP operation error)";
    case WQEStatus::kLocalProtection: return "IBV_WC_LOC_PROT_ERR (local protection error)";
    case WQEStatus::kFlushed: return "IBV_WC_WR_FLUSH_ERR (flushed)";
    case WQEStatus::kMWBind: return "IBV_WC_MW_BIND_ERR (memory window bind error)";
    case WQEStatus::kBadResponse: return "IBV_WC_BAD_RESP_ERR (bad response)";
    case WQEStatus::kLocalAccess: return "IBV_WC_LOC_ACCESS_ERR (local access error)";
    case WQEStatus::kRemoteInvalidRequest: return "IBV_WC_REM_INV_REQ_ERR (remote invalid request)";
    case WQEStatus::kRemoteAccess: return "IBV_WC_REM_ACCESS_ERR (remote access error)";
    case WQEStatus::kRemoteOperational: return "IBV_WC_REM_OP_ERR (remote operational error)";
    case WQEStatus::kRetryExceeded:
      return "IBV_WC_RETRY_EXC_ERR (transport retry counter exceeded)";
    case WQEStatus::kRNRRetryExceeded:
      return "IBV_WC_RNR_RETRY_EXC_ERR (RNR retry counter exceeded)";
  }
  CHECK_UNREACHABLE();
}

const char* name_of(AsyncEventType type) {
  switch (type) {
    case AsyncEventType::kQPFatal: return "IBV_EVENT_QP_FATAL";
    case AsyncEventType::kQPRequestError: return "IBV_EVENT_QP_REQ_ERR";
    case AsyncEventType::kQPAccessError: return "IBV_EVENT_QP_ACCESS_ERR";
    case AsyncEventType::kCommunicationEstablished: return "IBV_EVENT_COMM_EST";
    case AsyncEventType::kSQDrained: return "IBV_EVENT_SQ_DRAINED";
    case AsyncEventType::kQPLastWQEReached: return "IBV_EVENT_QP_LAST_WQE_REACHED";
    case AsyncEventType::kCQError: return "IBV_EVENT_CQ_ERR";
    case AsyncEventType::kSRQError: return "IBV_EVENT_SRQ_ERR";
    case AsyncEventType::kSRQLimitReached: return "IBV_EVENT_SRQ_LIMIT_REACHED";
    case AsyncEventType::kPortActive: return "IBV_EVENT_PORT_ACTIVE";
    case AsyncEventType::kPortError: return "IBV_EVENT_PORT_ERR";
    case AsyncEventType::kGIDChange: return "IBV_EVENT_GID_CHANGE";
    case AsyncEventType::kLIDChange: return "IBV_EVENT_LID_CHANGE";
    case AsyncEventType::kPKeyChange: return "IBV_EVENT_PKEY_CHANGE";
    case AsyncEventType::kSMChange: return "IBV_EVENT_SM_CHANGE";
    case AsyncEventType::kClientReregister: return "IBV_EVENT_CLIENT_REREGISTER";
  }
  CHECK_UNREACHABLE();
}

std::string syndrome_name(u8 syndrome) {
  const u8 value = syndrome & 0x1f;
  switch (static_cast<AETHKind>((syndrome >> 5) & 3)) {
    case AETHKind::kACK: return "";
    case AETHKind::kRNRNAK: return "RNR NAK";
    case AETHKind::kReserved: return "reserved syndrome";
    case AETHKind::kNAK: break;
  }
  switch (static_cast<NAKCode>(value)) {
    case NAKCode::kPSNSequenceError: return "NAK PSN sequence error";
    case NAKCode::kInvalidRequest: return "NAK invalid request";
    case NAKCode::kRemoteAccessError: return "NAK remote access error";
    case NAKCode::kRemoteOperationalError: return "NAK remote operational error";
    case NAKCode::kInvalidRDRequest: return "NAK invalid RD request";
  }
  return "NAK code " + std::to_string(value);
}

std::string names_of(AccessFlags access) {
  struct Name {
    Access flag;
    const char* name;
  };
  constexpr Name kNames[] = {
      {Access::kLocalWrite, "LOCAL_WRITE"},   {Access::kRemoteWrite, "REMOTE_WRITE"},
      {Access::kRemoteRead, "REMOTE_READ"},   {Access::kRemoteAtomic, "REMOTE_ATOMIC"},
      {Access::kMWBind, "MW_BIND"},           {Access::kZeroBased, "ZERO_BASED"},
      {Access::kFlushGlobal, "FLUSH_GLOBAL"}, {Access::kFlushPersistent, "FLUSH_PERSISTENT"}};
  std::string out;
  for (const Name& one : kNames) {
    if (!access.has(one.flag)) continue;
    if (!out.empty()) out += " | ";
    out += "IBV_ACCESS_";
    out += one.name;
  }
  return out.empty() ? "local read only" : out;
}

const char* needed_flag(SendOp op) {
  switch (op) {
    case SendOp::kRDMAWrite:
    case SendOp::kRDMAWriteWithImmediate:
    case SendOp::kAtomicWrite: return "IBV_ACCESS_REMOTE_WRITE";
    case SendOp::kRDMARead: return "IBV_ACCESS_REMOTE_READ";
    case SendOp::kCompareSwap:
    case SendOp::kFetchAdd: return "IBV_ACCESS_REMOTE_ATOMIC";
    case SendOp::kFlush: return "IBV_ACCESS_FLUSH_GLOBAL (or FLUSH_PERSISTENT)";
    case SendOp::kSend:
    case SendOp::kSendWithImmediate:
    case SendOp::kSendWithInvalidate:
    case SendOp::kBindMW:
    case SendOp::kLocalInvalidate: return nullptr;
  }
  CHECK_UNREACHABLE();
}

}  // namespace verbena::explain
