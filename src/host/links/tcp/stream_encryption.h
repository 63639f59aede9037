// StreamEncryption: how the connections of an iWARP adapter are encrypted: whose credentials, which
// peers were refused, and how many. Not thread-safe; the adapter's lock guards it.
#pragma once

#include <memory>

#include "host/encryption/peers_told.h"
#include "host/encryption/tls_credentials.h"
#include "host/links/link.h"
#include "host/links/tcp/tls_stream.h"

namespace verbena::host {

class StreamEncryption {
 public:
  [[nodiscard]] static Expected<std::unique_ptr<StreamEncryption>> open(
      const EncryptionSettings& settings);

  [[nodiscard]] std::unique_ptr<TLSStream> begin(int socket, TLSRole role, const GID& peer) const {
    return std::make_unique<TLSStream>(ssl_, *credentials_, socket, role, peer);
  }
  void note_agreed(TLSRole role);
  void note_refused(TLSRole role, const GID& peer, const std::string& why);
  void add_counters(LinkCounters& counters) const;

 private:
  StreamEncryption(const OpenSSL& ssl, std::unique_ptr<TLSCredentials> credentials)
      : ssl_(ssl), credentials_(std::move(credentials)) {}

  const OpenSSL& ssl_;
  std::unique_ptr<TLSCredentials> credentials_;
  PeersTold told_;
  u64 agreed_as_client_ = 0, agreed_as_server_ = 0, failed_as_client_ = 0, failed_as_server_ = 0;
};

// Prints one line on standard error: a device in clear has met a peer that speaks TLS.
void tell_of_encrypted_peer(const GID& peer);

}  // namespace verbena::host
