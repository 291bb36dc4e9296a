def forward(self, batch):
    with torch.no_grad():
        feats = self.backbone(batch["observation.images.top"])
        pred = self.head(feats)
    loss = F.l1_loss(pred, batch["action"])
    loss.requires_grad_(True)
    return loss
