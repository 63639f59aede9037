#include "abi/ibverbs/strings.h"
#include "abi/ibverbs/exceptions.h"

#include <algorithm>
#include <span>

namespace verbena::abi {
namespace {

struct Name {
  int value;
  const char* text;
};

const char* find(std::span<const Name> names, int value, const char* otherwise) {
  const auto name = std::ranges::find(names, value, &Name::value);
  return name == names.end() ? otherwise : name->text;
}

// The words are rdma-core's: programs print them, and scripts and people search for them.
constexpr Name kNodeTypes[] = {
    {IBV_NODE_CA, "InfiniBand channel adapter"},
    {IBV_NODE_SWITCH, "InfiniBand switch"},
    {IBV_NODE_ROUTER, "InfiniBand router"},
    {IBV_NODE_RNIC, "iWARP NIC"},
    {IBV_NODE_USNIC, "usNIC"},
    {IBV_NODE_USNIC_UDP, "usNIC UDP"},
    {IBV_NODE_UNSPECIFIED, "unspecified"},
};

constexpr Name kPortStates[] = {
    {IBV_PORT_NOP, "no state change (NOP)"},
    {IBV_PORT_DOWN, "down"},
    {IBV_PORT_INIT, "init"},
    {IBV_PORT_ARMED, "armed"},
    {IBV_PORT_ACTIVE, "active"},
    {IBV_PORT_ACTIVE_DEFER, "active defer"},
};

constexpr Name kEvents[] = {
    {IBV_EVENT_CQ_ERR, "CQ error"},
    {IBV_EVENT_QP_FATAL, "local work queue catastrophic error"},
    {IBV_EVENT_QP_REQ_ERR, "invalid request local work queue error"},
    {IBV_EVENT_QP_ACCESS_ERR, "local access violation work queue error"},
    {IBV_EVENT_COMM_EST, "communication established"},
    {IBV_EVENT_SQ_DRAINED, "send queue drained"},
    {IBV_EVENT_PATH_MIG, "path migrated"},
    {IBV_EVENT_PATH_MIG_ERR, "path migration request error"},
    {IBV_EVENT_DEVICE_FATAL, "local catastrophic error"},
    {IBV_EVENT_PORT_ACTIVE, "port active"},
    {IBV_EVENT_PORT_ERR, "port error"},
    {IBV_EVENT_LID_CHANGE, "LID change"},
    {IBV_EVENT_PKEY_CHANGE, "P_Key change"},
    {IBV_EVENT_SM_CHANGE, "SM change"},
    {IBV_EVENT_SRQ_ERR, "SRQ catastrophic error"},
    {IBV_EVENT_SRQ_LIMIT_REACHED, "SRQ limit reached"},
    {IBV_EVENT_QP_LAST_WQE_REACHED, "last WQE reached"},
    {IBV_EVENT_CLIENT_REREGISTER, "client reregistration"},
    {IBV_EVENT_GID_CHANGE, "GID table change"},
    {IBV_EVENT_WQ_FATAL, "WQ fatal"},
};

constexpr Name kStatuses[] = {
    {IBV_WC_SUCCESS, "success"},
    {IBV_WC_LOC_LEN_ERR, "local length error"},
    {IBV_WC_LOC_QP_OP_ERR, "local QP operation error"},
    {IBV_WC_LOC_EEC_OP_ERR, "local EE context operation error"},
    {IBV_WC_LOC_PROT_ERR, "local protection error"},
    {IBV_WC_WR_FLUSH_ERR, "Work Request Flushed Error"},
    {IBV_WC_MW_BIND_ERR, "memory management operation error"},
    {IBV_WC_BAD_RESP_ERR, "bad response error"},
    {IBV_WC_LOC_ACCESS_ERR, "local access error"},
    {IBV_WC_REM_INV_REQ_ERR, "remote invalid request error"},
    {IBV_WC_REM_ACCESS_ERR, "remote access error"},
    {IBV_WC_REM_OP_ERR, "remote operation error"},
    {IBV_WC_RETRY_EXC_ERR, "transport retry counter exceeded"},
    {IBV_WC_RNR_RETRY_EXC_ERR, "RNR retry counter exceeded"},
    {IBV_WC_LOC_RDD_VIOL_ERR, "local RDD violation error"},
    {IBV_WC_REM_INV_RD_REQ_ERR, "remote invalid RD request"},
    {IBV_WC_REM_ABORT_ERR, "aborted error"},
    {IBV_WC_INV_EECN_ERR, "invalid EE context number"},
    {IBV_WC_INV_EEC_STATE_ERR, "invalid EE context state"},
    {IBV_WC_FATAL_ERR, "fatal error"},
    {IBV_WC_RESP_TIMEOUT_ERR, "response timeout error"},
    {IBV_WC_GENERAL_ERR, "general error"},
    {IBV_WC_TM_ERR, "TM error"},
    {IBV_WC_TM_RNDV_INCOMPLETE, "TM software rendezvous"},
};

constexpr Name kOpcodes[] = {
    {IBV_WR_RDMA_WRITE, "RDMA_WRITE"},
    {IBV_WR_RDMA_WRITE_WITH_IMM, "RDMA_WRITE_WITH_IMM"},
    {IBV_WR_SEND, "SEND"},
    {IBV_WR_SEND_WITH_IMM, "SEND_WITH_IMM"},
    {IBV_WR_RDMA_READ, "RDMA_READ"},
    {IBV_WR_ATOMIC_CMP_AND_SWP, "ATOMIC_CMP_AND_SWP"},
    {IBV_WR_ATOMIC_FETCH_AND_ADD, "ATOMIC_FETCH_AND_ADD"},
    {IBV_WR_LOCAL_INV, "LOCAL_INV"},
    {IBV_WR_BIND_MW, "BIND_MW"},
    {IBV_WR_SEND_WITH_INV, "SEND_WITH_INV"},
    {IBV_WR_TSO, "TSO"},
    {IBV_WR_DRIVER1, "DRIVER1"},
    {14, "FLUSH"},  // rdma-core 45
    {IBV_WR_ATOMIC_WRITE, "ATOMIC_WRITE"},
};

}  // namespace

const char* wr_opcode_name(ibv_wr_opcode opcode) { return find(kOpcodes, opcode, "unknown"); }

}  // namespace verbena::abi

using namespace verbena::abi;

const char* ibv_node_type_str(ibv_node_type node_type) try {
  return find(kNodeTypes, node_type, "unknown");
} catch (...) {
  return fail(errno_of_exception());
}

const char* ibv_port_state_str(ibv_port_state state) try {
  return find(kPortStates, state, "unknown");
} catch (...) {
  return fail(errno_of_exception());
}

const char* ibv_event_type_str(ibv_event_type event) try {
  return find(kEvents, event, "unknown");
} catch (...) {
  return fail(errno_of_exception());
}

const char* ibv_wc_status_str(ibv_wc_status status) try {
  return find(kStatuses, status, "unknown");
} catch (...) {
  return fail(errno_of_exception());
}
