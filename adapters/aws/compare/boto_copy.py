"""Copies one object many times with boto3: ENDPOINT MODE COPIES WORKERS. The outside reference."""

import sys
from concurrent.futures import ThreadPoolExecutor

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

ATTEMPTS = {"legacy": 5, "standard": 3, "adaptive": 4}

endpoint, mode, copies, workers = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
client = boto3.client(
    "s3",
    endpoint_url=endpoint,
    region_name="us-east-1",
    aws_access_key_id="test",
    aws_secret_access_key="testtest",
    config=Config(
        retries={"mode": mode, "total_max_attempts": ATTEMPTS[mode]},
        max_pool_connections=workers,
        s3={"addressing_style": "path"},
    ),
)


def copy(number: int) -> bool:
    try:
        client.copy_object(
            Bucket="pipeline",
            Key=f"copies/{number:05}",
            CopySource={"Bucket": "pipeline", "Key": "source"},
        )
    except (BotoCoreError, ClientError):
        return False
    return True


with ThreadPoolExecutor(workers) as pool:
    copied = sum(pool.map(copy, range(copies)))
print(f"{copied} copied, {copies - copied} failed")
