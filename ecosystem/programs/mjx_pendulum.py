"""mujoco-mjx: a double pendulum on a cart over a floor, a batch of them, and the gradient through the dynamics."""

import jax
import jax.numpy as jnp
import mujoco
from mujoco import mjx

PACKAGES = (
    "mujoco-mjx",
    "mujoco",
    "etils",
    "trimesh",
    "importlib_resources",
    "fsspec",
    "zipp",
    "mujoco-core",
    "mujoco-studio",
    "glfw",
    "pyopengl",
)
STEPS = 20
MODEL = """
<mujoco>
  <option timestep="0.005" iterations="4" ls_iterations="6"/>
  <worldbody>
    <geom type="plane" size="5 5 0.1" pos="0 0 -0.5"/>
    <body>
      <joint name="slide" type="slide" axis="1 0 0" damping="0.1"/>
      <geom type="capsule" size="0.05 0.1" mass="1"/>
      <body pos="0 0 0.1">
        <joint type="hinge" axis="0 1 0"/>
        <geom type="capsule" fromto="0 0 0 0 0 0.4" size="0.03" mass="0.3"/>
        <body pos="0 0 0.4">
          <joint type="hinge" axis="0 1 0"/>
          <geom type="capsule" fromto="0 0 0 0 0 0.3" size="0.03" mass="0.2"/>
        </body>
      </body>
    </body>
  </worldbody>
  <actuator><motor joint="slide" gear="10"/></actuator>
</mujoco>
"""


def setup():
    model = mjx.put_model(mujoco.MjModel.from_xml_string(MODEL))
    start = mjx.make_data(model)
    angles = 0.1 * jax.random.normal(jax.random.key(0), (8, model.nq))
    states = jax.vmap(lambda q: start.replace(qpos=q))(angles)

    @jax.jit
    def step(states):
        def advance(state):
            return mjx.step(model, state.replace(ctrl=-0.3 * state.qpos[:1]))

        states = jax.vmap(advance)(states)
        return states, jnp.abs(states.qpos).mean() + 0.01 * jnp.abs(states.qvel).mean()

    return step, states
