#include "abi/ibverbs/refusals.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <set>
#include <string_view>

#include "abi/ibverbs/address.h"
#include "abi/ibverbs/check/hooks.h"
#include "abi/ibverbs/translate.h"
#include "device/qp/qp_transitions.h"
#include "host/explain/explainer.h"
#include "transport/qp_state_name.h"

namespace verbena::abi {
namespace {

constexpr std::size_t kMostLines = 10;  // of one process

bool explains() {
  static const bool wanted = [] {
    const char* const value = std::getenv(host::kExplainVariable);
    return value != nullptr && std::string_view(value) == "1";
  }();
  return wanted || checks::active();
}

// Each line once: programs try again.
void say(const std::string& line) {
  static auto& said = *new std::set<std::string>;
  static auto& mutex = *new std::mutex;
  const std::lock_guard lock(mutex);
  if (said.size() < kMostLines && said.insert(line).second)
    std::fprintf(stderr, "verbena: %s\n", line.c_str());
}

struct MaskName {
  u32 bit;
  const char* name;
};
constexpr std::array kMaskNames = {
    MaskName{IBV_QP_CUR_STATE, "IBV_QP_CUR_STATE"},
    MaskName{IBV_QP_EN_SQD_ASYNC_NOTIFY, "IBV_QP_EN_SQD_ASYNC_NOTIFY"},
    MaskName{IBV_QP_ACCESS_FLAGS, "IBV_QP_ACCESS_FLAGS"},
    MaskName{IBV_QP_PKEY_INDEX, "IBV_QP_PKEY_INDEX"},
    MaskName{IBV_QP_PORT, "IBV_QP_PORT"},
    MaskName{IBV_QP_QKEY, "IBV_QP_QKEY"},
    MaskName{IBV_QP_AV, "IBV_QP_AV"},
    MaskName{IBV_QP_PATH_MTU, "IBV_QP_PATH_MTU"},
    MaskName{IBV_QP_TIMEOUT, "IBV_QP_TIMEOUT"},
    MaskName{IBV_QP_RETRY_CNT, "IBV_QP_RETRY_CNT"},
    MaskName{IBV_QP_RNR_RETRY, "IBV_QP_RNR_RETRY"},
    MaskName{IBV_QP_RQ_PSN, "IBV_QP_RQ_PSN"},
    MaskName{IBV_QP_MAX_QP_RD_ATOMIC, "IBV_QP_MAX_QP_RD_ATOMIC"},
    MaskName{IBV_QP_ALT_PATH, "IBV_QP_ALT_PATH"},
    MaskName{IBV_QP_MIN_RNR_TIMER, "IBV_QP_MIN_RNR_TIMER"},
    MaskName{IBV_QP_SQ_PSN, "IBV_QP_SQ_PSN"},
    MaskName{IBV_QP_MAX_DEST_RD_ATOMIC, "IBV_QP_MAX_DEST_RD_ATOMIC"},
    MaskName{IBV_QP_PATH_MIG_STATE, "IBV_QP_PATH_MIG_STATE"},
    MaskName{IBV_QP_CAP, "IBV_QP_CAP"},
    MaskName{IBV_QP_DEST_QPN, "IBV_QP_DEST_QPN"},
    MaskName{IBV_QP_RATE_LIMIT, "IBV_QP_RATE_LIMIT"}};

std::string names_of(u32 mask) {
  std::string names;
  for (const MaskName& one : kMaskNames)
    if ((mask & one.bit) != 0) names += (names.empty() ? "" : ", ") + std::string(one.name);
  return names;
}

// The mask has the bits of QPField (qp_attributes.cc).
std::string transition_mistake(QPType type, QPState from, QPState to, u32 mask) {
  const std::string change =
      std::string(verbs_name_of(from)) + " to " + std::string(verbs_name_of(to));
  const TransitionRule rule = transition_rule(type, from, to);
  if (!rule.legal) return "a QP of this type cannot go from " + change;
  if (const u32 missing = rule.required & ~mask; missing != 0)
    return change + " needs also " + names_of(missing) + " in the mask";
  const u32 known = rule.required | rule.optional | static_cast<u32>(IBV_QP_STATE);
  if (const std::string extra = names_of(mask & ~known); !extra.empty())
    return change + " cannot change " + extra;
  return {};
}

}  // namespace

std::string path_mistake(const ibv_ah_attr& attr, const DeviceConfig& config) {
  if (is_infiniband(config) && !to_address_vector(attr, config)) {
    if (attr.dlid == 0 || attr.dlid == 0xffff)
      return "ah_attr.dlid is no LID of the subnet: it is the peer's, which a subnet manager "
             "assigns";
    if (attr.sl > 15)
      return "ah_attr.sl is " + std::to_string(attr.sl) + "; service levels are 0 .. 15";
  } else if (!is_infiniband(config) && attr.is_global == 0)
    return "ah_attr has no GRH, which RoCE needs: set is_global to 1, grh.dgid, and grh.sgid_index";
  if (attr.port_num != kPort)
    return "ah_attr.port_num is " + std::to_string(attr.port_num) + "; the device has only port 1";
  if (is_infiniband(config) && attr.is_global == 0) return {};
  const u8 index = attr.grh.sgid_index;
  if (index >= config.gids.size() || config.gids[index].gid.is_zero())
    return "there is no GID at grh.sgid_index " + std::to_string(index) +
           "; `ibv_devinfo -v` and ibv_query_gid_table(3) list those there are";
  if (to_gid(attr.grh.dgid).is_zero()) return "grh.dgid is zero: it is the peer's GID";
  return {};
}

std::string change_mistake(QPType type, QPState from, const ibv_qp_attr& attr, u32 mask,
                           const DeviceConfig& config) {
  std::optional<QPState> to = from;
  if ((mask & IBV_QP_STATE) != 0) to = to_qp_state(attr.qp_state);
  if (!to) return "attr.qp_state is no state";
  if (config.transport == Transport::kIWARP && *to == QPState::kRTR)
    return "a QP of an iWARP device is connected by rdma_cm alone, not by this call (perftest: -R; "
           "qperf: -cm 1)";
  if (const std::string mistake = transition_mistake(type, from, *to, mask); !mistake.empty())
    return mistake;
  if ((mask & IBV_QP_CUR_STATE) != 0 && to_qp_state(attr.cur_qp_state) != from)
    return "attr.cur_qp_state is not the QP's state, which is " + std::string(verbs_name_of(from));
  if ((mask & IBV_QP_PATH_MTU) != 0 &&
      (attr.path_mtu < IBV_MTU_256 || attr.path_mtu > IBV_MTU_4096))
    return "attr.path_mtu is no ibv_mtu; IBV_MTU_1024 is one, 1024 is not";
  return (mask & IBV_QP_AV) != 0 ? path_mistake(attr.ah_attr, config) : std::string();
}

void explain_refused_path(const char* call, const ibv_ah_attr& attr, const DeviceConfig& config) {
  if (!explains()) return;
  const std::string mistake = path_mistake(attr, config);
  if (!mistake.empty()) say(std::string(call) + " is refused: " + mistake + ".");
}

void explain_refused_registration(const std::string& why) {
  if (explains()) say("a memory registration is refused: " + why + ".");
}

void explain_refused_change(const QPObject& qp, const ibv_qp_attr& attr, int mask) {
  if (!explains()) return;
  const QPAttributes now = qp.owner().enter()->attributes_of(qp.queue);
  const std::string mistake =
      change_mistake(now.type, now.state, attr, static_cast<u32>(mask), qp.owner().config());
  if (mistake.empty()) return;
  char qpn[16];
  std::snprintf(qpn, sizeof qpn, "0x%06x", now.qpn.value);
  say("ibv_modify_qp of QP " + std::string(qpn) + " is refused: " + mistake + ".");
}

}  // namespace verbena::abi
