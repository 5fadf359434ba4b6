"""Calls the rate limit service at CELL_RLS by grpcio, and reports what it finds: see ../README.md."""

import asyncio
import importlib.metadata
import os
import sys

import grpc

rls, rls_services = grpc.protos_and_services("rls.proto")
health, health_services = grpc.protos_and_services("health.proto")
Code = rls.RateLimitResponse


class Failed(Exception):
    """A check got another answer than the one it needs."""


def expect(got, want, what="it"):
    if got != want:
        raise Failed(f"{what} is {got!r}, want {want!r}")


def request(key, value, hits=0, own=None):
    descriptor = rls.RateLimitDescriptor(entries=[{"key": key, "value": value}])
    if own is not None:
        descriptor.hits_addend.value = own
    return rls.RateLimitRequest(domain="rl", descriptors=[descriptor], hits_addend=hits)


async def answers(channel):
    stub = rls_services.RateLimitServiceStub(channel)
    for code, remaining in ((Code.OK, 1), (Code.OK, 0), (Code.OVER_LIMIT, 0)):
        answer = await stub.ShouldRateLimit(request("two", "x"))
        status = answer.statuses[0]
        expect((answer.overall_code, status.code), (code, code), "the code")
        expect(status.limit_remaining, remaining, "limit_remaining")
        expect(status.current_limit.requests_per_unit, 2, "requests_per_unit")
        expect(status.current_limit.unit, Code.RateLimit.YEAR, "unit")
        expect(0 < status.duration_until_reset.seconds <= 31536000, True, "duration_until_reset")
    answer = await stub.ShouldRateLimit(request("unknown", "x"))
    expect((answer.overall_code, answer.statuses[0].HasField("current_limit")), (Code.OK, False), "no limit")


async def hits(channel):
    stub = rls_services.RateLimitServiceStub(channel)
    for hits_addend, own, remaining in ((5, None, 95), (5, 0, 95), (5, 10, 85), (0, None, 84)):
        answer = await stub.ShouldRateLimit(request("hundred", "hits", hits_addend, own))
        expect(answer.statuses[0].limit_remaining, remaining, f"what {hits_addend} and {own} leave")


async def errors(channel):
    stub = rls_services.RateLimitServiceStub(channel)
    try:
        await stub.ShouldRateLimit(rls.RateLimitRequest())
    except grpc.aio.AioRpcError as why:
        expect((why.code(), why.details()), (grpc.StatusCode.UNKNOWN, "rate limit domain must not be empty"))
    else:
        raise Failed("an empty request has an answer")


async def thousand_calls(channel):
    stub = rls_services.RateLimitServiceStub(channel)
    all_of = await asyncio.gather(*(stub.ShouldRateLimit(request("hundred", "calls")) for _ in range(1000)))
    expect(sum(answer.overall_code == Code.OK for answer in all_of), 100, "the number of admitted calls")


async def open_streams(channel):
    """Holds the 8 calls of Watch open that a connection may have, and calls beside them."""
    watches = health_services.HealthStub(channel)
    streams = [watches.Watch(health.HealthCheckRequest(service="ratelimit")) for _ in range(8)]
    for answer in await asyncio.gather(*(stream.read() for stream in streams)):
        expect(answer.status, health.HealthCheckResponse.SERVING)
    try:
        await watches.Watch(health.HealthCheckRequest(service="ratelimit")).read()
    except grpc.aio.AioRpcError as why:
        expect(why.code(), grpc.StatusCode.RESOURCE_EXHAUSTED)
    else:
        raise Failed("a ninth call of Watch is open")
    answer = await rls_services.RateLimitServiceStub(channel).ShouldRateLimit(request("hundred", "streams"))
    expect(answer.overall_code, Code.OK)
    for stream in streams:
        stream.cancel()


async def health_check(channel):
    stub = health_services.HealthStub(channel)
    for service in ("", "ratelimit"):
        answer = await stub.Check(health.HealthCheckRequest(service=service))
        expect(answer.status, health.HealthCheckResponse.SERVING, service)
    try:
        await stub.Check(health.HealthCheckRequest(service="other"))
    except grpc.aio.AioRpcError as why:
        expect(why.code(), grpc.StatusCode.NOT_FOUND)
    else:
        raise Failed("another service has a health")


async def main():
    print("info version", importlib.metadata.version("grpcio"))
    failed = False
    for check in (answers, hits, errors, thousand_calls, open_streams, health_check):
        name = check.__name__.replace("_", "-")
        try:
            async with grpc.aio.insecure_channel(os.environ["CELL_RLS"]) as channel:
                await asyncio.wait_for(check(channel), 60)
            print("ok", name)
        except Exception as why:  # noqa: BLE001 # a line of the report
            failed = True
            print(f"FAIL {name}: {why!r}".replace("\n", " "))
    return failed


sys.exit(asyncio.run(main()))
