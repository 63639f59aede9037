#include "host/links/tcp/stream_encryption.h"

#include <cstdio>

namespace verbena::host {

Expected<std::unique_ptr<StreamEncryption>> StreamEncryption::open(
    const EncryptionSettings& settings) {
  const Expected<const OpenSSL*> ssl = OpenSSL::load();
  if (!ssl) return tl::unexpected(ssl.error());
  Expected<std::unique_ptr<TLSCredentials>> credentials = TLSCredentials::load(**ssl, settings);
  if (!credentials) return tl::unexpected(credentials.error());
  return std::unique_ptr<StreamEncryption>(new StreamEncryption(**ssl, std::move(*credentials)));
}

void StreamEncryption::note_agreed(TLSRole role) {
  ++(role == TLSRole::kClient ? agreed_as_client_ : agreed_as_server_);
}

void StreamEncryption::note_refused(TLSRole role, const GID& peer, const std::string& why) {
  ++(role == TLSRole::kClient ? failed_as_client_ : failed_as_server_);
  if (!told_.add(peer)) return;
  std::fprintf(stderr,
               "verbena: no iWARP connection with %s: its TLS failed: %s; both sides need the same "
               "%s\n",
               peer.to_string().c_str(), why.c_str(), kEncryptionVariable);
}

void StreamEncryption::add_counters(LinkCounters& counters) const {
  counters.keys_agreed = agreed_as_client_;
  counters.keys_issued = agreed_as_server_;
  counters.key_failures = failed_as_client_;
  counters.key_refusals = failed_as_server_;
}

void tell_of_encrypted_peer(const GID& peer) {
  std::fprintf(stderr,
               "verbena: no iWARP connection with %s: it takes only TLS; set %s here as it is set "
               "there\n",
               peer.to_string().c_str(), kEncryptionVariable);
}

}  // namespace verbena::host
