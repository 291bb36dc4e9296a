losses = []
for step, batch in enumerate(loader):
    loss, _ = policy.forward(batch)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    losses.append(loss)
    if step % 1000 == 0:
        log(step, sum(losses) / len(losses))
