"""Lets lerobot 0.4 use the SO-101 environment of PyPI (lerobot-env-so101), which is made for lerobot 0.6: it imports two names
from where only 0.6 has them, and tells a success as info["succeed"] where lerobot-eval 0.4 reads info["is_success"] of the last
step. Shadows and multisampling are turned off: on a CPU they are most of the time of a picture.
Given with --env.discover_packages_path=so101_plugin and this directory in PYTHONPATH."""
import lerobot.configs
from lerobot.configs import types

lerobot.configs.FeatureType, lerobot.configs.PolicyFeature = types.FeatureType, types.PolicyFeature
import lerobot_env_so101  # noqa: E402 registers the environment
from lerobot_env_so101 import pick_env  # noqa: E402


class _Environment(pick_env.SO101PickCubeGymEnv):
    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self._model.vis.quality.shadowsize = 0
        self._model.vis.quality.offsamples = 0

    def step(self, action):
        *rest, info = super().step(action)
        return (*rest, info | {"is_success": bool(info["succeed"])})


pick_env.SO101PickCubeGymEnv = lerobot_env_so101.SO101PickCubeGymEnv = _Environment
