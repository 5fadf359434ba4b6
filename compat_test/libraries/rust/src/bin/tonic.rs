//! Calls the rate limit service at CELL_RLS by tonic.

use cellserver_libraries::{Check, Report, equal, that};
use health::health_check_response::ServingStatus;
use health::health_client::HealthClient;
use health::{HealthCheckRequest, HealthCheckResponse};
use rls::rate_limit_descriptor::Entry;
use rls::rate_limit_response::{Code, rate_limit::Unit};
use rls::rate_limit_service_client::RateLimitServiceClient;
use rls::{RateLimitDescriptor, RateLimitRequest};
use tokio::task::JoinSet;
use tonic::transport::{Channel, Endpoint};

mod rls {
    tonic::include_proto!("envoy.service.ratelimit.v3");
}

mod health {
    tonic::include_proto!("grpc.health.v1");
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let addr = std::env::var("CELL_RLS").expect("CELL_RLS is host:port");
        let endpoint = Endpoint::from_shared(format!("http://{addr}"))?;
        let mut report = Report::of("tonic");
        report.check("answers", answers(endpoint.connect().await?).await);
        report.check("hits", hits(endpoint.connect().await?).await);
        report.check("errors", errors(endpoint.connect().await?).await);
        report.check(
            "thousand-calls",
            thousand_calls(endpoint.connect().await?).await,
        );
        report.check(
            "open-streams",
            open_streams(endpoint.connect().await?).await,
        );
        report.check(
            "health-check",
            health_check(endpoint.connect().await?).await,
        );
        report.end()
    })
}

fn request(key: &str, value: &str, hits: u32, own: Option<u64>) -> RateLimitRequest {
    RateLimitRequest {
        domain: "rl".into(),
        descriptors: vec![RateLimitDescriptor {
            entries: vec![Entry {
                key: key.into(),
                value: value.into(),
            }],
            hits_addend: own,
        }],
        hits_addend: hits,
    }
}

async fn answers(channel: Channel) -> Check {
    let mut client = RateLimitServiceClient::new(channel);
    for (code, remaining) in [(Code::Ok, 1), (Code::Ok, 0), (Code::OverLimit, 0)] {
        let answer = client
            .should_rate_limit(request("two", "x", 0, None))
            .await?
            .into_inner();
        equal(answer.overall_code(), code)?;
        let status = answer.statuses.first().ok_or("no status")?;
        equal((status.code(), status.limit_remaining), (code, remaining))?;
        let limit = status.current_limit.as_ref().ok_or("no limit")?;
        equal((limit.requests_per_unit, limit.unit()), (2, Unit::Year))?;
        let reset = status.duration_until_reset.as_ref().ok_or("no reset")?;
        that((1..=31_536_000).contains(&reset.seconds), || {
            format!("reset is {}", reset.seconds)
        })?;
    }
    let answer = client
        .should_rate_limit(request("unknown", "x", 0, None))
        .await?
        .into_inner();
    equal(answer.overall_code(), Code::Ok)?;
    equal(answer.statuses[0].current_limit.is_none(), true)
}

async fn hits(channel: Channel) -> Check {
    let mut client = RateLimitServiceClient::new(channel);
    for (hits, own, left) in [
        (5, None, 95),
        (5, Some(0), 95),
        (5, Some(10), 85),
        (0, None, 84),
    ] {
        let answer = client
            .should_rate_limit(request("hundred", "hits", hits, own))
            .await?
            .into_inner();
        equal(answer.statuses[0].limit_remaining, left)?;
    }
    Ok(())
}

async fn errors(channel: Channel) -> Check {
    match RateLimitServiceClient::new(channel)
        .should_rate_limit(RateLimitRequest::default())
        .await
    {
        Ok(_) => Err("an empty request has an answer".into()),
        Err(why) => equal(
            (why.code(), why.message()),
            (tonic::Code::Unknown, "rate limit domain must not be empty"),
        ),
    }
}

async fn thousand_calls(channel: Channel) -> Check {
    let mut calls = JoinSet::new();
    for _ in 0..1000 {
        let mut client = RateLimitServiceClient::new(channel.clone());
        calls.spawn(async move {
            client
                .should_rate_limit(request("hundred", "calls", 0, None))
                .await
        });
    }
    let mut admitted = 0;
    for answer in calls.join_all().await {
        admitted += u32::from(answer?.into_inner().overall_code() == Code::Ok);
    }
    equal(admitted, 100)
}

/// Holds the 8 calls of Watch open that a connection may have, and calls beside them.
async fn open_streams(channel: Channel) -> Check {
    let mut client = HealthClient::new(channel.clone());
    let mut streams = Vec::new();
    for _ in 0..8 {
        let mut stream = client.watch(of("ratelimit")).await?.into_inner();
        let answer = stream.message().await?.ok_or("the stream has ended")?;
        equal(answer.status(), ServingStatus::Serving)?;
        streams.push(stream);
    }
    match client.watch(of("ratelimit")).await {
        Ok(_) => return Err("a ninth call of Watch is open".into()),
        Err(why) => equal(why.code(), tonic::Code::ResourceExhausted)?,
    }
    let answer = RateLimitServiceClient::new(channel)
        .should_rate_limit(request("hundred", "streams", 0, None))
        .await?
        .into_inner();
    equal(answer.overall_code(), Code::Ok)
}

fn of(service: &str) -> HealthCheckRequest {
    HealthCheckRequest {
        service: service.into(),
    }
}

async fn health_check(channel: Channel) -> Check {
    let mut client = HealthClient::new(channel);
    for service in ["", "ratelimit"] {
        let answer: HealthCheckResponse = client.check(of(service)).await?.into_inner();
        equal(answer.status(), ServingStatus::Serving)?;
    }
    match client.check(of("other")).await {
        Ok(_) => Err("another service has a health".into()),
        Err(why) => equal(why.code(), tonic::Code::NotFound),
    }
}
