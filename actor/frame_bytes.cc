// SPDX-License-Identifier: Apache-2.0
#include "actor/frame_bytes.h"

#include <memory>

#include "grpcpp/support/slice.h"

namespace skein {

grpc::ByteBuffer FrameBytes(const Fragment& fragment) {
  using Owner = std::shared_ptr<const std::string>;
  const std::string& block = *fragment.block;
  const grpc::Slice slices[] = {grpc::Slice(FrameHead(fragment.header)),
                                grpc::Slice(
                                    const_cast<char*>(block.data()), block.size(),
                                    [](void* owner) { delete static_cast<Owner*>(owner); }, new Owner(fragment.block))};
  return {slices, block.empty() ? size_t{1} : size_t{2}};
}

grpc::ByteBuffer FrameBytes(const v1::CollectRequest& request) {
  const grpc::Slice slice(FrameHead(request));
  return {&slice, 1};
}

}  // namespace skein
