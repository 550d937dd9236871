// SPDX-License-Identifier: Apache-2.0
#include "env/mujoco/offscreen_renderer.h"

#include <mujoco/mujoco.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "absl/status/status.h"
#include "env/mujoco/half_cheetah_model.h"
#include "env/mujoco/offscreen_context.h"

namespace skein {
namespace {

constexpr int kSceneGeoms = 200;
constexpr int kLinesAhead = 14;  // Metres.
constexpr float kGround[4] = {0.86f, 0.88f, 0.91f, 1}, kLine[4] = {0.70f, 0.74f, 0.79f, 1};
constexpr float kFifthLine[4] = {0.42f, 0.48f, 0.56f, 1}, kTrunk[4] = {0.93f, 0.56f, 0.16f, 1};
constexpr float kBackLeg[4] = {0.80f, 0.38f, 0.16f, 1}, kFrontLeg[4] = {0.98f, 0.70f, 0.30f, 1};

void Paint(mjModel* model, int geom, const float* rgba) { std::copy_n(rgba, 4, model->geom_rgba + 4 * geom); }

// Of bodies: 0 is the world, then trunk, three of the back leg, three of the front leg.
void PaintHalfCheetah(mjModel* model) {
  for (int geom = 0; geom < model->ngeom; ++geom) {
    const int body = model->geom_bodyid[geom];
    Paint(model, geom, body == 0 ? kGround : body == 1 ? kTrunk : body <= 4 ? kBackLeg : kFrontLeg);
    // A plane without a size goes on for ever.
    if (body == 0) std::fill_n(model->geom_size + 3 * geom, 2, mjtNum{0});
  }
  auto& light = model->vis.headlight;
  std::fill_n(light.ambient, 3, 0.45f);
  std::fill_n(light.diffuse, 3, 0.55f);
  std::fill_n(light.specular, 3, 0.1f);
}

}  // namespace

struct OffscreenRenderer::Impl {
  Impl(std::unique_ptr<OffscreenContext> gl_context, const SharedModel& shared, int picture_width, int picture_height)
      : gl(std::move(gl_context)),
        width(picture_width),
        height(picture_height),
        model(mj_copyModel(nullptr, shared.get())),
        data(mj_makeData(model)) {
    PaintHalfCheetah(model);
    model->vis.global.offwidth = width;
    model->vis.global.offheight = height;
    mjv_defaultOption(&option);
    mjv_defaultCamera(&camera);
    camera.distance = 4;
    camera.elevation = -24;  // So low that the horizon, and what is behind it, is not seen.
    camera.azimuth = 90;
    mjv_defaultScene(&scene);
    mjv_makeScene(model, &scene, kSceneGeoms);
    mjr_defaultContext(&context);
    mjr_makeContext(model, &context, mjFONTSCALE_100);
    mjr_setBuffer(mjFB_OFFSCREEN, &context);
  }
  ~Impl() {
    mjr_freeContext(&context);
    mjv_freeScene(&scene);
    mj_deleteData(data);
    mj_deleteModel(model);
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  // Lines across the way, without which nobody would see that it runs.
  void AddLine(int metre) {
    if (scene.ngeom >= scene.maxgeom) return;
    const bool fifth = metre % 5 == 0;
    const mjtNum size[3] = {fifth ? 0.03 : 0.015, 30, 0.001}, position[3] = {mjtNum(metre), 0, 0.001};
    mjv_initGeom(&scene.geoms[scene.ngeom++], mjGEOM_BOX, size, position, nullptr, fifth ? kFifthLine : kLine);
  }

  const std::unique_ptr<OffscreenContext> gl;
  const int width, height;
  mjModel* const model;  // A copy with colours.
  mjData* const data;
  mjvOption option;
  mjvCamera camera;
  mjvScene scene;
  mjrContext context;
};

OffscreenRenderer::OffscreenRenderer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
OffscreenRenderer::~OffscreenRenderer() = default;

absl::StatusOr<std::unique_ptr<OffscreenRenderer>> OffscreenRenderer::MakeForHalfCheetah(int width, int height) {
  const absl::StatusOr<SharedModel>& model = HalfCheetahModel();
  if (!model.ok()) return model.status();
  auto gl = MakeOffscreenContext();
  if (!gl.ok()) return gl.status();
  auto impl = std::make_unique<Impl>(*std::move(gl), *model, width, height);
  if (impl->context.currentBuffer != mjFB_OFFSCREEN) {
    return absl::UnavailableError("drawing HalfCheetah-v5: OpenGL has no buffer that is not on a screen");
  }
  return std::unique_ptr<OffscreenRenderer>(new OffscreenRenderer(std::move(impl)));
}

void OffscreenRenderer::Render(const double* state, uint8_t* rgb) {
  Impl& impl = *impl_;
  impl.data->time = state[0];
  std::copy_n(state + 1, impl.model->nq, impl.data->qpos);
  std::copy_n(state + 1 + impl.model->nq, impl.model->nv, impl.data->qvel);
  mj_forward(impl.model, impl.data);
  const double x = state[1];
  impl.camera.lookat[0] = x;
  impl.camera.lookat[2] = 0.5;
  mjv_updateScene(impl.model, impl.data, &impl.option, nullptr, &impl.camera, mjCAT_ALL, &impl.scene);
  const int metre = static_cast<int>(std::floor(x));
  for (int line = metre - kLinesAhead; line <= metre + kLinesAhead; ++line) impl.AddLine(line);
  const mjrRect view = {0, 0, impl.width, impl.height};
  mjr_render(view, &impl.scene, &impl.context);
  char text[80];
  std::snprintf(text, sizeof(text), "%.2f s   %.1f m   %.1f m/s", state[0], x, state[1 + impl.model->nq]);
  mjr_overlay(mjFONT_NORMAL, mjGRID_BOTTOMLEFT, view, text, nullptr, &impl.context);
  mjr_readPixels(rgb, nullptr, view, &impl.context);
  const size_t row = size_t(impl.width) * 3;
  for (int y = 0; y < impl.height / 2; ++y) {  // OpenGL begins below.
    std::swap_ranges(rgb + y * row, rgb + (y + 1) * row, rgb + (impl.height - 1 - y) * row);
  }
}

}  // namespace skein
