ACTION_MODE=abs
python script/eval_policy.py --config policy/$policy_name/deploy_policy.yml --overrides --action_mode ${ACTION_MODE} --seed ${seed}
