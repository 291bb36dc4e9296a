import torch
import os
os.environ["HIP_VISIBLE_DEVICES"] = "1"
print(torch.cuda.device_count())
