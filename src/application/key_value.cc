#include "application/key_value.h"

#include "base/bytes.h"

namespace verbena::application {
namespace {

constexpr u32 kPrivateBytes = 16;

Region bytes_of(Node& node, u64 bytes, Access access) {
  const Result<Region> region = node.allocate(bytes, Content::kBytes, access);
  CHECK(region.has_value());
  return *region;
}

}  // namespace

KeyValueServer::KeyValueServer(Node& node, const Address& at, u32 places)
    : node_(node),
      places_(places),
      table_(bytes_of(node, u64{places} * sizeof(KeyValueEntry), Access::kRemoteRead)),
      inbox_(bytes_of(node, kReceives * sizeof(KeyValueEntry), Access::kLocal)) {
  CHECK(node.listen(at, {.sends = kReceives, .receives = kReceives}) == Status::kOk);
}

void KeyValueServer::on_ready() {
  for (Event event; node_.poll(event);) {
    if (event.kind == Event::Kind::kReceived) take_put(event);
    if (event.kind != Event::Kind::kConnectRequest) continue;
    node_.post_receive(event.connection, 0, {inbox_.address, sizeof(KeyValueEntry), inbox_.l_key});
    std::array<u8, kPrivateBytes> told{};
    Writer<kPrivateBytes> out(told);
    out.put64<0>(table_.address);
    out.put32<8>(table_.r_key);
    out.put32<12>(places_);
    node_.accept(event.connection, told);
  }
}

void KeyValueServer::take_put(const Event& event) {
  KeyValueEntry entry;
  std::memcpy(&entry, inbox_.bytes.data(), sizeof entry);
  node_.post_receive(event.connection, 0, {inbox_.address, sizeof entry, inbox_.l_key});
  entry.key.back() = entry.value.back() = '\0';
  const u32 place = key_value_place(entry.key.data(), places_);
  std::memcpy(table_.bytes.data() + place * sizeof entry, &entry, sizeof entry);
  node_.post(event.connection, {.operation = Operation::kSend, .report = Report::kFailureOnly});
}

KeyValueClient::KeyValueClient(Node& node, const Address& server)
    : node_(node), buffer_(bytes_of(node, sizeof(KeyValueEntry), Access::kLocal)) {
  const Result<ConnectionId> id = node.connect(server, {.sends = 4, .receives = 4}, {});
  if (id) connection_ = *id;
  is_closed_ = !id;
}

void KeyValueClient::put(std::string_view key, std::string_view value) {
  is_done_ = false;
  entry().set(key, value);
  node_.post_receive(connection_, 0, {buffer_.address, 0, buffer_.l_key});
  const std::array slices{slice()};
  node_.post(connection_,
             {.operation = Operation::kSend, .local = slices, .report = Report::kFailureOnly});
}

void KeyValueClient::get(std::string_view key) {
  is_done_ = false;
  wanted_ = key;
  const std::array slices{slice()};
  node_.post(connection_,
             {.operation = Operation::kRead,
              .local = slices,
              .remote_address = table_ + key_value_place(key, places_) * sizeof(KeyValueEntry),
              .r_key = r_key_});
}

std::optional<std::string> KeyValueClient::value() const {
  KeyValueEntry found;
  std::memcpy(&found, buffer_.bytes.data(), sizeof found);
  if (!found.has(wanted_)) return std::nullopt;
  return std::string(found.value.data());
}

void KeyValueClient::on_ready() {
  for (Event event; node_.poll(event);) {
    switch (event.kind) {
      case Event::Kind::kConnected: {
        if (event.private_data.size() < kPrivateBytes) return close();
        const Reader<kPrivateBytes> told(event.private_data.first<kPrivateBytes>());
        table_ = told.get64<0>();
        r_key_ = told.get32<8>();
        places_ = told.get32<12>();
        break;
      }
      case Event::Kind::kDone:
      case Event::Kind::kReceived: is_done_ = true; break;
      case Event::Kind::kRefused:
      case Event::Kind::kClosed: is_closed_ = is_done_ = true; break;
      case Event::Kind::kConnectRequest:
      case Event::Kind::kAlarm: break;
    }
  }
}

}  // namespace verbena::application
