// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/net/credentials.h"

namespace skein {

// The flags with which another process joins or asks a run whose head has the credentials `files`: "" or " --tls-cert
// FILE --tls-key FILE --tls-ca FILE --token-file FILE", absolute and quoted for a shell. Of `role` ("actor", "learner"
// or "client") if files of that name lie beside the head's certificate, as `skein certs init` makes them; else the
// head's own.
std::string JoinFlags(const CredentialFiles& files, const std::string& role);

// The credential files that UseCredentials() passes to this process's children.
CredentialFiles CredentialFilesInEnvironment();

// `text` as one word of a POSIX shell; as it is if it has no character that a shell treats specially.
std::string ShellWord(const std::string& text);

// How a user starts `program` of `folder`: by its name if that is what the shell's PATH finds, else by its path.
// $SKEIN_COMMAND_FOLDER replaces `folder`, where commands of that name start the programs.
std::string CommandOf(const std::string& folder, const std::string& program);

}  // namespace skein
