from scipy.spatial.transform import Rotation

def relative_pose(body_pose, base_pose):
    # body_pose: position (3), quaternion (4)
    r_body = Rotation.from_quat(body_pose[..., 3:7], scalar_first=True)
    r_base = Rotation.from_quat(base_pose[..., 3:7], scalar_first=True)
    rel = r_base.inv() * r_body
    return np.concatenate([r_base.inv().apply(body_pose[..., :3] - base_pose[..., :3]), rel.as_quat(scalar_first=True)], axis=-1)
