#include "communicator/verbs/rail.h"

#include <arpa/inet.h>
#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace verbena::coll {
namespace {

constexpr u8 kMostReads = 16;  // outstanding of one queue pair

tl::unexpected<Error> refused(const char* call, const ibv_context* context) {
  return failure(VERBENA_COLL_SYSTEM, std::string(call) + " on " +
                                          ibv_get_device_name(context->device) + ": " +
                                          std::strerror(errno));
}

using GIDBytes = std::array<u8, 16>;

GIDBytes bytes_of(const ibv_gid& gid) { return std::to_array(gid.raw); }

bool is_mapped_ipv4(const GIDBytes& gid) {
  constexpr u8 kPrefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::memcmp(gid.data(), kPrefix, sizeof kPrefix) == 0;
}

bool is_link_local(const GIDBytes& gid) { return gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80; }

// The more the better; 0: not usable.
int worth_of(const ibv_gid_entry& entry) {
  const int version = entry.gid_type == IBV_GID_TYPE_ROCE_V2 ? 10 : 1;
  const GIDBytes gid = bytes_of(entry.gid);
  return version + (is_mapped_ipv4(gid) ? 5 : is_link_local(gid) ? 0 : 3);
}

bool is_active(ibv_device* device) {
  ibv_context* const context = ibv_open_device(device);
  if (context == nullptr) return false;
  ibv_port_attr port{};
  const bool active = ibv_query_port(context, 1, &port) == 0 && port.state == IBV_PORT_ACTIVE;
  ibv_close_device(context);
  return active;
}

bool is_named(const std::string& names, const char* name) {
  return ("," + names + ",").find("," + std::string(name) + ",") != std::string::npos;
}

}  // namespace

Expected<std::unique_ptr<Rail>> Rail::open(ibv_device* device, u32 completions) {
  std::unique_ptr<Rail> rail(new Rail);
  rail->context_ = ibv_open_device(device);
  if (rail->context_ == nullptr)
    return failure(VERBENA_COLL_SYSTEM, std::string("cannot open device ") +
                                            ibv_get_device_name(device) + ": " +
                                            std::strerror(errno));
  if (const auto prepared = rail->prepare(completions); !prepared)
    return tl::unexpected(prepared.error());
  return rail;
}

Expected<void> Rail::prepare(u32 completions) {
  ibv_device_attr device{};
  if (ibv_query_device(context_, &device) != 0) return refused("ibv_query_device", context_);
  if (ibv_query_port(context_, port(), &attributes_) != 0)
    return refused("ibv_query_port", context_);
  reads_ = static_cast<u8>(
      std::clamp<int>(std::min(device.max_qp_rd_atom, device.max_qp_init_rd_atom), 1, kMostReads));
  choose_gid(attributes_);
  pd_ = ibv_alloc_pd(context_);
  if (pd_ == nullptr) return refused("ibv_alloc_pd", context_);
  channel_ = ibv_create_comp_channel(context_);
  if (channel_ == nullptr) return refused("ibv_create_comp_channel", context_);
  fcntl(channel_->fd, F_SETFL, fcntl(channel_->fd, F_GETFL) | O_NONBLOCK);
  const int room = std::min(static_cast<int>(completions), device.max_cqe);
  cq_ = ibv_create_cq(context_, room, nullptr, channel_, 0);
  if (cq_ == nullptr) return refused("ibv_create_cq", context_);
  return {};
}

void Rail::choose_gid(const ibv_port_attr& port) {
  int best = 0;
  for (int index = 0; index < port.gid_tbl_len; ++index) {
    ibv_gid_entry entry{};
    if (ibv_query_gid_ex(context_, this->port(), static_cast<u32>(index), &entry, 0) != 0) continue;
    if (worth_of(entry) <= best) continue;
    best = worth_of(entry);
    gid_ = entry.gid;
    gid_index_ = static_cast<u8>(index);
  }
}

Rail::~Rail() {
  if (cq_ != nullptr) ibv_destroy_cq(cq_);
  if (channel_ != nullptr) ibv_destroy_comp_channel(channel_);
  if (pd_ != nullptr) ibv_dealloc_pd(pd_);
  if (context_ != nullptr) ibv_close_device(context_);
}

QPAddress Rail::address() const {
  return {.gid = bytes_of(gid_),
          .lid = attributes_.lid,
          .mtu = static_cast<u8>(attributes_.active_mtu),
          .reads = reads_};
}

std::string Rail::host() const {
  return attributes_.link_layer == IBV_LINK_LAYER_ETHERNET ? address().host() : "";
}

std::string QPAddress::host() const {
  char text[INET6_ADDRSTRLEN] = {};
  if (is_mapped_ipv4(gid))
    inet_ntop(AF_INET, gid.data() + 12, text, sizeof text);
  else if (!is_link_local(gid))
    inet_ntop(AF_INET6, gid.data(), text, sizeof text);
  return text;
}

ibv_mr* Rail::register_memory(void* address, std::size_t length) const {
  return ibv_reg_mr(pd_, address, length, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
}

Expected<std::vector<std::unique_ptr<Rail>>> open_rails(const std::string& names, u32 completions) {
  int count = 0;
  ibv_device** const devices = ibv_get_device_list(&count);
  if (devices == nullptr || count == 0) {
    if (devices != nullptr) ibv_free_device_list(devices);
    return failure(VERBENA_COLL_SYSTEM,
                   "no RDMA device: is this run by `verbena run`, or is there a card?");
  }
  std::vector<std::unique_ptr<Rail>> rails;
  Error error;
  for (int i = 0; i < count && rails.size() < kMaxRails && error.text.empty(); ++i) {
    const bool wanted =
        names.empty() ? is_active(devices[i]) : is_named(names, ibv_get_device_name(devices[i]));
    if (!wanted) continue;
    auto rail = Rail::open(devices[i], completions);
    if (rail)
      rails.push_back(std::move(*rail));
    else
      error = rail.error();
  }
  ibv_free_device_list(devices);
  if (!error.text.empty()) return tl::unexpected(error);
  if (rails.empty())
    return failure(VERBENA_COLL_SYSTEM, names.empty() ? "no RDMA device has an active port"
                                                      : "no RDMA device is called " + names);
  return rails;
}

}  // namespace verbena::coll
