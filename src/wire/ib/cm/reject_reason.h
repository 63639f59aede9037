// RejectReason: the reason of a REJ. IBTA Vol 1, 12.6.7.2, table 109. The comments give the content
// of the Additional Reject Information (ARI), if any.
#pragma once

#include <string_view>

#include "base/types.h"

namespace verbena::cm {

enum class RejectReason : u16 {
  kNoQP = 1,
  kNoEEC = 2,
  kNoResources = 3,
  kTimeout = 4,  // ARI: CA GUID of the sender
  kUnsupportedRequest = 5,
  kInvalidCommunicationID = 6,
  kInvalidCommunicationInstance = 7,
  kInvalidServiceID = 8,  // nobody listens: "connection refused"
  kInvalidTransportServiceType = 9,
  kStaleConnection = 10,  // the receiver knows a connection that still has the QPN
  kRDCDoesNotExist = 11,
  kPrimaryRemotePortGIDRejected = 12,  // ARI: an acceptable one
  kPrimaryRemotePortLIDRejected = 13,  // ARI: an acceptable one
  kInvalidPrimarySL = 14,
  kInvalidPrimaryTrafficClass = 15,
  kInvalidPrimaryHopLimit = 16,
  kInvalidPrimaryPacketRate = 17,
  kAlternateRemotePortGIDRejected = 18,
  kAlternateRemotePortLIDRejected = 19,
  kInvalidAlternateSL = 20,
  kInvalidAlternateTrafficClass = 21,
  kInvalidAlternateHopLimit = 22,
  kInvalidAlternatePacketRate = 23,
  kPortAndCMRedirection = 24,  // ARI: ClassPortInfo
  kPortRedirection = 25,       // ARI: GID
  kInvalidPathMTU = 26,        // ARI: the largest acceptable code
  kInsufficientResponderResources = 27,
  kConsumerReject = 28,  // the program refused; private data is the program's
  kRNRRetryCountReject = 29,
  kDuplicateLocalCommunicationID = 30,
  kInvalidClassVersion = 31,
  kInvalidPrimaryFlowLabel = 32,
  kInvalidAlternateFlowLabel = 33,
  kVendorOptionNotSupported = 35,  // of ece.h
};

// Returns the reason in words; "reserved" for values that the table does not name.
[[nodiscard]] std::string_view to_string(RejectReason reason);

}  // namespace verbena::cm
