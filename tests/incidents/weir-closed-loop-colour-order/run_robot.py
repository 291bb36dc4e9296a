cap = cv2.VideoCapture(0)
while True:
    ok, frame = cap.read()
    frame = cv2.resize(frame, (224, 224))
    obs = {"observation.images.front": torch.from_numpy(frame).permute(2, 0, 1)[None].float() / 255,
           "observation.state": torch.tensor(bus.read("Present_Position"))[None]}
    robot.send_action(policy.select_action(obs))
