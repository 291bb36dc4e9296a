ckpt = torch.load(p)
model.load_state_dict(ckpt["model"])
optimizer.load_state_dict(ckpt["optimizer"])
scheduler.load_state_dict(ckpt["scheduler"])
start = ckpt["step"]
for s in range(start, n):
    optimizer.step()
