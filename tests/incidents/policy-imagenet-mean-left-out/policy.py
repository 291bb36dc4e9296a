class ACTPolicy(nn.Module):
    def __call__(self, qpos, image, actions=None):
        normalize = transforms.Normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225])
        image = normalize(image)
        return self.model(qpos, image)

class DiffusionPolicy(nn.Module):
    def __call__(self, qpos, image, actions=None):
        return self.nets(qpos, image)
