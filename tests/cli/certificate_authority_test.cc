// SPDX-License-Identifier: Apache-2.0
#include "cli/certificate_authority.h"

#include <sys/stat.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "base/net/credentials.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cli/scratch_folder.h"

namespace skein {
namespace {

using testing::HasSubstr;
using testing::UnorderedElementsAre;

int ModeOf(const std::string& path) {
  struct stat info = {};
  EXPECT_EQ(stat(path.c_str(), &info), 0) << path;
  return info.st_mode & 07777;
}

TEST(CertificateFolder, HasWhatEachRoleNeeds) {
  const ScratchFolder scratch;
  const std::string folder = scratch.path() + "/new/credentials";
  const auto made = MakeCertificateFolder({.folder = folder, .days = 1, .hosts = {"head.example.org", "10.0.0.7"}});
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_THAT(*made, UnorderedElementsAre("ca.crt", "ca.key", "coordinator.crt", "coordinator.key", "learner.crt",
                                          "learner.key", "actor.crt", "actor.key", "client.crt", "client.key",
                                          "node.crt", "node.key", "token"));
  for (const char* role : {"coordinator", "learner", "actor", "client", "node"}) {
    const std::string base = absl::StrCat(folder, "/", role);
    const auto loaded = LoadCredentials({.tls_cert = base + ".crt",
                                         .tls_key = base + ".key",
                                         .tls_ca = folder + "/ca.crt",
                                         .token_file = folder + "/token"});
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    EXPECT_EQ(loaded->token.size(), 64u);  // 32 bytes in hexadecimal digits.
    EXPECT_EQ(ModeOf(base + ".key"), 0600);
  }
  EXPECT_EQ(ModeOf(folder + "/ca.key"), 0600);
  EXPECT_EQ(ModeOf(folder + "/token"), 0600);
}

TEST(CertificateFolder, NothingIsOverwritten) {
  const ScratchFolder folder;
  folder.Write("token", "mine");
  const absl::Status status = MakeCertificateFolder({.folder = folder.path()}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("token is there already"));
  EXPECT_EQ(folder.Read("token"), "mine");
  EXPECT_EQ(folder.Read("ca.crt"), "");  // Nor is half of it made.
}

TEST(CertificateFolder, EachIsAnotherCa) {
  const ScratchFolder a, b;
  ASSERT_TRUE(MakeCertificateFolder({.folder = a.path()}).ok());
  ASSERT_TRUE(MakeCertificateFolder({.folder = b.path()}).ok());
  EXPECT_NE(a.Read("ca.crt"), b.Read("ca.crt"));
  EXPECT_NE(a.Read("token"), b.Read("token"));
}

TEST(CertificateFolder, AHostIsAHost) {
  for (const char* host : {"", "a,DNS:client.skein", "a b", "*", "-/x", "::1::"}) {
    const ScratchFolder folder;
    const absl::Status status = MakeCertificateFolder({.folder = folder.path(), .hosts = {host}}).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << host << " " << status;
  }
}

TEST(CertificateFolder, WhereNothingCanBeMadeIsSaid) {
  const absl::Status status = MakeCertificateFolder({.folder = "/proc/skein"}).status();
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr("/proc/skein"));
}

TEST(CertificateFolder, AKeyOfAnotherCertificateIsNoticed) {
  const ScratchFolder folder;
  ASSERT_TRUE(MakeCertificateFolder({.folder = folder.path()}).ok());
  const auto mixed = LoadCredentials({.tls_cert = folder.path() + "/actor.crt",
                                      .tls_key = folder.path() + "/learner.key",
                                      .tls_ca = folder.path() + "/ca.crt"});
  EXPECT_TRUE(absl::IsInvalidArgument(mixed.status()));
  EXPECT_THAT(std::string(mixed.status().message()), HasSubstr("--tls-key: the key is not that of the certificate"));
  const auto no_key = LoadCredentials({.tls_cert = folder.path() + "/actor.crt",
                                       .tls_key = folder.path() + "/token",
                                       .tls_ca = folder.path() + "/ca.crt"});
  EXPECT_THAT(std::string(no_key.status().message()), HasSubstr("--tls-key: no private key"));
}

}  // namespace
}  // namespace skein
