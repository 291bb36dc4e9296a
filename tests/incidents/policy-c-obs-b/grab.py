def read(cam):
    ok, frame = cam.read()          # cv2.VideoCapture
    return torch.from_numpy(frame).permute(2, 0, 1).float() / 255
