import numpy as np
from scipy.spatial.transform import Rotation
def axis_angle(body):
    q = body.xquat           # MuJoCo: w, x, y, z
    return Rotation.from_quat(q[[1, 2, 3, 0]]).as_rotvec()
