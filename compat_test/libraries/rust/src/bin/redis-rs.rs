//! Drives the redis crate: redis-rs 2|3, which is the protocol.

use cellserver_libraries::{Check, Report, WINDOW, equal, outwait, that, url};
use redis::{Client, Commands, Connection, ErrorKind, RedisResult, Script, ServerErrorKind, Value};
use std::thread;
use std::time::Duration;

fn main() {
    let resp3 = std::env::args().nth(1).as_deref() == Some("3");
    let client = Client::open(url(resp3)).expect("the address");
    let mut report = Report::of("redis");
    report.check("protocol", protocol(&client, resp3));
    report.check("script-limit", script_limit(&client));
    report.check("script-is-loaded-when-missing", noscript(&client));
    report.check("script-callers-share-limit", script_callers(&client));
    report.check("async-callers-share-limit", async_callers(&client));
    report.check("pipeline", pipeline(&client));
    report.check("atomic-pipeline", atomic_pipeline(&client));
    report.check("watched-transactions-share-limit", transactions(&client));
    report.check("publish-subscribe", publish_subscribe(&client));
    report.check("errors", errors(&client));
    report.check("native-throttle", throttle(&client));
    report.check(
        "native-throttle-in-transaction",
        throttle_in_transaction(&client),
    );
    report.end()
}

fn protocol(client: &Client, resp3: bool) -> Check {
    let mut con = client.get_connection()?;
    con.hset_multiple::<_, _, _, ()>("protocol", &[("a", "1")])?;
    // Only RESP3 has a type for it.
    match redis::cmd("HGETALL")
        .arg("protocol")
        .query::<Value>(&mut con)?
    {
        Value::Map(_) => equal("RESP3", if resp3 { "RESP3" } else { "RESP2" }),
        Value::Array(_) => equal("RESP2", if resp3 { "RESP3" } else { "RESP2" }),
        other => Err(format!("HGETALL answered {other:?}").into()),
    }
}

fn window(con: &mut Connection, key: &str, limit: i64, millis: i64) -> RedisResult<(i64, i64)> {
    Script::new(WINDOW)
        .key(key)
        .arg(limit)
        .arg(millis)
        .invoke(con)
}

fn script_limit(client: &Client) -> Check {
    let mut con = client.get_connection()?;
    for left in (0..5).rev() {
        equal(window(&mut con, "script", 5, 2000)?, (1, left))?;
    }
    let (admitted, wait) = window(&mut con, "script", 5, 2000)?;
    that(admitted == 0 && (1..=2000).contains(&wait), || {
        format!("got {admitted} {wait}")
    })?;
    outwait(Duration::from_millis(wait as u64));
    equal(window(&mut con, "script", 5, 2000)?, (1, 4))?;
    equal(con.del::<_, i64>("script")?, 1)?;
    equal(window(&mut con, "script", 5, 2000)?, (1, 4))
}

fn noscript(client: &Client) -> Check {
    let mut con = client.get_connection()?;
    redis::cmd("SCRIPT").arg("FLUSH").exec(&mut con)?;
    let script = Script::new(WINDOW);
    let direct = redis::cmd("EVALSHA")
        .arg(script.get_hash())
        .arg(0)
        .exec(&mut con);
    let kind = direct.expect_err("the script is not there").kind();
    equal(kind, ErrorKind::Server(ServerErrorKind::NoScript))?;
    equal(window(&mut con, "missing", 2, 60_000)?, (1, 1))?;
    let known: Vec<bool> = redis::cmd("SCRIPT")
        .arg("EXISTS")
        .arg(script.get_hash())
        .arg("0".repeat(40))
        .query(&mut con)?;
    equal(known, vec![true, false])
}

/// Runs eight threads with a connection each and adds up what they admit.
fn callers(
    client: &Client,
    one: impl Fn(&mut Connection) -> RedisResult<i64> + Sync,
) -> RedisResult<i64> {
    thread::scope(|scope| {
        let work = || -> RedisResult<i64> {
            let mut con = client.get_connection()?;
            (0..20).map(|_| one(&mut con)).sum()
        };
        let running: Vec<_> = (0..8).map(|_| scope.spawn(work)).collect();
        running
            .into_iter()
            .map(|t| t.join().expect("no panic"))
            .sum()
    })
}

fn script_callers(client: &Client) -> Check {
    let admitted = callers(client, |con| Ok(window(con, "shared", 50, 60_000)?.0))?;
    equal(admitted, 50)
}

fn async_callers(client: &Client) -> Check {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        // One connection carries the calls of all tasks.
        let shared = client.get_multiplexed_async_connection().await?;
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..60 {
            let mut con = shared.clone();
            tasks.spawn(async move {
                let script = Script::new(WINDOW);
                script
                    .key("async")
                    .arg(25)
                    .arg(60_000)
                    .invoke_async::<(i64, i64)>(&mut con)
                    .await
            });
        }
        let mut admitted = 0;
        while let Some(done) = tasks.join_next().await {
            admitted += done??.0;
        }
        equal(admitted, 25)
    })
}

fn pipeline(client: &Client) -> Check {
    let mut con = client.get_connection()?;
    let mut pipe = redis::pipe();
    for _ in 0..100 {
        pipe.incr("piped", 1).expire("piped", 60).ignore();
    }
    let counts: Vec<i64> = pipe.query(&mut con)?;
    equal(counts, (1..=100).collect())?;
    // An error in the middle leaves its neighbours alone.
    let failed = redis::pipe()
        .incr("piped", 1)
        .lpush("piped", "x")
        .incr("piped", 1)
        .exec(&mut con);
    let text = failed.expect_err("LPUSH on a counter").to_string();
    that(text.contains("WRONGTYPE"), || text)?;
    equal(con.get::<_, i64>("piped")?, 102)
}

fn atomic_pipeline(client: &Client) -> Check {
    let mut con = client.get_connection()?;
    let got: (i64, i64, i64) = redis::pipe()
        .atomic()
        .zrembyscore("log", "-inf", 5)
        .zadd("log", "a", 10)
        .zcard("log")
        .query(&mut con)?;
    equal(got, (0, 1, 1))?;
    let failed = redis::pipe()
        .atomic()
        .incr("atomic", 1)
        .cmd("NO.SUCH")
        .exec(&mut con);
    equal(
        failed.expect_err("an unknown command").kind(),
        ErrorKind::Server(ServerErrorKind::ExecAbort),
    )?;
    equal(con.exists::<_, bool>("atomic")?, false)
}

fn transactions(client: &Client) -> Check {
    let take = |con: &mut Connection| {
        redis::transaction(con, &["tokens"], |con, pipe| {
            let taken: Option<i64> = con.get("tokens")?;
            if taken.unwrap_or(0) >= 30 {
                redis::cmd("UNWATCH").exec(con)?;
                return Ok(Some(0));
            }
            let done: Option<(i64,)> = pipe.incr("tokens", 1).query(con)?;
            Ok(done.map(|_| 1))
        })
    };
    equal(callers(client, take)?, 30)?;
    equal(client.get_connection()?.get::<_, i64>("tokens")?, 30)
}

fn publish_subscribe(client: &Client) -> Check {
    let mut listening = client.get_connection()?;
    listening.set_read_timeout(Some(Duration::from_secs(20)))?;
    let mut sub = listening.as_pubsub();
    sub.subscribe("opened")?;
    sub.psubscribe("limit:*")?;
    let mut con = client.get_connection()?;
    equal(con.publish::<_, _, i64>("opened", "a")?, 1)?;
    equal(con.publish::<_, _, i64>("limit:7", "b")?, 1)?;
    let (first, second) = (sub.get_message()?, sub.get_message()?);
    equal(
        (first.get_channel_name(), first.get_payload::<String>()?),
        ("opened", "a".into()),
    )?;
    equal(
        (second.get_channel_name(), second.get_payload::<String>()?),
        ("limit:7", "b".into()),
    )?;
    equal(second.get_pattern::<String>()?, "limit:*".into())?;
    sub.unsubscribe("opened")?;
    equal(con.publish::<_, _, i64>("opened", "c")?, 0)
}

fn errors(client: &Client) -> Check {
    let mut con = client.get_connection()?;
    con.set::<_, _, ()>("text", "abc")?;
    let wrong = con
        .hget::<_, _, Value>("text", "f")
        .expect_err("HGET of a string");
    equal(wrong.code(), Some("WRONGTYPE"))?;
    let raised =
        Script::new("return redis.error_reply('LIMITED come back later')").invoke::<()>(&mut con);
    let raised = raised.expect_err("the script answers an error");
    equal(
        (raised.code(), raised.detail()),
        (Some("LIMITED"), Some("come back later")),
    )?;
    let usage = redis::cmd("NO.SUCH")
        .exec(&mut con)
        .expect_err("an unknown command");
    equal(
        usage.kind(),
        ErrorKind::Server(ServerErrorKind::ResponseError),
    )?;
    equal(con.get::<_, String>("text")?, "abc".into())
}

type Throttle = (i64, i64, i64, i64, i64);

fn throttle(client: &Client) -> Check {
    let mut con = client.get_connection()?;
    let mut call = redis::cmd("CL.THROTTLE");
    call.arg("native").arg(4).arg(5).arg(3600);
    for left in (0..5).rev() {
        let got: Throttle = call.query(&mut con)?;
        equal((got.0, got.1, got.2, got.3), (0, 5, left, -1))?;
    }
    let got: Throttle = call.query(&mut con)?;
    equal((got.0, got.1, got.2), (1, 5, 0))?;
    that((600..=720).contains(&got.3) && got.4 > got.3, || {
        format!("got {got:?}")
    })?;
    let wrong = redis::cmd("CL.THROTTLE")
        .arg("native")
        .arg("x")
        .arg(5)
        .arg(60)
        .exec(&mut con);
    let text = wrong.expect_err("x is no number").to_string();
    that(text.contains("parse as integer: x"), || text)
}

fn throttle_in_transaction(client: &Client) -> Check {
    let mut con = client.get_connection()?;
    let got: (Throttle, i64, Throttle) = redis::pipe()
        .atomic()
        .cmd("CL.THROTTLE")
        .arg("both")
        .arg(0)
        .arg(1)
        .arg(60)
        .incr("both:calls", 1)
        .cmd("CL.THROTTLE")
        .arg("both")
        .arg(0)
        .arg(1)
        .arg(60)
        .query(&mut con)?;
    equal((got.0.0, got.1, got.2.0), (0, 1, 1))
}
