def main(cfg):
    env_cfg = cfg.env
    env = make_robot_env(env_cfg)
    policy = SACPolicy(cfg.policy)
    policy.from_pretrained(env_cfg.pretrained_policy_name_or_path)
    policy.eval()
    eval_policy(env, policy, n_episodes=10)
