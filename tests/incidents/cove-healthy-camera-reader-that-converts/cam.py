import cv2
cap = cv2.VideoCapture(0)
ok, f = cap.read()
f = f[..., ::-1]
a = policy.select_action({"observation.images.front": f})
a = postprocessor(a)
robot.send_action(a)
