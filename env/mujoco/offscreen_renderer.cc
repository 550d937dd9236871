// SPDX-License-Identifier: Apache-2.0
#include "env/mujoco/offscreen_renderer.h"

#include <mujoco/mujoco.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "env/mujoco/model.h"
#include "env/mujoco/mujoco_env.h"
#include "env/mujoco/offscreen_context.h"
#include "env/mujoco/task.h"

namespace skein {
namespace {

constexpr int kSceneGeoms = 200;
constexpr int kLinesAhead = 14;  // Metres.
constexpr float kGround[4] = {0.86f, 0.88f, 0.91f, 1}, kLine[4] = {0.70f, 0.74f, 0.79f, 1};
constexpr float kFifthLine[4] = {0.42f, 0.48f, 0.56f, 1};

// Limbs have the colours of their model. Returns the height of the ground, m.
mjtNum PrepareScene(mjModel* model) {
  mjtNum ground = 0;
  for (int geom = 0; geom < model->ngeom; ++geom) {
    if (model->geom_type[geom] != mjGEOM_PLANE) continue;
    std::copy_n(kGround, 4, model->geom_rgba + 4 * geom);
    std::fill_n(model->geom_size + 3 * geom, 2, mjtNum{0});  // A plane without a size is infinite.
    ground = model->geom_pos[3 * geom + 2];
  }
  auto& light = model->vis.headlight;
  std::fill_n(light.ambient, 3, 0.45f);
  std::fill_n(light.diffuse, 3, 0.55f);
  std::fill_n(light.specular, 3, 0.1f);
  return ground;
}

}  // namespace

std::string OffscreenCaption(bool runs, double seconds, double place, double speed) {
  return runs ? absl::StrFormat("%.2f s   %.1f m   %.1f m/s", seconds, place, speed)
              : absl::StrFormat("%.2f s", seconds);
}

struct OffscreenRenderer::Impl {
  Impl(std::unique_ptr<OffscreenContext> gl_context, std::shared_ptr<const MujocoTask> shown, const SharedModel& shared,
       int picture_width, int picture_height)
      : gl(std::move(gl_context)),
        task(std::move(shown)),
        width(picture_width),
        height(picture_height),
        model(mj_copyModel(nullptr, shared.get())),
        data(mj_makeData(model)),
        body(std::max(1, mj_name2id(model, mjOBJ_BODY, task->facts().camera.track_body.c_str()))) {
    ground = PrepareScene(model);
    model->vis.global.offwidth = width;
    model->vis.global.offheight = height;
    mjv_defaultOption(&option);
    mjv_defaultCamera(&camera);
    camera.distance = task->facts().camera.distance;
    camera.elevation = task->facts().camera.elevation;
    camera.azimuth = 90;
    camera.lookat[2] = task->facts().camera.height;
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

  // Lines across the track, which make the movement visible.
  void AddLine(int metre) {
    if (scene.ngeom >= scene.maxgeom) return;
    const bool fifth = metre % 5 == 0;
    const mjtNum size[3] = {fifth ? 0.03 : 0.015, 30, 0.001}, position[3] = {mjtNum(metre), 0, ground + 0.001};
    mjv_initGeom(&scene.geoms[scene.ngeom++], mjGEOM_BOX, size, position, nullptr, fifth ? kFifthLine : kLine);
  }

  const std::unique_ptr<OffscreenContext> gl;
  const std::shared_ptr<const MujocoTask> task;
  const int width, height;
  mjModel* const model;  // A copy with an infinite ground.
  mjData* const data;
  const int body;     // That the camera follows.
  mjtNum ground = 0;  // m
  mjvOption option;
  mjvCamera camera;
  mjvScene scene;
  mjrContext context;
};

OffscreenRenderer::OffscreenRenderer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
OffscreenRenderer::~OffscreenRenderer() = default;

absl::StatusOr<std::unique_ptr<OffscreenRenderer>> OffscreenRenderer::Make(const std::string& env_id, int width,
                                                                           int height, const MujocoOptions& options) {
  const absl::StatusOr<std::shared_ptr<const MujocoTask>> task = FindMujocoTask(env_id, options);
  if (!task.ok()) return task.status();
  const absl::StatusOr<SharedModel> model = ModelOf(**task, ModelForm::kStepped);
  if (!model.ok()) return model.status();
  auto gl = MakeOffscreenContext();
  if (!gl.ok()) return gl.status();
  auto impl = std::make_unique<Impl>(*std::move(gl), *task, *model, width, height);
  if (impl->context.currentBuffer != mjFB_OFFSCREEN) {
    return absl::UnavailableError(absl::StrCat("drawing ", env_id, ": OpenGL has no buffer that is not on a screen"));
  }
  return std::unique_ptr<OffscreenRenderer>(new OffscreenRenderer(std::move(impl)));
}

int OffscreenRenderer::frames_per_second() const {
  return static_cast<int>(std::lround(1 / (impl_->task->facts().frame_skip * impl_->model->opt.timestep)));
}

void OffscreenRenderer::Render(const double* state, uint8_t* rgb) {
  Impl& impl = *impl_;
  impl.data->time = state[0];
  std::copy_n(state + 1, impl.model->nq, impl.data->qpos);
  std::copy_n(state + 1 + impl.model->nq, impl.model->nv, impl.data->qvel);
  mj_forward(impl.model, impl.data);
  const mjtNum* const place = impl.data->xpos + 3 * impl.body;
  mjtNum velocity[6];  // Of rotation, then of the body in the world's directions.
  mj_objectVelocity(impl.model, impl.data, mjOBJ_BODY, impl.body, velocity, 0);
  std::copy_n(place, 2, impl.camera.lookat);
  mjv_updateScene(impl.model, impl.data, &impl.option, nullptr, &impl.camera, mjCAT_ALL, &impl.scene);
  const int metre = static_cast<int>(std::floor(place[0]));
  const bool runs = impl.task->facts().info.x_velocity;  // The others stay where they are.
  for (int line = metre - kLinesAhead; runs && line <= metre + kLinesAhead; ++line) impl.AddLine(line);
  const mjrRect view = {0, 0, impl.width, impl.height};
  mjr_render(view, &impl.scene, &impl.context);
  const std::string caption = OffscreenCaption(runs, state[0], place[0], velocity[3]);
  mjr_overlay(mjFONT_NORMAL, mjGRID_BOTTOMLEFT, view, caption.c_str(), nullptr, &impl.context);
  mjr_readPixels(rgb, nullptr, view, &impl.context);
  const size_t row = size_t(impl.width) * 3;
  for (int y = 0; y < impl.height / 2; ++y) {  // OpenGL begins below.
    std::swap_ranges(rgb + y * row, rgb + (y + 1) * row, rgb + (impl.height - 1 - y) * row);
  }
}

}  // namespace skein
