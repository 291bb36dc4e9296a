import cv2
for p in paths:
    img = cv2.imread(p)
    ok, corners = cv2.findChessboardCorners(img, (9, 6))
