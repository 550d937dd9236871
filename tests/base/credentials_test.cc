// SPDX-License-Identifier: Apache-2.0
#include "base/net/credentials.h"

#include <sys/stat.h>

#include <cstdlib>
#include <string>

#include "CLI/CLI.hpp"
#include "base/net/credential_flags.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cli/scratch_folder.h"

namespace skein {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr char kToken[] = "0123456789abcdef0123456789abcdef";

std::string WriteSecret(const ScratchFolder& folder, const std::string& text, mode_t mode = 0600) {
  const std::string path = folder.Write("token", text);
  EXPECT_EQ(chmod(path.c_str(), mode), 0);
  return path;
}

std::string MessageOf(const CredentialFiles& files) {
  const auto loaded = LoadCredentials(files);
  EXPECT_TRUE(absl::IsInvalidArgument(loaded.status())) << loaded.status();
  return std::string(loaded.status().message());
}

TEST(Credentials, WithoutFilesThereAreNone) {
  const auto loaded = LoadCredentials({});
  ASSERT_TRUE(loaded.ok());
  EXPECT_FALSE(loaded->has_tls());
  EXPECT_TRUE(loaded->token.empty());
  EXPECT_FALSE(loaded->insecure);
}

TEST(Credentials, ATokenIsOneWordOfItsFile) {
  const ScratchFolder folder;
  const auto loaded = LoadCredentials({.token_file = WriteSecret(folder, std::string(" ") + kToken + "\r\n\n")});
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->token, kToken);
}

TEST(Credentials, ATokenFileThatIsNoGoodIsNamed) {
  const ScratchFolder folder;
  const std::string nowhere = folder.path() + "/nowhere";
  EXPECT_THAT(MessageOf({.token_file = nowhere}), AllOf(HasSubstr("--token-file"), HasSubstr(nowhere)));
  EXPECT_THAT(MessageOf({.token_file = WriteSecret(folder, " \n")}), HasSubstr("is empty"));
  EXPECT_THAT(MessageOf({.token_file = WriteSecret(folder, "short")}), HasSubstr("has 5 characters, want 16 to 4096"));
  EXPECT_THAT(MessageOf({.token_file = WriteSecret(folder, std::string(kToken) + " second")}), HasSubstr("one word"));
  EXPECT_THAT(MessageOf({.token_file = WriteSecret(folder, std::string(kToken) + "\x80")}), HasSubstr("one word"));
  EXPECT_THAT(MessageOf({.token_file = WriteSecret(folder, std::string(kMaxTokenBytes + 1, 'x'))}), HasSubstr("4097"));
}

TEST(Credentials, ASecretThatEverybodyMayReadIsRefused) {
  const ScratchFolder folder;
  for (const mode_t mode : {0604, 0644, 0666, 0602}) {
    EXPECT_THAT(MessageOf({.token_file = WriteSecret(folder, kToken, mode)}), HasSubstr("chmod 600")) << mode;
  }
  // A group is whom it was given to.
  EXPECT_TRUE(LoadCredentials({.token_file = WriteSecret(folder, kToken, 0640)}).ok());
}

TEST(Credentials, MessagesDoNotHoldTheToken) {
  const ScratchFolder folder;
  EXPECT_THAT(MessageOf({.token_file = WriteSecret(folder, std::string(kToken) + " x")}), Not(HasSubstr(kToken)));
  EXPECT_THAT(MessageOf({.token_file = WriteSecret(folder, kToken, 0644)}), Not(HasSubstr(kToken)));
}

TEST(Credentials, TheThreeOfTlsAreGivenTogether) {
  const ScratchFolder folder;
  const std::string file = folder.Write("a.pem", "x");
  for (const CredentialFiles& files :
       {CredentialFiles{.tls_cert = file}, CredentialFiles{.tls_key = file},
        CredentialFiles{.tls_cert = file, .tls_key = file}, CredentialFiles{.tls_cert = file, .tls_ca = file}}) {
    EXPECT_THAT(MessageOf(files), HasSubstr("given together"));
  }
}

TEST(Credentials, PemThatIsNoneIsRefused) {
  const ScratchFolder folder;
  const std::string file = WriteSecret(folder, "no PEM at all");
  EXPECT_THAT(MessageOf({.tls_cert = file, .tls_key = file, .tls_ca = file}), HasSubstr("--tls-cert: no certificate"));
}

TEST(Exposure, LoopbackNeedsNothing) {
  for (const char* address : {"127.0.0.1:7070", "[::1]:0", "localhost:80"}) {
    EXPECT_TRUE(CheckExposure(address, {}).ok()) << address;
  }
}

TEST(Exposure, PublicAddressesNeedCredentialsOrConsent) {
  for (const char* address : {"0.0.0.0:7070", "[::]:0", ":80", "10.0.0.7:1", "node1:1", "127.example.org:1"}) {
    const absl::Status refused = CheckExposure(address, {});
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << address;
    EXPECT_THAT(std::string(refused.message()),
                AllOf(HasSubstr("skein certs init"), HasSubstr("--token-file"), HasSubstr("--insecure")));
    EXPECT_TRUE(CheckExposure(address, {.token = kToken}).ok()) << address;
    EXPECT_TRUE(CheckExposure(address, {.ca_pem = "x"}).ok()) << address;
    EXPECT_TRUE(CheckExposure(address, {.insecure = true}).ok()) << address;
  }
}

TEST(Exposure, WhatIsNoAddressIsAnInvalidArgument) {
  EXPECT_TRUE(absl::IsInvalidArgument(CheckExposure("localhost", {.insecure = true})));
}

TEST(ConstantTime, EqualMeansEqual) {
  EXPECT_TRUE(EqualsInConstantTime("", ""));
  EXPECT_TRUE(EqualsInConstantTime("abc", "abc"));
  EXPECT_FALSE(EqualsInConstantTime("abc", "abd"));
  EXPECT_FALSE(EqualsInConstantTime("xbc", "abc"));
  EXPECT_FALSE(EqualsInConstantTime("abc", "ab"));
  EXPECT_FALSE(EqualsInConstantTime("", "a"));
}

TEST(CredentialFlags, TheEnvironmentStandsInForThem) {
  setenv(kTokenFileVariable, "/from/the/environment", 1);
  setenv(kInsecureVariable, "true", 1);
  CredentialFiles files;
  CLI::App app;
  AddCredentialFlags(&app, &files);
  app.parse("--tls-cert a --tls-key b --tls-ca c", false);
  unsetenv(kTokenFileVariable);
  unsetenv(kInsecureVariable);
  EXPECT_EQ(files.tls_cert, "a");
  EXPECT_EQ(files.tls_key, "b");
  EXPECT_EQ(files.tls_ca, "c");
  EXPECT_EQ(files.token_file, "/from/the/environment");
  EXPECT_TRUE(files.insecure);
}

TEST(CredentialFlags, WhatIsUsedIsPassedOnToChildren) {
  const ScratchFolder folder;
  const std::string path = WriteSecret(folder, kToken);
  ASSERT_TRUE(UseCredentials({.token_file = path}).ok());
  EXPECT_EQ(ProcessCredentials().token, kToken);
  ASSERT_NE(getenv(kTokenFileVariable), nullptr);
  EXPECT_EQ(std::string(getenv(kTokenFileVariable)), path);
  EXPECT_EQ(getenv(kInsecureVariable), nullptr);
  ForgetCredentialVariables();
  EXPECT_EQ(getenv(kTokenFileVariable), nullptr);
  ASSERT_TRUE(UseCredentials({}).ok());
}

}  // namespace
}  // namespace skein
