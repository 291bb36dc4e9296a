"""Lets lerobot 0.4 use the SO-101 environment of PyPI (lerobot-env-so101), which imports two names from a place that only
lerobot 0.6 has. Given with --env.discover_packages_path=so101_plugin and this directory in PYTHONPATH."""
import lerobot.configs
from lerobot.configs import types

lerobot.configs.FeatureType, lerobot.configs.PolicyFeature = types.FeatureType, types.PolicyFeature
import lerobot_env_so101  # noqa: E402,F401 registers the environment
