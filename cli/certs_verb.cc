// SPDX-License-Identifier: Apache-2.0
// skein certs: certificates and a token for a quick start.
#include <iostream>
#include <memory>

#include "CLI/CLI.hpp"
#include "absl/strings/str_join.h"
#include "base/process/exit_code.h"
#include "base/process/message_text.h"
#include "cli/certificate_authority.h"
#include "cli/verbs.h"
#include "nlohmann/json.hpp"

namespace skein {
namespace {

absl::Status InitCertificates(const CertificateFolderOptions& options, bool json) {
  const auto files = MakeCertificateFolder(options);
  if (!files.ok()) return files.status();
  const std::string dir = Escaped(options.folder);
  if (json) {
    const nlohmann::ordered_json made = {{"folder", options.folder}, {"files", *files}, {"days", options.days}};
    std::cout << made.dump(2) << std::endl;
    return absl::OkStatus();
  }
  std::cout
      << "made in " << dir << ": " << absl::StrJoin(*files, " ") << "\n"
      << "ca.key makes further certificates and is needed by no process: keep it elsewhere\n"
      << "a process is given its role's files, e.g. skein worker --tls-cert " << dir << "/actor.crt --tls-key " << dir
      << "/actor.key --tls-ca " << dir << "/ca.crt --token-file " << dir << "/token\n"
      << "`skein train` and `skein head`, which start all roles, take node.crt; the token alone works without TLS\n"
      << std::flush;
  return absl::OkStatus();
}

}  // namespace

void AddCerts(CLI::App* app, Action* action) {
  CLI::App* verb = app->add_subcommand("certs", "Make certificates and a token, so that processes know each other");
  verb->require_subcommand(1);
  CLI::App* init = verb->add_subcommand("init", "Make a CA, a certificate for each role, and a token");
  auto options = std::make_shared<CertificateFolderOptions>();
  init->add_option("folder", options->folder, "Where to; nothing is overwritten")->required()->type_name("DIR");
  init->add_option("--days", options->days, "How long they are valid")
      ->check(CLI::Range(1, 36500))
      ->capture_default_str();
  init->add_option("--host", options->hosts,
                   "Name or address by which browsers and Prometheus reach a server; may be repeated")
      ->allow_extra_args(false)
      ->type_name("NAME");
  auto json = std::make_shared<bool>(false);
  init->add_flag("--json", *json, "Print one JSON object");
  init->footer("Example:\n  skein certs init credentials --host head.example.org");
  init->callback(
      [=] { *action = [=] { return ReportAndExitCode("skein certs init", InitCertificates(*options, *json)); }; });
}

}  // namespace skein
