#include "device/port/counter_table.h"

#include <iterator>

namespace verbena {
namespace {

constexpr u64 kBytesPerWord = 4;  // of port_xmit_data and port_rcv_data. IBTA 16.1.3.5

// Returns 0 for an event that cannot happen here, on Ethernet and in software. The counter exists
// because programs look for the files.
u64 never(const Counters&) { return 0; }

constexpr auto kC = CounterFolder::kCounters;
constexpr auto kH = CounterFolder::kHWCounters;

constexpr NamedCounter kTable[] = {
    {"port_xmit_data", kC, "bytes sent, divided by 4",
     [](const Counters& c) { return c.port_xmit_bytes / kBytesPerWord; }},
    {"port_rcv_data", kC, "bytes received, divided by 4",
     [](const Counters& c) { return c.port_rcv_bytes / kBytesPerWord; }},
    {"port_xmit_packets", kC, "packets sent",
     [](const Counters& c) { return c.port_xmit_packets; }},
    {"port_rcv_packets", kC, "packets received",
     [](const Counters& c) { return c.port_rcv_packets; }},
    {"unicast_xmit_packets", kC, "packets sent to one port",
     [](const Counters& c) { return c.port_xmit_packets; }},
    {"unicast_rcv_packets", kC, "packets received for this port alone",
     [](const Counters& c) { return c.port_rcv_packets; }},
    {"port_rcv_errors", kC, "packets received malformed, or with a wrong ICRC",
     [](const Counters& c) { return c.port_rcv_errors; }},
    {"port_xmit_discards", kC, "packets that could not be sent",
     [](const Counters& c) { return c.port_xmit_discards; }},
    {"multicast_xmit_packets", kC, "packets sent to a group", never},
    {"multicast_rcv_packets", kC, "packets received for a group", never},
    {"port_xmit_wait", kC, "ticks of waiting to send", never},
    {"symbol_error", kC, "symbol errors of the link", never},
    {"link_error_recovery", kC, "link recoveries", never},
    {"link_downed", kC, "link failures", never},
    {"port_rcv_remote_physical_errors", kC, "packets marked bad on their way", never},
    {"port_rcv_switch_relay_errors", kC, "packets that could not be relayed", never},
    {"port_xmit_constraint_errors", kC, "packets not sent for a constraint", never},
    {"port_rcv_constraint_errors", kC, "packets dropped for a constraint", never},
    {"local_link_integrity_errors", kC, "link integrity errors", never},
    {"excessive_buffer_overrun_errors", kC, "buffer overruns", never},
    {"VL15_dropped", kC, "subnet management packets dropped", never},
    {"np_cnp_sent", kH, "CNPs sent", [](const Counters& c) { return c.np_cnp_sent; }},
    {"np_ecn_marked_roce_packets", kH, "packets received with an ECN mark",
     [](const Counters& c) { return c.np_ecn_marked_roce_packets; }},
    {"out_of_buffer", kH, "messages dropped for want of a receive",
     [](const Counters& c) { return c.out_of_buffer; }},
    {"rp_cnp_handled", kH, "CNPs received for a QP",
     [](const Counters& c) { return c.rp_cnp_handled; }},
    {"rp_cnp_ignored", kH, "CNPs received for nobody",
     [](const Counters& c) { return c.rp_cnp_ignored; }},
    {"rx_icrc_encapsulated", kH, "packets received with a wrong ICRC",
     [](const Counters& c) { return c.rx_icrc_encapsulated; }},
    {"lifespan", kH, "milliseconds for which a value may be kept: 0, they are live", never},
    {"dropped_unknown_qp", kH, "packets for a QP that is not there",
     [](const Counters& c) { return c.dropped_unknown_qp; }},
    {"dropped_p_key", kH, "packets with a wrong P_Key",
     [](const Counters& c) { return c.dropped_p_key; }},
    {"dropped_source", kH, "packets from another than the peer, or with a wrong Q_Key",
     [](const Counters& c) { return c.dropped_source; }},
    {"dropped_service", kH, "packets of another service than the QP's",
     [](const Counters& c) { return c.dropped_service; }},
    {"dropped_state", kH, "packets for a QP in a state that takes none",
     [](const Counters& c) { return c.dropped_state; }},
    {"dropped_silenced", kH, "packets from a source whose requests were refused too often",
     [](const Counters& c) { return c.dropped_silenced; }},
};

using E = EngineCounters;
constexpr NamedEngineCounter kEngineTable[] = {
    {"duplicate_request", "requests received again", &E::duplicate_request},
    {"implied_nak_seq_err", "ACKs beyond an outstanding READ or atomic", &E::implied_nak_seq_err},
    {"local_ack_timeout_err", "ACK timeouts of our requests", &E::local_ack_timeout_err},
    {"out_of_sequence", "requests ahead of the expected PSN", &E::out_of_sequence},
    {"packet_seq_err", "NAKs for a PSN sequence error received", &E::packet_seq_err},
    {"rnr_nak_retry_err", "RNR NAKs received", &E::rnr_nak_retry_err},
    {"req_cqe_error", "requests completed with an error", &E::req_cqe_error},
    {"req_remote_access_errors", "NAKs for a remote access error received",
     &E::req_remote_access_errors},
    {"req_remote_invalid_request", "NAKs for an invalid request received",
     &E::req_remote_invalid_request},
    {"resp_cqe_error", "receives completed with an error", &E::resp_cqe_error},
    {"resp_local_length_error", "receives too short for what came", &E::resp_local_length_error},
    {"resp_remote_access_errors", "requests refused for lack of a right",
     &E::resp_remote_access_errors},
    {"roce_adp_retrans", "packets sent again before the ACK timeout", &E::roce_adp_retrans},
    {"rx_atomic_requests", "atomic requests received", &E::rx_atomic_requests},
    {"rx_read_requests", "READ requests received", &E::rx_read_requests},
    {"rx_write_requests", "WRITE requests received", &E::rx_write_requests},
    {"req_remote_operational_errors", "NAKs for a remote operational error received",
     &E::req_remote_operational_errors},
    {"retransmitted_packets", "packets sent again", &E::retransmitted_packets},
    {"rnr_naks_sent", "RNR NAKs sent, for want of a receive", &E::rnr_naks_sent},
    {"local_read_requests", "READs of a peer on this host, done without packets",
     &E::local_read_requests},
    {"local_read_packets", "packets that these would have been", &E::local_read_packets},
    {"local_read_bytes", "bytes of these", &E::local_read_bytes},
    {"local_write_requests", "WRITEs to a peer on this host, done without packets",
     &E::local_write_requests},
    {"local_write_packets", "packets that these would have been", &E::local_write_packets},
    {"local_write_bytes", "bytes of these", &E::local_write_bytes},
    {"local_acknowledgements", "acknowledgements that were no frame", &E::local_acknowledgements},
    {"rx_dropped", "packets dropped by the rules of their service", &E::rx_dropped},
};
static_assert(std::size(kEngineTable) == sizeof(EngineCounters) / sizeof(u64), "one has no name");

}  // namespace

std::span<const NamedCounter> counter_table() { return kTable; }

std::span<const NamedEngineCounter> engine_counter_table() { return kEngineTable; }

}  // namespace verbena
