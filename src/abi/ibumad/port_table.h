// The ports that this process has opened with umad_open_port(): each a connection to the server of
// its fabric, on which MADs go both ways, and a second one for registrations. Port IDs are their
// places here. A port may be used by several threads; one of them receives at a time.
#pragma once

#include <infiniband/umad.h>

#include <array>
#include <memory>
#include <mutex>
#include <vector>

#include "host/links/fabric/management_protocol.h"

namespace verbena::abi::umad {

inline constexpr int kOnlyPort = 1;

class Port {
 public:
  // An errno in place of the port: there is no fabric, or its server refuses.
  [[nodiscard]] static host::Expected<std::shared_ptr<Port>> open();

  [[nodiscard]] int fd() const { return mads_.get(); }
  // All as the functions of libibumad of the same names: what they return.
  [[nodiscard]] int add_agent(host::FabricMADRegister request);
  [[nodiscard]] int remove_agent(u32 agent);
  [[nodiscard]] int send(ib_user_mad& mad, std::size_t bytes, u32 agent, u32 timeout_ms,
                         u32 retries);
  // Without waiting: -EWOULDBLOCK.
  [[nodiscard]] int receive(ib_user_mad& mad, int& length);
  [[nodiscard]] bool has_mad();  // received already, and still here

 private:
  [[nodiscard]] int register_at_server(const host::FabricMADRegister& request);
  [[nodiscard]] int take_parts();

  host::Descriptor mads_, control_;
  u32 client_ = 0;
  std::mutex control_mutex_, send_mutex_, receive_mutex_;
  std::array<bool, UMAD_CA_MAX_AGENTS> has_agent_{};
  host::FabricMAD header_{};  // of what has come
  std::vector<u8> received_;  // its bytes as far as they have come
  bool is_complete_ = false;  // and waits for a buffer that is large enough
};

[[nodiscard]] int add_port(std::shared_ptr<Port> port);   // its ID, or -ENOMEM
[[nodiscard]] std::shared_ptr<Port> port_of(int id);      // nullptr if there is none
[[nodiscard]] std::shared_ptr<Port> remove_port(int id);  // likewise

// These return facts of the simulated host that this process runs on, or an errno if it runs on
// none.
[[nodiscard]] host::Expected<host::FabricPlace> own_place();
[[nodiscard]] host::Expected<host::FabricPortAttributes> own_attributes();

}  // namespace verbena::abi::umad
