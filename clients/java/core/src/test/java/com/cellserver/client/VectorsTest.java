package com.cellserver.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.fail;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;

/** The vectors that all languages share: see clients/vectors/README.md. */
class VectorsTest {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Path FOLDER = Path.of(System.getProperty("basedir", "."), "..", "..", "vectors");

    private interface Judge {
        void judge(JsonNode vector) throws Exception;
    }

    private static final Map<String, Judge> JUDGES = Map.of(
            "breaker.json", VectorsTest::breaker,
            "cache.json", VectorsTest::cache,
            "decide.json", VectorsTest::decide,
            "errors.json", VectorsTest::error,
            "headers.json", VectorsTest::headers,
            "ip.json", VectorsTest::ip,
            "keys.json", VectorsTest::keys,
            "share.json", VectorsTest::share,
            "table.json", VectorsTest::table,
            "wire.json", VectorsTest::wire);

    private static List<Path> files() throws IOException {
        try (Stream<Path> all = Files.list(FOLDER)) {
            return all.filter(path -> path.toString().endsWith(".json")).sorted().toList();
        }
    }

    @Test
    void eachFileIsRead() throws IOException {
        var names = new HashSet<String>();
        files().forEach(path -> names.add(path.getFileName().toString()));
        assertEquals(JUDGES.keySet(), names);
    }

    @TestFactory
    List<DynamicTest> vectors() throws IOException {
        var tests = new ArrayList<DynamicTest>();
        for (Path path : files()) {
            String file = path.getFileName().toString();
            for (JsonNode vector : JSON.readTree(path.toFile()).get("vectors")) {
                String name = vector.path("name").asText(vector.path("clause").asText());
                tests.add(DynamicTest.dynamicTest(file + ": " + name, () -> {
                    var judge = JUDGES.get(file);
                    assertNotNull(judge, file + " is a file that no test reads");
                    judge.judge(vector);
                }));
            }
        }
        return tests;
    }

    private static List<String> texts(JsonNode list) {
        return stream(list).map(JsonNode::asText).toList();
    }

    private static List<Long> longs(JsonNode list) {
        return stream(list).map(JsonNode::asLong).toList();
    }

    private static Stream<JsonNode> stream(JsonNode list) {
        return StreamSupport.stream(list.spliterator(), false);
    }

    private static List<Long> five(ClauseResult a) {
        return List.of(a.denies() ? 1L : 0L, a.limit(), a.remaining(), a.retryMillis(), a.resetMillis());
    }

    /** Values as Lettuce decodes them. */
    private static Object decoded(JsonNode node) {
        if (node.isArray()) {
            return stream(node).map(VectorsTest::decoded).toList();
        }
        return node.isNumber() ? (Object) node.asLong() : node.asText();
    }

    private static void breaker(JsonNode v) {
        var pause = Duration.ofMillis(v.get("pause").asLong());
        var breaker = new Breaker(new BreakerOptions(5, 20, pause, 0), () -> 0.5);
        var tickets = new HashMap<Integer, Breaker.Ticket>();
        for (JsonNode step : v.get("steps")) {
            long now = step.get("at").asLong() * Clause.NANOS_PER_MILLI;
            if (step.has("begin")) {
                var ticket = breaker.begin(now);
                tickets.put(step.get("begin").asInt(), ticket);
                assertEquals(step.get("answer").asText(), ticket.probe() ? "probe" : ticket.allowed() ? "call" : "skip");
            } else {
                var outcome = Breaker.Outcome.valueOf(step.get("outcome").asText().toUpperCase());
                breaker.end(tickets.get(step.get("end").asInt()), now, outcome);
            }
            assertEquals(step.get("state").asText(), breaker.state().name().toLowerCase().replace('_', '-'), step.toString());
        }
    }

    private static void cache(JsonNode v) throws Exception {
        var cache = new DenialCache<List<String>>(v.get("most").asLong() * Clause.NANOS_PER_MILLI);
        for (JsonNode step : v.get("steps")) {
            if (step.has("mode") || step.has("ttl")) {
                continue; // no call with a mode is made, and reservations neither look nor store
            }
            long now = step.get("at").asLong() * Clause.NANOS_PER_MILLI;
            long cost = step.get("cost").asLong();
            var call = Stream.of("policy", "key", "class", "keep", "member").map(name -> step.path(name).asText()).toList();
            if (step.has("put")) {
                var reply = Reply.read(decoded(step.get("put")), List.of());
                var result = Result.of("api", reply, cost, Source.SERVER);
                if (!result.allowed()) {
                    cache.store(call, cost, result, now);
                }
                continue;
            }
            var found = cache.find(call, cost, now);
            assertEquals(step.has("hit") ? longs(step.get("hit")) : null, found == null ? null : five(found.policies().get(0)), step.toString());
        }
    }

    private static void decide(JsonNode v) {
        long[] now = new long[1];
        var local = new LocalLimiter(Clause.parse(texts(v.get("clauses"))), () -> now[0], 1);
        for (JsonNode step : v.get("steps")) {
            now[0] = step.get("at").asLong() * Clause.NANOS_PER_MILLI;
            var answers = local.check("key", step.get("cost").asLong(), step.path("member").asText());
            assertEquals(stream(step.get("each")).map(VectorsTest::longs).toList(), answers.stream().map(VectorsTest::five).toList(), step.toString());
            assertEquals(longs(step.get("reply")), five(LocalLimiter.binding(answers)), step.toString());
        }
    }

    /** What becomes of an error, by a limiter whose calls a double answers. */
    private static void error(JsonNode v) {
        boolean start = v.get("phase").asText().equals("start");
        boolean id = v.path("id").asBoolean();
        var link = new ScriptedLink();
        var options = Limiter.<String>builder().policy("api").key(k -> k).onUnavailable(OnUnavailable.DENY).retry(id);
        var limiter = link.limiter(options.breaker(new BreakerOptions(1, 20, Duration.ofSeconds(1), 0)));
        if (!start) {
            link.reply(ScriptedLink.ALLOWED);
            assertEquals(Source.SERVER, limiter.check("k").source());
        }
        int before = link.sent.size();
        if (v.has("fault")) {
            link.reply(new Link.Lost(v.get("fault").asText(), v.get("fault").asText().equals("broken")));
        } else {
            link.reply(new Link.Refused(v.path("reply").asText()));
        }
        link.reply(ScriptedLink.ALLOWED); // of what is sent again
        String verdict = v.get("verdict").asText();
        Result result = null;
        try {
            result = limiter.check("k");
        } catch (LimiterException e) {
            assertEquals("raise", verdict, e.getMessage());
        }
        int sent = link.sent.size() - before;
        switch (verdict) {
            case "unavailable", "misconfigured" -> {
                boolean again = v.get("retry").asBoolean();
                assertEquals(again ? Source.SERVER : Source.UNAVAILABLE, result.source());
                assertEquals(again ? 2 : 1, sent);
                boolean failure = v.get("failure").asBoolean() && !again;
                assertEquals(failure ? Breaker.State.OPEN : Breaker.State.CLOSED, link.shared.breaker.state());
            }
            case "without-id" -> {
                assertEquals(2, sent);
                assertEquals(-1, link.sent.get(link.sent.size() - 1).indexOf("ID"));
            }
            case "raise" -> assertEquals(null, result);
            default -> fail(verdict);
        }
    }

    private static ClauseResult clause(JsonNode c) {
        return new ClauseResult(
                c.path("denies").asBoolean(), c.get("limit").asLong(), c.get("remaining").asLong(), c.get("retryMillis").asLong(),
                c.get("resetMillis").asLong(), c.path("windowMillis").asLong(), c.path("concurrent").asBoolean(),
                c.path("unlimited").asBoolean());
    }

    private static void headers(JsonNode v) throws IOException {
        var a = v.get("answer");
        var clauses = stream(a.get("clauses")).map(VectorsTest::clause).toList();
        var result = new Result(
                !a.get("denied").asBoolean(), clause(a.get("binding")), Source.SERVER, a.get("policy").asText(), clauses, false,
                a.path("blocked").asBoolean());
        var style = HeaderStyle.valueOf(v.get("style").asText().toUpperCase());
        assertEquals(v.get("headers"), JSON.valueToTree(HttpAnswer.fields(result, style)));
        if (v.has("problem")) {
            assertEquals(v.get("problem"), JSON.readTree(HttpAnswer.problem(result, v.get("status").asInt())));
        }
    }

    private static void ip(JsonNode v) {
        int hops = v.path("hops").asInt();
        var networks = texts(v.path("networks")).toArray(String[]::new);
        var ip = hops > 0 ? Keys.trustedHops(hops) : networks.length > 0 ? Keys.trustedNetworks(networks) : Keys.ip();
        var key = ip.v6Prefix(v.get("v6Prefix").asInt());
        var lines = texts(v.path("forwarded"));
        if (v.path("error").asBoolean()) {
            assertThrows(KeyException.class, () -> key.key(v.path("peer").asText(), lines));
        } else {
            assertEquals(v.get("key").asText(), key.key(v.path("peer").asText(), lines));
        }
    }

    private static void keys(JsonNode v) {
        var parts = texts(v.get("parts"));
        String key;
        if (v.path("secret").asBoolean()) {
            key = Keys.hashed(parts.get(0));
        } else {
            key = Keys.bounded(parts.size() == 1 ? parts.get(0) : Keys.joined(parts));
        }
        assertEquals(v.get("key").asText(), key);
        if (v.has("limits")) {
            var target = new Target(v.get("limits").asText(), List.of(), "", "");
            assertEquals(texts(v.get("states")), List.of(target.stateKey(key, 1), target.stateKey(key, 2)));
        }
    }

    private static void share(JsonNode v) {
        var shared = Clause.parse(List.of(v.get("clause").asText())).get(0).share(v.get("instances").asInt());
        assertEquals(v.get("share").asText(), shared.toString());
        assertEquals(v.get("limit").asLong(), shared.local().mostUnits());
        assertEquals(v.get("local").asText(), shared.local().toString());
    }

    private static void wire(JsonNode v) throws Exception {
        String act = v.get("do").asText();
        if (act.equals("read")) {
            read(v);
            return;
        }
        if (v.path("error").asBoolean()) {
            assertThrows(ConfigurationException.class, () -> words(v, act));
        } else {
            assertEquals(v.has("words") ? texts(v.get("words")) : null, words(v, act));
        }
    }

    private static List<String> words(JsonNode v, String act) {
        var limits = v.has("limits") ? Clause.parse(texts(v.get("limits"))) : List.<Clause>of();
        var target = new Target(v.get("policy").asText(), limits, v.path("class").asText(), v.path("keep").asText());
        String key = v.path("key").asText();
        String id = v.path("id").asText();
        long cost = v.path("cost").asLong();
        long ttl = v.path("ttl").asLong();
        var call = new Target.CallOptions(v.path("mode").asText(), v.path("member").asText(), id, ttl);
        return switch (act) {
            case "call" -> target.words(key, cost, call);
            case "start" -> target.startWords(v.path("member").asText());
            case "commit" -> target.commitWords(key, id, cost);
            case "cancel" -> target.cancelWords(key, id);
            case "renew" -> target.renewWords(key, id, ttl);
            default -> fail(act);
        };
    }

    private static void read(JsonNode v) throws Exception {
        if (v.path("error").asBoolean()) {
            assertThrows(Reply.Malformed.class, () -> Reply.read(decoded(v.get("reply")), List.of()));
            return;
        }
        var want = v.get("result");
        var result = Result.of("api", Reply.read(decoded(v.get("reply")), List.of()), v.get("cost").asLong(), Source.SERVER);
        assertEquals(want.get("allowed").asBoolean(), result.allowed());
        assertEquals(want.get("limit").asLong(), result.limit());
        assertEquals(want.get("remaining").asLong(), result.remaining());
        assertEquals(millis(want.get("retryAfter")), result.retryAfter().map(Duration::toMillis).orElse(null));
        assertEquals(millis(want.get("resetAfter")), result.resetAfter().map(Duration::toMillis).orElse(null));
        assertEquals(want.get("never").asBoolean(), result.never());
        assertEquals(want.get("blocked").asBoolean(), result.blocked());
        assertEquals(want.get("clauses").asInt(), result.policies().size());
    }

    private static Long millis(JsonNode node) {
        return node.isNull() ? null : node.asLong();
    }

    private static void table(JsonNode v) {
        var cost = new long[] {1};
        var limits = texts(v.get("limits"));
        var options = Limiter.<String>builder()
                .policy(v.get("policy").asText())
                .key(request -> "a")
                .cost(request -> cost[0])
                .onUnavailable(OnUnavailable.valueOf(v.get("onUnavailable").asText().toUpperCase()))
                .breaker(new BreakerOptions(5, 20, Duration.ofMillis(v.get("pause").asLong()), 0));
        if (v.has("instances")) {
            options.instances(v.get("instances").asInt()).fallback(limits.toArray(String[]::new));
        }
        var asked = new boolean[1];
        var limiter = new FakeLimiter<>(options.metrics(new ClientMetrics() {
            @Override
            public void duration(long nanos) {
                asked[0] = true;
            }

            @Override
            public void unavailable(String reason) {
                asked[0] = true;
            }
        }), Map.of(v.get("policy").asText(), limits));
        long at = 0;
        for (JsonNode step : v.get("steps")) {
            limiter.advance(Duration.ofMillis(step.get("at").asLong() - at));
            at = step.get("at").asLong();
            switch (step.path("server").asText()) {
                case "away" -> limiter.refuse();
                case "back" -> limiter.comeBack();
                default -> {
                    cost[0] = step.get("cost").asLong();
                    asked[0] = false;
                    var result = limiter.check("request");
                    var answer = HttpAnswer.of(result, limiter.headers());
                    assertEquals(step.get("status").asInt(), answer.status() == 0 ? 200 : answer.status(), step.toString());
                    var fields = new TreeMap<String, String>();
                    step.path("headers").properties().forEach(e -> fields.put(e.getKey(), e.getValue().asText()));
                    assertEquals(fields, new TreeMap<>(answer.fields()), step.toString());
                    assertEquals(step.get("source").asText(), result.source().label(), step.toString());
                    assertEquals(step.get("asked").asBoolean(), asked[0], step.toString());
                }
            }
        }
    }
}
