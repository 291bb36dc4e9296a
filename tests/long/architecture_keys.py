#!/usr/bin/env python3
"""Writes down which tensors real LeRobot and transformers classes have: name and shape of every entry of their state_dict, built
from a configuration on the meta device (no values, no downloads). The lists stand in tests/model/architectures/ and are what
knowledge/tables/architectures.yaml is tested against.

    VENV/bin/python tests/long/architecture_keys.py OUT [NAME…]

Needs lerobot, transformers and diffusers. SmolVLA takes its language model's configuration from the hub; here it is given
(SMOLVLM2_500M, the published numbers), so that nothing is fetched.
"""
import dataclasses, enum, importlib.metadata, json, pathlib, sys

import torch

OUT = pathlib.Path(sys.argv[1])
ONLY = set(sys.argv[2:])
VERSIONS = {}
for package in ("lerobot", "transformers", "torch", "diffusers"):
    try:
        VERSIONS[package] = importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        pass

SMOLVLM2_500M = {
    "image_token_id": 49190, "scale_factor": 4, "tie_word_embeddings": False,
    "text_config": {"model_type": "llama", "hidden_size": 960, "intermediate_size": 2560, "num_attention_heads": 15, "num_key_value_heads": 5, "head_dim": 64, "num_hidden_layers": 32,
                    "vocab_size": 49280, "max_position_embeddings": 8192, "rope_theta": 100000, "tie_word_embeddings": False, "pad_token_id": 2},
    "vision_config": {"model_type": "smolvlm_vision", "hidden_size": 768, "intermediate_size": 3072, "num_attention_heads": 12, "num_hidden_layers": 12, "image_size": 512, "patch_size": 16},
}


def write(name, config, model):
    tensors = {k: list(v.shape) for k, v in model.state_dict().items()}
    tied = sorted(set(tensors) - {k for k, _ in model.named_parameters()} - {k for k, _ in model.named_buffers()})
    out = OUT / f"{name}.json"
    lines = ",\n".join(f"    {json.dumps(k)}: {json.dumps(v)}" for k, v in tensors.items())
    out.write_text('{\n  "versions": %s,\n  "config": %s,\n  "tied": %s,\n  "tensors": {\n%s\n  }\n}\n' % (json.dumps(VERSIONS), json.dumps(config), json.dumps(tied), lines))
    print(f"{name}: {len(tensors)} tensors, {sum(torch.Size(s).numel() for s in tensors.values())} elements", flush=True)


def plain(value):
    if dataclasses.is_dataclass(value):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value.value if isinstance(value, enum.Enum) else value


def lerobot_policy(name, kind, state=6, action=6, cameras=(("top", (3, 480, 640)),), environment=0, **options):
    if ONLY and name not in ONLY:
        return
    from lerobot.configs.types import FeatureType, PolicyFeature
    from lerobot.policies.factory import get_policy_class, make_policy_config
    inputs = {f"observation.images.{camera}": PolicyFeature(FeatureType.VISUAL, shape) for camera, shape in cameras}
    if state:
        inputs["observation.state"] = PolicyFeature(FeatureType.STATE, (state,))
    if environment:
        inputs["observation.environment_state"] = PolicyFeature(FeatureType.ENV, (environment,))
    config = make_policy_config(kind, input_features=inputs, output_features={"action": PolicyFeature(FeatureType.ACTION, (action,))}, device="cpu", **options)
    policy_class = get_policy_class(kind)
    if hasattr(config, "validate_features"):
        config.validate_features()
    written = plain(config) | {"type": kind}
    config.device = "meta"  # Pi0 moves itself there
    with torch.device("meta"):
        policy = policy_class(config)
    write(name, written, policy)


def without_hub():
    """SmolVLA asks the hub for its language model's configuration and tokenizer."""
    import lerobot.policies.smolvla.smolvlm_with_expert as module
    from transformers import SmolVLMConfig
    class Given:
        @staticmethod
        def from_pretrained(*_, **__):
            return SmolVLMConfig(**SMOLVLM2_500M)
    class Nothing:
        @staticmethod
        def from_pretrained(*_, **__):
            from types import SimpleNamespace
            return SimpleNamespace(tokenizer=SimpleNamespace(fake_image_token_id=1, global_image_token_id=2))
    module.AutoConfig, module.AutoProcessor = Given, Nothing


def transformer(name, class_name, config):
    if ONLY and name not in ONLY:
        return
    import transformers
    made = transformers.AutoConfig.for_model(**config)
    with torch.device("meta"):
        model = getattr(transformers, class_name)(made)
    write(name, json.loads(made.to_json_string(use_diff=False)) | {"architectures": [class_name]}, model)


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    two = (("top", (3, 480, 640)), ("wrist", (3, 480, 640)))
    if "lerobot" in VERSIONS:
        lerobot_policy("act", "act", pretrained_backbone_weights=None)
        lerobot_policy("act-resnet34-two-cameras", "act", state=14, action=14, cameras=two, vision_backbone="resnet34", pretrained_backbone_weights=None, chunk_size=50, n_action_steps=50, dim_model=256, n_decoder_layers=2)
        lerobot_policy("act-resnet50-no-vae", "act", state=7, action=7, vision_backbone="resnet50", pretrained_backbone_weights=None, use_vae=False, pre_norm=True)
        lerobot_policy("act-environment", "act", state=0, action=4, cameras=(), environment=16, pretrained_backbone_weights=None)
        lerobot_policy("diffusion", "diffusion", state=2, action=2, cameras=(("image", (3, 96, 96)),), crop_shape=(84, 84), pretrained_backbone_weights=None)
        lerobot_policy("diffusion-two-cameras", "diffusion", state=14, action=14, cameras=two, use_separate_rgb_encoder_per_camera=True, crop_shape=None, down_dims=(256, 512), use_film_scale_modulation=False, n_obs_steps=1, horizon=16, vision_backbone="resnet34", pretrained_backbone_weights=None)
        lerobot_policy("diffusion-batch-norm", "diffusion", state=7, action=7, cameras=(("image", (3, 240, 320)),), environment=5, use_group_norm=False, spatial_softmax_num_keypoints=16, kernel_size=3, diffusion_step_embed_dim=64, crop_shape=(200, 280), pretrained_backbone_weights=None)
        if "transformers" in VERSIONS:
            without_hub()
            lerobot_policy("smolvla", "smolvla", cameras=two)
            lerobot_policy("smolvla-shallow", "smolvla", state=7, action=7, cameras=two, num_vlm_layers=8, num_expert_layers=4, expert_width_multiplier=0.5, self_attn_every_n_layers=0)
            lerobot_policy("pi0", "pi0", cameras=two)
            lerobot_policy("pi05", "pi05", cameras=two, max_action_dim=24)
    if "transformers" in VERSIONS:
        transformer("gpt2", "GPT2LMHeadModel", {"model_type": "gpt2", "n_embd": 48, "n_layer": 2, "n_head": 4, "n_positions": 64, "vocab_size": 300})
        base = {"hidden_size": 64, "intermediate_size": 160, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 320, "head_dim": 16}
        transformer("llama", "LlamaForCausalLM", base | {"model_type": "llama"})
        transformer("mistral", "MistralForCausalLM", base | {"model_type": "mistral"})
        transformer("qwen2", "Qwen2ForCausalLM", {k: v for k, v in base.items() if k != "head_dim"} | {"model_type": "qwen2", "tie_word_embeddings": True})
        transformer("qwen3", "Qwen3ForCausalLM", base | {"model_type": "qwen3", "head_dim": 32})
        transformer("gemma", "GemmaForCausalLM", base | {"model_type": "gemma"})
        transformer("gemma2", "Gemma2ForCausalLM", base | {"model_type": "gemma2"})
        vision = {"hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "image_size": 56, "patch_size": 14}
        transformer("siglip", "SiglipModel", {"model_type": "siglip", "text_config": {"model_type": "siglip_text_model", "hidden_size": 48, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 100, "max_position_embeddings": 16},
                                              "vision_config": vision | {"model_type": "siglip_vision_model", "intermediate_size": 96}})
        transformer("siglip-vision", "SiglipVisionModel", vision | {"model_type": "siglip_vision_model", "intermediate_size": 96})
        transformer("dinov2", "Dinov2Model", vision | {"model_type": "dinov2"})
        transformer("dinov2-swiglu", "Dinov2Model", vision | {"model_type": "dinov2", "use_swiglu_ffn": True})
        transformer("vit", "ViTModel", vision | {"model_type": "vit", "intermediate_size": 96, "patch_size": 8})
        transformer("qwen2-vl", "Qwen2_5_VLForConditionalGeneration", {"model_type": "qwen2_5_vl", "text_config": {"model_type": "qwen2_5_vl_text", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 320,
                    "rope_scaling": {"type": "mrope", "mrope_section": [2, 3, 3]}}, "vision_config": {"model_type": "qwen2_5_vl", "hidden_size": 32, "intermediate_size": 80, "depth": 2, "num_heads": 4, "out_hidden_size": 64, "fullatt_block_indexes": [1]}})


if __name__ == "__main__":
    main()
