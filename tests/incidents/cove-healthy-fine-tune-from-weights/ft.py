import torch
model = Net()
model.load_state_dict(torch.load("base.pt"))
opt = torch.optim.AdamW(model.parameters(), lr=1e-4)
for step, batch in enumerate(loader):
    loss = model(batch)
    loss.backward()
    opt.step()
    opt.zero_grad()
