// SPDX-License-Identifier: Apache-2.0
#include "sweep/slot_messages.h"

#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "base/process/file.h"
#include "base/process/system_error.h"
#include "nlohmann/json.hpp"

namespace skein {
namespace {

using nlohmann::json;

constexpr size_t kMostBytes = size_t{1} << 20;

std::string Text(const json& object) { return object.dump(-1, ' ', false, json::error_handler_t::replace) + "\n"; }

json ShareJson(const ResourceShare& share) {
  json object = json::object();
  if (share.cpus) object["cpus"] = *share.cpus;
  if (share.gpus) object["gpus"] = *share.gpus;
  if (share.memory_bytes) object["memory_bytes"] = *share.memory_bytes;
  return object;
}

ResourceShare ShareOf(const json& object) {
  ResourceShare share;
  if (object.contains("cpus")) share.cpus = object["cpus"].get<double>();
  if (object.contains("gpus")) share.gpus = object["gpus"].get<double>();
  if (object.contains("memory_bytes")) share.memory_bytes = object["memory_bytes"].get<uint64_t>();
  share.setting = "resources";
  return share;
}

// What `read` makes of the JSON text. Nullopt: it is none, or lacks something, or something has another type.
template <typename Message, typename Read>
std::optional<Message> Parse(const std::string& text, Read read) {
  try {
    return read(json::parse(text));
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

}  // namespace

std::string TermsPath(const std::string& sweep_folder) { return sweep_folder + "/slots.json"; }

std::string WorkersFolder(const std::string& sweep_folder) { return sweep_folder + "/workers"; }

std::string OrdersFolder(const std::string& sweep_folder) { return sweep_folder + "/orders"; }

std::string WorkerPath(const std::string& sweep_folder, const std::string& slot) {
  return absl::StrCat(WorkersFolder(sweep_folder), "/", slot);
}

std::string OrderPath(const std::string& sweep_folder, const std::string& slot) {
  return absl::StrCat(OrdersFolder(sweep_folder), "/", slot);
}

absl::Status WriteTerms(const std::string& sweep_folder, const SlotTerms& terms) {
  return WriteFileAtomically(TermsPath(sweep_folder), Text({{"over", terms.over},
                                                            {"cores", terms.cores},
                                                            {"share", ShareJson(terms.share)},
                                                            {"asked_cpus", terms.asked.cpus},
                                                            {"asked_gpus", terms.asked.gpus},
                                                            {"asked_memory_bytes", terms.asked.memory_bytes},
                                                            {"device", terms.device}}));
}

absl::StatusOr<SlotTerms> ReadTerms(const std::string& sweep_folder) {
  const std::string path = TermsPath(sweep_folder);
  const auto text = ReadFile(path, kMostBytes);
  if (!text.ok()) return text.status();
  auto terms = Parse<SlotTerms>(*text, [](const json& object) {
    return SlotTerms{.over = object.at("over").get<bool>(),
                     .cores = object.at("cores").get<uint32_t>(),
                     .share = ShareOf(object.at("share")),
                     .asked = {object.at("asked_cpus").get<double>(), object.at("asked_gpus").get<double>(),
                               object.at("asked_memory_bytes").get<uint64_t>()},
                     .device = object.at("device").get<std::string>()};
  });
  if (!terms || terms->cores == 0) return absl::DataLossError(path + " is damaged; the sweep's next start writes it");
  return *std::move(terms);
}

std::string ToText(const SlotOrder& order) {
  return Text({{"id", order.id},
               {"name", order.name},
               {"cwd", order.cwd},
               {"folder", order.folder},
               {"arguments", order.arguments},
               {"log", order.log_path},
               {"stop", order.stop ? 1 : 0}});
}

std::string ToText(const SlotAnswer& answer) {
  return Text({{"id", answer.id}, {"code", answer.code}, {"why", answer.why}});
}

std::optional<SlotOrder> OrderOf(const std::string& text) {
  return Parse<SlotOrder>(text, [](const json& object) {
    return SlotOrder{.id = object.at("id").get<std::string>(),
                     .name = object.at("name").get<std::string>(),
                     .cwd = object.at("cwd").get<std::string>(),
                     .folder = object.at("folder").get<std::string>(),
                     .arguments = object.at("arguments").get<std::vector<std::string>>(),
                     .log_path = object.at("log").get<std::string>(),
                     .stop = object.at("stop").get<int>() != 0};
  });
}

std::optional<SlotAnswer> AnswerOf(const std::string& text) {
  return Parse<SlotAnswer>(text, [](const json& object) {
    return SlotAnswer{object.at("id").get<std::string>(), object.at("code").get<int>(),
                      object.at("why").get<std::string>()};
  });
}

absl::Status Rewrite(int fd, const std::string& path, const std::string& text) {
  errno = 0;
  const auto size = static_cast<ssize_t>(text.size());
  const bool written = pwrite(fd, text.data(), text.size(), 0) == size && ftruncate(fd, size) == 0 && fsync(fd) == 0;
  // A part of it alone has been written where a disk is full.
  return written ? absl::OkStatus() : SystemError(errno == 0 ? ENOSPC : errno, absl::StrCat("cannot write ", path));
}

std::string ReadAll(int fd) {
  std::string text;
  char part[4096];
  while (text.size() < kMostBytes) {
    const ssize_t got = pread(fd, part, sizeof(part), static_cast<off_t>(text.size()));
    if (got <= 0) break;
    text.append(part, static_cast<size_t>(got));
  }
  return text;
}

}  // namespace skein
