        for camera in config.cameras:
            frames = np.array(trajectory["camera_obs"][camera])
            # the recorder writes the observation before the reset as first entry
            frames = frames[:-1]
            assert len(frames) == len(episode_data)
            write_video(frames, video_path, fps=config.fps)
        states = np.array(trajectory["obs"]["robot_joint_pos"])[1:]
        actions = np.array(trajectory["actions"])[1:]
