#include "nvmf/status_text.h"

#include <array>
#include <cstdio>

namespace verbena::nvmf {
namespace {

// "" for those that a host seldom meets.
const char* words_of(nvme::Status status) {
  using nvme::Status;
  switch (status) {
    case Status::kInvalidNamespace: return "invalid namespace";
    case Status::kInvalidField: return "invalid field in command";
    case Status::kLBAOutOfRange: return "LBA out of range";
    case Status::kCapacityExceeded: return "no space";
    case Status::kNamespaceWriteProtected: return "namespace is write protected";
    case Status::kWriteFault: return "write fault";
    case Status::kUnrecoveredReadError: return "unrecovered read error";
    case Status::kCompareFailure: return "compare failure";
    case Status::kTransientTransportError: return "the connection was lost";
    case Status::kConnectControllerBusy: return "the controller is busy";
    case Status::kConnectInvalidParameters: return "no such subsystem, or an invalid parameter";
    case Status::kConnectInvalidHost: return "this host is not allowed";
    case Status::kAuthenticationRequired: return "authentication is required";
    default: return "";
  }
}

}  // namespace

std::string describe(nvme::Status status) {
  std::array<char, 16> number{};
  std::snprintf(number.data(), number.size(), "0x%04x", static_cast<unsigned>(status));
  const std::string words = words_of(status);
  return std::string("status ") + number.data() + (words.empty() ? "" : " (" + words + ")");
}

}  // namespace verbena::nvmf
