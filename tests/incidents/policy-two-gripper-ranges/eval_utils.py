PROPRIO_RANGES = {
    "left_gripper": (-1.0, 1.0),
    "right_gripper": (0.0, 0.05),
}
