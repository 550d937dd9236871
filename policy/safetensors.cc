// SPDX-License-Identifier: Apache-2.0
#include "policy/safetensors.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "base/number/tensor_packing.h"
#include "policy/tensor_check.h"

namespace skein {
namespace {

using nlohmann::json;

constexpr uint64_t kMaxHeaderBytes = 100'000'000;
constexpr char kMetadataKey[] = "__metadata__";

struct TypeNameEntry {
  const char* name;
  v1::DataType dtype;
};
constexpr TypeNameEntry kTypeNames[] = {{"F32", v1::DATA_TYPE_FLOAT32},
                                        {"F64", v1::DATA_TYPE_FLOAT64},
                                        {"I64", v1::DATA_TYPE_INT64},
                                        {"I32", v1::DATA_TYPE_INT32},
                                        {"U8", v1::DATA_TYPE_UINT8}};

struct Entry {
  std::string name;
  v1::DataType dtype;
  std::vector<int64_t> shape;
  uint64_t begin, end;  // Bytes within the buffer that follows the header.
};

std::string JsonString(const std::string& text) {
  return json(text).dump(-1, ' ', false, json::error_handler_t::replace);
}

absl::Status Corrupt(const std::string& what) { return absl::DataLossError(absl::StrCat("safetensors: ", what)); }

// A list of unsigned integers under `key`, or nullopt.
std::optional<std::vector<uint64_t>> UnsignedList(const json& object, const char* key) {
  const auto list = object.find(key);
  if (list == object.end() || !list->is_array()) return std::nullopt;
  std::vector<uint64_t> values;
  for (const json& value : *list) {
    if (!value.is_number_unsigned()) return std::nullopt;
    values.push_back(value.get<uint64_t>());
  }
  return values;
}

absl::StatusOr<Entry> ParseEntry(const std::string& name, const json& info) {
  const std::string where = absl::StrCat("tensor ", JsonString(name), ": ");
  if (!info.is_object()) return Corrupt(absl::StrCat(where, "want a JSON object"));

  Entry entry;
  entry.name = name;
  const auto dtype = info.find("dtype");
  if (dtype == info.end() || !dtype->is_string()) return Corrupt(absl::StrCat(where, "want a string dtype"));
  const std::string& type_name = dtype->get_ref<const std::string&>();
  const auto* type = std::find_if(std::begin(kTypeNames), std::end(kTypeNames),
                                  [&](const TypeNameEntry& known) { return type_name == known.name; });
  if (type == std::end(kTypeNames)) {
    return Corrupt(absl::StrCat(where, "got dtype ", JsonString(type_name), ", want F32, F64, I64, I32 or U8"));
  }
  entry.dtype = type->dtype;

  const auto shape = UnsignedList(info, "shape");
  if (!shape) return Corrupt(absl::StrCat(where, "want a shape of integers >= 0"));
  for (const uint64_t extent : *shape) {
    // Beyond int64 this wraps to a negative extent, which ByteSize refuses.
    entry.shape.push_back(static_cast<int64_t>(extent));
  }
  const std::optional<int64_t> bytes = ByteSize(entry.shape, ElementSize(entry.dtype));
  if (!bytes) return Corrupt(absl::StrCat(where, "shape is too large"));

  const auto offsets = UnsignedList(info, "data_offsets");
  if (!offsets || offsets->size() != 2) return Corrupt(absl::StrCat(where, "want two data_offsets >= 0"));
  entry.begin = (*offsets)[0];
  entry.end = (*offsets)[1];
  if (entry.begin > entry.end || entry.end - entry.begin != static_cast<uint64_t>(*bytes)) {
    return Corrupt(absl::StrCat(where, "data_offsets [", entry.begin, ", ", entry.end, "], want ", *bytes, " bytes"));
  }
  return entry;
}

absl::Status ParseMetadata(const json& object, std::map<std::string, std::string>* metadata) {
  if (!object.is_object()) return Corrupt("__metadata__: want a JSON object");
  for (const auto& [key, value] : object.items()) {
    if (!value.is_string()) return Corrupt(absl::StrCat("__metadata__: ", JsonString(key), " is not a string"));
    if (metadata != nullptr) (*metadata)[key] = value.get<std::string>();
  }
  return absl::OkStatus();
}

// Sorts the entries by offset. They must follow one another and fill the buffer.
absl::Status CheckTiling(uint64_t buffer_size, std::vector<Entry>* entries) {
  std::sort(entries->begin(), entries->end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  uint64_t position = 0;
  for (const Entry& entry : *entries) {
    if (entry.begin != position) {
      return Corrupt(absl::StrCat("tensor ", JsonString(entry.name), ": begins at byte ", entry.begin, ", which ",
                                  entry.begin < position ? "overlaps the tensor before" : "leaves a gap", ", want ",
                                  position));
    }
    position = entry.end;
  }
  if (position != buffer_size) {
    return Corrupt(absl::StrCat("tensors end at byte ", position, ", but there are ", buffer_size, " bytes of data"));
  }
  return absl::OkStatus();
}

}  // namespace

std::string EncodeSafetensors(absl::Span<const v1::Tensor> tensors,
                              const std::map<std::string, std::string>& metadata) {
  std::string header = "{";
  const char* comma = "";
  if (!metadata.empty()) {
    absl::StrAppend(&header, "\"", kMetadataKey, "\":{");
    for (const auto& [key, value] : metadata) {
      absl::StrAppend(&header, comma, JsonString(key), ":", JsonString(value));
      comma = ",";
    }
    header += "}";
  }
  std::string data;
  for (const v1::Tensor& tensor : tensors) {
    const auto* type = std::find_if(std::begin(kTypeNames), std::end(kTypeNames),
                                    [&](const TypeNameEntry& known) { return tensor.dtype() == known.dtype; });
    if (type == std::end(kTypeNames)) std::abort();  // Required of the caller.
    const size_t begin = data.size();
    data += tensor.data();
    const std::vector<int64_t> shape(tensor.shape().begin(), tensor.shape().end());
    absl::StrAppend(&header, comma, JsonString(tensor.name()), ":{\"dtype\":\"", type->name,
                    "\",\"shape\":", json(shape).dump(), ",\"data_offsets\":[", begin, ",", data.size(), "]}");
    comma = ",";
  }
  header += "}";
  header.append((8 - header.size() % 8) % 8, ' ');

  const uint64_t header_size = header.size();
  std::string file(sizeof(header_size), '\0');
  std::memcpy(file.data(), &header_size, sizeof(header_size));
  return absl::StrCat(file, header, data);
}

absl::StatusOr<std::vector<v1::Tensor>> DecodeSafetensors(absl::string_view bytes,
                                                          std::map<std::string, std::string>* metadata) {
  uint64_t header_size;
  if (bytes.size() < sizeof(header_size)) {
    return Corrupt(absl::StrCat("got ", bytes.size(), " bytes, want at least ", sizeof(header_size)));
  }
  std::memcpy(&header_size, bytes.data(), sizeof(header_size));
  bytes.remove_prefix(sizeof(header_size));
  if (header_size > kMaxHeaderBytes || header_size > bytes.size()) {
    return Corrupt(absl::StrCat("header length ", header_size, ", want at most ", kMaxHeaderBytes, " and the ",
                                bytes.size(), " bytes that follow"));
  }
  const absl::string_view header_text = bytes.substr(0, header_size);
  const absl::string_view buffer = bytes.substr(header_size);

  const json header = json::parse(header_text.begin(), header_text.end(), nullptr, /*allow_exceptions=*/false);
  if (!header.is_object() || header_text.front() != '{') return Corrupt("header is not a JSON object");
  if (metadata != nullptr) metadata->clear();
  std::vector<Entry> entries;
  for (const auto& [name, info] : header.items()) {
    if (name == kMetadataKey) {
      if (absl::Status status = ParseMetadata(info, metadata); !status.ok()) return status;
      continue;
    }
    absl::StatusOr<Entry> entry = ParseEntry(name, info);
    if (!entry.ok()) return entry.status();
    entries.push_back(*std::move(entry));
  }
  if (absl::Status status = CheckTiling(buffer.size(), &entries); !status.ok()) return status;

  std::vector<v1::Tensor> tensors;
  for (Entry& entry : entries) {
    v1::Tensor& tensor = tensors.emplace_back();
    tensor.set_name(std::move(entry.name));
    tensor.set_dtype(entry.dtype);
    tensor.mutable_shape()->Assign(entry.shape.begin(), entry.shape.end());
    tensor.set_data(buffer.data() + entry.begin, entry.end - entry.begin);
  }
  return tensors;
}

}  // namespace skein
