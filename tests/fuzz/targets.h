// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

// The decoders of everything that comes from outside, each as one function of bytes.
//   corpus, libFuzzer or mutations -> Fuzz...() -> the decoder -> accepted or refused
// True: the decoder accepted the bytes. What must hold of whatever is accepted is checked there and ends the process.
namespace skein::fuzz {

// First byte: which of Shapes() the run has. Second: bytes of one received piece, 0 = all in one. Then a frame.
//   ReadFrame -> CheckFragment -> StagedColumns::Place
bool FuzzTrajectory(absl::string_view input);
// First byte: size of a header; then that header, a FragmentHeader, and a block: the frame that FrameBytes() sends of
// them is what the learner reads.
bool FuzzFrame(absl::string_view input);
// First byte: element type; its upper half: 0 = the rest is a zstd frame of as many elements as the second byte says,
// else it is elements that must survive Compress() and Decompress().
bool FuzzTensorPacking(absl::string_view input);
// YAML of a run, or assignments on lines that begin with "--set ".   MergeYaml, ApplyOverride -> ValidateRunConfig
bool FuzzConfig(absl::string_view input);
// First byte: odd = one log entry (store/record.proto) that is framed right, even = a coordinator's whole log.
bool FuzzStateLog(absl::string_view input);

// First byte: odd = the digest is made right, so that what comes after it is reached. Then a PolicySnapshot.
bool FuzzPolicy(absl::string_view input);
// A safetensors file.
bool FuzzSafetensors(absl::string_view input);
// A checkpoint's manifest.json, beside intact tensor files and a DONE that fits.
bool FuzzManifest(absl::string_view input);

// What a server or a library of environments of one's own says. First byte, its lower three bits:
//   0  text of a spec (env.external.spec)            ParseSpecText
//   1  a ServerMessage that answers Hello            TakeWelcome -> ReadSpec
//   2  the numbers and arrays of a library's spec    ReadPluginSpec
//   3  shared memory from the observations on        ExternalBatch
//   4  a ServerMessage that answers Reset; the upper bits: environments that were asked    TakeReply
//   5  a ServerMessage that answers Step; also 7                                           TakeReply -> ExternalBatch
//   6  a ClientMessage that asks for a Step or Reset                                       TakeRequest
bool FuzzWorld(absl::string_view input);

struct Target {
  const char* name;  // Of its folder under tests/fuzz/corpus.
  bool (*run)(absl::string_view input);
};
inline constexpr Target kTargets[] = {
    {"trajectory", FuzzTrajectory}, {"frame", FuzzFrame},        {"tensor_packing", FuzzTensorPacking},
    {"config", FuzzConfig},         {"policy", FuzzPolicy},      {"safetensors", FuzzSafetensors},
    {"manifest", FuzzManifest},     {"state_log", FuzzStateLog}, {"world", FuzzWorld},
};

// Protobuf writes a line for each text that is not UTF-8; call this once.
void SilenceProtobuf();
// Ends the process, as a sanitizer does. For what a target finds wrong.
void Check(bool holds, const char* what);

}  // namespace skein::fuzz
