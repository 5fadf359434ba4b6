//! Drives redis-cell-rs, and with the argument tower the Tower layer built on it.

use cellserver_libraries::{Check, Report, equal, outwait, that, url};
use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use redis::{Client, Cmd as RedisCmd, Commands, RedisResult};
use redis_cell_rs::{Cmd, Key, Policy, Verdict};
use std::convert::Infallible;
use std::thread;
use std::time::Duration;
use tower::{Layer, Service, ServiceExt, service_fn};
use tower_redis_cell::{
    Error, ProvideRule, ProvideRuleResult, RateLimitConfig, RateLimitLayer, Rule,
};

const SMALL: Policy = Policy::from_tokens_per_hour(5).max_burst(4);
const SHARED: Policy = Policy::from_tokens_per_hour(50).max_burst(49);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::open(url(false))?;
    if std::env::args().nth(1).as_deref() != Some("tower") {
        let mut report = Report::of("redis-cell-rs");
        report.check("limit", limit(&client));
        report.check("wait-and-reopen", reopen(&client));
        report.check("quantity", quantity(&client));
        report.check("keys", keys(&client));
        report.check("callers-share-limit", callers(&client));
        report.check("delete-opens-again", delete(&client));
        report.end()
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let mut report = Report::of("tower-redis-cell");
        report.check("limit", layer_limit(&client).await);
        report.check("handlers", layer_handlers(&client).await);
        report.check("tasks-share-limit", layer_tasks(&client).await);
        report.check("errors", layer_errors(&client).await);
        report.check("reopens", layer_reopens(&client).await);
        report.end()
    })
}

fn ask(client: &Client, key: &Key, policy: &Policy) -> RedisResult<Verdict> {
    RedisCmd::from(Cmd::new(key, policy)).query(&mut client.get_connection()?)
}

/// What is left, or minus the seconds to wait.
fn left(verdict: Verdict) -> i64 {
    match verdict {
        Verdict::Allowed(details) => details.remaining as i64,
        Verdict::Blocked(details) => -(details.retry_after as i64),
    }
}

fn limit(client: &Client) -> Check {
    for want in (0..5).rev() {
        equal(left(ask(client, &"limit".into(), &SMALL)?), want)?;
    }
    match ask(client, &"limit".into(), &SMALL)? {
        Verdict::Blocked(d) => {
            equal((d.total, d.remaining), (5, 0))?;
            that(
                d.retry_after <= 720 && d.retry_after < d.reset_after && d.reset_after <= 3600,
                || format!("{d:?}"),
            )
        }
        other => Err(format!("the sixth call got {other:?}").into()),
    }
}

fn reopen(client: &Client) -> Check {
    let policy = Policy::from_tokens_per_period(1, Duration::from_secs(2));
    equal(left(ask(client, &"reopen".into(), &policy)?), 0)?;
    let wait = -left(ask(client, &"reopen".into(), &policy)?);
    // Seconds are rounded down.
    that((0..=2).contains(&wait), || format!("told to wait {wait} s"))?;
    outwait(Duration::from_secs(2));
    equal(left(ask(client, &"reopen".into(), &policy)?), 0)
}

fn quantity(client: &Client) -> Check {
    let three = SMALL.apply_tokens(3);
    equal(left(ask(client, &"quantity".into(), &three)?), 2)?;
    that(left(ask(client, &"quantity".into(), &three)?) < 0, || {
        "3 of 2 passed".into()
    })?;
    equal(
        left(ask(client, &"quantity".into(), &SMALL.apply_tokens(0))?),
        2,
    )?;
    equal(
        left(ask(client, &"quantity".into(), &SMALL.apply_tokens(2))?),
        0,
    )
}

fn keys(client: &Client) -> Check {
    let all = [
        Key::from(7_usize),
        Key::from(-7_isize),
        Key::pair("ann", "/x"),
        Key::triple("ann", "/x", "é"),
    ];
    for key in &all {
        equal(left(ask(client, key, &SMALL)?), 4)?;
    }
    for key in &all {
        equal(left(ask(client, key, &SMALL)?), 3)?;
    }
    equal(
        client.get_connection()?.exists::<_, bool>("(ann, /x)")?,
        true,
    )
}

fn callers(client: &Client) -> Check {
    let admitted: RedisResult<usize> = thread::scope(|scope| {
        let work = || -> RedisResult<usize> {
            let mut con = client.get_connection()?;
            let mut admitted = 0;
            for _ in 0..20 {
                let verdict =
                    RedisCmd::from(Cmd::new(&"shared".into(), &SHARED)).query(&mut con)?;
                admitted += usize::from(matches!(verdict, Verdict::Allowed(_)));
            }
            Ok(admitted)
        };
        let running: Vec<_> = (0..8).map(|_| scope.spawn(work)).collect();
        running
            .into_iter()
            .map(|t| t.join().expect("no panic"))
            .sum()
    });
    equal(admitted?, 50)
}

fn delete(client: &Client) -> Check {
    let once = Policy::from_tokens_per_hour(1);
    equal(left(ask(client, &"delete".into(), &once)?), 0)?;
    that(left(ask(client, &"delete".into(), &once)?) < 0, || {
        "the second call passed".into()
    })?;
    equal(client.get_connection()?.del::<_, i64>("delete")?, 1)?;
    equal(left(ask(client, &"delete".into(), &once)?), 0)
}

/// Limits a request, which is a key and a policy; one without a key is not limited.
#[derive(Clone)]
struct ByKey;

type Request = (&'static str, Policy);

impl ProvideRule<Request> for ByKey {
    fn provide<'a>(&self, (key, policy): &'a Request) -> ProvideRuleResult<'a> {
        Ok((!key.is_empty()).then(|| Rule::new(*key, *policy)))
    }
}

/// A service of which the answer is how it came about.
async fn service(
    client: &Client,
) -> RedisResult<
    impl Service<Request, Response = String, Error = Infallible, Future: Send> + Clone + use<>,
> {
    let config = ConnectionManagerConfig::new();
    let connection = ConnectionManager::new_with_config(client.clone(), config).await?;
    let config = RateLimitConfig::new(ByKey, |err, _: &Request| match err {
        Error::RateLimit(blocked) => format!("blocked {}", blocked.details.retry_after),
        other => format!("error {other}"),
    })
    .on_success(|allowed, answer: &mut String| {
        *answer = format!("{answer} {}", allowed.details.remaining)
    })
    .on_unruled(|answer: &mut String| *answer = format!("{answer} unlimited"));
    let inner = service_fn(|_: Request| async { Ok::<_, Infallible>("served".to_string()) });
    Ok(RateLimitLayer::new(config, connection).layer(inner))
}

async fn layer_limit(client: &Client) -> Check {
    let service = service(client).await?;
    for left in (0..5).rev() {
        equal(
            service.clone().oneshot(("layer", SMALL)).await?,
            format!("served {left}"),
        )?;
    }
    let answer = service.oneshot(("layer", SMALL)).await?;
    let wait: Option<u64> = answer.strip_prefix("blocked ").and_then(|w| w.parse().ok());
    that(wait.is_some_and(|w| (600..=720).contains(&w)), || answer)
}

async fn layer_handlers(client: &Client) -> Check {
    let service = service(client).await?;
    equal(
        service.clone().oneshot(("", SMALL)).await?,
        "served unlimited".into(),
    )?;
    equal(
        service.oneshot(("handlers", SMALL.apply_tokens(2))).await?,
        "served 3".into(),
    )
}

async fn layer_tasks(client: &Client) -> Check {
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let service = service(client).await?;
        for _ in 0..25 {
            tasks.spawn(service.clone().oneshot(("tasks", SHARED)));
        }
    }
    let answers = tasks.join_all().await;
    equal(
        answers
            .iter()
            .flatten()
            .filter(|a| a.starts_with("served"))
            .count(),
        50,
    )
}

async fn layer_errors(client: &Client) -> Check {
    client
        .get_connection()?
        .set::<_, _, ()>("text", "no limiter")?;
    let service = service(client).await?;
    let answer = service.clone().oneshot(("text", SMALL)).await?;
    that(answer.starts_with("error "), || answer.clone())?;
    equal(
        service.oneshot(("after an error", SMALL)).await?,
        "served 4".into(),
    )
}

async fn layer_reopens(client: &Client) -> Check {
    let policy = Policy::from_tokens_per_period(1, Duration::from_secs(2));
    let service = service(client).await?;
    equal(
        service.clone().oneshot(("reopen", policy)).await?,
        "served 0".into(),
    )?;
    let answer = service.clone().oneshot(("reopen", policy)).await?;
    that(answer.starts_with("blocked "), || answer)?;
    outwait(Duration::from_secs(2));
    equal(
        service.oneshot(("reopen", policy)).await?,
        "served 0".into(),
    )
}
