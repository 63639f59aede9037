#include "host/encryption/encryption_settings.h"

#include <gtest/gtest.h>

namespace verbena::host {
namespace {

TEST(EncryptionSettingsTest, PreSharedKey) {
  const auto settings = encryption_settings("psk:/etc/key");
  ASSERT_TRUE(settings.has_value());
  EXPECT_EQ(*settings, (EncryptionSettings{.psk_file = "/etc/key"}));
  EXPECT_EQ(settings->port, 1000);
  EXPECT_EQ(settings->version, PSPVersion::kAES128GCM);
}

TEST(EncryptionSettingsTest, CertificatesAndAllOptions) {
  const auto settings = encryption_settings(
      "tls:cert=a,key=b,ca=c,cipher=aes-gcm-256,crypt_offset=5,rotate=60,rotate_packets=1000,"
      "port=4793");
  ASSERT_TRUE(settings.has_value());
  EXPECT_EQ(*settings, (EncryptionSettings{.certificate_file = "a",
                                           .key_file = "b",
                                           .authority_file = "c",
                                           .version = PSPVersion::kAES256GCM,
                                           .crypt_offset = 5,
                                           .rotation = sec(60),
                                           .rotation_packets = 1000,
                                           .port = 4793}));
}

TEST(EncryptionSettingsTest, Refusals) {
  for (const char* const text :
       {"", "yes", "psk:", "tls:cert=a", "tls:cert=a,key=b", "psk:a,cert=b", "psk:a,cipher=des",
        "psk:a,crypt_offset=64", "psk:a,rotate=0", "psk:a,rotate_packets=0", "psk:a,port=0",
        "psk:a,port=65536", "psk:a,port=1x", "psk:a,colour=red", "psk:a,,b"}) {
    const auto settings = encryption_settings(text);
    ASSERT_FALSE(settings.has_value()) << text;
    EXPECT_EQ(settings.error().error, EINVAL) << text;
    EXPECT_TRUE(settings.error().message.starts_with("VERBENA_ENCRYPTION")) << text;
  }
}

}  // namespace
}  // namespace verbena::host
