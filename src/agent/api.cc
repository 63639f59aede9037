// The C functions of verbena/transfer.h: they check arguments, and translate.
#include <verbena/transfer.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "agent/api_result.h"
#include "agent/kv_cache.h"
#include "coll/host_port.h"

namespace verbena::agent {
namespace {

thread_local std::string last_error;

i64 deadline_after(double seconds) {
  constexpr double kForever = 1e9;
  const bool is_forever = !(seconds >= 0 && seconds < kForever);
  return is_forever ? std::numeric_limits<i64>::max() / 2 : coll::after(coll::now_ns(), seconds);
}

int copy_text(const std::string& text, char* to, size_t size, const char* what) {
  if (to == nullptr || size == 0) return told(VERBENA_TRANSFER_OK, "");
  if (text.size() >= size)
    return told(VERBENA_TRANSFER_NO_ROOM,
                std::string(what) + " has " + std::to_string(text.size() + 1) + " bytes");
  std::memcpy(to, text.c_str(), text.size() + 1);
  return told(VERBENA_TRANSFER_OK, "");
}

Expected<AgentOptions> read_options(const verbena_agent_options& given) {
  constexpr unsigned kMaxQueuePairs = 8, kMaxTransfers = 1 << 20;
  constexpr size_t kMaxWindow = size_t{1} << 30;
  AgentOptions options;
  if (given.devices != nullptr) options.devices = given.devices;
  if (given.listen != nullptr) {
    const auto parts = coll::parse_host_port(given.listen);
    if (!parts)
      return failure(VERBENA_TRANSFER_INVALID,
                     "listen: '" + std::string(given.listen) + "' is not HOST:PORT");
    options.listen_host = parts->host;
    options.listen_port = parts->port;
  }
  if (given.queue_pairs > kMaxQueuePairs)
    return failure(VERBENA_TRANSFER_INVALID, "queue_pairs: at most 8");
  if (given.window > kMaxWindow || given.piece > kMaxWindow)
    return failure(VERBENA_TRANSFER_INVALID, "window and piece: at most 1 GiB");
  if (given.transfers > kMaxTransfers)
    return failure(VERBENA_TRANSFER_INVALID, "transfers: at most 1,048,576");
  if (given.queue_pairs != 0) options.link.queue_pairs = static_cast<u8>(given.queue_pairs);
  if (given.window != 0) options.link.flow.window_bytes = given.window;
  if (given.piece != 0) options.link.flow.piece_bytes = static_cast<u32>(given.piece);
  if (given.transfers != 0) options.link.flow.transfers = given.transfers;
  return options;
}

}  // namespace

int told(int status, std::string text) {
  last_error = std::move(text);
  return status;
}

const std::string& last_text() { return last_error; }

}  // namespace verbena::agent

using namespace verbena::agent;  // NOLINT: the functions of the header are global
using verbena::u64;
using verbena::u8;

int verbena_agent_create(verbena_agent** agent, const char* name,
                         const verbena_agent_options* options) {
  if (agent == nullptr || name == nullptr) return invalid("agent or name is NULL");
  *agent = nullptr;
  if (!has_size(options)) return invalid("options->size is wrong");
  const auto wanted = read_options(copy_of(options));
  if (!wanted) return told(wanted.error());
  auto made = Agent::make(name, *wanted);
  if (!made) return told(made.error());
  *agent = new verbena_agent{std::move(*made)};
  return told(VERBENA_TRANSFER_OK, "");
}

int verbena_agent_destroy(verbena_agent* agent) {
  delete agent;
  return told(VERBENA_TRANSFER_OK, "");
}

const char* verbena_agent_name(const verbena_agent* agent) { return agent->agent->name().c_str(); }
const char* verbena_agent_address(const verbena_agent* agent) {
  return agent->agent->address().c_str();
}

int verbena_agent_register(verbena_agent* agent, void* address, size_t length, unsigned rights,
                           uint64_t* region) {
  constexpr unsigned kAll = VERBENA_REMOTE_READ | VERBENA_REMOTE_WRITE | VERBENA_LOCAL_WRITE;
  if (agent == nullptr || address == nullptr || length == 0)
    return invalid("there is no memory to register");
  if ((rights & ~kAll) != 0) return invalid("rights: a bit has no meaning");
  const auto made = agent->agent->add_region(address, length, rights == 0 ? kAll : rights);
  if (made && region != nullptr) *region = *made;
  return result(made);
}

int verbena_agent_deregister(verbena_agent* agent, uint64_t region) {
  if (agent == nullptr) return invalid("agent is NULL");
  return result(agent->agent->remove_region(region));
}

int verbena_agent_metadata(verbena_agent* agent, void* buffer, size_t* size) {
  if (agent == nullptr || size == nullptr) return invalid("agent or size is NULL");
  const std::string metadata = agent->agent->metadata();
  const size_t room = *size;
  *size = metadata.size();
  if (buffer == nullptr || room < metadata.size())
    return told(VERBENA_TRANSFER_NO_ROOM,
                "the metadata has " + std::to_string(metadata.size()) + " bytes");
  std::memcpy(buffer, metadata.data(), metadata.size());
  return told(VERBENA_TRANSFER_OK, "");
}

int verbena_agent_load_metadata(verbena_agent* agent, const void* metadata, size_t size, char* name,
                                size_t name_size) {
  if (agent == nullptr || metadata == nullptr) return invalid("agent or metadata is NULL");
  const auto loaded = agent->agent->load_metadata({static_cast<const char*>(metadata), size});
  if (!loaded) return told(loaded.error());
  return copy_text(*loaded, name, name_size, "the name");
}

int verbena_agent_fetch_metadata(verbena_agent* agent, const char* address, double timeout_s,
                                 char* name, size_t name_size) {
  if (agent == nullptr || address == nullptr) return invalid("agent or address is NULL");
  const auto fetched = agent->agent->fetch_metadata(address, deadline_after(timeout_s));
  if (!fetched) return told(fetched.error());
  return copy_text(*fetched, name, name_size, "the name");
}

int verbena_agent_forget(verbena_agent* agent, const char* peer) {
  if (agent == nullptr || peer == nullptr) return invalid("agent or peer is NULL");
  return result(agent->agent->forget(peer));
}

int verbena_agent_connect(verbena_agent* agent, const char* peer, double timeout_s) {
  if (agent == nullptr || peer == nullptr) return invalid("agent or peer is NULL");
  return result(agent->agent->connect(peer, deadline_after(timeout_s)));
}

int verbena_transfer_create(verbena_agent* agent, verbena_transfer_op op,
                            const verbena_descriptor* local, size_t local_count,
                            const verbena_descriptor* remote, size_t remote_count, const char* peer,
                            const verbena_transfer_options* options, verbena_transfer** transfer) {
  if (agent == nullptr || peer == nullptr || transfer == nullptr)
    return invalid("agent, peer or transfer is NULL");
  *transfer = nullptr;
  if ((local == nullptr && local_count != 0) || (remote == nullptr && remote_count != 0))
    return invalid("a list is NULL");
  if (op != VERBENA_READ && op != VERBENA_WRITE) return invalid("there is no such operation");
  if (!has_size(options)) return invalid("options->size is wrong");
  const verbena_transfer_options wanted = copy_of(options);
  if (wanted.priority > 255) return invalid("priority: 0 to 255");
  if (wanted.notification_size > VERBENA_NOTIFICATION_MAX)
    return invalid("a notification has 4096 bytes at most");
  auto state = std::make_shared<TransferState>();
  state->operation = op == VERBENA_READ ? verbena::transfer::Operation::kRead
                                        : verbena::transfer::Operation::kWrite;
  state->peer = peer;
  state->priority = static_cast<u8>(wanted.priority);
  state->is_staged = wanted.staged != 0;
  state->notifies = wanted.notification != nullptr;
  if (state->notifies)
    state->notification.assign(static_cast<const char*>(wanted.notification),
                               wanted.notification_size);
  const auto prepared = agent->agent->prepare(
      *state, {.local = {local, local_count}, .remote = {remote, remote_count}});
  if (!prepared) return told(prepared.error());
  *transfer = new verbena_transfer{agent->agent.get(), std::move(state)};
  return told(VERBENA_TRANSFER_OK, "");
}

int verbena_transfer_post(verbena_transfer* transfer) {
  if (transfer == nullptr) return invalid("transfer is NULL");
  return result(transfer->agent->post(transfer->state));
}

int verbena_transfer_advance(verbena_transfer* transfer, size_t blocks) {
  if (transfer == nullptr) return invalid("transfer is NULL");
  return result(transfer->agent->advance(*transfer->state, blocks));
}

int verbena_transfer_status(verbena_transfer* transfer) {
  if (transfer == nullptr) return invalid("transfer is NULL");
  const int status = transfer->agent->status(*transfer->state);
  return told(status, transfer->state->why);
}

int verbena_transfer_wait(verbena_transfer* transfer, double timeout_s) {
  if (transfer == nullptr) return invalid("transfer is NULL");
  const int status = transfer->agent->wait(*transfer->state, deadline_after(timeout_s));
  return told(status,
              status == VERBENA_TRANSFER_IN_PROGRESS ? "not done in time" : transfer->state->why);
}

int verbena_transfer_cancel(verbena_transfer* transfer) {
  if (transfer == nullptr) return invalid("transfer is NULL");
  transfer->agent->cancel(*transfer->state);
  return told(VERBENA_TRANSFER_OK, "");
}

const char* verbena_transfer_error(const verbena_transfer* transfer) {
  return transfer == nullptr ? "transfer is NULL" : transfer->state->why.c_str();
}

void verbena_transfer_release(verbena_transfer* transfer) {
  if (transfer == nullptr) return;
  transfer->agent->cancel(*transfer->state);
  (void)transfer->agent->wait(*transfer->state, deadline_after(-1));
  delete transfer;
}

int verbena_agent_notify(verbena_agent* agent, const char* peer, const void* notification,
                         size_t size, double timeout_s) {
  if (agent == nullptr || peer == nullptr || (notification == nullptr && size != 0))
    return invalid("agent, peer or notification is NULL");
  verbena_transfer_options options{};
  options.size = sizeof options;
  options.notification = notification == nullptr ? "" : notification;
  options.notification_size = size;
  verbena_transfer* transfer = nullptr;
  int status = verbena_transfer_create(agent, VERBENA_WRITE, nullptr, 0, nullptr, 0, peer, &options,
                                       &transfer);
  if (status != VERBENA_TRANSFER_OK) return status;
  status = verbena_transfer_post(transfer);
  if (status == VERBENA_TRANSFER_OK) status = verbena_transfer_wait(transfer, timeout_s);
  const std::string why = last_text();
  verbena_transfer_release(transfer);
  return told(status, why);
}

int verbena_agent_next_notification(verbena_agent* agent, const char* from, double timeout_s,
                                    char* peer, size_t peer_size, void* notification,
                                    size_t* size) {
  if (agent == nullptr || size == nullptr || (notification == nullptr && *size != 0))
    return invalid("agent, notification or size is NULL");
  const auto found = agent->agent->next_notification(from == nullptr ? "" : from,
                                                     deadline_after(timeout_s), *size);
  if (!found) return told(VERBENA_TRANSFER_NOT_FOUND, "no notification came in time");
  const size_t room = *size;
  *size = found->text.size();
  if (found->text.size() > room)
    return told(VERBENA_TRANSFER_NO_ROOM,
                "the notification has " + std::to_string(found->text.size()) + " bytes");
  if (!found->text.empty()) std::memcpy(notification, found->text.data(), found->text.size());
  return copy_text(found->peer, peer, peer_size, "the peer's name");
}

size_t verbena_kv_list(const verbena_kv_layout* layout, uint64_t base, uint64_t region,
                       uint32_t layer, const uint32_t* blocks, size_t count,
                       verbena_descriptor* list) {
  if (layout == nullptr || (blocks == nullptr && count != 0)) return 0;
  const auto checked = kv_layout_of(*layout);
  if (!checked || layer >= checked->layers) return 0;
  const verbena::transfer::KVLayout& of = *checked;
  for (size_t i = 0; i < count; ++i)
    if (blocks[i] >= of.blocks) return 0;
  const size_t length = count * of.halves();
  for (size_t i = 0; list != nullptr && i < length; ++i)
    list[i] = {.address = base + of.offset_of(layer, static_cast<verbena::u32>(i / count),
                                              blocks[i % count]),
               .length = of.block_bytes,
               .region = region};
  return length;
}

int verbena_agent_count(verbena_agent* agent, verbena_agent_counters* counters) {
  if (agent == nullptr || counters == nullptr || !has_size(counters))
    return invalid("agent or counters is NULL, or counters->size is wrong");
  const Counters now = agent->agent->count();
  verbena_agent_counters told_counters{};
  told_counters.size = counters->size;
  told_counters.bytes = now.bytes;
  told_counters.transfers = now.transfers;
  told_counters.failed = now.failed;
  told_counters.lanes_up = now.lanes_up;
  told_counters.lanes_lost = now.lanes_lost;
  std::memcpy(counters, &told_counters, counters->size);
  return told(VERBENA_TRANSFER_OK, "");
}

const char* verbena_agent_error(void) { return last_text().c_str(); }
