// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/net/credential_flags.h"
#include "base/net/credentials.h"
#include "cli/certificate_authority.h"
#include "gtest/gtest.h"
#include "tests/integration/cluster.h"

namespace skein {

// Credentials as `skein certs init` makes them, and processes that are given their roles'. The test's own process has
// `client`'s until the end of this.
class CredentialFolder {
 public:
  explicit CredentialFolder(bool tls) : tls_(tls) {
    const auto made = MakeCertificateFolder({.folder = path()});
    EXPECT_TRUE(made.ok()) << made.status();
    EXPECT_TRUE(UseCredentials(Of("client")).ok());
  }
  ~CredentialFolder() {
    ForgetCredentialVariables();
    EXPECT_TRUE(UseCredentials({}).ok());
  }

  std::string path() const { return scratch_.path() + "/credentials"; }
  std::string token() const { return LoadCredentials({.token_file = path() + "/token"})->token; }
  CredentialFiles Of(const std::string& role) const {
    CredentialFiles files;
    files.token_file = path() + "/token";
    if (!tls_) return files;
    files.tls_cert = absl::StrCat(path(), "/", role, ".crt");
    files.tls_key = absl::StrCat(path(), "/", role, ".key");
    files.tls_ca = path() + "/ca.crt";
    return files;
  }
  // As environment variables of a process.
  std::vector<std::string> Variables(const std::string& role) const {
    const CredentialFiles files = Of(role);
    std::vector<std::string> all = {"SKEIN_TOKEN_FILE=" + files.token_file};
    if (tls_) {
      all.insert(all.end(), {"SKEIN_TLS_CERT=" + files.tls_cert, "SKEIN_TLS_KEY=" + files.tls_key,
                             "SKEIN_TLS_CA=" + files.tls_ca});
    }
    return all;
  }

 private:
  const bool tls_;
  const ScratchFolder scratch_;
};

// A run that trains, each process with the certificate of its role if there are any.
class SecuredCluster {
 public:
  explicit SecuredCluster(bool tls) : credentials_(tls), cluster_({"total_steps=1000000000"}) {
    cluster_.StartCoordinator({}, credentials_.Variables("coordinator"));
    cluster_.StartLearner(credentials_.Variables("learner"));
    actor_ = cluster_.StartActor("", credentials_.Variables("actor"));
  }

  // At least one iteration has been trained on.
  bool Trains() {
    return cluster_.WaitForStatus([](const v1::StatusResponse& status) {
      return status.progress().policy_version() > 1 && status.members_size() == 2;
    });
  }
  Cluster& cluster() { return cluster_; }
  Running& actor() { return *actor_; }
  const CredentialFolder& credentials() const { return credentials_; }
  // What all three have written so far.
  std::string Output() { return cluster_.coordinator().Output() + cluster_.learner().Output() + actor_->Output(); }

 private:
  const CredentialFolder credentials_;
  Cluster cluster_;
  std::unique_ptr<Running> actor_;
};

}  // namespace skein
