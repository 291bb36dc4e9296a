q = R.from_matrix(m).as_quat()  # x, y, z, w
rot = R.from_quat(q).as_rotvec()
