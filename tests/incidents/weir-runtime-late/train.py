import argparse
import torch
from lerobot.policies.act.modeling_act import ACTPolicy

torch.zeros(1, device="cuda")

if __name__ == "__main__":
    ap = argparse.ArgumentParser(); ap.add_argument("--gpu", default="1"); a = ap.parse_args()
    import os
    os.environ["HIP_VISIBLE_DEVICES"] = a.gpu
    main()
