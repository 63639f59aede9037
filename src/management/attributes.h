// The management attributes that agents of this project have, and their components. IBTA Vol 1,
// 14.2.5 (subnet management), 16.1.3 (performance management), 13.4.8 (common to all classes).
#pragma once

#include <array>

#include "management/component.h"
#include "wire/ib/lid_address.h"

namespace verbena::management {

inline constexpr std::size_t kAttributeBytes = 64;  // of an SMP; of PMA, the part in use
using Attribute = std::array<u8, kAttributeBytes>;

enum class SMPAttribute : u16 {
  kNotice = 0x0002,
  kNodeDescription = 0x0010,
  kNodeInfo = 0x0011,
  kSwitchInfo = 0x0012,
  kGUIDInfo = 0x0014,
  kPortInfo = 0x0015,
  kPKeyTable = 0x0016,
  kSLtoVLMappingTable = 0x0017,
  kVLArbitrationTable = 0x0018,
  kLinearForwardingTable = 0x0019,
  kMulticastForwardingTable = 0x001b,
  kSMInfo = 0x0020,
};
enum class PerfAttribute : u16 {
  kClassPortInfo = 0x0001,
  kPortCounters = 0x0012,
  kPortCountersExtended = 0x001d,
};

enum class NodeType : u8 { kCA = 1, kSwitch = 2 };
enum class PortState : u8 { kDown = 1, kInit = 2, kArmed = 3, kActive = 4 };
enum class PhysicalState : u8 { kPolling = 2, kDisabled = 3, kLinkUp = 5 };

// Status of a MAD, 13.4.7; the bits that this project sets.
enum class MADStatus : u16 {
  kOk = 0,
  kBadClassOrVersion = 1 << 2,
  kUnsupportedMethod = 2 << 2,
  kUnsupportedAttribute = 3 << 2,  // method and attribute combination
  kInvalidField = 7 << 2,
};

inline constexpr u16 kPermissiveLID = 0xffff;
inline constexpr u64 kDefaultGIDPrefix = 0xfe80'0000'0000'0000;

namespace node_info {
inline constexpr Component kBaseVersion{0, 8}, kClassVersion{8, 8}, kNodeType{16, 8},
    kNumPorts{24, 8}, kSystemImageGUID{32, 64}, kNodeGUID{96, 64}, kPortGUID{160, 64},
    kPartitionCap{224, 16}, kDeviceID{240, 16}, kRevision{256, 32}, kLocalPortNum{288, 8},
    kVendorID{296, 24};
}  // namespace node_info

namespace port_info {
inline constexpr Component kMKey{0, 64}, kGIDPrefix{64, 64}, kLID{128, 16}, kMasterSMLID{144, 16},
    kCapabilityMask{160, 32}, kMKeyLeasePeriod{208, 16}, kLocalPortNum{224, 8},
    kLinkWidthEnabled{232, 8}, kLinkWidthSupported{240, 8}, kLinkWidthActive{248, 8},
    kLinkSpeedSupported{256, 4}, kPortState{260, 4}, kPortPhysicalState{264, 4},
    kLinkDownDefaultState{268, 4}, kMKeyProtectBits{272, 2}, kLMC{277, 3}, kLinkSpeedActive{280, 4},
    kLinkSpeedEnabled{284, 4}, kNeighborMTU{288, 4}, kMasterSMSL{292, 4}, kVLCap{296, 4},
    kVLHighLimit{304, 8}, kVLArbitrationHighCap{312, 8}, kVLArbitrationLowCap{320, 8},
    kMTUCap{332, 4}, kVLStallCount{336, 3}, kHOQLife{339, 5}, kOperationalVLs{344, 4},
    kPartitionEnforcement{348, 4}, kMKeyViolations{352, 16}, kPKeyViolations{368, 16},
    kQKeyViolations{384, 16}, kGUIDCap{400, 8}, kClientReregister{408, 1}, kSubnetTimeOut{411, 5},
    kRespTimeValue{419, 5}, kLocalPhyErrors{424, 4}, kOverrunErrors{428, 4},
    kCapabilityMask2{480, 16}, kLinkSpeedExtActive{496, 4}, kLinkSpeedExtSupported{500, 4},
    kLinkSpeedExtEnabled{507, 5};
// Bits of CapabilityMask.
inline constexpr u32 kIsSM = 1u << 1, kIsNoticeSupported = 1u << 2, kIsTrapSupported = 1u << 3,
                     kIsSLMappingSupported = 1u << 6, kIsSystemImageGUIDSupported = 1u << 11,
                     kIsExtendedSpeedsSupported = 1u << 14,
                     kIsCommunicationManagementSupported = 1u << 16,
                     kIsVendorClassSupported = 1u << 20,
                     kIsCapabilityMaskNoticeSupported = 1u << 22,
                     kIsClientReregistrationSupported = 1u << 25;
}  // namespace port_info

namespace switch_info {
inline constexpr Component kLinearFDBCap{0, 16}, kRandomFDBCap{16, 16}, kMulticastFDBCap{32, 16},
    kLinearFDBTop{48, 16}, kDefaultPort{64, 8}, kDefaultMulticastPrimaryPort{72, 8},
    kDefaultMulticastNotPrimaryPort{80, 8}, kLifeTimeValue{88, 5}, kPortStateChange{93, 1},
    kPartitionEnforcementCap{112, 16}, kInboundEnforcementCap{128, 1},
    kOutboundEnforcementCap{129, 1}, kEnhancedPort0{132, 1}, kMulticastFDBTop{144, 16};
}  // namespace switch_info

namespace notice {
inline constexpr Component kIsGeneric{0, 1}, kType{1, 7}, kProducerType{8, 24}, kTrapNumber{32, 16},
    kIssuerLID{48, 16}, kNoticeCount{65, 15};
// DataDetails, by the number of the trap.
inline constexpr Component kTrap128LID{80, 16};                           // 128
inline constexpr Component kTrap129LID{96, 16}, kTrap129Port{112, 8};     // 129, 130, 131
inline constexpr Component kTrap144LID{96, 16}, kTrap144Mask{128, 32};    // 144
inline constexpr Component kTrap256LID{96, 16}, kTrap256DRSLID{112, 16},  // 256
    kTrap256Method{128, 8}, kTrap256Attribute{144, 16}, kTrap256Modifier{160, 32},
    kTrap256MKey{192, 64};
inline constexpr Component kTrap257LID1{96, 16}, kTrap257LID2{112, 16},  // 257, 258
    kTrap257Key{128, 32}, kTrap257SL{160, 4}, kTrap257QP1{168, 24}, kTrap257QP2{200, 24};
}  // namespace notice

namespace class_port_info {
inline constexpr Component kBaseVersion{0, 8}, kClassVersion{8, 8}, kCapabilityMask{16, 16},
    kRespTimeValue{59, 5};
inline constexpr u32 kAllPortSelect = 1u << 8, kIsExtendedWidthSupported = 1u << 9,
                     kIsPortXmitWaitSupported = 1u << 12;  // of performance management
}  // namespace class_port_info

}  // namespace verbena::management
