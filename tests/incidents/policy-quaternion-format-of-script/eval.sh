quaternion_format=wxyz
python online_evaluation_rlbench/evaluate_policy.py --tasks close_jar --quaternion_format $quaternion_format
