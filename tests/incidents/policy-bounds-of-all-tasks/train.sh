python main_trajectory.py --tasks turn_tap --gripper_loc_bounds tasks/18_peract_tasks_location_bounds.json --single_task_gripper_loc_bounds 1
