from lerobot.policies.act.modeling_act import ACTPolicy
stats = dataset.meta.stats
policy = ACTPolicy(config, dataset_stats=stats)
for batch in loader:
    loss, _ = policy.forward(batch)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
