"""Calls the echo service of the tests by every kind of gRPC call, and prints what came of it as JSON."""
import json
import sys

import grpc

channel = grpc.insecure_channel(
    sys.argv[1],
    options=[("grpc.max_receive_message_length", -1), ("grpc.enable_retries", 0), ("grpc.enable_http_proxy", 0)],
)
unary = channel.unary_unary("/test.Echo/Unary")
other = channel.unary_unary("/test.Echo/Other")
collect = channel.stream_unary("/test.Echo/Collect")
repeat = channel.unary_stream("/test.Echo/Repeat")
talk = channel.stream_stream("/test.Echo/Talk")


def failure(call):
    try:
        call()
    except grpc.RpcError as error:
        return error
    return None


def value(metadata, name):
    return dict(metadata).get(name)


answer, call = unary.with_call(b"one", metadata=(("x-mine", "own"),), timeout=20)
failed = failure(lambda: unary(b"fail", timeout=20))
other(b"one", timeout=20)
refused = failure(lambda: other(b"two", timeout=20))
late = failure(lambda: unary(b"wait", timeout=0.3))
print(
    json.dumps(
        {
            "unary": [
                answer.decode(),
                value(call.initial_metadata(), "x-seen"),
                value(call.trailing_metadata(), "x-after"),
            ],
            "collect": collect(iter([b"a", b"b", b"c"]), timeout=20).decode(),
            "repeat": [piece.decode() for piece in repeat(b"x", timeout=20)],
            "talk": [piece.decode() for piece in talk(iter([b"hello", b"again"]), timeout=20)],
            "fail": [failed.code().name, failed.details()],
            "refused": [
                refused.code().name,
                int(value(list(refused.initial_metadata() or []) + list(refused.trailing_metadata()), "retry-after")) > 0,
            ],
            "late": late.code().name,
            "large": len(unary(b"l" * 5_000_000, timeout=20)),
        },
        ensure_ascii=False,
    )
)
