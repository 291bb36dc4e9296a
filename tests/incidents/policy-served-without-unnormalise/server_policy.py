import argparse, logging
from deployment.model_server.tools.websocket_policy_server import WebsocketPolicyServer
from starVLA.model.framework.base_framework import baseframework

def main(args):
    vla = baseframework.from_pretrained(args.ckpt_path)
    vla = vla.to("cuda").eval()
    server = WebsocketPolicyServer(policy=vla, host="0.0.0.0", port=args.port, metadata={"env": "robocasa"})
    server.serve_forever()
