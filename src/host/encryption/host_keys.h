// HostKeys: the two PSP master keys of this host's processes of one user, and which associations
// they have issued. A receiver keeps no key of an association: it derives the key from its SPI. So
// any process of the host can answer a peer's request for keys, also for an association whose
// packets another process receives. The file is shared memory; a file lock guards what is written.
//
// An SPI: | master key (1) | slot of the receiving process (10) | number (21) |. Slot 0: QP 1,
// which is everybody's. A number is used once for each master key. Each association belongs to one
// pair of addresses: a peer that holds keys cannot send in another host's name.
#pragma once

#include <optional>
#include <string>

#include "base/time.h"
#include "host/encryption/psp_key.h"
#include "host/os/mapping.h"
#include "host/sharing/directory.h"
#include "wire/ib/gid.h"

namespace verbena::host {

inline constexpr u32 kSPINumberBits = 21;
constexpr u32 slot_of_spi(u32 spi) { return (spi >> kSPINumberBits) & 0x3ff; }

struct AssociationEnds {
  GID sender{}, receiver{};
  friend bool operator==(const AssociationEnds&, const AssociationEnds&) = default;
};

// IssuedAssociation: the description of an association that a sender receives.
struct IssuedAssociation {
  u32 spi = 0;
  PSPKey key{};
  Duration renew_after{}, expires_after{};
  friend bool operator==(const IssuedAssociation&, const IssuedAssociation&) = default;
};

class HostKeys {
 public:
  static constexpr u32 kMaxAssociations = 16384;

  // `name`: what distinguishes the file from that of other credentials.
  [[nodiscard]] static Expected<HostKeys> open(const OpenSSL& ssl, const std::string& name,
                                               Duration rotation);
  [[nodiscard]] static Expected<HostKeys> open_file(const OpenSSL& ssl, const std::string& path,
                                                    Duration rotation);

  // A new association. Rotates the master keys when it is time. Takes the oldest association's
  // place if there is no free one.
  [[nodiscard]] Expected<IssuedAssociation> issue(u32 slot, const AssociationEnds& ends,
                                                  PSPVersion version, Time now);
  // A process has taken `slot` over: associations of the owner before it are valid no more.
  [[nodiscard]] Expected<void> forget_slot(u32 slot);

  struct Known {
    AssociationEnds ends;
    PSPVersion version = PSPVersion::kAES128GCM;
    u32 generation = 0;  // another: the same SPI was issued anew
    friend bool operator==(const Known&, const Known&) = default;
  };
  // Returns nullopt if the SPI was not issued or is no longer valid. Thread-safe.
  [[nodiscard]] std::optional<Known> find(u32 spi) const;
  // Whether the SPI is still what find() said. Quick: once for each packet.
  [[nodiscard]] bool is_valid(u32 spi, u32 generation) const;
  // Whether an authentic packet with this IV is new to all processes of the host, and notes that it
  // was there. A window of 32 packets. Lock-free.
  [[nodiscard]] bool note_shared(u32 spi, u64 iv);
  // Returns the key of a valid association, or nullopt as find() does.
  [[nodiscard]] std::optional<PSPKey> derive(u32 spi, PSPVersion version) const;

 private:
  struct File;
  HostKeys(const OpenSSL& ssl, Descriptor file, std::string path, Mapping memory,
           Duration rotation);
  [[nodiscard]] File& file() const { return *reinterpret_cast<File*>(memory_.data()); }
  void begin(Time now);
  void rotate(Time now);
  u32 free_number();

  const OpenSSL* ssl_;
  Descriptor descriptor_;
  std::string path_;
  Mapping memory_;
  Duration rotation_;
};

}  // namespace verbena::host
