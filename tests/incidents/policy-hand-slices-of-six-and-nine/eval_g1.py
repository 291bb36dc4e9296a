    init_left_hand_pose = step['observation.state'][13:19]
    init_right_hand_pose = step['observation.state'][19:]
    left_hand_array[:] = init_left_hand_pose
    right_hand_array[:] = init_right_hand_pose
