// SPDX-License-Identifier: Apache-2.0
// export-reference FOLDER: writes checkpoints of all reference policies to FOLDER/NAME and beside them what they do, as
// raw little-endian numbers, for tests/python/export_test.py.
#include <fstream>
#include <iostream>

#include "tests/export/reference_policy.h"

namespace {

template <typename Value>
void Write(const std::string& path, const std::vector<Value>& values) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(values.data()), static_cast<std::streamsize>(values.size() * sizeof(Value)));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 64;
  for (const std::string& name : skein::ReferenceNames()) {
    const skein::ReferencePolicy reference = skein::MakeReference(name, argv[1]);
    const std::string folder = reference.checkpoint + "/";
    Write(folder + "observations", reference.observations);
    Write(folder + "resets", reference.resets);
    Write(folder + "heads", reference.heads);
    Write(folder + "actions", reference.actions);
    Write(folder + "noise", reference.noise);
    Write(folder + "samples", reference.samples);
    std::cout << name << std::endl;
  }
}
