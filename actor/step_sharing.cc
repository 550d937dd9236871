// SPDX-License-Identifier: Apache-2.0
#include "actor/step_sharing.h"

#include <algorithm>

namespace skein {

StepSharing::Offer::Offer(StepSharing* sharing, VectorEnv* env)
    : sharing_(sharing), env_(env), places_(std::max(env->shareable() - 1, 0)) {
  {
    absl::MutexLock lock(&sharing_->mu_);
    sharing_->offers_.push_back(this);
    sharing_->places_ += places_;
  }
  if (env->shareable() > 1) sharing_->on_offer_();
}

StepSharing::Offer::~Offer() {
  absl::MutexLock lock(&sharing_->mu_);
  sharing_->offers_.remove(this);
  sharing_->places_ -= places_;
  withdrawn_ = true;
  env_->WakeHelpers();
  const auto alone = [this] { return helpers_ == 0; };
  sharing_->mu_.Await(absl::Condition(&alone));
}

std::optional<absl::Duration> StepSharing::Help(EnvActivity* activity, const std::function<bool()>& leave) {
  absl::Duration stepped;
  {
    absl::MutexLock lock(&mu_);
    Offer* least = nullptr;
    for (Offer* offer : offers_) {
      if (offer->places_ > 0 && (least == nullptr || offer->helpers_ < least->helpers_)) least = offer;
    }
    if (least == nullptr) return std::nullopt;
    Offer& offer = *least;
    const auto come = [&](int helpers) {
      offer.helpers_ += helpers;
      offer.places_ -= helpers;
      if (!offer.withdrawn_) places_ -= helpers;
    };
    come(1);
    mu_.Unlock();
    stepped = offer.env_->Help(activity, [&] {
      if (leave()) return true;
      absl::MutexLock inner(&mu_);
      return offer.withdrawn_;
    });
    mu_.Lock();
    come(-1);
  }
  if (wants_help()) on_offer_();
  return stepped;
}

}  // namespace skein
