#include "wire/ib/cm/message.h"

namespace verbena::cm {
namespace {

template <typename T>
std::optional<Body> decode_as(std::span<const u8> in) {
  std::optional<T> message = T::decode(in);
  if (!message) return std::nullopt;
  return Body(std::in_place_type<T>, *message);
}

std::optional<Body> decode_body(Attribute attribute, std::span<const u8> in) {
  switch (attribute) {
    case Attribute::kREQ: return decode_as<REQ>(in);
    case Attribute::kMRA: return decode_as<MRA>(in);
    case Attribute::kREJ: return decode_as<REJ>(in);
    case Attribute::kREP: return decode_as<REP>(in);
    case Attribute::kRTU: return decode_as<RTU>(in);
    case Attribute::kDREQ: return decode_as<DREQ>(in);
    case Attribute::kDREP: return decode_as<DREP>(in);
    case Attribute::kSIDRREQ: return decode_as<SIDRREQ>(in);
    case Attribute::kSIDRREP: return decode_as<SIDRREP>(in);
    case Attribute::kLAP: return decode_as<LAP>(in);
    case Attribute::kAPR: return decode_as<APR>(in);
  }
  return std::nullopt;  // not a message: ClassPortInfo and similar attributes, or reserved
}

}  // namespace

std::optional<Message> Message::decode(std::span<const u8> mad) {
  const std::optional<MADHeader> header = MADHeader::decode(mad);
  if (!header || header->mgmt_class != MgmtClass::kComMgt) return std::nullopt;
  if (header->class_version != kClassVersion || header->method != MADMethod::kSend)
    return std::nullopt;
  const std::optional<Body> body =
      decode_body(Attribute{header->attribute_id}, mad.subspan(MADHeader::kSize));
  if (!body) return std::nullopt;
  return Message{.transaction_id = header->transaction_id,
                 .attribute_modifier = header->attribute_modifier,
                 .body = *body};
}

MADBytes Message::encode() const {
  MADBytes mad;
  const auto header_out = std::span(mad).first<MADHeader::kSize>();
  const auto body_out = std::span(mad).subspan<MADHeader::kSize, kMessageSize>();
  std::visit(
      [&]<typename T>(const T& message) {
        MADHeader{.mgmt_class = MgmtClass::kComMgt,
                  .class_version = kClassVersion,
                  .method = MADMethod::kSend,
                  .transaction_id = transaction_id,
                  .attribute_id = static_cast<u16>(T::kAttribute),
                  .attribute_modifier = attribute_modifier}
            .encode(header_out);
        message.encode(body_out);
      },
      body);
  return mad;
}

}  // namespace verbena::cm
