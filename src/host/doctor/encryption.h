// Whether and how packets to a peer are encrypted, by a handshake for keys as a device does it.
#pragma once

#include <optional>
#include <string>

#include "host/encryption/encryption_settings.h"
#include "host/network/local_address.h"
#include "wire/ib/gid.h"

namespace verbena::host {

// One handshake with the peer by the settings. The text says what was agreed. Waits a few seconds.
[[nodiscard]] Expected<std::string> agree_with_peer(const EncryptionSettings& settings,
                                                    const LocalAddress& local, const GID& peer);

// Whether some process of the peer listens for handshakes. Waits for less than a second.
[[nodiscard]] bool listens_for_handshakes(const GID& peer, u16 port, u32 interface_index);

}  // namespace verbena::host
