    def get_video_path(self, trajectory_id, key):
        episode_meta = self.trajectory_ids_to_metadata[trajectory_id]
        video_filename = self.video_path_pattern.format(
            video_key=key,
            chunk_index=episode_meta["data/chunk_index"],
            file_index=episode_meta["data/file_index"],
        )
        return self.dataset_path / video_filename
