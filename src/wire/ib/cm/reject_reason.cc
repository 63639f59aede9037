#include "wire/ib/cm/reject_reason.h"

namespace verbena::cm {

std::string_view to_string(RejectReason reason) {
  switch (reason) {
    case RejectReason::kNoQP: return "no QP available";
    case RejectReason::kNoEEC: return "no EEC available";
    case RejectReason::kNoResources: return "no resources available";
    case RejectReason::kTimeout: return "timeout";
    case RejectReason::kUnsupportedRequest: return "unsupported request";
    case RejectReason::kInvalidCommunicationID: return "invalid Communication ID";
    case RejectReason::kInvalidCommunicationInstance: return "invalid Communication Instance";
    case RejectReason::kInvalidServiceID: return "invalid Service ID";
    case RejectReason::kInvalidTransportServiceType: return "invalid Transport Service Type";
    case RejectReason::kStaleConnection: return "stale connection";
    case RejectReason::kRDCDoesNotExist: return "RDC does not exist";
    case RejectReason::kPrimaryRemotePortGIDRejected: return "primary remote port GID rejected";
    case RejectReason::kPrimaryRemotePortLIDRejected: return "primary remote port LID rejected";
    case RejectReason::kInvalidPrimarySL: return "invalid primary SL";
    case RejectReason::kInvalidPrimaryTrafficClass: return "invalid primary traffic class";
    case RejectReason::kInvalidPrimaryHopLimit: return "invalid primary hop limit";
    case RejectReason::kInvalidPrimaryPacketRate: return "invalid primary packet rate";
    case RejectReason::kAlternateRemotePortGIDRejected: return "alternate remote port GID rejected";
    case RejectReason::kAlternateRemotePortLIDRejected: return "alternate remote port LID rejected";
    case RejectReason::kInvalidAlternateSL: return "invalid alternate SL";
    case RejectReason::kInvalidAlternateTrafficClass: return "invalid alternate traffic class";
    case RejectReason::kInvalidAlternateHopLimit: return "invalid alternate hop limit";
    case RejectReason::kInvalidAlternatePacketRate: return "invalid alternate packet rate";
    case RejectReason::kPortAndCMRedirection: return "port and CM redirection";
    case RejectReason::kPortRedirection: return "port redirection";
    case RejectReason::kInvalidPathMTU: return "invalid path MTU";
    case RejectReason::kInsufficientResponderResources: return "insufficient responder resources";
    case RejectReason::kConsumerReject: return "consumer reject";
    case RejectReason::kRNRRetryCountReject: return "RNR retry count reject";
    case RejectReason::kDuplicateLocalCommunicationID: return "duplicate local Communication ID";
    case RejectReason::kInvalidClassVersion: return "invalid class version";
    case RejectReason::kInvalidPrimaryFlowLabel: return "invalid primary flow label";
    case RejectReason::kInvalidAlternateFlowLabel: return "invalid alternate flow label";
    case RejectReason::kVendorOptionNotSupported: return "vendor option not supported";
  }
  return "reserved";
}

}  // namespace verbena::cm
