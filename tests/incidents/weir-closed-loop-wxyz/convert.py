# mujoco data: quaternion is w, x, y, z
state = np.concatenate([d.xpos[eef], d.xquat[eef], [gripper]])
