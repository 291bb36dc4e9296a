python main_trajectory.py --tasks close_jar --quaternion_format xyzw --gripper_loc_bounds tasks/18_peract_tasks_location_bounds.json
