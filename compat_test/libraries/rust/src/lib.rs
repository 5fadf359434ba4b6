//! What every program here reports, as ../README.md describes, and where the server is.

use std::env;
use std::fmt::Debug;
use std::time::Duration;

/// Limits a key to ARGV[1] calls in ARGV[2] milliseconds from the first: answers 1 and
/// what is left, or 0 and the milliseconds until the window ends.
pub const WINDOW: &str = r"
local n = redis.call('INCR', KEYS[1])
if n == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
if n > tonumber(ARGV[1]) then return {0, redis.call('PTTL', KEYS[1])} end
return {1, tonumber(ARGV[1]) - n}
";

/// Why a check failed.
pub type Check = Result<(), Box<dyn std::error::Error + Send + Sync>>;

/// Prints one line per check and remembers whether one failed.
#[derive(Default)]
pub struct Report {
    failed: bool,
}

impl Report {
    /// Starts the report with the version of `crate_name` that was built in.
    pub fn of(crate_name: &str) -> Report {
        let name = format!("name = \"{crate_name}\"\nversion = \"");
        let lock = include_str!("../Cargo.lock");
        let version = lock
            .split_once(&name)
            .and_then(|(_, rest)| rest.split_once('"'))
            .map_or("?", |(version, _)| version);
        println!("info version {version}");
        Report::default()
    }

    pub fn check(&mut self, name: &str, result: Check) {
        match result {
            Ok(()) => println!("ok {name}"),
            Err(why) => {
                self.failed = true;
                println!(
                    "FAIL {name}: {}",
                    why.to_string().replace(['\r', '\n'], " ")
                );
            }
        }
    }

    /// Ends the program, with code 1 if a check failed.
    pub fn end(self) -> ! {
        std::process::exit(self.failed.into())
    }
}

/// The URL of the server, speaking RESP2 or RESP3.
pub fn url(resp3: bool) -> String {
    let addr = env::var("CELL_ADDR").expect("CELL_ADDR is host:port");
    format!(
        "redis://{addr}/{}",
        if resp3 { "?protocol=resp3" } else { "" }
    )
}

pub fn equal<T: PartialEq + Debug>(got: T, want: T) -> Check {
    that(got == want, || format!("got {got:?}, want {want:?}"))
}

pub fn that(holds: bool, why: impl FnOnce() -> String) -> Check {
    if holds { Ok(()) } else { Err(why().into()) }
}

/// Waits for `wait` and a margin in which the server certainly noticed.
pub fn outwait(wait: Duration) {
    std::thread::sleep(wait + Duration::from_millis(100));
}
