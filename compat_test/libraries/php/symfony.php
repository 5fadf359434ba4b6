<?php
/** Drives Symfony's rate limiter: symfony.php phpredis|predis */
declare(strict_types=1);

require __DIR__ . '/report.php';
require 'Predis/autoload.php';
require 'Symfony/Component/RateLimiter/autoload.php';
require 'Symfony/Component/Cache/autoload.php';
require 'Symfony/Component/Lock/autoload.php';

use Symfony\Component\Cache\Adapter\RedisAdapter;
use Symfony\Component\Lock\LockFactory;
use Symfony\Component\Lock\Store\RedisStore;
use Symfony\Component\RateLimiter\Exception\MaxWaitDurationExceededException;
use Symfony\Component\RateLimiter\LimiterInterface;
use Symfony\Component\RateLimiter\RateLimiterFactory;
use Symfony\Component\RateLimiter\Storage\CacheStorage;

function connection(): object
{
    [$host, $port] = address();
    $class = $GLOBALS['argv'][1] === 'predis' ? Predis\Client::class : Redis::class;
    return RedisAdapter::createConnection("redis://$host:$port", ['class' => $class]);
}

/** A limiter whose state is in the cache, behind a lock: both on the server. */
function limiter(array $config, string $key): LimiterInterface
{
    $redis = connection();
    $storage = new CacheStorage(new RedisAdapter($redis, 'limits'));
    return (new RateLimiterFactory($config, $storage, new LockFactory(new RedisStore($redis))))->create($key);
}

const FIXED = ['id' => 'fixed', 'policy' => 'fixed_window', 'limit' => 5, 'interval' => '3 seconds'];
const SLIDING = ['id' => 'sliding', 'policy' => 'sliding_window', 'limit' => 5, 'interval' => '2 seconds'];
const BUCKET = ['id' => 'bucket', 'policy' => 'token_bucket', 'limit' => 5, 'rate' => ['interval' => '2 seconds', 'amount' => 1]];
const LONG = ['id' => 'long', 'policy' => 'fixed_window', 'limit' => 10, 'interval' => '1 hour'];

/** Takes what the limit has, and checks the refusal and that it opens again. */
function exhaust(array $config, int $reopens): void
{
    $limiter = limiter($config, 'exhaust');
    for ($left = 4; $left >= 0; $left--) {
        $got = $limiter->consume();
        same([true, $left, 5], [$got->isAccepted(), $got->getRemainingTokens(), $got->getLimit()]);
    }
    $got = limiter($config, 'exhaust')->consume(); // another client
    same(false, $got->isAccepted());
    // Symfony rounds the instant down to a second.
    $wait = $got->getRetryAfter()->getTimestamp() - microtime(true);
    that($wait > -1.1 && $wait <= $reopens, "told to wait $wait s");
    same(true, limiter($config, 'somebody else')->consume()->isAccepted());
    usleep($reopens * 1000000 + 100000);
    same(true, $limiter->consume()->isAccepted());
}

preg_match('/^[0-9]+\.[0-9]+/', (string) shell_exec("dpkg-query -W -f '\${Version}' php-symfony-rate-limiter"), $version);

run($version[0] ?? '?', [
    'fixed-window' => fn () => exhaust(FIXED, 3),
    // A whole window after the last, what was counted has left the window.
    'sliding-window' => fn () => exhaust(SLIDING, 4),
    'token-bucket' => fn () => exhaust(BUCKET, 2),
    'quantity' => function () {
        $limiter = limiter(LONG, 'quantity');
        same(3, $limiter->consume(7)->getRemainingTokens());
        same(false, $limiter->consume(4)->isAccepted());
        same(true, $limiter->consume(3)->isAccepted());
    },
    'reserve' => function () {
        $limiter = limiter(BUCKET, 'reserve');
        same(true, $limiter->reserve(5)->getRateLimit()->isAccepted());
        $wait = $limiter->reserve(1)->getWaitDuration();
        that($wait > 0 && $wait <= 2, "told to wait $wait s");
        thrown(MaxWaitDurationExceededException::class, fn () => $limiter->reserve(1, 0.5));
    },
    'reset' => function () {
        $limiter = limiter(LONG, 'reset');
        same(true, $limiter->consume(10)->isAccepted());
        same(false, $limiter->consume()->isAccepted());
        $limiter->reset();
        same(9, $limiter->consume()->getRemainingTokens());
    },
    'processes-share-limit' => function () {
        same(10, inProcesses(function () {
            $limiter = limiter(LONG, 'shared');
            $admitted = 0;
            for ($i = 0; $i < 6; $i++) {
                $admitted += $limiter->consume()->isAccepted() ? 1 : 0;
            }
            return $admitted;
        }));
    },
    'lock' => function () {
        [$mine, $other] = [new LockFactory(new RedisStore(connection())), new LockFactory(new RedisStore(connection()))];
        [$held, $wanted] = [$mine->createLock('one', 60), $other->createLock('one', 60)];
        same([true, false], [$held->acquire(), $wanted->acquire()]);
        $held->refresh(30);
        that($held->getRemainingLifetime() > 20, 'it was not extended');
        $held->release();
        same(true, $wanted->acquire());
        $wanted->release();
        [$one, $two] = [$mine->createLock('shared', 60), $other->createLock('shared', 60)];
        same([true, true], [$one->acquireRead(), $two->acquireRead()]);
        same(false, $mine->createLock('shared', 60)->acquire());
    },
    'cache' => function () {
        $cache = new RedisAdapter(connection(), 'cached');
        same('made', $cache->get('a', fn () => 'made'));
        same('made', $cache->get('a', fn () => 'made again'));
        same(['a', 'b'], array_keys(iterator_to_array($cache->getItems(['a', 'b']))));
        same([true, false], [$cache->hasItem('a'), $cache->hasItem('b')]);
        same(true, $cache->clear());
        same(false, $cache->hasItem('a'));
    },
]);
