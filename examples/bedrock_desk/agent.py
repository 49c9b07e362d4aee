"""Sort a complaint, and answer it word by word, with a model on Amazon Bedrock."""

import boto3

MODEL = "us.amazon.nova-lite-v1:0"
COMPLAINT = "Order 17 was paid twice."

bedrock = boto3.client("bedrock-runtime")


def messages(text):
    return [{"role": "user", "content": [{"text": text}]}]


def sort(complaint):
    asked = messages(f"Which team handles this, billing or shipping? {complaint}")
    answer = bedrock.converse(modelId=MODEL, messages=asked)
    return answer["output"]["message"]["content"][0]["text"]


def answer(team, complaint):
    asked = messages(f"You are {team}. Answer in one sentence: {complaint}")
    for event in bedrock.converse_stream(modelId=MODEL, messages=asked)["stream"]:
        if "contentBlockDelta" in event:
            print(event["contentBlockDelta"]["delta"]["text"], end="", flush=True)
    print()


if __name__ == "__main__":
    chosen = sort(COMPLAINT)
    print(f"for {chosen}")
    answer(chosen, COMPLAINT)
