// SPDX-License-Identifier: Apache-2.0
#include "cli/certificate_authority.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <memory>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/net/call_authorization.h"
#include "base/process/message_text.h"
#include "base/process/system_error.h"
#include "openssl/bio.h"
#include "openssl/ec.h"
#include "openssl/err.h"
#include "openssl/evp.h"
#include "openssl/pem.h"
#include "openssl/rand.h"
#include "openssl/x509.h"
#include "openssl/x509v3.h"

namespace skein {
namespace {

struct Freer {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(X509_EXTENSION* extension) const { X509_EXTENSION_free(extension); }
};
using Bio = std::unique_ptr<BIO, Freer>;
using Certificate = std::unique_ptr<X509, Freer>;
using Key = std::unique_ptr<EVP_PKEY, Freer>;

absl::Status Refused(const char* what) {
  const char* const reason = ERR_reason_error_string(ERR_peek_last_error());
  ERR_clear_error();
  return absl::InternalError(absl::StrCat("OpenSSL cannot make ", what, ": ", reason == nullptr ? "?" : reason));
}

std::string Text(const Bio& bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return std::string(data, static_cast<size_t>(size));
}

Bio Memory() { return Bio(BIO_new(BIO_s_mem())); }
Bio Reading(const std::string& text) { return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size()))); }

bool AddExtension(X509* certificate, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const std::unique_ptr<X509_EXTENSION, Freer> extension(X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str()));
  return extension != nullptr && X509_add_ext(certificate, extension.get(), -1) == 1;
}

bool SetNameAndTime(X509* certificate, const std::string& common_name, absl::Duration from, absl::Duration until) {
  unsigned char serial[16];
  if (RAND_bytes(serial, sizeof(serial)) != 1) return false;
  serial[0] &= 0x7f;  // Positive.
  const std::unique_ptr<BIGNUM, decltype(&BN_free)> number(BN_bin2bn(serial, sizeof(serial), nullptr), &BN_free);
  if (number == nullptr || BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) == nullptr)
    return false;
  X509_NAME* const subject = X509_get_subject_name(certificate);
  const auto* const text = reinterpret_cast<const unsigned char*>(common_name.c_str());
  return X509_set_version(certificate, X509_VERSION_3) == 1 &&
         X509_NAME_add_entry_by_txt(subject, "O", MBSTRING_UTF8, reinterpret_cast<const unsigned char*>("Skein"), -1,
                                    -1, 0) == 1 &&
         X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, text, -1, -1, 0) == 1 &&
         X509_gmtime_adj(X509_getm_notBefore(certificate), absl::ToInt64Seconds(from)) != nullptr &&
         X509_gmtime_adj(X509_getm_notAfter(certificate), absl::ToInt64Seconds(until)) != nullptr;
}

absl::StatusOr<KeyAndCertificate> Written(const Key& key, const Certificate& certificate) {
  const Bio key_text = Memory(), certificate_text = Memory();
  if (PEM_write_bio_PKCS8PrivateKey(key_text.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) != 1 ||
      PEM_write_bio_X509(certificate_text.get(), certificate.get()) != 1) {
    return Refused("PEM");
  }
  return KeyAndCertificate{Text(key_text), Text(certificate_text)};
}

// "DNS:a,IP:b". Commas and the like never get into it.
absl::StatusOr<std::string> AlternativeNames(const std::vector<std::string>& names) {
  std::vector<std::string> entries;
  for (const std::string& name : names) {
    unsigned char bytes[sizeof(in6_addr)];
    const bool is_address =
        inet_pton(AF_INET, name.c_str(), bytes) == 1 || inet_pton(AF_INET6, name.c_str(), bytes) == 1;
    bool good = !name.empty() && name.size() <= 253;
    for (const char c : name)
      good = good && (absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '-');
    if (!is_address && !good) {
      return absl::InvalidArgumentError(absl::StrCat(Quoted(name), " is neither a host's name nor an address"));
    }
    entries.push_back(absl::StrCat(is_address ? "IP:" : "DNS:", name));
  }
  return absl::StrJoin(entries, ",");
}

struct Role {
  const char* file;
  bool serves_grpc;
  std::vector<std::string> names;
};

std::vector<Role> Roles() {
  return {{"coordinator", true, {kCoordinatorName, kServerName, kMetricsName}},
          {"learner", true, {kLearnerName, kServerName, kMetricsName}},
          {"actor", true, {kActorName, kMetricsName}},
          {"client", false, {kClientName}},
          {"node", true, {kCoordinatorName, kLearnerName, kActorName, kClientName, kServerName, kMetricsName}}};
}

struct File {
  std::string name, text;
  bool secret = false;
};

absl::Status WriteNew(const std::string& path, const File& file) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, file.secret ? 0600 : 0644);
  if (fd < 0) return SystemError(errno, absl::StrCat("cannot write ", path));
  size_t written = 0;
  while (written < file.text.size()) {
    const ssize_t size = write(fd, file.text.data() + written, file.text.size() - written);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) {
      const absl::Status status = SystemError(errno, absl::StrCat("cannot write ", path));
      close(fd);
      return status;
    }
    written += static_cast<size_t>(size);
  }
  const bool synced = fsync(fd) == 0;
  return close(fd) == 0 && synced ? absl::OkStatus() : SystemError(errno, absl::StrCat("cannot write ", path));
}

absl::StatusOr<std::string> RandomToken() {
  unsigned char bytes[32];
  if (RAND_bytes(bytes, sizeof(bytes)) != 1) return Refused("random numbers");
  return absl::BytesToHexString(absl::string_view(reinterpret_cast<const char*>(bytes), sizeof(bytes)));
}

absl::StatusOr<std::vector<File>> MakeFiles(const CertificateFolderOptions& options) {
  const absl::Duration valid = absl::Hours(24) * options.days;
  const auto authority = CertificateAuthority::Make(valid);
  if (!authority.ok()) return authority.status();
  std::vector<File> files = {{"ca.crt", authority->own().certificate_pem}, {"ca.key", authority->own().key_pem, true}};
  for (const Role& role : Roles()) {
    CertificateAuthority::Request request;
    request.common_name = absl::StrCat("skein ", role.file);
    request.names = role.names;
    request.serves = role.serves_grpc;
    request.valid_until = valid;
    if (role.serves_grpc) {
      request.names.insert(request.names.end(), {"localhost", "127.0.0.1", "::1"});
      request.names.insert(request.names.end(), options.hosts.begin(), options.hosts.end());
    }
    const auto issued = authority->Issue(request);
    if (!issued.ok()) return issued.status();
    files.push_back({absl::StrCat(role.file, ".crt"), issued->certificate_pem});
    files.push_back({absl::StrCat(role.file, ".key"), issued->key_pem, true});
  }
  const auto token = RandomToken();
  if (!token.ok()) return token.status();
  files.push_back({"token", absl::StrCat(*token, "\n"), true});
  return files;
}

}  // namespace

absl::StatusOr<CertificateAuthority> CertificateAuthority::Make(absl::Duration valid_for) {
  const Key key(EVP_EC_gen("P-256"));
  const Certificate certificate(X509_new());
  X509* const ca = certificate.get();
  if (key == nullptr || ca == nullptr || !SetNameAndTime(ca, "Skein CA", -absl::Hours(1), valid_for) ||
      X509_set_issuer_name(ca, X509_get_subject_name(ca)) != 1 || X509_set_pubkey(ca, key.get()) != 1 ||
      !AddExtension(ca, ca, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") ||
      !AddExtension(ca, ca, NID_key_usage, "critical,keyCertSign,cRLSign") ||
      !AddExtension(ca, ca, NID_subject_key_identifier, "hash") || X509_sign(ca, key.get(), EVP_sha256()) == 0) {
    return Refused("a CA");
  }
  auto own = Written(key, certificate);
  if (!own.ok()) return own.status();
  return CertificateAuthority(*std::move(own));
}

absl::StatusOr<KeyAndCertificate> CertificateAuthority::Issue(const Request& request) const {
  const auto names = AlternativeNames(request.names);
  if (!names.ok()) return names.status();
  const Key ca_key(PEM_read_bio_PrivateKey(Reading(own_.key_pem).get(), nullptr, nullptr, nullptr));
  const Certificate ca(PEM_read_bio_X509(Reading(own_.certificate_pem).get(), nullptr, nullptr, nullptr));
  const Key key(EVP_EC_gen("P-256"));
  const Certificate certificate(X509_new());
  X509* const made = certificate.get();
  if (ca_key == nullptr || ca == nullptr || key == nullptr || made == nullptr ||
      !SetNameAndTime(made, request.common_name, request.valid_from, request.valid_until) ||
      X509_set_issuer_name(made, X509_get_subject_name(ca.get())) != 1 || X509_set_pubkey(made, key.get()) != 1 ||
      !AddExtension(made, ca.get(), NID_basic_constraints, "critical,CA:FALSE") ||
      !AddExtension(made, ca.get(), NID_key_usage, "critical,digitalSignature") ||
      !AddExtension(made, ca.get(), NID_ext_key_usage, request.serves ? "serverAuth,clientAuth" : "clientAuth") ||
      !AddExtension(made, ca.get(), NID_subject_key_identifier, "hash") ||
      !AddExtension(made, ca.get(), NID_authority_key_identifier, "keyid") ||
      (!names->empty() && !AddExtension(made, ca.get(), NID_subject_alt_name, *names)) ||
      X509_sign(made, ca_key.get(), EVP_sha256()) == 0) {
    return Refused("a certificate");
  }
  return Written(key, certificate);
}

absl::StatusOr<std::vector<std::string>> MakeCertificateFolder(const CertificateFolderOptions& options) {
  const auto files = MakeFiles(options);
  if (!files.ok()) return files.status();
  std::error_code error;
  std::filesystem::create_directories(options.folder, error);
  if (error) return SystemError(error.value(), absl::StrCat("cannot make the folder ", options.folder));
  for (const File& file : *files) {  // All or nothing: half of it would be of another CA.
    const std::string path = absl::StrCat(options.folder, "/", file.name);
    if (std::filesystem::exists(std::filesystem::symlink_status(path, error))) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, " is there already and is not overwritten; give another folder"));
    }
  }
  std::vector<std::string> names;
  for (const File& file : *files) {
    if (absl::Status s = WriteNew(absl::StrCat(options.folder, "/", file.name), file); !s.ok()) return s;
    names.push_back(file.name);
  }
  return names;
}

}  // namespace skein
