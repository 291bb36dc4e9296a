class Policy:
    def __init__(self, net):
        self.net = net
        self.queue = []
        self.t = 0

    def reset(self):
        self.queue.clear()
        self.t = 0

    def select_action(self, obs):
        if not self.queue:
            self.queue.extend(self.net(obs))
        self.t += 1
        return self.queue.pop(0)
