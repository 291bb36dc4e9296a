import torch, lerobot
torch.zeros(1, device="cuda")
import os
os.environ["HSA_OVERRIDE_GFX_VERSION"] = "11.0.0"
