"""relay_main ROUNDS: relay_main.c in Python."""
import sys

import relay

rounds = int(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
for i in range(rounds):
    text = f"message {i}".encode()
    relay.sent(id=relay.hash_u64(i), when=1000 + i)
    relay.received(relay.hash_u64(i), relay.hash128(text), i)
    relay.passed(body=relay.hash128(text), ticket=i)
try:
    relay.received(at=1)
    sys.exit("at is ppt's own")
except TypeError as error:
    assert "at" in str(error)
print("written", 3 * rounds, flush=True)
sys.stdin.read()
