from scipy.spatial.transform import Rotation as R
quat = policy_out[3:7]
rot = R.from_quat(quat).as_rotvec()
action = np.concatenate([policy_out[:3], rot, policy_out[7:]])
