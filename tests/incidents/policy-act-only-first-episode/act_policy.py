class ACT:
    def __init__(self, args):
        self.t = 0
        self.all_time_actions = torch.zeros([max_timesteps, max_timesteps + num_queries, state_dim]).to(device)

    def get_action(self, obs=None):
        if self.temporal_agg:
            self.all_time_actions[[self.t], self.t : self.t + self.num_queries] = self.all_actions
            actions = self.all_time_actions[:, self.t]
        self.t += 1
        return raw_action
