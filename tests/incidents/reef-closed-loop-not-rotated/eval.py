element = {"video.image": np.expand_dims(obs["agentview_image"], 0),
           "video.wrist_image": np.expand_dims(obs["robot0_eye_in_hand_image"], 0)}
action = policy.get_action(element)
