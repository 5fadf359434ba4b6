package com.cellserver.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.cellserver.client.Link.Answered;
import com.cellserver.client.Link.Lost;
import com.cellserver.client.Link.Refused;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.CompletionException;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import reactor.core.scheduler.Schedulers;

class LimiterTest {
    private static final Map<String, List<String>> POLICIES = Map.of("api", List.of("TB 2 1 60"), "chat", List.of("TB 1 1 60"));

    private static LimiterOptions<String> options() {
        return Limiter.<String>builder().policy("api").key(name -> name).onUnavailable(OnUnavailable.DENY);
    }

    @Test
    void optionsAreChecked() {
        for (var wrong : List.<LimiterOptions<String>>of(
                Limiter.<String>builder().key(k -> k).onUnavailable(OnUnavailable.DENY),
                Limiter.<String>builder().policy("api").onUnavailable(OnUnavailable.DENY),
                Limiter.<String>builder().policy("api").key(k -> k),
                options().policy("a b"),
                options().deadline(Duration.ofMillis(19)),
                options().deadline(Duration.ofMillis(1001)),
                options().onUnavailable(OnUnavailable.LOCAL),
                options().denialCache(Duration.ofMillis(-1)),
                options().limits("CC 5 30"),
                options().limits("TB 1 1 1").className("batch"))) {
            assertThrows(ConfigurationException.class, wrong::validate);
        }
        assertThrows(ConfigurationException.class, () -> options().build());
        assertThrows(ConfigurationException.class, () -> options().url("nonsense:"));
        assertThrows(ConfigurationException.class, () -> options().limits("TB 1 1"));
        assertThrows(ConfigurationException.class, () -> options().limits("TB 1 1 1x"));
        assertThrows(ConfigurationException.class, () -> options().limits("XX 1 1 1"));
        assertThrows(ConfigurationException.class, () -> options().limits("SW 99999999999999999999 1"));
        assertThrows(ConfigurationException.class, () -> options().instances(0));
    }

    @Test
    void aRequestWithoutAKeyIsNotLimited() {
        var fake = new FakeLimiter<>(options().key(name -> null), POLICIES);
        assertEquals(Source.NONE, fake.check("ann").source());
        assertTrue(fake.calls().isEmpty());
    }

    @Test
    void aCostBelowZeroIsAFaultOfTheFunction() {
        var fake = new FakeLimiter<>(options().cost(name -> -1), POLICIES);
        assertThrows(ConfigurationException.class, () -> fake.check("ann"));
        assertInstanceOf(
                ConfigurationException.class,
                assertThrows(CompletionException.class, () -> fake.checkAsync("ann").join()).getCause());
    }

    @Test
    void unitsThatAreGivenBackEndADenialInMemory() {
        var fake = new FakeLimiter<>(options(), POLICIES);
        fake.check("ann", 2);
        assertFalse(fake.check("ann").allowed());
        assertEquals(Source.CACHE, fake.check("ann").source());
        fake.check("ann", -1);
        assertTrue(fake.check("ann").allowed());
    }

    @Test
    void theDeadlineEndsACall() {
        var link = new ScriptedLink();
        var limiter = link.limiter(options().deadline(Duration.ofMillis(20)));
        assertEquals(Source.UNAVAILABLE, limiter.check("ann").source());
        assertTrue(link.waiting.get(0).isDone(), "what is no longer waited for is not sent later");
        assertEquals(Source.UNAVAILABLE, limiter.checkAsync("ann").orTimeout(10, TimeUnit.SECONDS).join().source());
    }

    @Test
    void anOpenBreakerLeavesTheConnectionAndAsksNothing() {
        var link = new ScriptedLink();
        var limiter = link.limiter(options().breaker(new BreakerOptions(2, 20, Duration.ofHours(1), 0)));
        link.reply(Link.TIMEOUT, Link.TIMEOUT);
        limiter.check("ann");
        limiter.check("ann");
        assertEquals(1, link.renewals);
        assertEquals(Source.UNAVAILABLE, limiter.check("ann").source());
        assertEquals(2, link.sent.size());
    }

    @Test
    void aCallIsSentOnceMoreOnlyWithAnIdAndAfterABrokenConnection() {
        var broken = new Lost("broken", true);
        var link = new ScriptedLink();
        var limiter = link.limiter(options().retry(true));
        link.reply(broken, ScriptedLink.ALLOWED);
        assertTrue(limiter.check("ann").allowed());
        assertEquals(link.sent.get(0), link.sent.get(1), "the same ID");
        link.reply(broken, broken);
        assertEquals(Source.UNAVAILABLE, limiter.check("ann").source());
        assertEquals(4, link.sent.size());
        link.reply(Link.TIMEOUT);
        limiter.check("ann");
        assertEquals(5, link.sent.size());
    }

    @Test
    void aServerThatIsTooOldForIdsIsAskedWithoutThem() {
        var link = new ScriptedLink();
        var limiter = link.limiter(options().id(name -> "x" + name));
        link.reply(new Refused("ERR syntax error near 'ID'"), ScriptedLink.ALLOWED, ScriptedLink.ALLOWED);
        assertTrue(limiter.check("ann").allowed());
        assertTrue(limiter.check("ann").allowed());
        assertEquals(List.of(true, false, false), link.sent.stream().map(words -> words.contains("xann")).toList());
    }

    @Test
    void aReplyThatIsNoneIsAFault() {
        var link = new ScriptedLink();
        var limiter = link.limiter(options());
        link.reply(new Answered(List.of("OK")));
        assertThrows(ServerException.class, () -> limiter.check("ann"));
    }

    @Test
    void theCheckAtTheStart() {
        var link = new ScriptedLink();
        var limiter = link.limiter(options());
        link.reply(new Refused("NOPOLICY No such policy 'api'"));
        assertThrows(ConfigurationException.class, limiter::start);
        link.reply(new Lost("refused", false));
        limiter.start();
        link.reply(new Answered(List.of(0L, 2L, 2L, -1L, 0L)), new Refused("NOPOLICY No such policy 'api'"));
        limiter.start();
        assertEquals(List.of("RL.USE", "api", "192.0.2.1", "0", "MS", "WITHDETAILS"), link.sent.get(0));
        assertEquals(Source.UNAVAILABLE, limiter.check("ann").source(), "a policy that is deleted later is no outage");
    }

    @Test
    void theCheckAtTheStartOfInlineLimits() {
        var link = new ScriptedLink();
        var limiter = link.limiter(options().limits("TB 2 1 60 NONSENSE"));
        link.reply(new Refused("ERR syntax error near 'NONSENSE'"));
        assertThrows(ConfigurationException.class, limiter::start);
        assertEquals(List.of("TB.ACQUIRE", "api:192.0.2.1", "2", "1", "60000", "0", "NONSENSE", "MS"), link.sent.get(0));
    }

    @Test
    void localReadsTheLimitsOfThePolicy() {
        var options = options().onUnavailable(OnUnavailable.LOCAL).instances(2);
        var fake = new FakeLimiter<>(options, POLICIES);
        fake.start();
        fake.goAway();
        assertEquals(List.of(true, false), List.of(fake.check("ann").allowed(), fake.check("ann").allowed()));
        fake.advance(Duration.ofSeconds(60));
        assertTrue(fake.check("ann").allowed(), "a unit is back");
        var gone = new FakeLimiter<>(options, POLICIES);
        gone.goAway();
        assertThrows(ConfigurationException.class, gone::start);
    }

    @Test
    void limitsThatCannotBeReadAreAskedForOnceAMinute() {
        var link = new ScriptedLink();
        var limiter = link.limiter(options().onUnavailable(OnUnavailable.LOCAL).instances(1));
        link.reply(ScriptedLink.ALLOWED, new Refused("NOPERM no permission"), ScriptedLink.ALLOWED, Link.TIMEOUT);
        limiter.check("ann");
        limiter.check("ann");
        assertFalse(limiter.check("ann").allowed(), "an outage without limits denies");
        assertEquals(List.of("RL.USE", "RL.POLICY", "RL.USE", "RL.USE"), link.sent.stream().map(words -> words.get(0)).toList());
    }

    @Test
    void theLimiterInTheProcessStaysForAMinute() {
        var fake = new FakeLimiter<>(
                options().onUnavailable(OnUnavailable.LOCAL).instances(1).fallback("TB 1 1 1h"),
                Map.of("api", List.of("TB 1000 1 60")));
        fake.refuse();
        assertTrue(fake.check("ann").allowed());
        fake.comeBack();
        assertEquals(Source.SERVER, fake.check("ann").source());
        fake.refuse();
        assertFalse(fake.check("ann").allowed());
        fake.comeBack();
        fake.advance(Duration.ofSeconds(61));
        assertEquals(Source.SERVER, fake.check("ann").source());
        fake.refuse();
        assertTrue(fake.check("ann").allowed());
    }

    @Test
    void aLimiterMadeOfAnotherSharesItsConnection() {
        var fake = new FakeLimiter<>(options(), POLICIES);
        try (var chat = fake.using(o -> o.policy("chat").cost(name -> 1))) {
            chat.check("ann");
        }
        fake.check("ann");
        assertEquals(
                List.of(new FakeLimiter.Asked("chat", "ann", 1), new FakeLimiter.Asked("api", "ann", 1)), fake.calls());
        assertThrows(ConfigurationException.class, () -> fake.using(o -> o.limits("CC 1 1")));
    }

    @Test
    void theDoubleDecidesInlineLimits() {
        var fake = new FakeLimiter<>(options().limits("SW 2 60 FIXED", "TB 10 1 1 INTERVAL"), Map.of());
        assertTrue(fake.check("ann").allowed());
        var second = fake.check("ann");
        assertEquals(List.of(0L, 8L), second.policies().stream().map(ClauseResult::remaining).toList());
        assertFalse(fake.check("ann").allowed());
        var single = fake.using(o -> o.limits("SW 1 60 LOG"));
        assertTrue(single.check("bob").allowed());
        assertFalse(single.check("bob").allowed());
    }

    @Test
    void threadsThatMustNotBeBlockedAreTold() throws Exception {
        var link = new ScriptedLink();
        var limiter = link.limiter(options());
        var scheduler = Schedulers.newParallel("p", 1, true);
        try {
            var thrown = new Throwable[1];
            var task = scheduler.schedule(() -> thrown[0] = assertThrows(IllegalStateException.class, () -> limiter.check("ann")));
            while (!task.isDisposed()) {
                Thread.onSpinWait();
            }
            assertInstanceOf(IllegalStateException.class, thrown[0]);
        } finally {
            scheduler.dispose();
        }
    }

    @Test
    void anInterruptEndsTheWait() {
        var link = new ScriptedLink();
        var limiter = link.limiter(options().deadline(Duration.ofSeconds(1)));
        Thread.currentThread().interrupt();
        assertEquals(Source.UNAVAILABLE, limiter.check("ann").source());
        assertTrue(Thread.interrupted());
    }

    @Test
    void interruptsOpenNoBreaker() {
        var link = new ScriptedLink();
        var limiter = link.limiter(options().breaker(new BreakerOptions(1, 20, Duration.ofHours(1), 0)));
        Thread.currentThread().interrupt();
        assertEquals(Source.UNAVAILABLE, limiter.check("ann").source());
        assertTrue(Thread.interrupted());
        link.reply(ScriptedLink.ALLOWED);
        assertEquals(Source.SERVER, limiter.check("ann").source());
    }

    @Test
    void faultsOfTheApplicationChangeNoDecision() {
        var link = new ScriptedLink();
        var limiter = link.limiter(options()
                .onUnavailable(OnUnavailable.LOCAL)
                .fallback("TB 1 1 1h")
                .instances(() -> {
                    assertFalse(Thread.holdsLock(link.shared));
                    throw new IllegalStateException("instances");
                })
                .executor(task -> {
                    throw new RejectedExecutionException();
                })
                .metrics(new ClientMetrics() {
                    @Override
                    public void duration(long nanos) {
                        throw new IllegalStateException("metrics");
                    }
                }));
        link.reply(ScriptedLink.ALLOWED);
        assertEquals(Source.SERVER, limiter.check("ann").source());
        link.reply(Link.TIMEOUT);
        assertEquals(Source.LOCAL, limiter.check("ann").source());
        var later = limiter.checkAsync("bob");
        link.waiting.get(0).complete(ScriptedLink.ALLOWED);
        assertEquals(Source.SERVER, later.orTimeout(10, TimeUnit.SECONDS).join().source());
    }

    @Test
    void metricsOfAnOutage() {
        var told = new ArrayList<String>();
        var fake = new FakeLimiter<>(
                options().breaker(new BreakerOptions(1, 20, Duration.ofSeconds(1), 0)).metrics(new ClientMetrics() {
                    @Override
                    public void decision(String policy, boolean allowed, Source source) {
                        told.add(policy + " " + allowed + " " + source.label());
                    }

                    @Override
                    public void breaker(int change) {
                        told.add("breaker " + change);
                    }

                    @Override
                    public void unavailable(String reason) {
                        told.add(reason);
                    }
                }),
                POLICIES);
        fake.refuse();
        fake.check("ann");
        fake.check("ann");
        fake.comeBack();
        fake.advance(Duration.ofSeconds(1));
        fake.check("ann");
        assertEquals(
                List.of("refused", "breaker 1", "api false unavailable", "api false unavailable", "breaker -1", "api true server"),
                told);
    }

    @Test
    void aReservationIsSettledOnce() {
        var link = new ScriptedLink();
        var limiter = link.limiter(options());
        link.reply(ScriptedLink.ALLOWED, new Answered(List.of("OK")), ScriptedLink.ALLOWED, new Answered(List.of("OK")));
        try (var reservation = limiter.reserve("ann", 800, Duration.ofHours(1))) {
            assertTrue(reservation.result().allowed());
            reservation.commit(950);
        }
        limiter.reserve("ann", 1, Duration.ofHours(1)).close();
        assertEquals(
                List.of("RL.USE", "RL.COMMIT", "RL.USE", "RL.CANCEL"), link.sent.stream().map(words -> words.get(0)).toList());
        assertEquals("950", link.sent.get(1).get(3));
        link.reply(ScriptedLink.DENIED);
        limiter.reserve("ann", 5, Duration.ofHours(1)).commit(5);
        assertEquals(5, link.sent.size(), "a denial holds nothing");
        assertEquals(Source.NONE, link.limiter(options().key(name -> null)).reserve("ann", 1, Duration.ofSeconds(1)).result().source());
    }

    @Test
    void aCommitCountsEachCallOnceWhereAClauseSaysSo() {
        var target = new Target("own", Clause.parse(List.of("TB 60 60 1m CALLS", "CC 5 30", "SW 1000 1h")), "", "");
        assertEquals(List.of("RL.COMMIT", "own:ann", "id", "1", "500"), target.commitWords("ann", "id", 500));
        var calls = Clause.parse(List.of("TB 60 60 1m CALLS")).get(0);
        assertEquals(List.of(0L, 0L, 1L, 1L), List.of(calls.units(-5), calls.units(0), calls.units(1), calls.units(500)));
    }

    @Test
    void aReservationLivesFromASecondToADay() {
        var limiter = new FakeLimiter<>(options(), POLICIES);
        for (var ttl : List.of(Duration.ofMillis(999), Duration.ofHours(24).plusMillis(1))) {
            assertThrows(ConfigurationException.class, () -> limiter.reserve("ann", 1, ttl));
        }
        assertThrows(ConfigurationException.class, () -> limiter.reserve("ann", 0, Duration.ofSeconds(1)));
    }

    @Test
    void keysOverTheBoundShareOneState() {
        var local = new LocalLimiter(Clause.parse(List.of("TB 1 1 1h")), () -> 0, 1, 2);
        var admitted = new ArrayList<String>();
        for (String key : List.of("a", "b", "c", "d")) {
            if (!local.check(key, 1, "").get(0).denies()) {
                admitted.add(key);
            }
        }
        assertEquals(List.of("a", "b", "c"), admitted);
    }

    @Test
    void denialsInMemoryAreBounded() {
        var cache = new DenialCache<Integer>(1_000_000_000L);
        var answer = new ClauseResult(true, 1, 0, 1000, 1000, 0, false, false);
        var denial = new Result(false, answer, Source.SERVER, "api", List.of(answer), false, false);
        for (int i = 0; i < 2 * DenialCache.MAX_ENTRIES; i++) {
            cache.store(i, 1, denial, 0);
        }
        assertEquals(DenialCache.MAX_ENTRIES, cache.size());
    }

    @Test
    void aForgedHeaderNeverMakesAKey() {
        var random = new Random(1);
        var hops = Keys.trustedHops(1);
        var networks = Keys.trustedNetworks("10.0.0.0/8", "2001:db8::/32");
        String alphabet = "0123456789abcdef.:,[]% \t\"/-x";
        for (int i = 0; i < 20_000; i++) {
            var forged = new StringBuilder();
            for (int n = random.nextInt(60); n > 0; n--) {
                forged.append(alphabet.charAt(random.nextInt(alphabet.length())));
            }
            String line = forged.toString();
            assertEquals("198.51.100.7", hops.key("10.0.0.2", List.of(line, "198.51.100.7")), line);
            assertEquals("198.51.100.7", networks.key("10.0.0.2", List.of(line + ",198.51.100.7, 10.9.9.9")), line);
            assertEquals("203.0.113.9", (Keys.ip()).key("203.0.113.9", List.of(line)), line);
        }
    }

    @Test
    void keysOfSeveralParts() {
        var request = new RequestInfo() {
            @Override
            public String peer() {
                return "203.0.113.9";
            }

            @Override
            public List<String> header(String name) {
                return name.equals("X-Tenant") ? List.of("a|b", "other") : List.of();
            }

            @Override
            public String user() {
                return null;
            }
        };
        assertEquals("203.0.113.9", Keys.first(Keys.user(), Keys.ip()).of(request));
        assertEquals("a%7Cb|203.0.113.9", Keys.combine(Keys.plainHeader("X-Tenant"), Keys.ip()).of(request));
        assertEquals(null, Keys.combine(Keys.user(), Keys.ip()).of(request));
        assertEquals(Keys.hashed("a|b"), Keys.header("X-Tenant").of(request));
        assertThrows(ConfigurationException.class, () -> Keys.trustedHops(0));
        assertThrows(ConfigurationException.class, () -> Keys.trustedNetworks("10.0.0.0/33"));
        assertThrows(ConfigurationException.class, () -> Keys.trustedHops(1).v6Prefix(65));
        var halves = new HashSet<String>();
        for (String text : List.of("\ud800", "\udc00", "?", "\ud800x")) {
            halves.add(Keys.bounded(text));
        }
        assertEquals(4, halves.size());
    }
}
