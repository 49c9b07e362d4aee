"""The scripted model of the desk, in the wire format of Amazon Bedrock: `python provider.py &`.

It listens on 127.0.0.1:8899 (PORT=… for another port).
"""

import os
import threading

from tracefork_testkit import ModelRequest, ProviderServer, Reply

PORT = int(os.environ.get("PORT", "8899"))


def model(request: ModelRequest) -> Reply:
    """Sort, and answer as the team that is named."""
    asked = request.last_user_text
    if asked.startswith("Which team"):
        return Reply("shipping")
    if "You are billing" in asked:
        return Reply("We are sorry, and pay back 40 euros.")
    return Reply("Your parcel was delivered on Monday.")


if __name__ == "__main__":
    with ProviderServer(model, port=PORT) as server:
        print(f"the desk's model listens on {server.url}; stop it with kill %1", flush=True)
        threading.Event().wait()
