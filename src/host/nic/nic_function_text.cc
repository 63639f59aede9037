// The state of a virtual function, as `verbena nic status` prints it.
#include <string>
#include <utility>

#include "host/nic/nic_function.h"

namespace verbena::host {
namespace {

std::string groups_text(const std::vector<GID>& groups) {
  std::string out;
  for (const GID& group : groups) out += (out.empty() ? "\"" : ", \"") + group.to_string() + "\"";
  return "[" + out + "]";
}

}  // namespace

void NICFunction::add_refused(const LinkCounters& of_link, LinkCounters& sum) {
  sum.refused_unencrypted += of_link.refused_unencrypted;
  sum.refused_spi += of_link.refused_spi;
  sum.refused_source += of_link.refused_source;
  sum.refused_icv += of_link.refused_icv;
  sum.refused_replay += of_link.refused_replay;
  sum.refused_vni += of_link.refused_vni;
  sum.refused_vlan += of_link.refused_vlan;
}

std::string NICFunction::text() const {
  std::string out = "{\"name\": \"" + config_.name + "\", \"address\": \"" + config_.address +
                    "\", \"programs\": [";
  const char* separator = "";
  for (const auto& program : programs_)
    out += std::exchange(separator, ", ") + std::string("{\"pid\": ") +
           std::to_string(program->pid) + ", \"user\": " + std::to_string(program->user) +
           ", \"slot\": " + std::to_string(program->udp->slot()) +
           ", \"groups\": " + groups_text(program->groups) + "}";
  for (const NICStreams::Program& program : streams_->programs())
    out += std::exchange(separator, ", ") + std::string("{\"pid\": ") +
           std::to_string(program.pid) + ", \"user\": " + std::to_string(program.user) +
           ", \"link\": \"iwarp\"}";
  out += "], \"streams\": " + std::to_string(streams_->streams()) +
         ", \"listeners\": " + std::to_string(streams_->listeners()) + ", \"counters\": {";
  const auto add = [&](const std::string& name, u64 value) {
    out += "\"" + name + "\": " + std::to_string(value) + ", ";
  };
  add("sent_packets", counters_.sent_packets);
  add("sent_bytes", counters_.sent_bytes);
  add("received_packets", counters_.received_packets);
  add("received_bytes", counters_.received_bytes);
  add("receive_dropped", counters_.receive_dropped);
  add("sent_to_groups", counters_.sent_to_groups);
  add("received_from_groups", counters_.received_from_groups);
  add("refused_joins", counters_.refused_joins);
  add("refused_connections", counters_.refused_connections);
  add("broken_rings", counters_.broken_rings);
  add("refused_programs", counters_.refused_programs);
  for (std::size_t i = 1; i < kNICRefusals; ++i) {
    add(std::string("sent_") + name_of(static_cast<NICRefusal>(i)), counters_.refused_sent[i]);
    add(std::string("received_") + name_of(static_cast<NICRefusal>(i)),
        counters_.refused_received[i]);
  }
  LinkCounters refused = refused_by_gone_;
  for (const auto& program : programs_) add_refused(program->link->counters(), refused);
  add("received_refused_unencrypted", refused.refused_unencrypted);
  add("received_refused_spi", refused.refused_spi);
  add("received_refused_association", refused.refused_source);
  add("received_refused_icv", refused.refused_icv);
  add("received_refused_replay", refused.refused_replay);
  add("received_refused_vni", refused.refused_vni);
  add("received_refused_vlan", refused.refused_vlan);
  streams_->for_each_counter(add);
  add("attached", counters_.attached);
  out += "\"detached\": " + std::to_string(counters_.detached) + "}, \"sent_by_class\": [";
  for (u32 i = 0; i < kTrafficClasses; ++i)
    out += (i == 0 ? "" : ", ") + std::string("{\"class\": ") + std::to_string(i) +
           ", \"packets\": " + std::to_string(counters_.sent_packets_of_class[i]) +
           ", \"bytes\": " + std::to_string(counters_.sent_bytes_of_class[i]) + "}";
  return out + "]}";
}

}  // namespace verbena::host
