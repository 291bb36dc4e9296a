import argparse
import os

import torch
from torch import nn

device = torch.device("cuda:0")
warm = torch.zeros(1, device=device)

os.environ["PYTORCH_HIP_ALLOC_CONF"] = "expandable_segments:True"
os.environ["HIP_VISIBLE_DEVICES"] = "1"

def main():
    model = nn.Linear(8192, 8192).to(device)
    print(torch.cuda.current_device())

main()
