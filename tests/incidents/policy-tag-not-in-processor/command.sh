uv run python gr00t/eval/run_gr00t_server.py --model-path nvidia/GR00T-N1.6-3B --embodiment-tag UNITREE_G1
