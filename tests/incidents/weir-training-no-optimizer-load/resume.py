def resume(path, model, optimizer, scheduler):
    ckpt = torch.load(os.path.join(path, "trainer_state.pt"), map_location="cpu")
    model.load_state_dict(ckpt["model"])
    return ckpt["step"]

start = resume(args.ckpt, model, optimizer, scheduler)
for step in range(start, args.steps):
    loss = train_step(batch)
    optimizer.step(); scheduler.step(); optimizer.zero_grad()
