"""Asks the decision server over gRPC as Envoy does, with messages built from what its reflection service reports, and prints JSON."""
import json
import sys

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory

channel = grpc.insecure_channel(sys.argv[1], options=[("grpc.enable_http_proxy", 0), ("grpc.enable_retries", 0)])


def varint(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def field(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data


def fields(data):
    at = 0
    while at < len(data):
        key, at = read_varint(data, at)
        size, at = read_varint(data, at)
        yield key >> 3, data[at : at + size]
        at += size


def read_varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return value, at


def reflect(version, *requests):
    ask = channel.stream_stream(f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo")
    return [dict(fields(answer)) for answer in ask(iter(requests))]


listed = {
    version: sorted(dict(fields(one))[1].decode() for _, one in fields(reflect(version, field(7, b"*"))[0][6]))
    for version in ("v1", "v1alpha")
}
pool = descriptor_pool.DescriptorPool()
for service in ("envoy.service.ratelimit.v3.RateLimitService", "envoy.service.auth.v3.Authorization", "grpc.health.v1.Health"):
    files = [data for _, data in fields(reflect("v1", field(4, service.encode()))[0][4])]
    for data in reversed(files):
        proto = descriptor_pb2.FileDescriptorProto.FromString(data)
        try:
            pool.FindFileByName(proto.name)
        except KeyError:
            pool.Add(proto)


def message(name):
    return message_factory.MessageFactory(pool).GetPrototype(pool.FindMessageTypeByName(name))


def call(service, method, request, response, question, **options):
    ask = channel.unary_unary(
        f"/{service}/{method}",
        request_serializer=lambda one: one.SerializeToString(),
        response_deserializer=message(response).FromString,
    )
    try:
        answer = ask(json_format.ParseDict(question, message(request)()), timeout=5, **options)
        return json_format.MessageToDict(answer)
    except grpc.RpcError as error:
        return {"status": error.code().name, "details": error.details()}


def limit(question, **options):
    v3 = "envoy.service.ratelimit.v3"
    return call(f"{v3}.RateLimitService", "ShouldRateLimit", f"{v3}.RateLimitRequest", f"{v3}.RateLimitResponse", question, **options)


def check(question):
    v3 = "envoy.service.auth.v3"
    return call(f"{v3}.Authorization", "Check", f"{v3}.CheckRequest", f"{v3}.CheckResponse", question)


def health(service):
    v1 = "grpc.health.v1"
    return call(f"{v1}.Health", "Check", f"{v1}.HealthCheckRequest", f"{v1}.HealthCheckResponse", {"service": service})


def descriptor(more=None, **entries):
    return {"entries": [{"key": key, "value": value} for key, value in entries.items()], **(more or {})}


def http(path, **more):
    request = {"http": {"method": "GET", "path": path, "host": "shop.example", "headers": {"x-user": "ann"}, **more}}
    source = {"address": {"socketAddress": {"address": "203.0.113.9", "portValue": 4711}}}
    return {"attributes": {"source": source, "request": request}}


print(
    json.dumps(
        {
            "listed": listed,
            "health": [health(""), health("envoy.service.auth.v3.Authorization"), health("none")],
            "limited": [limit({"domain": "python", "descriptors": [descriptor(user="ann")]}) for _ in range(3)],
            "together": limit({"domain": "python", "descriptors": [descriptor(user="bob"), descriptor(user="ann")]}),
            "kept": limit({"domain": "python", "descriptors": [descriptor(user="bob")]}),
            "hits": limit({"domain": "python", "hitsAddend": 2, "descriptors": [descriptor(user="cid")]}),
            "ownHits": limit({"domain": "python", "descriptors": [descriptor({"hitsAddend": 2}, user="dan")]}),
            "onlyAsked": [
                limit({"domain": "python", "descriptors": [descriptor({"hitsAddend": 0}, user="eve")]}) for _ in range(4)
            ],
            "override": [
                limit({"domain": "python", "descriptors": [descriptor({"limit": {"requestsPerUnit": 1, "unit": "HOUR"}}, user="fay")]})
                for _ in range(2)
            ],
            "empty": limit({"domain": "", "descriptors": [descriptor(user="ann")]}),
            "checked": [check(http("/python")) for _ in range(3)],
            "bad": check(http("/a%zz")),
        }
    )
)
